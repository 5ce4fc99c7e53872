"""Records of Kafka's own topics: which decoder they get, what is shown of them, and that damage does not spread."""

from __future__ import annotations

import json
import random
import re
import struct
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kdump import jsonl
from kdump.decode import id_names
from kdump.decode.decoder_interface import RAW, DecodedRecord
from kdump.decode.id_names import IdNames
from kdump.decode.kafka_topic_decoders import kafka_decoder
from kdump.decode.kafka_topics import KAFKA
from kdump.decode.record_decoder import DecodeOptions, RecordDecoder
from kdump.format.schema import load_folder
from kdump.format.versioned_messages import try_decode
from kdump.log.batch_records import records
from kdump.log.paths import target
from kdump.log.record import Record
from kdump.render.decoded_values import add_decoded
from tests import command
from tests.conftest import FIXTURES, SEED, batches, numbers_in, read_regions, sample, segments
from tests.craft import batch, flip, record, write_file
from tests.each_case import each_case
from tests.format.test_plain_messages import written
from tests.questions.inspect.test_command import in_terminal, plain

OFFSETS = FIXTURES / "clean-1" / "__consumer_offsets-0" / "00000000000000000000.log"
METADATA = FIXTURES / "clean-1" / "__cluster_metadata-0" / "00000000000000000000.log"


run = partial(command.run, "inspect")


def objects(*arguments: str | Path, stdin: bytes | None = None) -> list[dict[str, Any]]:
    result = run(*arguments, "--json", "--records", stdin=stdin)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


# Which decoder is chosen.


@each_case(
    "path, name",
    [
        ("/d/__consumer_offsets-7/00000000000000000000.log", "offsets"),
        ("/d/__consumer_offsets-7.0123456789abcdef0123456789abcdef-delete/00000000000000000000.log", "offsets"),
        ("/d/__transaction_state-0.0123456789abcdef0123456789abcdef-stray/00000000000000000000.log", "transaction-log"),
        ("/d/__share_group_state-1/00000000000000000005.log.deleted", "share-group-state"),
        ("/d/__remote_log_metadata-3/00000000000000000000.log.gz", "remote-log-metadata"),
        ("/d/__cluster_metadata-0/00000000000000000000.log", "cluster-metadata"),
        ("/elsewhere/00000000000000000327-0000000001.checkpoint", "cluster-metadata"),
        ("bootstrap.checkpoint", "cluster-metadata"),
        ("s3://bucket/__consumer_offsets-0/00000000000000000000.log", "offsets"),
        ("/d/orders-0/00000000000000000000.log", None),
        ("/d/__consumer_offsets/00000000000000000000.log", None),
        ("00000000000000000000.log", None),
        ("-", None),
    ],
)
def test_the_topic_chooses(path: str, name: str | None) -> None:
    decoder = RecordDecoder(DecodeOptions()).decoder(target(path))
    assert (decoder.name if decoder else None) == name
    assert RecordDecoder(DecodeOptions(by_topic=False)).decoder(target(path)) is None
    chosen = RecordDecoder(DecodeOptions(decoder="offsets")).decoder(target(path))
    assert chosen is not None
    assert chosen.name == "offsets"


def test_a_file_without_its_directory() -> None:
    expected = [at | {"file": "-", "topic": None, "partition": None} for at in objects(OFFSETS)]
    for at in expected:
        at.pop("names", None)
    found = objects("-", "--decoder", "offsets", stdin=OFFSETS.read_bytes())
    for at in found:
        at.pop("names", None)
    assert found == expected
    assert not any("valueDecoded" in at for at in objects("-", stdin=OFFSETS.read_bytes()))
    assert not any("valueDecoded" in at for at in objects(OFFSETS, "--no-decode"))


def place(problem: str) -> tuple[int, str] | None:
    """Return the position and the field of a key or value that does not decode; None if it was not tried."""
    found = re.match(r"at byte (\d+): (\w+\.\w+): ", problem)
    return (int(found[1]), found[2]) if found else None


