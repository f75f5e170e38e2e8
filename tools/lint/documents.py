# SPDX-License-Identifier: Apache-2.0
"""JSON documents: canonical form, schemas that are schemas, documents that fit theirs, and a
manifest that names every golden file by digest."""
import hashlib
import json
import os

import tree

MANIFEST = "golden/manifest.json"
# Third-party forms: their bytes are part of what is tested.
FOREIGN = ("golden/models/", "golden/format/exl3_vectors.json", "golden/text/tokenizer_vectors.json",
           "golden/run/sampler_draws.json")
# CMake's own formats, where the order of members is for readers.
UNSORTED = ("CMakePresets.json", "tools/cmake/presets.json")
# Lists have no member to name their schema in.
LISTS = {"conformance/mutants/mutants.json": "urn:hallmark:schema:mutants:v1"}
UNLISTED = ("golden/schemas/", "golden/provenance/", "golden/CMakeLists.txt", "golden/README.md",
            MANIFEST)


class Malformed(ValueError):
    """A document that is not strict JSON."""


def _unique(pairs):
    result = {}
    for key, value in pairs:
        if key in result:
            raise Malformed(f"duplicate key {key}")
        result[key] = value
    return result


def _no_constant(name):
    raise Malformed(f"{name} is not JSON")


def parse(text):
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise Malformed(str(error)) from error


def canonical(value):
    """Sorted keys, two spaces, final newline."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def digest(root, path):
    result = hashlib.sha256()
    with open(os.path.join(root, path), "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            result.update(block)
    return result.hexdigest()


def is_ours(path):
    return path.endswith(".json") and not path.startswith(FOREIGN) and path not in UNSORTED


def load_all(root):
    """Returns ({path: value} of our documents, problems)."""
    documents, problems = {}, []
    for path in tree.paths(root):
        if not is_ours(path):
            continue
        text = tree.read(root, path)
        try:
            documents[path] = parse(text)
        except Malformed as error:
            problems.append(f"{path}: {error}")
            continue
        if text != canonical(documents[path]):
            problems.append(f"{path}: not in canonical form; run tools/vectorgen/vectorgen fmt")
    return documents, problems


def check_schemas(documents):
    """Returns ({urn: schema}, problems)."""
    import jsonschema  # pylint: disable=import-outside-toplevel
    schemas, problems = {}, []
    for path, value in documents.items():
        if not path.endswith(".schema.json"):
            continue
        try:
            jsonschema.Draft7Validator.check_schema(value)
        except jsonschema.SchemaError as error:
            problems.append(f"{path}: {error.message}")
            continue
        name = value.get("$id", "")
        if name in schemas or not name:
            problems.append(f"{path}: $id '{name}' is empty or taken")
        if value.get("$schema") != "http://json-schema.org/draft-07/schema#":
            problems.append(f"{path}: $schema must be Draft 7")
        schemas[name] = value
    return schemas, problems


def validate(schemas, urn, path, value):
    import jsonschema  # pylint: disable=import-outside-toplevel
    if urn not in schemas:
        return [f"{path}: there is no schema {urn}"]
    errors = jsonschema.Draft7Validator(schemas[urn]).iter_errors(value)
    shown = []
    for error in errors:
        shown.append(f"{path}: /{'/'.join(map(str, error.path))}: {error.message[:160]}")
        if len(shown) == 5:
            break
    return shown


def check_manifest(root, documents, schemas, clause_ids):
    problems, listed = [], {}
    for entry in documents[MANIFEST]["files"]:
        path = "golden/" + entry["path"]
        if path in listed:
            problems.append(f"{MANIFEST}: {path} is listed twice")
        listed[path] = entry
        for clause in entry["contract"]:
            if clause not in clause_ids:
                problems.append(f"{MANIFEST}: {path}: unknown clause {clause}")
        if not os.path.exists(os.path.join(root, path)):
            problems.append(f"{MANIFEST}: {path} does not exist")
            continue
        if digest(root, path) != entry["sha256"]:
            problems.append(f"{path}: its digest is not the manifest's; was it edited by hand? "
                            "(tools/vectorgen/vectorgen refresh)")
        if entry["schema"] and not is_ours(path):
            try:
                value = parse(tree.read(root, path))
            except Malformed as error:
                problems.append(f"{path}: {error}")
                continue
            problems += validate(schemas, entry["schema"], path, value)
    for path in tree.paths(root):
        if path.startswith("golden/") and path not in listed and not path.startswith(UNLISTED):
            problems.append(f"{path}: not in {MANIFEST} (tools/vectorgen/vectorgen refresh)")
    return problems


def check(root):
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        return ["python3-jsonschema is not installed; ./tools/setup installs it"]
    documents, problems = load_all(root)
    schemas, more = check_schemas(documents)
    problems += more
    for path, value in documents.items():
        if path.endswith(".schema.json"):
            continue
        urn = LISTS.get(path) or (value.get("schema") if isinstance(value, dict) else None)
        if not isinstance(urn, str):
            problems.append(f"{path}: names no schema")
            continue
        problems += validate(schemas, urn, path, value)
    if problems:
        return problems  # what follows reads documents that fit their schemas
    clauses = {c["id"] for c in documents["docs/contract/clauses.json"]["clauses"]}
    for path in ("conformance/mutants/mutants.json", "docs/tolerances.json"):
        value = documents[path]
        for entry in value if isinstance(value, list) else value["tolerances"]:
            if entry["clause"] not in clauses:
                problems.append(f"{path}: unknown clause {entry['clause']}")
    names = [entry["name"] for entry in documents["conformance/mutants/mutants.json"]]
    problems += [f"mutants.json: {n} occurs twice" for n in sorted(set(names)) if names.count(n) > 1]
    return problems + check_manifest(root, documents, schemas, clauses)
