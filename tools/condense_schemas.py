"""Condenses Kafka's message schemas to what a decoder needs: names, types, versions, tags and defaults.

    python -m tools.condense_schemas JARS [--out DIR]

JARS is a directory with a release's jars, which contain the schemas (JSON with // comments, one message per file). The
schemas of a jar become one package file, DIR/<its module>.json, which maps each message's name to its schema: all but
those of requests and responses, which are on no disk. The keys and version ranges ("0+", "1-2", "none") are Kafka's,
described in clients/src/main/resources/common/message/README.md. What a message is `about` is written by hand, in the
package file. Kafka's descriptions are left out, as is everything that only Java's classes need. The script exits at a
key that it does not know: a new release of Kafka might use it for something that the decoder has to support.

Defaults are typed here: a number, a boolean, text, or null where Kafka writes "null". A JSON null is not a default
(FieldSpec reads it into a null String), so such a field has none here."""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from pathlib import Path
from typing import Any

MESSAGE_KEYS = ("type", "apiKey", "validVersions", "flexibleVersions")
REQUIRED_KEYS = {"name", "type", "validVersions", "flexibleVersions", "fields"}
FIELD_KEYS = ("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "flexibleVersions", "default")
MEANING_KEYS = ("entityType",)
DROPPED_KEYS = {"about", "ignorable", "mapKey", "zeroCopy", "deprecatedVersions", "listeners", "latestVersionUnstable"}
INTEGERS = {"int8", "int16", "uint16", "uint32", "int32", "int64"}
WIDTH = 120
# Strings are matched as well, so that a // inside a string is kept.
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*')


JAR = re.compile(r"kafka[-_](?P<module>.+?)-\d+\.\d+\.\d+.*\.jar")
PACKAGES = {"clients": "control", "2.13": "core"}
"""Names of package files that are not those of Kafka's modules. Up to 3.9, the core has the coordinators' messages."""
SCHEMAS = Path(__file__).resolve().parent.parent / "kdump" / "format" / "schemas"
NOT_ON_DISK = {"request", "response", "header"}


def read(text: str) -> dict[str, Any]:
    """Return a schema without its comments."""
    plain = STRING_OR_COMMENT.sub(lambda m: "" if m[0].startswith("//") else m[0], text)
    # Kafka's parser ignores what follows the object, too; one file of 2.8 ends with a second brace.
    schema: dict[str, Any] = json.JSONDecoder().raw_decode(plain.strip())[0]
    return schema


def in_jars(jars: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the schemas of all messages that can be on a disk, by package and name."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for jar in sorted(jars.glob("kafka*.jar")):
        match = JAR.fullmatch(jar.name)
        with zipfile.ZipFile(jar) as files:
            for member in files.namelist():
                if match is None or not re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", member):
                    continue
                schema = read(files.read(member).decode())
                if schema["type"] in NOT_ON_DISK:
                    continue
                package = found.setdefault(PACKAGES.get(match["module"], match["module"]), {})
                if package.setdefault(schema["name"], schema) is not schema:
                    raise ValueError(f"{jar.name}: second definition of {schema['name']}")
    if not found:
        raise ValueError(f"{jars}: no schemas")
    return found


def condense_message(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the message without its name, which is its key in the package file."""
    if not set(schema) >= REQUIRED_KEYS:
        raise ValueError(f"{schema.get('name')}: not a message schema")
    check_keys(schema, {*MESSAGE_KEYS, "name", "fields", "commonStructs"}, schema["name"])
    condensed = {key: schema[key] for key in MESSAGE_KEYS if key in schema}
    condensed["fields"] = [condense_field(field, schema["name"]) for field in schema["fields"]]
    structs = schema.get("commonStructs")
    if structs:
        condensed["commonStructs"] = {
            struct["name"]: [condense_field(field, f"{schema['name']}.{struct['name']}") for field in struct["fields"]]
            for struct in sorted(structs, key=lambda struct: str(struct["name"]))
        }
    return condensed


def condense_field(field: dict[str, Any], owner: str) -> dict[str, Any]:
    """Return the field with its nested fields, in serialization order."""
    where = f"{owner}.{field['name']}"
    check_keys(field, {*FIELD_KEYS, *MEANING_KEYS, "fields"}, where)
    condensed = {key: field[key] for key in (*FIELD_KEYS, *MEANING_KEYS) if key in field and key != "default"}
    # A field without versions has the versions in which it is tagged.
    condensed.setdefault("versions", field.get("taggedVersions"))
    if condensed["versions"] is None:
        raise ValueError(f"{where}: no versions")
    # An empty default is the same as none.
    if field.get("default") not in (None, ""):
        condensed["default"] = typed_default(field["type"], field["default"], where)
    ordered = {key: condensed[key] for key in (*FIELD_KEYS, *MEANING_KEYS) if key in condensed}
    if field.get("fields"):
        ordered["fields"] = [condense_field(inner, where) for inner in field["fields"]]
    return ordered


def typed_default(kind: str, default: Any, where: str) -> Any:
    """Convert a default, which Kafka mostly writes as a string, to its value. Raises ValueError if the type does not
    allow it."""
    if default == "null":
        return None
    if kind in INTEGERS:
        return int(str(default), 0)
    if kind == "float64":
        return float(default)
    if kind == "bool":
        return {"true": True, "false": False}[str(default).lower()]
    if kind in ("string", "uuid"):
        return default
    raise ValueError(f"{where}: default {default!r} of type {kind}")


def check_keys(node: dict[str, Any], known: set[str], where: str) -> None:
    strange = set(node) - known - DROPPED_KEYS
    if strange:
        raise ValueError(f"{where}: unknown keys: {', '.join(sorted(strange))}")


def render(node: Any, indent: int = 0, before: int = 0) -> str:
    """Return JSON with each object and list on one line if it fits. `before`: number of characters already on that
    line."""
    flat = json.dumps(node, ensure_ascii=False)
    # One more character for the comma that follows. Messages always take several lines, so that a diff shows fields.
    if not isinstance(node, (dict, list)) or not node or ("fields" not in node and before + len(flat) < WIDTH):
        return flat
    pad = " " * (indent + 1)
    if isinstance(node, list):
        parts = [pad + render(item, indent + 1, indent + 1) for item in node]
        return "[\n" + ",\n".join(parts) + "\n" + " " * indent + "]"
    # Plain keys share the first line; nested values follow below.
    names = [f"{json.dumps(key)}: " for key in node]
    texts = [render(value, indent + 1, indent + 1 + len(name)) for name, value in zip(names, node.values())]
    lines: list[str] = []
    for name, text, value in zip(names, texts, node.values()):
        shared = lines and not isinstance(value, (dict, list)) and len(lines[-1]) + len(name + text) + 4 < WIDTH
        if shared:
            lines[-1] += f", {name}{text}"
        else:
            lines.append(pad + name + text)
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"


def condense(schemas: dict[str, dict[str, Any]], package: str = "") -> str:
    """Return the text of a package file, whose messages are about what the file says that is there. The same schemas
    always give the same bytes."""
    written = SCHEMAS / f"{package}.json"
    known = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
    about = {name: message["about"] for name, message in known.items()}
    messages = {name: {"about": about.get(name, ""), **condense_message(schemas[name])} for name in sorted(schemas)}
    return render(messages) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="condense Kafka's message schemas into package data")
    parser.add_argument("jars", type=Path, help="directory with the jars of a release")
    parser.add_argument("--out", metavar="DIR", type=Path, default=SCHEMAS, help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        texts = {name: condense(schemas, name) for name, schemas in in_jars(arguments.jars).items()}
    except (ValueError, KeyError, OSError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (arguments.out / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"{arguments.out / name}.json: {len(json.loads(text))} messages, {len(text)} bytes")


if __name__ == "__main__":
    main()
