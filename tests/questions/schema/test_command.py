"""`kdump schema`: every declaration is listed, and Kafka's messages are shown as in Kafka's own files."""

from __future__ import annotations

import json
import os
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kdump.format
from kdump.all_answers import TYPES
from kdump.cli import cli
from kdump.format.layout import Layout, Span
from kdump.format.mirror_record import MIRROR_MESSAGES
from kdump.format.schema import FOLDERS, load
from kdump.format.struct_fields import NOT_GIVEN, StructField, rows
from kdump.format.structs import MESSAGES, TEXT_FIELDS, NamedStruct, UnknownStruct, find, structs
from kdump.format.versioned_messages import try_decode
from tests.command import run
from tests.conftest import DISKS
from tools.condense_schemas import condense, in_jars

ALL = list(structs())
KAFKAS = [each for each in ALL if each.schema and each.name not in MIRROR_MESSAGES]
SCHEMAS = Path(kdump.format.__file__).parent / "schemas"


def schema(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, ["schema", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.stdout, result.stderr


def test_every_declaration_is_told() -> None:
    """This includes every Layout that a module of kdump.format declares, and every message of the package data."""
    declared = set()
    for module in pkgutil.walk_packages(kdump.format.__path__, "kdump.format."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Layout):
                declared.add(value.name)
    told = [each.name for each in ALL]
    assert declared <= set(told)
    assert len(told) == len(set(told))
    assert set(MESSAGES) == {*FOLDERS} == {path.stem for path in SCHEMAS.glob("*.json")}
    assert {each.name for each in KAFKAS} == {
        name for path in SCHEMAS.glob("*.json") for name in json.loads(path.read_text())
    }
    _, out, _ = schema()
    assert all(f"\n  {name} " in f"\n{out}" for name in told)


def test_positions_of_the_batch_header() -> None:
    """The numbers are those of the documentation."""
    found = {row.name: row for row in rows(find("BatchHeader"))}
    assert [found[name].position for name in ("baseOffset", "magic", "crc", "attributes", "recordCount")] == [
        *(0, 16, 17, 21, 57)
    ]
    assert [(bits.name, bits.shift, bits.width) for bits in found["attributes"].bits] == [
        ("compression", 0, 3),
        ("timestampType", 3, 1),
        ("isTransactional", 4, 1),
        ("isControlBatch", 5, 1),
        ("hasDeleteHorizonMs", 6, 1),
    ]


def test_positions_are_where_a_walk_finds_them() -> None:
    """Fixed layouts tile their size; for the others, the positions are those where a walk finds the fields."""
    for struct in ALL:
        if struct.schema is not None:
            continue
        told = [row for row in rows(struct) if not row.depth]
        position = 0
        for row in told:
            if row.position is None:
                break
            assert row.position == position, (struct.name, row)
            position += row.size or 0
        else:
            if struct.size is not None:
                assert position == struct.size, struct.name


def test_of_records_the_order_is_told() -> None:
    _, out, _ = schema("record")
    body = [line.split("  ") for line in out.splitlines()[4:]]
    told = [next(part.strip() for part in parts if part.strip()) for parts in body[1:]]
    assert told[:3] == ["0", "after length", "after attributes"]
    assert "  headerKeySize" in out, "indented below the headers"
    assert "ARRAY[headersCount] of RecordHeader" in out


# --- Kafka's messages, against Kafka's own files ----------------------------------------------------------------------


def originals() -> dict[str, dict[str, Any]]:
    """Return the schemas as JSON, with the contents of Kafka's own files (the test with the jars, below, checks
    this)."""
    return {
        name: each for path in sorted(SCHEMAS.glob("*.json")) for name, each in json.loads(path.read_text()).items()
    }


def holds(text: str | None, version: int) -> bool:
    if not text or text == "none":
        return False
    if text.endswith("+"):
        return version >= int(text[:-1])
    low, _, high = text.partition("-")
    return int(low) <= version <= int(high or low)


def expected(original: dict[str, Any], fields: list[dict[str, Any]], version: int, depth: int) -> list[tuple[Any, ...]]:
    """Return (name, depth, nullable, tag) of a version's fields, with tagged fields after the others and one level
    deeper."""
    common = original.get("commonStructs", {})
    plain: list[tuple[Any, ...]] = []
    tagged: list[tuple[int, list[tuple[Any, ...]]]] = []
    for field in fields:
        if not holds(field.get("versions", field.get("taggedVersions")), version):
            continue
        tag = field["tag"] if holds(field.get("taggedVersions"), version) else None
        at = depth + (tag is not None)
        name = field["name"][0].lower() + field["name"][1:]
        own: list[tuple[Any, ...]] = [(name, at, holds(field.get("nullableVersions"), version), tag)]
        kind = field["type"].replace("[]", "")
        own += expected(original, common.get(kind) or field.get("fields") or [], version, at + 1)
        if tag is None:
            plain += own
        else:
            tagged.append((tag, own))
    return plain + [row for _, own in sorted(tagged) for row in own]


def told(struct: NamedStruct, version: int) -> list[tuple[Any, ...]]:
    found = [row for row in rows(struct, version) if row.name != "_taggedFields"]
    return [(row.name, row.depth, row.type.startswith(("NULLABLE", "COMPACT_NULLABLE")), row.tag) for row in found]


def test_each_version_has_what_kafkas_file_says() -> None:
    known = originals()
    for struct in KAFKAS:
        assert struct.schema is not None
        original = known[struct.name]
        for version in range(struct.schema.valid.lowest, struct.schema.valid.highest + 1):
            assert told(struct, version) == expected(original, original["fields"], version, 0), (struct.name, version)
        defaults = {field["name"].lower() for field in original["fields"] if "default" in field}
        assert {row.name.lower() for row in rows(struct) if not row.depth and row.default is not NOT_GIVEN} == defaults


@pytest.mark.jars
def test_the_schemas_are_those_in_kafkas_jars() -> None:
    """Condensed from the jars of the release, all that can be on a disk equal those in the package, byte for byte."""
    inside = {
        package: condense(schemas, package) for package, schemas in in_jars(Path(os.environ["KDUMP_JARS"])).items()
    }
    assert inside == {path.stem: path.read_text() for path in SCHEMAS.glob("*.json")}


def test_the_versions_together_are_each_of_them() -> None:
    """A field in the merged table is in exactly the versions that have it."""
    for struct in KAFKAS:
        assert struct.schema is not None
        valid = range(struct.schema.valid.lowest, struct.schema.valid.highest + 1)
        merged = [row for row in rows(struct) if not row.depth]
        for version in valid:
            own = {row.name for row in rows(struct, version) if row.depth == (row.tag is not None)} - {"_taggedFields"}
            own = {name for name in own if any(row.name == name for row in merged)}
            assert own >= {row.name for row in merged if holds(row.versions, version)}, (struct.name, version)
        for row in merged:
            assert any(holds(row.versions, version) for version in valid), (struct.name, row)


def test_fixed_positions_are_those_of_bytes() -> None:
    """Compared with the interpreter: bytes of 1 decode as most messages, and their spans show the position of each
    field."""
    checked = 0
    for struct in KAFKAS:
        assert struct.schema is not None
        for version in range(struct.schema.valid.lowest, struct.schema.valid.highest + 1):
            found: list[Span] = []
            try_decode(struct.schema, version, bytes([1]) * 400, spans=found)
            spans: dict[str, int] = {}
            for span in found:
                spans.setdefault(span.field.name, span.position)
            for row in rows(struct, version):
                if not row.depth and row.position is not None and row.name in spans:
                    assert row.position == spans[row.name], (struct.name, version, row.name)
                    checked += 1
    assert checked > 100


def test_types_that_change() -> None:
    found = {row.name: row for row in rows(find("OffsetCommitValue"))}
    assert found["metadata"].type == "STRING (0-3), COMPACT_STRING (4+)"
    assert (found["leaderEpoch"].versions, found["leaderEpoch"].default) == ("3+", -1)
    assert found["expireTimestamp"].versions == "1"
    assert (found["topicId"].versions, found["topicId"].tag, found["topicId"].tagged) == ("4+", 0, "4+")
    assert [row.name for row in rows(find("OffsetCommitValue"), 0)] == ["offset", "metadata", "commitTimestamp"]
    assert load("OffsetCommitValue") is find("OffsetCommitValue").schema


# --- Names and forms --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("BatchHeader", "BatchHeader"),
        ("batch", "BatchHeader"),
        ("batch-header", "BatchHeader"),
        ("RECORD", "RecordV2"),
        ("record_header", "RecordHeader"),
        ("messagev0", "MessageV0"),
        ("timeindex", "TimeIndexEntry"),
        ("txn", "TxnIndexEntry"),
        ("offsetcommitv", "LegacyOffsetCommitValue"),
        ("EndTxn", "EndTxnMarker"),
        ("quorum", "QuorumStateData"),
    ],
)
def test_generous_names(typed: str, name: str) -> None:
    if typed == "offsetcommitv":  # names that start with the text come before those that contain it
        name = "OffsetCommitValue"
    assert find(typed).name == name


