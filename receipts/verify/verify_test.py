# SPDX-License-Identifier: Apache-2.0
"""verify, diff, sign and keygen as users meet them: exit codes, words, documents that fit their
schemas, files written whole or not at all; and that the verifier's folder includes nothing of the
emitter. HALLMARK names the program, HALLMARK_SOURCE the tree."""
import glob
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

import jsonschema

PROGRAM = os.environ["HALLMARK"]
SOURCE = os.environ["HALLMARK_SOURCE"]
PUBLISHED = sorted(glob.glob(f"{SOURCE}/receipts/published/cpu/*.intoto.jsonl"))


def level_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["predicate"]["core"]["level"]


# Two of one level, so that tests know what they hold.
ONE, OTHER = [path for path in PUBLISHED if level_of(path) == "L2"][:2]


def schema(name):
    with open(f"{SOURCE}/receipts/schemas/{name}.v1.schema.json", encoding="utf-8") as file:
        return json.load(file)


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def canonical(value):
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def digest(value):
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def run(*arguments, cwd=None):
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False,
                          timeout=120, cwd=cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def forge(self, source, edit):
        """A receipt with `edit` made and every digest of its own recomputed."""
        statement = read(source)
        predicate = statement["predicate"]
        edit(predicate["core"], predicate["context"])
        core = predicate["core"]
        core["checkpoint"]["sha256"] = digest(core["checkpoint"]["files"])
        predicate["core_sha256"] = digest(core)
        predicate["context_sha256"] = digest(predicate["context"])
        name = f'{core["level"]}.cpu.{predicate["core_sha256"][:12]}.intoto.jsonl'
        return self.write(name, json.dumps(statement, sort_keys=True, separators=(",", ":"),
                                           ensure_ascii=False) + "\n")

    def document(self, *arguments, code):
        found, shown, errors = run("verify", *arguments, "--json")
        self.assertEqual((found, errors), (code, ""), shown)
        document = json.loads(shown)
        jsonschema.validate(document, schema("verdict"))
        self.assertEqual(shown, canonical(document))
        return document

    def reasons(self, *arguments, code=1):
        return [reason["code"] for receipt in self.document(*arguments, code=code)["receipts"]
                for reason in receipt["reasons"]]

    def refused(self, *arguments, code, words):
        found, shown, errors = run(*arguments)
        self.assertEqual((found, shown), (code, ""), errors)
        self.assertEqual(errors.count("\n"), 1)
        self.assertRegex(errors, words)


def fail_one(core, context):
    """An honest failure of a checkpoint that nobody published."""
    core["checkpoint"]["files"][0]["sha256"] = "a" * 64
    core["rows"] = [row for row in core["rows"] if row["clause"] != "model-golden"]
    row = next(row for row in core["rows"] if row["case"] == "prompt,cut=16")
    row.update(outcome="fail", actual="b" * 64, detail="the state: the bits differ")
    context["verdict"]["outcome"] = "fail"


