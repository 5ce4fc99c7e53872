"""Records of the metadata log: crafted frames, and false or damaged bytes."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.format.errors import DecodeError, FrameVersionError, LeftOverError, TooLargeError
from kdump.format.metadata_record import MetadataRecord, decode_metadata_record, metadata_json, metadata_record_name
from kdump.format.schema import load, load_folder
from kdump.format.versioned_messages import _json
from kdump.log.batch_records import records
from tests.conftest import FIXTURES, batches, numbers_in, read_regions, sample
from tests.each_case import each_case

ID = bytes(range(16))
TOPIC = bytes.fromhex("01 02 00 02 61") + ID + b"\0"
"""A TopicRecord: frame, "a", ID, no tags."""


def kafkas_name(name: str) -> str:
    """Return the name in the spelling of MetadataRecordType."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def values_of(path: Path) -> dict[int, bytes | None]:
    """Return the values of the data records in a valid file, by offset."""
    found: dict[int, bytes | None] = {}
    for batch in batches(read_regions(path)):
        if not batch.isControlBatch:
            found.update({record.offset: record.value for record in records(batch) if record.offset is not None})
    return found


def test_a_record() -> None:
    record = decode_metadata_record(TOPIC)
    assert record == MetadataRecord("TopicRecord", 2, 0, {"name": "a", "topicId": "AAECAwQFBgcICQoLDA0ODw"})
    assert kafkas_name(record.name) == "TOPIC_RECORD"


def test_every_api_key_has_one_schema() -> None:
    keys = [schema.apiKey for schema in load_folder("metadata").values()]
    assert None not in keys
    assert len(set(keys)) == len(keys) >= 27


LAST_KEY = max(schema.apiKey or 0 for schema in load_folder("metadata").values())
WRONG = {
    "null": (None, "UNKNOWN", "frameVersion", 0, DecodeError, []),
    "empty": (b"", "UNKNOWN", "frameVersion", 0, DecodeError, [0]),
    "the preview's frame": (b"\0" + TOPIC[1:], "UNKNOWN", "frameVersion", 0, FrameVersionError, [0, 1]),
    "a newer frame": (b"\x02" + TOPIC[1:], "UNKNOWN", "frameVersion", 0, FrameVersionError, [2, 1]),
    "no version": (TOPIC[:2], "UNKNOWN", "version", 2, DecodeError, [0]),
    "a long varint": (b"\x01\xff\xff\xff\xff\xff\x01", "UNKNOWN", "apiKey", 1, DecodeError, [5]),
    "a large version": (b"\x01\x02\x80\x80\x02" + TOPIC[3:], "UNKNOWN", "version", 2, TooLargeError, [32768]),
    "an unknown type": (b"\x01\x63\x00" + TOPIC[3:], "UNKNOWN(99)", "apiKey", 1, DecodeError, [99, LAST_KEY]),
    "a short message": (TOPIC[:-4], "TopicRecord", "topicId", 5, DecodeError, [16, 13]),
    "bytes left over": (TOPIC + b"xy", "TopicRecord", "", len(TOPIC), LeftOverError, [2]),
}


@each_case("case", WRONG)
def test_what_is_wrong(case: str) -> None:
    value, name, field, position, kind, stated = WRONG[case]
    record = decode_metadata_record(value)
    assert record.name == metadata_record_name(value) == name
    assert record.problem is not None
    assert type(record.problem) is kind
    assert (record.problem.field, record.problem.position) == (field, position)
    assert numbers_in(record.problem.reason) == stated


def test_what_stands_in_front_of_a_problem_is_kept() -> None:
    record = decode_metadata_record(TOPIC[:-4])
    assert record.values == {"name": "a"}
    assert (record.apiKey, record.version) == (2, 0)


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    record = decode_metadata_record(b"\x01\x02\x07" + TOPIC[3:] + b"more")
    assert record.problem is None
    assert record.version == 7
    assert record.values == {"name": "a", "topicId": "AAECAwQFBgcICQoLDA0ODw"}
    assert numbers_in(record.note) == [7, 0]


def test_damage_never_raises() -> None:
    values = values_of(FIXTURES / "clean-1" / "__cluster_metadata-0" / "00000000000000000000.log")
    one_of_each = {decode_metadata_record(value).name: value for value in values.values() if value is not None}
    assert len(one_of_each) > 10
    for value in one_of_each.values():
        for size in range(len(value)):
            assert decode_metadata_record(value[:size]).problem is not None
        for bit in range(len(value) * 8):
            damaged = bytearray(value)
            damaged[bit // 8] ^= 1 << bit % 8
            record = decode_metadata_record(bytes(damaged))
            assert record.problem is None or 0 <= record.problem.position <= len(value)
            assert metadata_record_name(bytes(damaged)) == record.name


@given(st.integers(0, 30), st.integers(0, 5), st.binary(max_size=80))
def test_any_bytes(api_key: int, version: int, data: bytes) -> None:
    decode_metadata_record(data)
    decode_metadata_record(struct.pack(">bbb", 1, api_key, version) + data)


@pytest.mark.sampled
def test_the_fast_decoder_says_what_the_slow_one_says() -> None:
    """With spans, the interpreter reads: real records, with each byte changed, cut short, or continued."""
    path = FIXTURES / "state-1/__cluster_metadata-0/00000000000000000000.log"
    by_frame = {value[:3]: value for value in values_of(path).values() if value}
    changed = [b"", b"\1", b"\1\2", b"\0\2\0", b"\1\x82\0\0", b"\1\2\x80\0", b"\1\x63\0", b"\1\2\x7f", b"\xff" * 20]
    for value in (*by_frame.values(), TOPIC):
        changed += [value, value + b"\0", *(value[:size] for size in range(0, len(value), 3))]
        changed += [
            value[:at] + bytes([byte]) + value[at + 1 :] for at in range(len(value)) for byte in (0, 2, 0x80, 0xFF)
        ]
    assert len(by_frame) > 10
    for value in sample(changed, 3):  # each byte is changed at least once
        expected = decode_metadata_record(value, spans=[])
        assert repr(decode_metadata_record(value)) == repr(expected)
        assert metadata_record_name(value) == expected.name
        if expected.values is not None and expected.version is not None:
            schema = load(expected.name)
            known = min(expected.version, schema.valid.highest)
            expected_json = _json(schema.struct(known), expected.values) if schema.valid.hold(known) else {}
            assert repr(metadata_json(expected)) == repr(expected_json)