def test_the_wrong_decoder_leaves_records_raw() -> None:
    plain = objects(METADATA, "--no-decode")
    found = objects(METADATA, "--decoder", "offsets")
    for raw, at in zip(plain, found):
        assert raw.items() <= at.items()
        if "control" not in at:
            assert place(at["keyProblem"]) == (0, "CoordinatorRecord.type")
            assert place(at["valueProblem"]) is None
    assert not all("control" in at for at in found)


def test_an_unknown_decoder() -> None:
    result = run(OFFSETS, "--records", "--decoder", "offset")
    assert result.exit_code == 2
    assert "no decoder 'offset'; use one of offsets, transaction-log, share-group-state" in result.output


# Keys and values that do not decode.


def segment_of(*pairs: tuple[bytes | None, bytes | None]) -> bytes:
    return batch([record(i, key=key, value=value) for i, (key, value) in enumerate(pairs)])


KEY = bytes.fromhex("0001 0001 67 0001 74 00000000")
VALUE = bytes.fromhex("0003 0000000000000005 ffffffff 0000 0000000000000006")


def test_a_key_of_three_bytes() -> None:
    [at] = objects("-", "--decoder", "offsets", stdin=segment_of((b"\0\1\0", VALUE)))
    assert at["key"] == "\0\1\0"
    assert place(at["keyProblem"]) == (2, "OffsetCommitKey.group")
    assert numbers_in(at["keyProblem"]) == [2, 2, 1]  # the position, the bytes that are needed, and those that are left
    assert "keyDecoded" not in at
    # The key has already determined the message of the value.
    assert at["valueDecoded"]["data"]["offset"] == 5


def test_a_version_from_the_future_is_decoded_as_far_as_it_goes() -> None:
    newer = b"\0\x09" + load_newest()
    [at] = objects("-", "--decoder", "offsets", stdin=segment_of((KEY, newer)))
    assert at["valueDecoded"]["version"] == 9
    assert at["valueDecoded"]["data"]["offset"] == 5
    assert numbers_in(at["valueNote"]) == [9, 4, 3]  # the version, the latest known one, and the bytes left over
    shown = run("-", "--records", "--decoder", "offsets", stdin=segment_of((KEY, newer))).stdout
    assert f"  ~ value: {at['valueNote']}" in shown
    assert "offset=5" in shown


def load_newest() -> bytes:
    """Return a body of version 4, with a topic ID in a tagged field, and three more bytes."""
    body = bytes.fromhex("0000000000000005 ffffffff 01 0000000000000006 01 00 10") + bytes(range(16))
    return body + b"new"


def test_what_is_sound_is_shown_in_front_of_a_problem() -> None:
    cut = VALUE[:16]
    [at] = objects("-", "--decoder", "offsets", stdin=segment_of((KEY, cut)))
    assert at["valueDecoded"]["data"] == {"offset": 5, "leaderEpoch": -1, "metadata": ""}
    problem = at["valueProblem"]
    assert place(problem) == (16, "OffsetCommitValue.commitTimestamp")
    assert numbers_in(problem) == [16, 8, 0]
    table = run("-", "--records", "--decoder", "offsets", stdin=segment_of((KEY, cut))).stdout
    assert problem in table


@pytest.mark.sampled
@each_case("name", KAFKA)
def test_every_byte_cut_and_every_bit_flipped(name: str) -> None:
    """There is no exception, and the spans of each part tile its bytes, in order."""
    topic = KAFKA[name].topic
    decoder = kafka_decoder(name, IdNames(None))
    seen = set()
    count = 0
    for path in segments(f"{topic}-0/"):
        for found in (at for region in batches(read_regions(path)) for at in records(region)):
            reading = decoder.read(target(str(path)), found)
            kind = (reading.key.message, reading.value.message, found.valueSize < 0)
            if found.is_control or kind in seen:
                continue
            seen.add(kind)
            for key, value in damaged(found.key, found.value):
                damaged_record = made(key, value)
                check(decoder.read(target("-"), damaged_record), key, value)
                tiled(decoder.spans(damaged_record), key, value)
                count += 1
    assert count > (400 if SEED else 50)