class Verify(Case):
    def test_published_receipts_pass_with_the_summaries_beside_them(self):
        files = sorted(glob.glob(f"{SOURCE}/receipts/published/cpu/*"))
        code, shown, errors = run("verify", *files)
        self.assertEqual((code, errors), (0, ""), shown)
        self.assertEqual(len(re.findall(r"^PASSED at L[0-9] under policy L[0-9]: ", shown, re.M)),
                         len(PUBLISHED))
        document = self.document(*files, code=0)
        self.assertEqual(document["result"], "PASSED")
        for path, receipt in zip(PUBLISHED, document["receipts"]):
            with open(path, "rb") as file:
                self.assertEqual(receipt["sha256"], hashlib.sha256(file.read()).hexdigest())
            self.assertEqual(receipt["core_sha256"], read(path)["predicate"]["core_sha256"])

    def test_pins_are_those_of_the_published_receipts(self):
        done = subprocess.run([f"{SOURCE}/receipts/pin", "--check"], stdout=subprocess.PIPE,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (0, b"pins: as published\n"))

    def test_one_denied_among_many_decides(self):
        bad = self.forge(ONE, lambda core, _: core["rows"].pop())
        code, shown, _ = run("verify", ONE, bad)
        self.assertEqual(code, 1)
        self.assertIn(f"DENIED: {bad}", shown)
        self.assertIn("row-missing at /predicate/core/rows: expected ", shown)
        document = self.document(ONE, bad, code=1)
        self.assertEqual([r["result"] for r in document["receipts"]], ["PASSED", "DENIED"])
        self.assertEqual(document["result"], "DENIED")

    def test_what_is_no_receipt_is_denied_and_what_cannot_be_read_is_undecided(self):
        self.assertEqual(self.reasons(self.write("notes.txt", "hello\n")), ["not-json"])
        self.assertEqual(self.reasons(self.path("none.intoto.jsonl"), code=3), ["unreadable"])
        self.assertEqual(self.reasons(ONE, self.path("none"), code=3), ["unreadable"])

    def test_a_folder_stands_for_the_receipts_in_it(self):
        document = self.document(f"{SOURCE}/receipts/published/cpu", code=0)
        self.assertEqual(len(document["receipts"]), len(PUBLISHED))
        self.refused("verify", self.folder, code=2, words="not_found: the folder holds no receipt")

    def test_policies_by_name_and_by_file(self):
        document = self.document(ONE, "--policy", "L1", code=0)
        self.assertEqual(document["receipts"][0]["policy"]["name"], "L1")
        policy = read(f"{SOURCE}/receipts/policies/L1.json")
        policy.update(name="fp8 only", kv=["fp8"])
        path = self.write("p.json", canonical(policy))
        bf16 = next(p for p in PUBLISHED if read(p)["predicate"]["core"]["settings"]["kv"] == "bf16")
        self.assertEqual(self.reasons(bf16, "--policy", path), ["policy-kv"])
        policy["clauses"].append("all-is-well")
        path = self.write("p.json", canonical(policy))
        self.refused("verify", bf16, "--policy", path, code=2,
                     words=r"malformed: unknown clause all-is-well .*p\.json.*--policy")
        self.refused("verify", bf16, "--policy", "L77", code=2, words="not_found: .*L77.*--policy")

    def test_a_policy_does_not_pass_for_another(self):
        policy = read(f"{SOURCE}/receipts/policies/L2.json")
        path = self.write("p.json", canonical(policy))
        self.document(ONE, "--policy", path, code=0)  # the built-in one itself
        policy.update(must_pass=["L0"])
        path = self.write("p.json", canonical(policy))
        self.refused("verify", ONE, "--policy", path, code=2, words="mismatch: .*at /name.*--policy")
        policy["name"] = "mine\x1b[2J\nPASSED at L2 under policy L2: another"
        code, shown, _ = run("verify", ONE, "--policy", self.write("p.json", canonical(policy)))
        self.assertEqual(code, 0)
        self.assertNotIn("\x1b", shown)
        self.assertEqual(len(re.findall(r"^PASSED", shown, re.M)), 1)

    def test_what_a_flag_does_not_name_is_not_left_out(self):
        for flag, words in (("--public-key", "not_found"), ("--policy", "not_found"),
                            ("--waivers", "not_found"), ("--checkpoint", "not_found"),
                            ("--drafter", "not_found"), ("--out", "out_of_range")):
            self.refused("verify", ONE, flag, "", code=2, words=f"{words}: .*{flag}")
        run("keygen", "--out", self.path("mine"))
        receipt = shutil.copy(ONE, self.folder)
        for flag, words in (("--key", "not_found"), ("--out", "out_of_range")):
            self.refused("sign", receipt, "--key", self.path("mine.key"), flag, "", code=2,
                         words=f"(usage|{words}): .*{flag}")

    def test_waivers(self):
        receipt = self.forge(ONE, fail_one)
        self.assertEqual(self.reasons(receipt), ["row-not-passed"])
        waivers = {"schema": "urn:hallmark:schema:waivers:v1",
                   "waivers": [{"case": "chunked-equals-whole/prompt,cut=16",
                                "expires": "2999-12-31", "reason": "being looked at"}]}
        path = self.write("w.json", canonical(waivers))
        jsonschema.validate(waivers, schema("waivers"))
        self.assertEqual(self.reasons(receipt, "--waivers", path, code=3), [])
        code, shown, _ = run("verify", receipt, "--waivers", path)
        self.assertEqual(code, 3)
        self.assertRegex(shown, r"^WAIVED under policy L2, which is no pass")
        self.assertIn("being looked at", shown)
        waivers["waivers"][0]["expires"] = "2026-01-01"
        path = self.write("w.json", canonical(waivers))
        self.refused("verify", receipt, "--waivers", path, code=2, words="out_of_range: .*expired")

    def test_the_folder_of_the_checkpoint(self):
        prism = next(p for p in PUBLISHED if "prism-exl3,run=" in json.dumps(read(p)))
        models = f"{SOURCE}/golden/models"
        self.assertEqual(self.reasons(prism, "--checkpoint", f"{models}/prism-exl3", code=0), [])
        self.assertIn("folder-file-bytes",
                      self.reasons(prism, "--checkpoint", f"{models}/scribe-11m-exl3"))
        self.refused("verify", prism, "--checkpoint", self.path("none"), code=2,
                     words="not_found: .*--checkpoint")

    def test_out_is_the_document_whole_or_not_at_all(self):
        out = self.path("verdict.json")
        code, shown, _ = run("verify", ONE, "--out", out, "--json")
        self.assertEqual(code, 0)
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), shown)
        self.refused("verify", ONE, "--out", self.path("no/where.json"), code=3, words="io: ")

    def test_a_hostile_receipt_does_not_speak_to_the_terminal(self):
        def edit(core, _):
            core["rows"][0]["case"] = "\x1b[2J\u202e" + "x" * 5000
        code, shown, _ = run("verify", self.forge(ONE, edit))
        self.assertEqual(code, 1)
        self.assertTrue(all(c == "\n" or " " <= c <= "~" for c in shown), shown)
        self.assertLess(len(shown), 10000)


