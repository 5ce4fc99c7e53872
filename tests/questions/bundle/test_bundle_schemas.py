"""The topic of a schema registry in bundles: it is in them unless refused, without secrets and, with --redact, without
names; schemas with other names still read the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import command
from tests.conftest import FIXTURES
from tests.craft import CODECS, batch, record
from tests.each_case import each_case
from tests.questions.bundle.test_command import bundled, contents
from tests.registry_disk import (
    LOG,
    SCHEMAS,
    Step,
    delete_subject,
    encoded,
    framed,
    key,
    log,
    reference,
    schema,
    schema_key,
    write,
)

DISK = FIXTURES / "registry-1"
CANARY = "canary_0123456789abcdef"
AVRO = {
    "type": "record",
    "name": CANARY,
    "namespace": f"com.{CANARY}",
    "doc": CANARY,
    "aliases": [CANARY],
    "fields": [
        {"name": f"id{CANARY}", "type": "long", "doc": CANARY, "default": 7, CANARY: 1},
        {"name": f"at{CANARY}", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": f"kind{CANARY}", "type": {"type": "enum", "name": f"Kind{CANARY}", "symbols": [f"A{CANARY}", "B"]}},
        {"name": f"sub{CANARY}", "type": ["null", f"com.{CANARY}.Sub{CANARY}"], "default": None},
        {"name": "more", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
    ],
}
SUB = {"type": "record", "name": f"Sub{CANARY}", "namespace": f"com.{CANARY}", "fields": [{"name": "x", "type": "int"}]}
JSON_SCHEMA = {
    "$id": f"http://{CANARY}/a.json",
    "title": CANARY,
    "type": "object",
    "properties": {CANARY: {"$ref": f"#/definitions/{CANARY}"}, "b": {"enum": [CANARY], "const": CANARY}},
    "definitions": {CANARY: {"type": ["string", CANARY], "default": CANARY, "pattern": CANARY, "examples": [CANARY]}},
    "required": [CANARY],
    "patternProperties": {CANARY: {"maxLength": 5}},
    "dependentRequired": {CANARY: [CANARY]},
}
PROTO = f"""// {CANARY}
syntax = "proto3";
package shop.{CANARY};
import "google/protobuf/timestamp.proto";
import public "{CANARY}/money.proto";
option java_package = "com.{CANARY}";
/* {CANARY} */
message Order{CANARY} {{
  option deprecated = true;
  reserved "{CANARY}";
  reserved 9 to max;
  int64 id{CANARY} = 1 [deprecated = true, json_name = "{CANARY}"];
  google.protobuf.Timestamp at = 2;
  shop.money{CANARY}.Money total = 3;
  oneof how{CANARY} {{ string code{CANARY} = 4; }}
  map<string, int32> counts{CANARY} = 5;
  enum Kind{CANARY} {{ KIND_{CANARY} = 0; }}
  Kind{CANARY} kind = 6;
}}
"""
CUSTOM = f"""import "{CANARY}/money.proto";
message A {{
  option (my.{CANARY}) = {{ a: "{CANARY}" b: [1] }};
  optional int64 id = 1 [(x.{CANARY}) = '{CANARY}', default = 5];
}}
"""
MONEY = f'syntax = "proto3";\npackage shop.money{CANARY};\nmessage Money {{ int64 units = 1; }}\n'
RULES = {"domainRules": [{"name": CANARY, "expr": CANARY, "params": {"password": "canary-secret-1", "a": "b"}}]}
SECRET = {
    "properties": {"owner": "someone", "pin": "canary-secret-2", "password": "canary-secret-3"},
    "sensitive": ["pin"],
}
FULL = {"compatibilityLevel": "FULL", "alias": CANARY, "defaultMetadata": SECRET}
SUB_REFERENCE = reference(f"s{CANARY}", 1, f"com.{CANARY}.Sub{CANARY}")
STEPS: list[Step | None] = [
    schema(f"{CANARY}-value", 1, 1, json.dumps(AVRO), references=[SUB_REFERENCE]),
    schema(f"s{CANARY}", 1, 2, json.dumps(SUB)),
    schema(f":.{CANARY}:json-key", 1, 1, json.dumps(JSON_SCHEMA), schemaType="JSON"),
    schema(f"m{CANARY}", 1, 3, MONEY, schemaType="PROTOBUF"),
    schema("p", 1, 4, PROTO, schemaType="PROTOBUF", references=[reference(f"m{CANARY}", 1, f"{CANARY}/money.proto")]),
    schema("q", 1, 6, CUSTOM, schemaType="PROTOBUF"),
    schema("secret", 1, 5, '"int"', ruleSet=RULES, metadata=SECRET),
    Step(key("CONFIG", f"{CANARY}-value"), {"compatibilityLevel": "FULL", "alias": CANARY, "defaultMetadata": SECRET}),
    Step(key("MODE", f":.{CANARY}:"), {"subject": f":.{CANARY}:", "mode": "READONLY"}),
    Step(key("CONTEXT", tenant=CANARY, context=f".{CANARY}"), {"tenant": CANARY, "context": f".{CANARY}"}),
    Step(key("ASSOC", CANARY, tenant="t", resourceName=CANARY), {"subject": CANARY, "guid": CANARY, "frozen": False}),
    delete_subject(f"m{CANARY}", 0),
    Step(key("NOOP"), None),
    Step(schema_key(f"x{CANARY}", 1), b"", ((b"X-Origin-Host", f"host-{CANARY}".encode()),)),
]
ORDER = framed(1, b"\x02\x02\x00\x02\x0a\x00")
PAID = framed(4, b"\0\x08\x07\x12\x02\x08\x3c\x1a\x02\x08\x05\x22\1x\x2a\5\x0a\1a\x10\1")


def disk(root: Path) -> Path:
    return write(root, {"_schemas-0": STEPS, "t-0": [Step(None, ORDER), Step(None, PAID)]})


def shape(value: Any) -> Any:
    """Return a value without the names in it."""
    if isinstance(value, dict):
        return [shape(each) for each in value.values()]
    if isinstance(value, list):
        return [shape(each) for each in value]
    return "text" if isinstance(value, str) else value


def decoded(records: Path, schemas: Path) -> list[Any]:
    found = command.objects("inspect", records, "--records", "--schemas", schemas)
    return [each["valueDecoded"]["data"] for each in found]


def test_a_registry_in_a_bundle_is_that_of_the_disk(tmp_path: Path) -> None:
    out = bundled(DISK, tmp_path / "b", "--tar", str(tmp_path / "b.tar"))

    def versions(path: Path) -> list[dict[str, Any]]:
        return [each | {"source": ""} for each in command.objects("registry", path) if each["type"] != "note"]

    assert versions(out) == versions(DISK) == versions(tmp_path / "b.tar")
    assert decoded(DISK / "users-0", tmp_path / "b.tar") == [{"name": "ann"}]


@each_case("option", ["--no-schemas", "--no-internal"])
def test_the_registry_is_left_out_if_refused(option: str, tmp_path: Path) -> None:
    for names in ([], ["--redact"]):
        out = bundled(DISK, tmp_path / "-".join(["b", *names]), option, *names)
        assert command.run("registry", out).exit_code == 2
        assert b"compatibilityLevel" not in contents(out)


def test_secrets_of_schemas_are_not_in_a_bundle(tmp_path: Path) -> None:
    disk(tmp_path / "disk")
    assert b"canary-secret-2" in (tmp_path / "disk" / "_schemas-0" / LOG).read_bytes()
    out = bundled(tmp_path / "disk", tmp_path / "b")
    inside = contents(out)
    assert [number for number in (b"1", b"2", b"3") if b"canary-secret-" + number in inside] == []
    (secret,) = [each for each in command.objects("registry", out) if each.get("subject") == "secret"]
    assert secret["metadata"]["properties"] == {"owner": "someone", "pin": "***", "password": "***"}
    assert secret["ruleSet"]["domainRules"][0]["params"] == {"password": "***", "a": "b"}
    (order,) = [each for each in command.objects("registry", out) if each.get("subject") == f"{CANARY}-value"][:1]
    assert json.loads(order["schema"]) == AVRO


@pytest.mark.parametrize("codec", CODECS)
def test_no_name_of_a_schema_is_in_a_redacted_bundle(codec: str, tmp_path: Path) -> None:
    place = disk(tmp_path / "disk")
    data = b"".join(
        batch(
            [record(key=encoded(step.key), value=encoded(step.value), headers=step.headers)], offset=offset, codec=codec
        )
        for offset, step in enumerate(STEPS)
        if step is not None
    )
    (place / "_schemas-0" / LOG).write_bytes(data)
    out = bundled(place, tmp_path / "b", "--redact")
    inside = contents(out)
    assert CANARY.encode() not in inside, inside[inside.index(CANARY.encode()) - 300 :][:600]
    for word in (b"canary-secret", b"com.", b"someone", b"shop"):
        assert word not in inside
    (summary,) = command.objects("bundle", place, "--out", tmp_path / "c", "--redact")
    assert summary["leftOut"] == 0


def test_schemas_with_other_names_read_the_same_bytes(tmp_path: Path) -> None:
    place = disk(tmp_path / "disk")
    out = bundled(place, tmp_path / "b", "--redact")
    with_names, without = decoded(place / "t-0", place), decoded(place / "t-0", out)
    assert with_names[0][f"id{CANARY}"] == 1
    assert [shape(each) for each in with_names] == [shape(each) for each in without]
    versions = [each for each in command.objects("registry", out) if each["type"] == "schemaVersion"]
    assert sorted(each["id"] for each in versions) == [1, 1, 2, 3, 4, 5, 6]
    (json_schema,) = [each for each in versions if each["schemaType"] == "JSON"]
    assert json_schema["subject"].startswith(":.context-")
    (name,) = json.loads(json_schema["schema"])["required"]
    assert name in json.loads(json_schema["schema"])["properties"]


@each_case(
    "step",
    [
        Step(b"payload of a client", b"canary_client"),
        Step({"keytype": "OTHER"}, {"a": "canary_client"}),
        Step(schema_key("a", 1), b"canary_client"),
        Step(schema_key("a", 1), ["canary_client"]),
        Step(schema_key("a", 1), {"subject": "a", "version": 1, "id": 1, "schema": "{}"}, ((b"h", b"canary_client"),)),
    ],
)
def test_what_a_registry_does_not_write_is_not_taken_along(step: Step, tmp_path: Path) -> None:
    write(tmp_path / "disk", {"_schemas-0": [*SCHEMAS[:3], step]})
    for names in ([], ["--redact"]):
        out = bundled(tmp_path / "disk", tmp_path / "-".join(["b", *names]), *names)
        assert b"canary_client" not in contents(out)
        assert "are not in the bundle" in command.run("registry", out).stderr


@each_case(
    "text, kind",
    [
        ("{canary", "AVRO"),
        ('{"type":"array","items":' * 5000 + '"int"' + "}" * 5000, "AVRO"),
        ("7777777", "AVRO"),
        ("canary", "JSON"),
        ("message § {}", "PROTOBUF"),
        ('syntax = "proto3"; option a = {', "PROTOBUF"),
        ("canary", "LATIN"),
    ],
)
def test_schemas_that_are_none_are_left_out_if_names_are_replaced(text: str, kind: str, tmp_path: Path) -> None:
    write(tmp_path / "disk", {"_schemas-0": [schema("a", 1, 1, text, schemaType=kind)]})
    out = bundled(tmp_path / "disk", tmp_path / "b", "--redact")
    assert text.encode() not in contents(out)
    assert command.run("registry", bundled(tmp_path / "disk", tmp_path / "c")).exit_code == 0


def test_the_log_is_what_the_fixture_writes() -> None:
    assert (DISK / "_schemas-0" / LOG).read_bytes() == log(SCHEMAS)