def damaged(key: bytes | None, value: bytes | None) -> Iterator[tuple[bytes | None, bytes | None]]:
    for part in range(2):
        data = (key, value)[part]
        if data is None:
            continue
        for size in sample(range(len(data)), 5, part):
            yield (data[:size], value) if part == 0 else (key, data[:size])
        for bit in sample(range(len(data) * 8), 9, part):  # the odd step reaches every bit of a byte
            yield (flip(data, bit), value) if part == 0 else (key, flip(data, bit))


def made(key: bytes | None, value: bytes | None) -> Record:
    [found] = records(batches(read_regions(segment_of((key, value))))[0])
    return found


def check(reading: DecodedRecord, key: bytes | None, value: bytes | None) -> None:
    for said, data in zip((reading.key, reading.value), (key, value)):
        if said.value is not RAW:
            json.dumps(said.value)
        assert said.stop is None or 0 <= said.stop <= len(data or b"")
        assert said.value is not RAW or said.problem


def tiled(spans: Any, key: bytes | None, value: bytes | None) -> None:
    for part, data in zip(spans, (key, value)):
        position = 0
        for span in part:
            assert span.position == position
            position += span.size
        assert not part or position == len(data or b"")


def test_hex_marks_where_it_stops() -> None:
    data = segment_of((KEY, bytes.fromhex("0003 0000000000000005 ffffffff 7fff 00")))
    out = run("-", "--hex", "--decoder", "offsets", stdin=data).stdout
    assert "key.group            g" in out
    assert "key.type             1              OffsetCommitKey" in out
    [line] = [line for line in out.splitlines() if "WRONG" in line]
    assert place(line[line.index("at byte ") :]) == (14, "OffsetCommitValue.metadata")
    assert numbers_in(line[line.index("at byte ") :]) == [14, 32767, 1]
    assert re.match(r" +\d+! ?7f ff 00", line)


def test_hex_of_a_compressed_batch_counts_in_what_it_decompresses_to() -> None:
    plain = batch([record(0, key=KEY, value=VALUE)])
    packed = batch([record(0, key=KEY, value=VALUE)], codec="zstd")
    lines = [
        [line for line in run("-", "--hex", "--decoder", "offsets", stdin=data).stdout.splitlines() if ".group" in line]
        for data in (plain, packed)
    ]
    assert lines[0][0].split()[0] == "68"
    assert lines[1][0].split()[0] == f"+{68 - 61}"


# Names of IDs.


def test_names_come_from_the_file_as_it_streams(tmp_path: Path) -> None:
    lone = write_file(tmp_path / "x.log", METADATA.read_bytes())
    found = [at for at in objects(lone, "--decoder", "cluster-metadata") if at.get("names")]
    assert len(found) > 40
    by_name = {at["valueDecoded"]["name"] for at in found}
    assert by_name == {"PartitionRecord", "PartitionChangeRecord", "RemoveTopicRecord"}
    assert all(at["names"].keys() == {at["valueDecoded"]["data"]["topicId"]} for at in found)


def test_names_come_from_the_disk(tmp_path: Path) -> None:
    share = FIXTURES / "clean-1" / "__share_group_state-0" / "00000000000000000000.log"
    named = {"u6Mm7nJtTJCb2EnXUoRv6g": "orders-lz4"}
    assert [at["names"] for at in objects(share)] == [named]  # known from the metadata log
    copy = write_file(tmp_path / "__share_group_state-0" / share.name, share.read_bytes())
    assert ["names" in at for at in objects(copy)] == [False]
    (tmp_path / "lz-0").mkdir()
    (tmp_path / "lz-0" / "partition.metadata").write_text("version: 0\ntopic_id: u6Mm7nJtTJCb2EnXUoRv6g")
    assert [at["names"] for at in objects(copy)] == [{"u6Mm7nJtTJCb2EnXUoRv6g": "lz"}]
    assert "topicId=lz(u6Mm7nJtTJCb2EnXUoRv6g)" in run(copy, "--records").stdout