class Diff(Case):
    def compare(self, one, other, code):
        found, shown, errors = run("diff", one, other, "--json")
        self.assertEqual((found, errors), (code, ""))
        document = json.loads(shown)
        jsonschema.validate(document, schema("diff"))
        return document

    def test_equal_differs_and_not_comparable(self):
        same = self.forge(ONE, lambda _, context: context["host"].update(cpu="other"))
        self.assertEqual(self.compare(ONE, same, 0)["result"], "equal")
        code, shown, _ = run("diff", ONE, same)
        self.assertEqual(code, 0)
        self.assertEqual(shown, "equal: core digest "
                         f'{read(same)["predicate"]["core_sha256"]}\n')

        def edit(core, _):
            core["rows"].pop()
            core["rows"][0]["actual"] = "b" * 64
        document = self.compare(ONE, self.forge(ONE, edit), 1)
        self.assertEqual(document["result"], "differs")
        self.assertEqual((len(document["only_a"]), document["only_b"], len(document["rows"])),
                         (1, [], 1))
        document = self.compare(ONE, OTHER, 3)
        self.assertEqual(document["result"], "not comparable")
        self.assertNotEqual(document["unlike"], [])
        code, shown, _ = run("diff", ONE, OTHER)
        self.assertEqual(code, 3)
        self.assertNotIn("differs", shown)

    def test_what_is_no_receipt_is_not_comparable(self):
        self.refused("diff", ONE, self.write("x.intoto.jsonl", "{}\n"), code=3,
                     words="malformed: not a sound receipt: unknown-statement-type")
        self.refused("diff", ONE, self.path("none"), code=3, words="not_found: ")
        # Both have one name, so the folder must say which is meant.
        other = self.write(os.path.basename(ONE), "{}\n")
        self.refused("diff", ONE, other, code=3, words="malformed: .*" + re.escape(other))

    def test_rows_of_one_name_are_not_compared(self):
        statement = read(ONE)
        core = statement["predicate"]["core"]
        core["rows"].insert(0, dict(core["rows"][0], outcome="fail", detail="why"))
        statement["predicate"]["core_sha256"] = digest(core)
        text = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.refused("diff", ONE, self.write("twice.intoto.jsonl", text + "\n"), code=3,
                     words="malformed: .*row-duplicate")


