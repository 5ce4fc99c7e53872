"""Formats of user data: what matches is decoded; anything else stays raw, with the reason and the position."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.decode.decoder_interface import FormatError
from kdump.decode.formats import FORMATS
from tests.conftest import FIXTURES, examples, numbers_in
from tests.craft import batch, record
from tests.decode.test_kafka_topic_decoders import objects, run
from tests.each_case import each_case

PAYMENTS = FIXTURES / "clean-1" / "payments-0"

FITS = [
    ("utf-8", "étoile".encode(), "étoile"),
    ("json", b' {"a": [1, 2.5, null, true, "\\u00e9"]} ', {"a": [1, 2.5, None, True, "é"]}),
    ("json", b"1e999", "Infinity"),
    ("json", rb'{"\udfff": "\ud83d\ude00 \ud83d"}', {"\ufffd": "😀 \ufffd"}),  # jq stops at half of a surrogate pair
    ("hex", b"\x00\xff", "00ff"),
    ("base64", b"\x00\xff", "AP8="),
    ("int8", b"\xff", -1),
    ("uint8", b"\xff", 255),
    ("int16", b"\xff\xfe", -2),
    ("uint16", b"\xff\xfe", 65534),
    ("int32", struct.pack(">i", -5), -5),
    ("uint32", struct.pack(">I", 1 << 31), 1 << 31),
    ("int64", struct.pack(">q", -(1 << 62)), -(1 << 62)),
    ("uint64", struct.pack(">Q", (1 << 64) - 1), (1 << 64) - 1),
    ("float32", struct.pack(">f", 0.5), 0.5),
    ("float64", struct.pack(">d", -0.1), -0.1),
    ("float64", struct.pack(">d", float("nan")), "NaN"),
    ("float32", struct.pack(">f", float("-inf")), "-Infinity"),
    ("uuid", b"123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
    ("boolean", b"\1", True),
]
FAILS = [
    ("utf-8", b"ab\xffc", 2, []),
    ("json", b'{"\xc3\xa9": 1,}', 9, []),
    ("json", b"", 0, []),
    ("json", b"NaN", None, []),
    ("json", b"[" * 100_000, None, []),
    ("json", b"[" * 200 + b"]" * 200, None, [100]),
    ("json", b"1" * 5000, None, []),
    ("json", b"\xfe", 0, []),
    ("int64", b"\0" * 7, 7, [8, 7]),
    ("int8", b"\0\1", 1, [1, 2]),
    ("uuid", b"123e4567", None, []),
    ("boolean", b"\2", 0, [0, 1]),
]


def segment(key: bytes | None, value: bytes | None) -> bytes:
    return batch([record(0, key=key, value=value)])


@each_case("name, data, value", FITS, ids=lambda part: str(part)[:20])
def test_what_fits(name: str, data: bytes, value: Any) -> None:
    [at] = objects("-", "--key-format", name, "--value-format", name, stdin=segment(data, data))
    assert at["keyDecoded"] == at["valueDecoded"] == value
    assert type(at["keyDecoded"]) is type(value)
    assert not at.keys() & {"keyProblem", "valueProblem"}
    [plain] = objects("-", stdin=segment(data, data))
    assert plain.items() <= at.items()


@each_case("name, data, position, stated", FAILS, ids=lambda part: str(part)[:20])
def test_what_does_not_fit(name: str, data: bytes, position: int | None, stated: list[int]) -> None:
    with pytest.raises(FormatError) as caught:
        FORMATS[name](data)
    assert (caught.value.position, numbers_in(str(caught.value))) == (position, stated)
    problem = str(caught.value) if position is None else f"at byte {position}: {caught.value}"
    [at] = objects("-", "--value-format", name, stdin=segment(None, data))
    assert at["valueProblem"] == problem
    assert not at.keys() & {"keyDecoded", "valueDecoded"} - {"keyDecoded"}
    [plain] = objects("-", stdin=segment(None, data))
    assert plain.items() <= at.items()
    table = run("-", "--records", "--value-format", name, stdin=segment(None, data)).stdout
    assert f"  ! the value does not decode: {problem}" in table


def test_every_format_is_tested() -> None:
    assert {name for name, _, _ in FITS} == FORMATS.keys()


@pytest.mark.sampled
@pytest.mark.parametrize("name", FORMATS)
@examples()
@given(data=st.binary(max_size=40))
def test_any_bytes(name: str, data: bytes) -> None:
    position: int | None = 0
    try:
        json.dumps(FORMATS[name](data))
    except FormatError as error:
        position = error.position
    assert position is None or 0 <= position <= len(data)


def test_null_is_null_and_auto_is_as_ever() -> None:
    [at] = objects("-", "--key-format", "int64", "--value-format", "auto", stdin=segment(None, b"\0\0"))
    assert at["keyDecoded"] is None
    assert "valueDecoded" not in at
    assert at["value"] == "\0\0"
    [at] = objects("-", "--value-format", "auto", stdin=segment(None, None))
    assert not at.keys() & {"keyDecoded", "valueDecoded"}


def test_a_format_for_one_part_leaves_the_other_to_the_topic() -> None:
    offsets = FIXTURES / "clean-1" / "__consumer_offsets-0"
    at = objects(offsets, "--value-format", "hex", "--offset", "0")[0]
    assert at["keyDecoded"]["name"] == "OffsetCommitKey"
    assert at["valueDecoded"].startswith("0004")
    at = objects(offsets, "--key-format", "auto", "--offset", "0")[0]
    assert "keyDecoded" not in at
    assert at["valueDecoded"]["name"] == "OffsetCommitValue"


def test_filters_look_at_the_bytes() -> None:
    found = objects(
        PAYMENTS, "--key-format", "hex", "--key", "a3", "--value-format", "json", "--value-regex", '"qty":8'
    )
    assert {at["keyDecoded"] for at in found} == {"6133"}
    assert {at["valueDecoded"]["qty"] for at in found} == {8}
    assert len(found) > 0


@each_case(
    "options, words",
    [
        (["--value-format", "json"], "--value-format applies to records; add --records"),
        (["--decoder", "offsets", "--json"], "--decoder applies to records; add --records"),
        (["--records", "--value-format", "int128"], "no format 'int128'; use one of auto, utf-8, json"),
        (["--value-format", "json", "--extract", "value"], "--extract writes raw bytes"),
        (["--decoder", "offsets", "--no-decode", "--records"], "choose one of --decoder and --no-decode"),
        (
            ["--records", "--schema", "README.md"],
            "--schema applies only to --key-format or --value-format avro or protobuf",
        ),
        (
            ["--records", "--key-schema", "README.md", "--value-format", "avro"],
            "--key-schema applies only to --key-format",
        ),
        (["-f", "%k", "--key-format", "hex"], "the format string contains neither %d (key) nor %D (value)"),
        (["--records", "--value-format", "avro", "--schema", "/nowhere"], "'/nowhere' does not exist"),
    ],
)
def test_what_makes_no_sense(options: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    result = run(PAYMENTS, *options)
    assert result.exit_code == 2
    assert words in result.output