def test_users_of_what_is_removed() -> None:
    names = IdNames(None)
    names.learn("AccessControlEntryRecord", {"id": "I", "principal": "User:alice"})
    names.learn("DelegationTokenRecord", {"tokenId": "T", "owner": "User:bob"})
    for message, fields, name in (
        ("RemoveAccessControlEntryRecord", {"id": "I"}, {"I": "User:alice"}),
        ("RemoveDelegationTokenRecord", {"tokenId": "T"}, {"T": "User:bob"}),
        ("RemoveDelegationTokenRecord", {"tokenId": "U"}, {}),
    ):
        assert names.of("metadata", [{"name": message, "data": fields}]) == name


# Output for people.


def test_the_table() -> None:
    out = run(OFFSETS, "--records", "--offset", "17..18").stdout
    assert "OffsetCommit group=group-classic topic=orders-zstd partition=0" in out
    assert "subscription={topics=[orders-zstd, payments] userData=null" in out
    assert "commitTimestamp=2026-11-21T07:58:37.735Z topicId=orders-zstd(gWPaUBzIRKygupt6nWNv1w)" in out
    states = FIXTURES / "clean-1" / "__transaction_state-0"
    assert "transactionStatus=Ongoing(1)" in run(states, "--records", "--tz", "+02:00").stdout


def test_columns_and_templates() -> None:
    columns = "offset,key,keyDecoded,valueDecoded,names"
    lines = run(OFFSETS, "--records", "--columns", columns, "--offset", "18").stdout.splitlines()
    assert lines[1].startswith("    18  \\0\\x01\\0\\rgroup-classic")
    assert "OffsetCommit group=group-classic" in lines[1]
    assert lines[1].endswith('{"gWPaUBzIRKygupt6nWNv1w":"orders-zstd"}')
    out = run(OFFSETS, "-f", r"%o %d %D\n", "--offset", "18..18").stdout
    offset, key, value = out.rstrip("\n").split(" ", 2)
    assert (offset, json.loads(key)["name"]) == ("18", "OffsetCommitKey")
    assert json.loads(value)["data"]["offset"] == 300
    # What is not decoded is still included in the JSON.
    result = run("-", "-f", r"%d|%D\n", "--decoder", "offsets", stdin=segment_of((b"\0", b"v"), (None, None)))
    assert result.stdout == '"\\u0000"|"v"\nnull|null\n'
    assert (
        "2 records do not decode, the first at -, offset 0: at byte 0: CoordinatorRecord.type: 2 bytes" in result.stderr
    )


def test_hostile_texts_reach_no_terminal() -> None:
    key = b"\0\2" + len(b"g\x1b[2J").to_bytes(2, "big") + b"g\x1b[2J"
    value = VALUE_OF_GROUP
    for form in (["--records"], ["--hex"], ["--json", "--records"]):
        out = run("-", *form, "--decoder", "offsets", stdin=segment_of((key, value), (key[:5], None))).stdout
        assert "\x1b" not in out


VALUE_OF_GROUP = b"\0\3" + b"\0\x05\x1b[31m" + bytes(4) + b"\xff\xff" + b"\0\x05\x1b[31m" + bytes(8) + bytes(4)


def test_no_decoder_is_asked_for_what_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []
    plain = RecordDecoder.read

    def read(self: RecordDecoder, at: Any, record: Record) -> DecodedRecord | None:
        asked.append(record.offset)
        return plain(self, at, record)

    monkeypatch.setattr(RecordDecoder, "read", read)
    run(OFFSETS)
    run(OFFSETS, "--json")
    run(OFFSETS, "--records", "--columns", "offset,timestamp,keySize")
    run(OFFSETS, "-f", "%o %k")
    assert asked == []
    run(OFFSETS, "-f", "%D", "--key", "\0\2\0\rgroup-classic")
    assert {*asked} == {16, 17, 43}


