"""The interpreter of Kafka's message schemas: real messages, every type and version rule, and false or damaged
bytes."""

import importlib.util
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.format.errors import DecodeError, ElementsError, LengthError, NullError
from kdump.format.kafka_uuid import uuid_text
from kdump.format.layout import Span
from kdump.format.schema import MessageSchema, Versions, load, load_folder
from kdump.format.versioned_messages import UNKNOWN_TAGS, decode, kafka_json, try_decode
from tests.conftest import numbers_in

ROOT = Path(__file__).resolve().parents[2]

# Written like Kafka's own schemas, so that the tool that condenses them is tested too. Version 0 has the old encoding,
# 1 the old one with nulls, 2 the flexible one with tags, and 3 adds a tag.
EVERYTHING = """
// Licensed to nobody.
{
  "apiKey": 7, "type": "data", "name": "Everything",
  // A comment between.
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    { "name": "Flag", "type": "bool", "versions": "0+", "about": "See http://example.org // here" },
    { "name": "Tiny", "type": "int8", "versions": "0+" },
    { "name": "Short", "type": "int16", "versions": "0+" },
    { "name": "Port", "type": "uint16", "versions": "0+" },
    { "name": "Count", "type": "uint32", "versions": "0+" },
    { "name": "Int", "type": "int32", "versions": "0+" },
    { "name": "Long", "type": "int64", "versions": "0+" },
    { "name": "Real", "type": "float64", "versions": "0+" },
    { "name": "Id", "type": "uuid", "versions": "0+" },
    { "name": "Text", "type": "string", "versions": "0+", "nullableVersions": "1+" },
    { "name": "OldText", "type": "string", "versions": "0+", "flexibleVersions": "none" },
    { "name": "Data", "type": "bytes", "versions": "0+", "nullableVersions": "1+", "zeroCopy": true },
    { "name": "Log", "type": "records", "versions": "0+", "nullableVersions": "0+" },
    { "name": "Numbers", "type": "[]int32", "versions": "0+", "nullableVersions": "1+" },
    { "name": "Tagged", "type": "int32", "versions": "2+", "taggedVersions": "2+", "tag": 0, "default": "-1" },
    { "name": "Names", "type": "[]string", "versions": "0+" },
    { "name": "Points", "type": "[]Point", "versions": "0+" },
    { "name": "Inner", "type": "Inner", "versions": "0+", "nullableVersions": "1+", "fields": [
      { "name": "Deep", "type": "[]Point", "versions": "0+" }
    ]},
    { "name": "TaggedInner", "type": "TaggedInner", "taggedVersions": "2+", "tag": 1, "nullableVersions": "2+",
      "default": "null", "fields": [ { "name": "Word", "type": "string", "versions": "2+", "default": "hm" } ] },
    { "name": "Late", "type": "string", "versions": "3+", "taggedVersions": "3+", "tag": 2, "default": "none" },
    { "name": "Gone", "type": "int8", "versions": "0-1" }
  ],
  "commonStructs": [ { "name": "Point", "versions": "0+", "fields": [
    { "name": "X", "type": "int8", "versions": "0+", "mapKey": true },
    { "name": "Y", "type": "int8", "versions": "1+", "default": "0x10" }
  ]} ]
}
"""

