# SPDX-License-Identifier: Apache-2.0
"""The table clause x {vector, property, planted fault, receipt row}, built from the tree. A hole in
a clause whose status is "in" is a problem; planned clauses may have any."""
import json
import re

import tree

CLAUSES = "docs/contract/clauses.json"
COVERAGE = "docs/contract/coverage.md"
CONTRACT = "docs/contract/README.md"
MARKER = "<!-- Built by tools/lint/lint.py clauses --write from clauses.json. -->\n"
KINDS = ("vector", "property", "mutant", "receipt row")
PROPERTY = re.compile(r"^// Clause: ([a-z0-9, -]+)$", re.MULTILINE)
HEAD = """# What stands behind each clause

Built from the tree by `tools/lint/lint.py clauses --write`; the gate fails when this page is stale or
when a clause that is in has a hole. Vectors are named in `golden/manifest.json`, properties say
`// Clause: <id>` in their `_prop.cc`, planted faults and receipt rows name theirs as data.

| clause | status | vectors | properties | planted faults | receipt rows |
|---|---|---|---|---|---|
"""


def _rows(value, ids):
    """Yields the clause of every receipt row a must-pass list names, in either of its forms:
    objects with a member "clause", or strings "clause/case"."""
    if isinstance(value, dict):
        if value.get("clause") in ids:
            yield value["clause"]
        for item in value.values():
            yield from _rows(item, ids)
    elif isinstance(value, list):
        for item in value:
            yield from _rows(item, ids)
    elif isinstance(value, str) and "/" in value and value.split("/")[0] in ids:
        yield value.split("/")[0]


def collect(root):
    """Returns (clauses, {clause id: {kind: [evidence]}}, problems)."""
    clauses = json.loads(tree.read(root, CLAUSES))["clauses"]
    ids = [clause["id"] for clause in clauses]
    found = {clause: {kind: [] for kind in KINDS} for clause in ids}
    problems = [f"{CLAUSES}: {i} occurs twice" for i in sorted(set(ids)) if ids.count(i) > 1]

    def add(clause, kind, evidence, where):
        if clause in found:
            found[clause][kind].append(evidence)
        else:
            problems.append(f"{where}: unknown clause {clause}")

    for path in tree.paths(root):
        if path == "golden/manifest.json":
            for entry in json.loads(tree.read(root, path))["files"]:
                for clause in entry["contract"]:
                    add(clause, "vector", "golden/" + entry["path"], path)
        elif path == "conformance/mutants/mutants.json":
            for entry in json.loads(tree.read(root, path)):
                add(entry["clause"], "mutant", entry["name"], path)
        elif path.startswith("receipts/must_pass/") and path.endswith(".json"):
            for clause in _rows(json.loads(tree.read(root, path)), found):
                add(clause, "receipt row", path, path)
        elif path.endswith("_prop.cc"):
            named = PROPERTY.findall(tree.read(root, path))
            if not named:
                problems.append(f"{path}: a property must name its clause ('// Clause: <id>')")
            for line in named:
                for clause in line.split(","):
                    add(clause.strip(), "property", path, path)
    return clauses, found, problems


def holes(clauses, found):
    return [f'clause {clause["id"]} is in, and has no {kind}'
            for clause in clauses if clause["status"] == "in"
            for kind in KINDS if not found[clause["id"]][kind]]


def _cell(kind, evidence):
    if not evidence:
        return "—"
    if kind in ("mutant", "receipt row"):
        return str(len(evidence))
    return "<br>".join(f"`{item}`" for item in sorted(set(evidence)))


def table(clauses, found):
    text = HEAD
    for clause in clauses:
        cells = [_cell(kind, found[clause["id"]][kind]) for kind in KINDS]
        text += f'| {clause["id"]} | {clause["status"]} | ' + " | ".join(cells) + " |\n"
    return text


def contract(head, clauses):
    """The contract's page: what stands above the marker, then the clauses."""
    text = head.split(MARKER)[0] + MARKER
    for status, title in (("in", "In"), ("planned", "Planned: these claim nothing yet")):
        chosen = [clause for clause in clauses if clause["status"] == status]
        if chosen:
            text += f"\n### {title}\n"
        for clause in chosen:
            text += f'- **{clause["id"]}**: {clause["statement"]} Compared: {clause["compared"]}.\n'
    return text


def _keep(root, path, text, write):
    """Writes a built page, or returns a problem when it is stale."""
    if write:
        with open(f"{root}/{path}", "w", encoding="utf-8") as file:
            file.write(text)
    elif path not in tree.paths(root) or tree.read(root, path) != text:
        return [f"{path} is stale; run tools/lint/lint.py clauses --write"]
    return []


def check(root, write=False):
    clauses, found, problems = collect(root)
    problems += holes(clauses, found)
    problems += _keep(root, COVERAGE, table(clauses, found), write)
    head = tree.read(root, CONTRACT) if CONTRACT in tree.paths(root) else ""
    return problems + _keep(root, CONTRACT, contract(head, clauses), write)