def test_memory_is_bounded() -> None:
    """Values of 4 MiB that correctly claim a million numbers, or structures."""
    prefix = b"\0\0" + bytes([2]) + bytes(16)
    count = (1_000_001).to_bytes(3, "little")
    count = bytes([0x80 | count[0] & 0x7F, 0x80 | (1_000_001 >> 7) & 0x7F, 1_000_001 >> 14])
    key = b"\0\7" + b"\0\1g" + b"\0\1m"
    data = segment_of((key, prefix + count + bytes(4_000_000) + b"\0\0"))
    tracemalloc.start()
    try:
        [at] = objects("-", "--decoder", "offsets", stdin=data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert numbers_in(at["valueProblem"])[-2:] == [1_000_000, 500_000]
    assert peak < 60 << 20


@each_case("columns", [80, 179])
def test_on_a_narrow_terminal_what_a_record_says_stands_below_its_row(columns: int) -> None:
    lines = plain(in_terminal(columns, OFFSETS, "--records", "--offset", "15..18")).splitlines()
    assert all(len(line.rstrip()) <= columns for line in lines)
    assert [line.split()[-1] for line in lines if line[:6].strip().isdigit()] == [
        "COMMIT",
        "GroupMetadata",
        "GroupMetadata",
        "OffsetCommit",
    ]
    text = " ".join(" ".join(lines).split())
    assert "OffsetCommit group=group-classic topic=orders-zstd partition=0 → offset=300 leaderEpoch=0" in text
    assert "COMMIT version 0, coordinatorEpoch 0" in text
    # A long value is truncated, unless everything is requested.
    assert ("subscription=" in text) == (columns > 80)
    whole = plain(in_terminal(columns, OFFSETS, "--records", "--full", "--offset", "17"))
    assert "subscription={topics=[orders-zstd, payments]" in whole


def test_on_a_wide_terminal_it_stands_beside() -> None:
    lines = plain(in_terminal(200, OFFSETS, "--records", "--offset", "18")).splitlines()
    assert len(lines) == 3
    assert "columns more" in lines[2]
    assert "OffsetCommit group=group-classic topic=orders-zstd partition=0  offset=300 leaderEpoch=0" in lines[1]


def test_topic_ids_of_flat_messages() -> None:
    """Messages whose fields contain no others have at most one topic ID."""
    dice = random.Random(SEED)
    flat = []
    for folder in ("metadata", "group-coordinator", "share-coordinator", "transaction-coordinator", "storage"):
        for name, schema in load_folder(folder).items():
            for version in range(schema.valid.lowest, schema.valid.highest + 1):
                fields = try_decode(schema, version, written(schema.struct(version), dice))[0].value
                if id_names._is_flat(folder, name):
                    flat.append(name)
                    assert list(id_names._topic_ids(fields)) == list(id_names._own_topic_id(fields))
    assert {"PartitionRecord", "PartitionChangeRecord", "OffsetCommitValue"} <= {*flat}
    assert not {"RegisterBrokerRecord", "GroupMetadataValue", "StreamsGroupTopologyValue"} & {*flat}


def test_text_is_the_json_of_what_is_decoded() -> None:
    """Of every message, in every version, also damaged; topics are learned and named in the same order."""
    dice = random.Random(f"{SEED} text")
    written_at_once = 0
    for name, topic in KAFKA.items():
        quick, plain = (kafka_decoder(name, IdNames(None)) for _ in range(2))
        schemas = load_folder(topic.folder).values()
        keys = {schema.apiKey: schema for schema in schemas if schema.type == "coordinator-key"}
        for schema in [each for each in schemas if each.type != "coordinator-key"] * (5 if SEED else 2):
            for version in schema.valid.each:
                key, value = None, bytes((1, schema.apiKey or 0, version)) + written(schema.struct(version), dice)
                if keys:
                    head = struct.pack(">h", schema.apiKey)
                    key = head + written(keys[schema.apiKey].struct(keys[schema.apiKey].valid.lowest), dice)
                    value = version.to_bytes(2, "big") + value[3:]
                at = dice.randrange(8 * len(value))
                for changed in (value, None, flip(value, at), value[: at // 8], value + b"\0"):
                    text = quick.text(key, changed)
                    written_at_once += text is not None
                    decoded: dict[str, object] = {}
                    add_decoded(decoded, plain.decode(key, changed))
                    if text is None:
                        quick.decode(key, changed)
                    else:
                        assert jsonl.escaped("{" + text + "}") == jsonl.line(decoded)
                assert quick.names.known == plain.names.known
    assert written_at_once > 200