def test_names_that_fail() -> None:
    for typed, said in (
        ("snapshot", "SnapshotHeader, "),
        ("OfsetCommitVale", "did you mean OffsetCommitValue"),
        ("", "to list them all"),
        ("\x1b[31m", "to list them all"),
    ):
        with pytest.raises(UnknownStruct, match=re.escape(said)):
            find(typed)
        code, out, err = schema(typed)
        assert (code, out) == (2, "")
        assert "\x1b" not in err


def test_bad_usage() -> None:
    for arguments in (
        ["--version", "1"],
        ["BatchHeader", "--version", "1"],
        ["OffsetCommitValue", "--version", "5"],
        ["OffsetCommitValue", "--version", "-1"],
        ["a", "b"],
    ):
        assert schema(*arguments)[0] == 2, arguments


def test_every_struct_in_both_forms() -> None:
    for struct in ALL:
        versions = [[]]
        if struct.schema is not None:
            versions += [
                ["--version", str(v)] for v in range(struct.schema.valid.lowest, struct.schema.valid.highest + 1)
            ]
        for version in versions:
            code, out, err = schema(struct.name, *version)
            assert (code, err) == (0, "")
            code, said, err = schema(struct.name, "--json", *version)
            assert (code, err) == (0, "")
            found = [json.loads(line) for line in said.splitlines()]
            assert found[0]["type"] == "struct"
            for each in found:
                known = TYPES[each["type"]]
                needed = [key.name for key in known if not key.optional or key.name in each]
                assert [key for key in each if key != "type"] == needed
            for each in found[1:]:
                assert f" {each['name']}" in out
    listed = [json.loads(line) for line in schema("--json")[1].splitlines()]
    assert [each["name"] for each in listed] == [each.name for each in ALL]


def test_default_null_is_told() -> None:
    found = [row for row in rows(find("RegisterBrokerRecord")) if row.name == "cordonedLogDirs"]
    assert isinstance(found[0], StructField)
    assert found[0].default is None
    assert "null" in schema("RegisterBrokerRecord")[1]


def test_every_message_is_told_of() -> None:
    assert [each.name for each in structs() if each.schema is not None and not each.schema.about] == []


def test_text_files_are_structures() -> None:
    """Each kind by its name; inspect shows the lines before the entries, too."""
    for kind, fields in TEXT_FIELDS.items():
        shown = run("schema", kind).stdout
        assert all(field.name in shown for field in fields), kind
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        path = DISKS / "kafka-4.3" / "clean-1" / name
        version, count, *_ = path.read_text().splitlines()
        assert run("inspect", path).stdout.startswith(f"version {version}, count {count}\n")