class Sign(Case):
    def contents(self):
        found = {}
        for name in os.listdir(self.folder):
            with open(self.path(name), "rb") as file:
                found[name] = file.read()
        return found

    def test_keys_envelopes_and_their_judgement(self):
        code, shown, _ = run("keygen", "--out", self.path("mine"))
        self.assertEqual(code, 0, shown)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("mine.key")).st_mode), 0o600)
        self.refused("keygen", "--out", self.path("mine"), code=3, words="io: .*mine.key")
        run("keygen", "--out", self.path("other"))
        receipt = shutil.copy(ONE, self.folder)
        envelope = receipt.replace(".intoto.jsonl", ".dsse.json")
        code, shown, errors = run("sign", receipt, "--key", self.path("mine.key"))
        self.assertEqual(code, 0, errors)
        self.assertIn(envelope, shown)
        signed = self.document(envelope, "--public-key", self.path("mine.pub"), code=0)
        self.assertEqual(signed["receipts"][0]["signature"], "valid")
        self.assertEqual(self.reasons(envelope, "--public-key", self.path("other.pub")),
                         ["signature-key"])
        self.assertEqual(self.reasons(receipt, "--public-key", self.path("mine.pub")),
                         ["signature-missing"])
        self.assertEqual(run("diff", receipt, envelope)[0], 0)
        self.refused("verify", envelope, "--public-key", self.path("mine.key"), code=2,
                     words="malformed: .*--public-key")
        os.chmod(self.path("mine.key"), 0o644)
        self.refused("sign", receipt, "--key", self.path("mine.key"), code=2,
                     words="unsupported: .*--key")

    def test_a_key_that_is_none_is_a_fault_of_the_flag(self):
        receipt = shutil.copy(ONE, self.folder)
        run("keygen", "--out", self.path("mine"))
        with open(self.path("mine.key"), encoding="utf-8") as file:
            line = file.read()
        for text in ("", line[:-1], line + "\n", line.replace(" ", "  "), line[:-5] + "\n",
                     line.replace("\n", "\r\n"), line.replace("secret", "public"), "x" * 10000):
            os.chmod(self.write("bad.key", text), 0o600)
            self.refused("sign", receipt, "--key", self.path("bad.key"), code=2,
                         words="malformed: .*--key")
        self.refused("sign", receipt, "--key", self.path("none"), code=2,
                     words="not_found: .*--key")
        self.assertEqual(sorted(os.listdir(self.folder)),
                         [os.path.basename(ONE), "bad.key", "mine.key", "mine.pub"])

    def test_a_key_without_a_name_is_not_made(self):
        for name in ("", "./", self.path("")):
            code, shown, errors = run("keygen", "--out", name, cwd=self.folder)
            self.assertEqual((code, shown), (2, ""))
            self.assertRegex(errors, "out_of_range: .*--out")
        self.assertEqual(os.listdir(self.folder), [])

    def test_no_input_is_written_over(self):
        run("keygen", "--out", self.path("mine"))
        receipt = shutil.copy(ONE, self.folder)
        key = self.path("mine.key")
        os.symlink(key, self.path("link.dsse.json"))
        before = self.contents()
        for out in (key, receipt, self.path("envelope.json"), self.path("link.dsse.json")):
            self.refused("sign", receipt, "--key", key, "--out", out, code=2,
                         words="out_of_range: .*--out")
        for out in (receipt, self.path("mine.pub")):
            self.refused("verify", receipt, "--public-key", self.path("mine.pub"), "--out", out,
                         code=2, words="out_of_range: .*--out")
        model = shutil.copytree(f"{SOURCE}/golden/models/prism-exl3", self.path("model"))
        self.refused("verify", receipt, "--checkpoint", model, "--out",
                     os.path.join(model, "config.json"), code=2, words="out_of_range: .*--out")
        shutil.rmtree(model)
        self.assertEqual(self.contents(), before)

    def test_only_receipts_are_signed(self):
        run("keygen", "--out", self.path("mine"))
        other = self.write("x.intoto.jsonl", "{}\n")
        self.refused("sign", other, "--key", self.path("mine.key"), code=1, words="malformed: ")
        self.assertFalse(os.path.exists(self.path("x.dsse.json")))


class Independence(unittest.TestCase):
    def test_the_verifier_includes_nothing_of_the_emitter_or_the_engine(self):
        allowed = ("receipts/verify/", "engine/base/")
        tests = re.compile(r"_test\.cc$")
        for path in sorted(glob.glob(f"{SOURCE}/receipts/verify/*.[ch]*")):
            with open(path, encoding="utf-8") as file:
                for target in re.findall(r'^#include "([^"]+)"', file.read(), re.M):
                    if tests.search(path) and target.startswith("conformance/harness/"):
                        continue
                    self.assertTrue(target.startswith(allowed), f"{path}: {target}")

    def test_every_reason_is_documented_and_every_documented_one_exists(self):
        told = {"unreadable", "envelope-malformed"}
        for path in glob.glob(f"{SOURCE}/receipts/verify/*.cc"):
            if path.endswith("_test.cc"):
                continue
            with open(path, encoding="utf-8") as file:
                told |= set(re.findall(r'\b(?:Add|Equal)\(\s*"([a-z0-9-]+)"', file.read()))
        with open(f"{SOURCE}/docs/receipts/verify.md", encoding="utf-8") as file:
            table = file.read().split("## Reasons")[1]
        listed = set()
        for line in table.splitlines():
            if line.startswith("| `"):
                listed |= set(re.findall(r"`([a-z0-9-]+)`", line.split("|")[1]))
        self.assertEqual(told, listed)


if __name__ == "__main__":
    unittest.main()