# The fields of fixed size, which all versions encode in the same way: flag to id.
FIXED = "01 ff fffe ffff ffffffff fffffffd fffffffffffffffc 3ff8000000000000 000102030405060708090a0b0c0d0e0f"
FIXED_VALUES = {
    "flag": True,
    "tiny": -1,
    "short": -2,
    "port": 65535,
    "count": 4294967295,
    "int": -3,
    "long": -4,
    "real": 1.5,
    "id": "AAECAwQFBgcICQoLDA0ODw",
}
# text "é", oldText "o", data 1, log null, numbers 5 6, names "a" "", points (1) (2), inner {deep: (3)}, gone 9
VERSION_0 = bytes.fromhex(
    FIXED + "0002c3a9 00016f 0000000101 ffffffff 00000002 00000005 00000006 00000002 000161 0000"
    "00000002 01 02 00000001 03 09"
)
# text, data, numbers and inner null, log 2 bytes, names none, one point (1, 2), gone 9
VERSION_1 = bytes.fromhex(FIXED + "ffff 0000 ffffffff 00000002aabb ffffffff 00000000 00000001 0102 ff 09")
# As version 0, in the flexible encoding, with the tags 0 (7), 1 ({word: "w"}) and the unknown tags 5 and 6
VERSION_2 = bytes.fromhex(
    FIXED + "03c3a9 00016f 0201 00 03 00000005 00000006 03 0261 01 03 0108 00 0209 00 01 02 030a 00 00"
    "04 00 04 00000007 01 04 01 0277 00 05 02 beef 06 00"
)


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("condense_schemas", ROOT / "tools" / "condense_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def everything(tool: ModuleType) -> MessageSchema:
    text = tool.condense({"Everything": tool.read(EVERYTHING)})
    assert text.count("about") == text.count('"about": ""') == 1
    assert "here" not in text
    assert max(len(line) for line in text.splitlines()) <= 120
    return MessageSchema("Everything", json.loads(text)["Everything"])


def test_version_0(everything: MessageSchema) -> None:
    decoded = decode(everything, 0, VERSION_0)
    assert decoded.value == {
        **FIXED_VALUES,
        "text": "é",
        "oldText": "o",
        "data": b"\x01",
        "log": None,
        "numbers": [5, 6],
        "names": ["a", ""],
        "points": [{"x": 1}, {"x": 2}],
        "inner": {"deep": [{"x": 3}]},
        "gone": 9,
    }
    assert decoded[1:] == (0, len(VERSION_0), "", b"", frozenset())


def test_version_1_has_nulls(everything: MessageSchema) -> None:
    decoded = decode(everything, 1, VERSION_1)
    assert decoded.value == {
        **FIXED_VALUES,
        "text": None,
        "oldText": "",
        "data": None,
        "log": b"\xaa\xbb",
        "numbers": None,
        "names": [],
        "points": [{"x": 1, "y": 2}],
        "inner": None,
        "gone": 9,
    }


def test_version_2_is_flexible(everything: MessageSchema) -> None:
    value = decode(everything, 2, VERSION_2).value
    assert value == {
        **FIXED_VALUES,
        "text": "é",
        "oldText": "o",
        "data": b"\x01",
        "log": None,
        "numbers": [5, 6],
        "tagged": 7,
        "names": ["a", ""],
        "points": [{"x": 1, "y": 8}, {"x": 2, "y": 9}],
        "inner": {"deep": [{"x": 3, "y": 10}]},
        "taggedInner": {"word": "w"},
        UNKNOWN_TAGS: [{"tag": 5, "data": b"\xbe\xef"}, {"tag": 6, "data": b""}],
    }
    # Kafka's order, with tagged fields where they are declared.
    assert [*value][13:17] == ["numbers", "tagged", "names", "points"]


def test_absent_tagged_fields_have_their_defaults(everything: MessageSchema) -> None:
    nothing = VERSION_2[: VERSION_2.index(bytes.fromhex("0400040000"))] + b"\x00"
    decoded = decode(everything, 3, nothing)
    assert (decoded.value["tagged"], decoded.value["taggedInner"], decoded.value["late"]) == (-1, None, "none")
    assert UNKNOWN_TAGS not in decoded.value
    assert "late" not in decode(everything, 2, nothing).value
    assert everything.struct(2).default()["inner"] == {"deep": []}


def test_kafka_json_leaves_out_defaults(everything: MessageSchema) -> None:
    printed = kafka_json(everything, decode(everything, 2, VERSION_2))
    assert printed["data"] == "AQ=="
    assert printed["taggedInner"] == {"word": "w"}
    assert UNKNOWN_TAGS not in printed
    # A tagged field that was written with its default is left out, like one that was not written.
    written = VERSION_2.replace(bytes.fromhex("00 04 00000007"), bytes.fromhex("00 04 ffffffff"))
    assert "tagged" not in kafka_json(everything, decode(everything, 2, written))
    assert json.loads(json.dumps(kafka_json(everything, decode(everything, 1, VERSION_1))))["log"] == ""


def test_a_newer_version_is_decoded_as_the_newest_known(everything: MessageSchema) -> None:
    decoded = decode(everything, 9, VERSION_2 + b"more")
    assert decoded.version == 3
    assert "version 9" in decoded.note
    assert decoded.rest == b"more"
    assert decoded.position == len(VERSION_2)
    newer, error = try_decode(everything, 9, VERSION_2[:30])
    assert error is not None
    assert newer.note == decoded.note
    assert newer.note in error.reason


def test_versions_below_the_oldest_are_errors(everything: MessageSchema) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(everything, -1, VERSION_0)
    assert (caught.value.field, caught.value.position, numbers_in(caught.value.reason)) == ("version", 0, [-1, 0, 3])


def test_a_message_inside_a_buffer(everything: MessageSchema) -> None:
    data = b"before" + VERSION_2 + b"behind"
    decoded = decode(everything, 2, data, 6, 6 + len(VERSION_2))
    assert decoded == decode(everything, 2, VERSION_2)._replace(position=6 + len(VERSION_2))
    assert decode(everything, 2, memoryview(data), 6).rest == b"behind"
    with pytest.raises(DecodeError) as caught:
        decode(everything, 2, data, 6, 10)
    # flag, tiny and short are complete
    assert (caught.value.struct, caught.value.field, caught.value.position) == ("Everything", "port", 10)


CASES = [(0, VERSION_0), (1, VERSION_1), (2, VERSION_2)]


@pytest.mark.parametrize(("version", "data"), CASES, ids=["0", "1", "2"])
def test_spans_tile_the_message(everything: MessageSchema, version: int, data: bytes) -> None:
    position = 0
    spans: list[Span] = []
    try_decode(everything, version, data, spans=spans)
    for span in spans:
        assert span.position == position
        assert span.size > 0 or span.field.name == UNKNOWN_TAGS
        position += span.size
    assert position == len(data)


def test_spans_name_and_type_the_fields(everything: MessageSchema) -> None:
    found: list[Span] = []
    try_decode(everything, 2, VERSION_2, spans=found)
    spans = [(s.field.name, s.field.wire.name, s.value, s.depth) for s in found]
    assert spans[0] == ("flag", "BOOLEAN", True, 0)
    assert ("text", "COMPACT_NULLABLE_STRING", "é", 0) in spans
    assert ("oldText", "STRING", "o", 0) in spans
    points = spans.index(("points", "COMPACT_ARRAY", 2, 0))
    assert spans[points + 1 : points + 4] == [
        ("x", "INT8", 1, 1),
        ("y", "INT8", 8, 1),
        ("_taggedFields", "UNSIGNED_VARINT", 0, 1),
    ]
    assert spans[-1] == (UNKNOWN_TAGS, "BYTES", b"", 1)


@pytest.mark.parametrize(("version", "data"), CASES, ids=["0", "1", "2"])
def test_truncated_anywhere(everything: MessageSchema, version: int, data: bytes) -> None:
    whole = decode(everything, version, data).value
    for size in range(len(data)):
        with pytest.raises(DecodeError) as caught:
            decode(everything, version, data[:size])
        assert 0 <= caught.value.position <= size
        # The values before the end stay known, and the spans agree with them.
        spans: list[Span] = []
        decoded, error = try_decode(everything, version, data[:size], spans=spans)
        assert error is not None
        assert decoded.rest == data[decoded.position : size]
        assert all(whole[name] == value for name, value in decoded.value.items())
        assert sum(span.size for span in spans) <= size


@pytest.mark.parametrize(("version", "data"), CASES, ids=["0", "1", "2"])
def test_every_flipped_bit(everything: MessageSchema, version: int, data: bytes) -> None:
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        for as_version in (version, 3):
            decoded, error = try_decode(everything, as_version, damaged)
            spans: list[Any] = []
            # Compare their text, because `real` may have become NaN.
            assert repr(try_decode(everything, as_version, damaged, spans=spans)[0]) == repr(decoded)
            if error is None:
                assert sum(span.size for span in spans) == decoded.position
                json.dumps(kafka_json(everything, decoded))


@given(st.binary(max_size=120), st.integers(0, 5))
def test_any_bytes(data: bytes, version: int) -> None:
    try_decode(load("VotersRecord"), version, data)
    try_decode(load("ConsumerProtocolSubscription"), version, data)


def schema(*fields: dict[str, Any], flexible: str = "0+") -> MessageSchema:
    return MessageSchema(
        "T", {"type": "data", "validVersions": "0-1", "flexibleVersions": flexible, "fields": [*fields]}
    )


def lie(schema: MessageSchema, data: str) -> tuple[Any, ...]:
    """Return the class, field, position and numbers of the error, which must come immediately: no count is trusted
    before it is bounded."""
    start = time.monotonic()
    with pytest.raises(DecodeError) as caught:
        decode(schema, 0, bytes.fromhex(data))
    assert time.monotonic() - start < 1
    error = caught.value
    return type(error), error.field, error.position, *numbers_in(error.reason)


def test_lengths_that_lie() -> None:
    text = {"name": "S", "type": "string", "versions": "0+"}
    data = {"name": "B", "type": "bytes", "versions": "0+", "nullableVersions": "0+"}
    longs = {"name": "N", "type": "[]int64", "versions": "0+"}
    names = {"name": "N", "type": "[]string", "versions": "0+"}
    assert lie(schema(text), "ff ff ff ff 0f") == (LengthError, "s", 0, 4294967294, 0)
    assert lie(schema(text), "ff ff ff ff ff 01") == (DecodeError, "s", 0, 5)
    assert lie(schema(text), "00 00") == (NullError, "s", 0)
    assert lie(schema(text), "81 80 02" + "61" * 40000) == (LengthError, "s", 0, 32768, 40000)
    assert lie(schema(text, flexible="none"), "fffe") == (NullError, "s", 0, -2)
    assert lie(schema(data, flexible="none"), "fffffffe 00") == (NullError, "b", 0, -2)
    assert lie(schema(data, flexible="none"), "7fffffff 00") == (LengthError, "b", 0, 2147483647, 1)
    assert lie(schema(longs, flexible="none"), "7fffffff 00") == (ElementsError, "n", 0, 2147483647, 8, 1)
    # There are enough bytes for this number of elements, but not for eight bytes each.
    assert lie(schema(longs), "05" + "00" * 31) == (ElementsError, "n", 0, 4, 8, 31)
    assert lie(schema(names), "03 02 61 00 00") == (NullError, "n[]", 3)


def test_tags_that_lie() -> None:
    tagged = {"name": "A", "type": "int16", "versions": "0+", "taggedVersions": "0+", "tag": 0}
    later = {"name": "B", "type": "int16", "versions": "1+", "taggedVersions": "1+", "tag": 1}
    s = schema(tagged, later)
    assert lie(s, "ff ff ff ff 07 00") == (DecodeError, "_taggedFields", 0, 2147483647, 1)
    assert lie(s, "01 00 05 0001") == (DecodeError, "_tagSize", 2, 0, 5, 2)
    assert lie(s, "01 00 03 000100") == (DecodeError, "a", 5, 1, 0)
    assert lie(s, "01 00 01 00 01") == (DecodeError, "a", 3, 2, 1)
    assert lie(s, "02 00 02 0001 00 02 0001") == (DecodeError, "_tag", 5, 0, 0)
    assert lie(s, "01 01 02 0001") == (DecodeError, "_tag", 1, 1)


def test_text_that_is_not_utf_8_is_read_as_kafka_reads_it() -> None:
    text = {"name": "S", "type": "string", "versions": "0+"}
    assert decode(schema(text), 0, b"\x04a\xffb\x00").value == {"s": "a\ufffdb"}


def test_an_array_of_nothing_is_refused_when_the_schema_is_read() -> None:
    empty = {"name": "E", "type": "[]E", "versions": "0+", "fields": [{"name": "X", "type": "int8", "versions": "1+"}]}
    with pytest.raises(ValueError, match="elements of 0 bytes"):
        schema(empty, flexible="none").struct(0)


# kafka-4.3/clean-1/__transaction_state-0/00000000000000000000.log, offset 4, after its version 1
# TransactionLogValue of Kafka 4.3.1, condensed
def test_uuid_text() -> None:
    assert uuid_text(bytes(16)) == "A" * 22
    assert uuid_text(b"\xff" * 16) == "_____________________w"


def test_versions() -> None:
    assert [v for v in range(5) if Versions.parse("1-2").hold(v)] == [1, 2]
    assert [v for v in range(5) if Versions.parse("3").hold(v)] == [3]
    assert Versions.parse("2+").hold(32767)
    assert not Versions.parse("none").hold(0)


def test_every_packaged_schema_resolves() -> None:
    folders = {path.stem for path in (ROOT / "kdump" / "format" / "schemas").glob("*.json")}
    assert {"metadata", "group-coordinator"} <= folders
    for folder in folders:
        for name, found in load_folder(folder).items():
            assert load(name).name == name
            for version in range(found.valid.lowest, found.valid.highest + 1):
                assert found.struct(version).least >= 0
    with pytest.raises(KeyError):
        load("NoSuchMessage")


def test_schemas_load_from_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "kdump.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.write(ROOT / "kdump" / "__init__.py", "kdump/__init__.py")
        for path in (ROOT / "kdump" / "format").rglob("*.*"):
            if path.suffix in (".py", ".json"):
                zipped.write(path, str(path.relative_to(ROOT)))
    code = "from kdump.format import schema; print(schema.__file__, schema.load('EndTxnMarker').name)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert done.stdout.split() == [str(archive / "kdump" / "format" / "schema.py"), "EndTxnMarker"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [('"mapKey": true', '"sortKey": true', "sortKey"), ('"type": "data", ', "", "not a message schema")],
)
def test_the_tool_stops_at_what_it_does_not_know(tool: ModuleType, old: str, new: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        tool.condense({"Everything": tool.read(EVERYTHING.replace(old, new))})


def test_the_tool_types_defaults(tool: ModuleType) -> None:
    field = {"name": "F", "versions": "0+"}
    typed = [
        ("int32", "0x10", 16),
        ("int64", -1, -1),
        ("bool", "true", True),
        ("bool", False, False),
        ("float64", "1.5", 1.5),
        ("string", "x", "x"),
        ("[]int32", "null", None),
    ]
    for kind, default, value in typed:
        condensed = tool.condense_field({**field, "type": kind, "default": default}, "T")
        assert condensed["default"] == value
        assert type(condensed["default"]) is type(value)
    # Java parses a JSON null as a null String, which is not a default.
    for none in (None, ""):
        assert "default" not in tool.condense_field({**field, "type": "[]int32", "default": none}, "T")
    with pytest.raises(ValueError, match=r"T\.F: default"):
        tool.condense_field({**field, "type": "[]int32", "default": "[1]"}, "T")
