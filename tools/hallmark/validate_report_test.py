# SPDX-License-Identifier: Apache-2.0
"""hallmark validate --report as a vendor meets it: the page agrees with the JSON, needs nothing
beside it, and a browser opens it without a complaint where one is installed. With
HALLMARK_EXPECT_CHROMIUM=1 a missing Chromium is a failure."""
import html.parser
import json
import os
import shutil
import subprocess
import sys
import unittest

from cli_test import SCRIBE, Case, run
from validate_test import Checkpoint

VOID = {"meta", "link", "br", "hr", "img", "input"}
SPACE = "\u202f"  # between groups of digits
BROWSER_TEST = "Report.test_a_browser_opens_it_without_a_complaint"
STEPS = ("--step", "structure", "--step", "numbers")


class Page(html.parser.HTMLParser):
    """Every tag closed in order; the texts of elements that have data-fact."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.facts, self.faults = [], [], {}, []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag, _ in self.open]

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        fact = attributes.get("data-fact")
        if fact is not None:
            self.facts[fact] = ""
        if tag not in VOID:
            self.open.append((tag, fact))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.faults.append(f"</{tag}> closes nothing")
        else:
            self.open.pop()

    def handle_data(self, data):
        for _, fact in self.open:
            if fact is not None:
                self.facts[fact] += data


def at(value, pointer):
    for key in pointer.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def leaves(value, pointer=""):
    """The pointers of all values; a list of plain ones is one value."""
    plain = isinstance(value, list) and not any(isinstance(v, (list, dict)) for v in value)
    if plain or not isinstance(value, (list, dict)):
        yield pointer
        return
    for key, item in enumerate(value) if isinstance(value, list) else value.items():
        name = str(key).replace("~", "~0").replace("/", "~1")
        yield from leaves(item, f"{pointer}/{name}")


def shown(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(shown(item) for item in value) or "none"
    return "\u2014" if value is None else str(value)


class Report(Case):
    def report(self, *arguments, code=0):
        path = self.path("r.html")
        done = run("validate", *arguments, "--report", path, "--json")
        self.assertEqual((done.returncode, done.stderr), (code, b""))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return path, text, json.loads(done.stdout)

    def check_agrees(self, page, value):
        self.assertEqual(page.faults, [])
        for pointer, text in page.facts.items():
            expected = at(value, pointer)
            if isinstance(expected, (int, float)) and not isinstance(expected, bool):
                self.assertAlmostEqual(float(text.replace(SPACE, "")), expected,
                                       delta=abs(expected) * 1e-3, msg=pointer)
            else:
                self.assertEqual(text.replace(SPACE, ""), shown(expected), pointer)
        for pointer in leaves(value["files"], "/files"):
            self.assertIn(pointer, page.facts)
        for index, step in enumerate(value["steps"]):
            for part in ("compared", "findings", "facts"):
                for pointer in leaves(step[part], f"/steps/{index}/{part}"):
                    if step[part] and not pointer.endswith("/code"):
                        self.assertIn(pointer, page.facts)

    def test_the_page_says_what_the_json_says(self):
        _, text, value = self.report(SCRIBE)
        page = Page(text)
        self.check_agrees(page, value)
        self.assertGreater(len(page.facts), 100)
        self.assertIn("<h1>Accepted</h1>", text)
        bars = [a for tag, a in page.tags if tag == "rect" and a.get("class") == "bar"]
        self.assertEqual(len(bars), 9)  # eight layers and the head
        svg = dict(page.tags)["svg"]
        self.assertEqual(svg["role"], "img")
        for name in svg["aria-labelledby"].split():
            self.assertIn(name, [a.get("id") for _, a in page.tags])

    def test_it_needs_nothing_beside_it(self):
        _, text, _ = self.report(SCRIBE, *STEPS)
        for tag, attributes in Page(text).tags:
            self.assertNotIn(tag, ("script", "link", "img", "iframe", "object", "embed"))
            self.assertFalse({"src", "href", "onload", "style"} & set(attributes), tag)
        self.assertNotIn("url(", text)
        self.assertNotIn("@import", text)
        self.assertNotIn("http://", text)
        self.assertNotIn("https://", text)

    def test_a_tensor_named_as_markup_stays_text(self):
        model = Checkpoint(self.path("<b>model"))
        name = "<script>alert(1)</script>"
        model.retensor(lambda h: h.update({name: {"dtype": "U8", "shape": [2],
                                                  "data_offsets": [0, 2]}}))
        _, text, value = self.report(model.folder, code=1)
        page = Page(text)
        self.assertNotIn("<script", text)
        self.assertNotIn("<b>model", text)
        self.check_agrees(page, value)
        self.assertIn(name, page.facts.values())
        self.assertIn("<h1>Rejected</h1>", text)

    def test_a_page_that_cannot_be_written_is_refused_first(self):
        nowhere = self.path("no/r.html")
        self.assertEqual(run("validate", SCRIBE, "--report", nowhere).returncode, 3)
        self.check_refused(run("validate", SCRIBE, "--report", self.path("r.json")), 2,
                           "out_of_range", "--report")
        os.mkdir(self.path("d.html"))
        self.check_refused(run("validate", SCRIBE, "--report", self.path("d.html")), 2,
                           "out_of_range", "--report")
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        os.symlink("config.json", self.path("l.html"))
        self.check_refused(run("validate", SCRIBE, "--report", self.path("l.html")), 2,
                           "out_of_range", "--report")
        with open(self.path("config.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "{}")

    def test_nothing_is_left_beside_it_and_it_is_the_same_each_time(self):
        _, first, _ = self.report(SCRIBE, *STEPS)
        _, second, _ = self.report(SCRIBE, *STEPS)
        self.assertEqual(first, second)
        self.assertEqual(os.listdir(self.path("")), ["r.html"])

    def test_a_missing_browser_is_a_failure_where_one_is_expected(self):
        def without_a_browser(expected):
            environment = dict(os.environ, PATH=self.folder)  # in which there is no program
            environment.pop("HALLMARK_EXPECT_CHROMIUM", None)
            environment.update(expected)
            return subprocess.run([sys.executable, __file__, BROWSER_TEST], env=environment,
                                  capture_output=True, timeout=120, check=False)
        done = without_a_browser({"HALLMARK_EXPECT_CHROMIUM": "1"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"Chromium is not installed", done.stderr)
        self.assertIn(b"FAILED (failures=1)", done.stderr)
        done = without_a_browser({})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"Chromium is missing: the page was not opened", done.stdout)

    def test_a_browser_opens_it_without_a_complaint(self):
        path, _, _ = self.report(SCRIBE, *STEPS)
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if browser is None:
            self.assertNotEqual(os.environ.get("HALLMARK_EXPECT_CHROMIUM"), "1",
                                "Chromium is not installed")
            print("Chromium is missing: the page was not opened in a browser")
            return
        done = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             "--user-data-dir=" + self.path("profile"), "--dump-dom", "file://" + path],
            capture_output=True, timeout=120, check=True)
        self.assertNotIn("CONSOLE", done.stderr.decode(errors="replace"))
        self.assertIn('id="bits-chart"', done.stdout.decode())


if __name__ == "__main__":
    unittest.main()
