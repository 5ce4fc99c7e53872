"""`kdump inspect` on the command line: selecting, showing, and rejecting."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner, Result
from rich.cells import cell_len

from kdump.cli import cli
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.io.source import FileSource
from kdump.problems.catalogue import shared_impact
from kdump.questions.inspect.views import JsonView
from tests import craft, forks
from tests.conftest import FIXTURES, SEED, each_segment, numbers_in, sample, seeded, segment, some_segments
from tests.disks import data
from tests.each_case import each_case

PAYMENTS = segment("clean-1/payments-0")
UPGRADED = segment("legacy/upgraded-gzip-0")


def run(*arguments: str | Path, data: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["inspect", *map(str, arguments)], input=data, catch_exceptions=False)


def objects(*arguments: str | Path) -> list[dict[str, Any]]:
    """Return the objects that --json prints; none if nothing matches, which also sets the exit status (see
    tests/test_typos.py)."""
    result = run(*arguments, "--json")
    said = result.stderr.splitlines()[-1:] or [""]
    if result.exit_code == 1 or (result.exit_code == 2 and "does not exist" in said[0]):
        assert result.stdout == ""
    else:
        assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def records(*arguments: str | Path) -> list[dict[str, Any]]:
    return [entry for entry in objects(*arguments, "--records") if entry["type"] == "record"]


def in_terminal(columns: int, *arguments: str | Path, environment: dict[str, str] | None = None) -> str:
    return forks.in_terminal("inspect", *arguments, columns=columns, environment=environment)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


# Selecting: each filter is compared with all records, filtered here.


@pytest.mark.parametrize("path", [PAYMENTS, UPGRADED, segment("clean-1/orders-zstd-0")], ids=lambda p: p.parent.name)
@pytest.mark.parametrize("chosen", ["3", "10..14", "95..", "..7", "30..31", "500.."])
def test_offsets(path: Path, chosen: str) -> None:
    first, _, last = chosen.partition("..") if ".." in chosen else (chosen, "", chosen)
    expected = [
        record for record in records(path) if int(first or 0) <= record["offset"] <= (int(last) if last else 1 << 62)
    ]
    assert records(path, "--offset", chosen) == expected
    batches = {record["position"] for record in expected}
    assert {batch["position"] for batch in objects(path, "--offset", chosen)} == batches


@pytest.mark.parametrize("path", each_segment("payments"))
def test_times(path: Path) -> None:
    every = records(path)
    middle = sorted(record["timestamp"] for record in every)[len(every) // 2]
    for chosen, holds in {
        f"{middle}..": lambda t: t >= middle,
        f"..{middle}": lambda t: t <= middle,
        f"{middle}..{middle + 20}": lambda t: middle <= t <= middle + 20,
        str(middle): lambda t: t == middle,
        "-1h..": lambda t: t >= (time.time() - 3600) * 1000,
    }.items():
        expected = [record for record in every if holds(record["timestamp"])]
        assert records(path, "--time", chosen) == expected, chosen
        batches = sorted({record["position"] for record in expected})
        assert [batch["position"] for batch in objects(path, "--time", chosen)] == batches, chosen


def test_time_is_echoed_and_ends_with_the_day() -> None:
    result = run(PAYMENTS, "--time", "2026-11-21", "--records", "--tz", "+02:00", "-n", "1")
    assert "time range 2026-11-21T00:00:00.000+02:00..2026-11-21T23:59:59.999+02:00" in result.stderr
    assert "A whole minute, hour or day B is itself excluded" in " ".join(run("--help").stdout.split())


def test_old_timestamps_are_not_pruned_by_the_first(tmp_path: Path) -> None:
    """baseTimestamp is not the minimum: the second record is older than the first."""
    batch = craft.batch([craft.record(0, timestamp=0), craft.record(1, timestamp=-5000)])
    path = craft.write_file(tmp_path / f"{0:020}.log", batch)
    assert [r["offset"] for r in records(path, "--time", "..1699999996000")] == [1]


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        (["--key", "a3"], lambda r: r["key"] == "a3"),
        (["--key", "a3", "--key", "b1"], lambda r: r["key"] in ("a3", "b1")),
        (["--key-regex", "^a[12]$"], lambda r: re.match("^a[12]$", r["key"]) is not None),
        (["--value-regex", "étoile étoile"], lambda r: "étoile étoile" in r["value"]),
        (["--control"], lambda r: "control" in r),
        (["--transactional", "--producer-id", "9"], lambda r: r["position"] in OF_PRODUCER[9]),
        (["--producer-id", "9", "--producer-id", "11"], lambda r: r["position"] in OF_PRODUCER[9] | OF_PRODUCER[11]),
        (["--key", "a3", "--offset", "20..40"], lambda r: r["key"] == "a3" and 20 <= r["offset"] <= 40),
        (["--position", "400..1400"], lambda r: 306 <= r["position"] <= 1400),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_filters(options: list[str], holds: Any) -> None:
    every = records(PAYMENTS)
    expected = [record for record in every if holds(record)]
    assert expected
    assert len(expected) < len(every)
    assert records(PAYMENTS, *options) == expected
    assert [b["position"] for b in objects(PAYMENTS, *options)] == sorted({r["position"] for r in expected})


OF_PRODUCER: dict[int, set[int]] = {}


@pytest.fixture(autouse=True, scope="module")
def positions_of_producers() -> None:
    for batch in objects(PAYMENTS):
        OF_PRODUCER.setdefault(batch["producerId"], set()).add(batch["position"])


def test_headers() -> None:
    path = segment("clean-1/orders-zstd-0")
    every = records(path)
    by_key = [r for r in every if any(h["key"] == "trace" for h in r["headers"])]
    assert by_key
    assert records(path, "--header", "trace") == by_key
    one = [r for r in every if {"key": "trace", "value": "t3"} in r["headers"]]
    assert records(path, "--header", "trace=t3") == one
    assert records(path, "--header", "trace=t3", "--header", "empty=") == one
    assert records(path, "--header", "trace=t3", "--header", "absent") == []


@pytest.mark.sampled
@pytest.mark.parametrize("path", sample(each_segment(), 12), ids=str)
def test_last_is_the_end_of_everything(path: Path) -> None:
    batches, every = [entry for entry in objects(path) if entry["type"] == "batch"], records(path)
    for count in (1, 3, 10_000):
        found = [entry for entry in objects(path, "--last", str(count)) if entry["type"] == "batch"]
        assert found == batches[-count:]
        assert records(path, "--last", str(count)) == every[-count:]


def test_last_through_a_pipe_and_with_a_filter() -> None:
    expected = records(PAYMENTS, "--key", "a3")[-2:]
    assert records(PAYMENTS, "--key", "a3", "--last", "2") == expected
    result = run("-", "--json", "--records", "--key", "a3", "--last", "2", data=PAYMENTS.read_bytes())
    piped = [json.loads(line) for line in result.stdout.splitlines()]
    assert {(record["topic"], record["partition"]) for record in piped} == {(None, None)}
    of_file = {"file": str(PAYMENTS), "topic": "payments", "partition": 0}
    assert [record | of_file for record in piped] == expected


@pytest.mark.sampled
@pytest.mark.parametrize(
    "path", sample([p for p in each_segment() if p.values[0].with_suffix(".index").exists()], 16, "index")
)  # type: ignore[union-attr]
def test_the_index_changes_nothing(path: Path, tmp_path: Path) -> None:
    """A range gives the same result with the index, without it, and with a false one."""
    offsets = [batch["lastOffset"] for batch in objects(path)]
    liar = tmp_path / path.parent.name / path.name
    liar.parent.mkdir()
    shutil.copy(path, liar)
    lies = bytearray(path.with_suffix(".index").read_bytes())
    for place in range(7, len(lies), 8):
        lies[place] ^= 1
    liar.with_suffix(".index").write_bytes(lies)
    some = offsets[:: max(1, len(offsets) // 7)]
    ranges = [["--offset", chosen] for offset in some for chosen in (f"{offset}..", str(offset))]
    for chosen in (*ranges, ["--last", "4"], ["--position", "5000.."]):
        expected = objects(path, "--no-index", *chosen)
        assert objects(path, *chosen) == expected
        assert [b | {"file": str(path)} for b in objects(liar, *chosen)] == expected


TIMED = [path for path in each_segment() if path.values[0].with_suffix(".timeindex").exists()]


@pytest.mark.sampled
@pytest.mark.parametrize("path", sample(TIMED, 16, "time"))
def test_the_time_index_does_not_change_the_answer(path: Path, tmp_path: Path) -> None:
    """A time range gives the same result with the time index, without it, and with a false one."""
    times = sorted({batch["maxTimestamp"] for batch in objects(path) if batch["maxTimestamp"] is not None})
    dice = seeded(path.name)
    liars = [path]
    entries = path.with_suffix(".timeindex").read_bytes()
    for number in range(4 if entries else 0):
        liar = tmp_path / str(number) / path.parent.name / path.name
        liar.parent.mkdir(parents=True)
        shutil.copy(path, liar)
        shutil.copy(path.with_suffix(".index"), liar.parent)
        lies = bytearray(entries)
        for _ in range(number):
            lies[dice.randrange(len(lies))] ^= 1 << dice.randrange(8)
        liar.with_suffix(".timeindex").write_bytes(lies[: len(lies) - 12 * (number % 2)])
        liars.append(liar)
    for moment in times[:: max(1, len(times) // (6 if SEED else 3))]:
        for chosen in ([f"{moment}.."], [f"{moment + 1}..{moment + 5}"], [f"..{moment}"]):
            expected = objects(path, "--records", "--no-decode", "--no-index", "--time", *chosen)
            for liar in liars:
                assert [
                    r | {"file": str(path)} for r in objects(liar, "--records", "--no-decode", "--time", *chosen)
                ] == expected


def test_the_time_index_spares_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, index, times = b"", b"", b""
    for number in range(200):
        if number % 10 == 0 and number:
            index += INDEX_ENTRY.struct.pack(number, len(data))
            times += TIME_INDEX_ENTRY.struct.pack(1_700_000_000_000 + number, number)
        fields = {"baseTimestamp": 1_700_000_000_000 + number, "maxTimestamp": 1_700_000_000_000 + number}
        data += craft.batch([craft.record(value=b"v" * 20_000)], offset=number, **fields)
    path = craft.write_file(tmp_path / f"{0:020}.log", data)
    path.with_suffix(".index").write_bytes(index)
    path.with_suffix(".timeindex").write_bytes(times)
    sizes: list[int] = []
    whole = FileSource.read_at

    def counting(source: FileSource, position: int, count: int) -> bytes:
        found = whole(source, position, count)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(FileSource, "read_at", counting)
    found = objects(path, "--records", "--time", "1700000000195..")
    assert [record["offset"] for record in found] == [195, 196, 197, 198, 199]
    assert sum(sizes) < len(data) // 2
    sizes.clear()
    assert objects(path, "--records", "--no-index", "--time", "1700000000195..") == found
    assert sum(sizes) >= len(data)


def test_a_partition_is_read_in_the_order_of_offsets(tmp_path: Path) -> None:
    data = craft.split(PAYMENTS.read_bytes())
    directory = tmp_path / "payments-0"
    directory.mkdir()
    for start, stop in ((0, 10), (10, 40), (40, len(data))):
        offset = int.from_bytes(data[start][:8], "big")
        (directory / f"{offset:020}.log").write_bytes(b"".join(data[start:stop]))
    (directory / f"{0:020}.log.deleted").write_bytes(data[0])
    found = objects(directory)
    assert [b["baseOffset"] for b in found] == [b["baseOffset"] for b in objects(PAYMENTS)]
    assert {b["file"] for b in objects(directory, "--offset", "0")} == {str(directory / f"{0:020}.log")}
    assert [r["offset"] for r in records(directory, "--last", "70")] == list(range(50, 120))
    below = objects(tmp_path, "--position", "0..")  # without options, its overview
    assert [b["baseOffset"] for b in below] == [b["baseOffset"] for b in found]


# Showing.


def test_json_keeps_bytes_and_escapes_controls(tmp_path: Path) -> None:
    value = b"\x00\x1b[31m\x7f\xc2\x85\xe2\x80\xa8\xe2\x80\xaeX"
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(
        craft.batch([craft.record(0, key=b"\xff\x00", value=value, headers=[(b"k", None), (b"k", b"\xfe")])])
    )
    line = run(path, "--json", "--records").stdout
    assert not [c for c in line.rstrip("\n") if unicodedata.category(c) in ("Cc", "Zl")]
    record = json.loads(line)
    assert record["value"].encode() == value
    assert (record["key"], record["keyEncoding"]) == ("/wA=", "base64")
    assert record["headers"] == [{"key": "k", "value": None}, {"key": "k", "value": "/g==", "valueEncoding": "base64"}]


@pytest.mark.parametrize("form", [[], ["--records"], ["--hex"], ["--records", "--full"], ["-f", "%o %k %s %h\n"]])
@pytest.mark.parametrize("columns", [80, 200])
def test_no_control_character_reaches_a_terminal(form: list[str], columns: int, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x9b31m\r\n\x00\u202e\u2028".encode()
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(craft.batch([craft.record(0, key=evil, value=evil, headers=[(evil, evil)])]))
    shown = plain(in_terminal(columns, path, *form))
    allowed = "\n"
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in allowed]


SHOWN = [(columns, form) for columns in (80, 120, 200) for form in ([], ["--records"], ["--hex"])]
SHOWN += [(50, ["--records"])]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("path", "columns", "form"),
    [
        (path, columns, form)
        for turn, path in enumerate([PAYMENTS, segment("clean-1/orders-zstd-0")])
        for number, (columns, form) in enumerate(SHOWN)
        if SEED or number % 2 == turn
    ],
    ids=lambda value: value.parent.name if isinstance(value, Path) else str(value),
)
def test_lines_fit_the_terminal(path: Path, columns: int, form: list[str]) -> None:
    """Each width with each form, of one of the files in turn."""
    shown = plain(in_terminal(columns, path, "-n", "20", *form))
    assert not [line for line in shown.split("\n") if cell_len(line) > columns]


def test_colour_only_where_it_is_wanted() -> None:
    assert "\x1b[" in in_terminal(80, PAYMENTS, "-n", "3")
    assert "\x1b" not in in_terminal(80, PAYMENTS, "-n", "3", environment={"NO_COLOR": "1"})
    assert "\x1b" not in run(PAYMENTS, "--hex").stdout


def test_damage_stands_in_its_place(tmp_path: Path) -> None:
    """A wrong checksum, junk, padding and a torn tail are shown at their positions, with every valid batch around
    them."""
    data = PAYMENTS.read_bytes()
    batches = craft.split(data)
    parts = [
        batches[0],
        craft.flip(batches[1], 8 * 100),
        batches[2],
        b"#" * 100,
        batches[3],
        bytes(200),
        batches[4][:90],
    ]
    path = craft.write_file(tmp_path / f"{0:020}.log", b"".join(parts))
    found = objects(path)
    kinds = [entry.get("kind") or entry.get("code") or entry["baseOffset"] for entry in found]
    assert kinds == [0, 1, "crc-mismatch", 2, "junk", 4, "padding", "torn"]
    assert [b["crcValid"] for b in found if b["type"] == "batch"] == [True, False, True, True]
    assert found[-1]["baseOffset"] == 7
    table = run(path).stdout.splitlines()
    assert [line.split()[0] for line in table[1:]] == ["0", "153", "!", "306", "junk:", "602", "padding:", "torn:"]
    hexdump = run(path, "--hex").stdout
    assert "WRONG: computed 0x" in hexdump
    assert run(path, "--records").exit_code == 0
    damaged = [r for r in records(path) if r.get("damaged")]
    assert [r["offset"] for r in damaged] == [1]


def test_a_broken_payload_shows_what_is_sound(tmp_path: Path) -> None:
    """Records before the first bad byte are shown, followed by a finding with reason and position."""
    good = [craft.record(i, key=b"k%d" % i, value=b"v" * 10) for i in range(5)]
    path = tmp_path / f"{0:020}.log"
    broken = good[3][:-1] + b"\x55"  # an impossible number of headers
    path.write_bytes(craft.batch([*good[:3], broken, good[4]]) + craft.one(b"next", offset=5))
    found = objects(path, "--records")
    assert [entry.get("key") for entry in found if entry["type"] == "record"] == ["k0", "k1", "k2", None]
    (finding,) = [entry for entry in found if entry["type"] == "finding"]
    assert finding["code"] == "record-malformed"
    assert finding["position"] == 61 + sum(map(len, good[:3])) + len(good[3]) - 1
    assert "decoding stops here" in run(path, "--hex").stdout


def test_a_missing_codec_library_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    found = objects(segment("clean-1/orders-zstd-0"), "--records")
    assert {entry["code"] for entry in found} == {"decompression-failed"}
    assert all("zstandard" in entry["message"] for entry in found)


def test_a_limit_on_what_is_decompressed(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(craft.batch([craft.record(i, value=bytes(10_000)) for i in range(100)], "gzip"))
    found = objects(path, "--records", "--max-decompressed-size", "100k")
    assert found[-1]["code"] == "decompression-failed"
    assert "--max-decompressed-size" in found[-1]["message"]
    assert [entry["offset"] for entry in found[:-1]] == list(range(10))
    assert len(records(path)) == 100


def test_max_batch_size(tmp_path: Path) -> None:
    path = craft.write_file(tmp_path / f"{0:020}.log", craft.one(b"x") + craft.one(bytes(5000), 1) + craft.one(b"y", 2))
    assert [e["type"] for e in objects(path, "--max-batch-size", "1k")] == ["batch", "region", "batch"]


def test_transactional_zstd_is_explained_to_a_newcomer(tmp_path: Path) -> None:
    path = tmp_path / f"{40:020}.log"
    attributes = 0x14
    batch = craft.batch(
        [craft.record(i, key=b"k", value=b"v%d" % i) for i in range(3)],
        "zstd",
        offset=40,
        attributes=attributes,
        producerId=7,
        producerEpoch=1,
        baseSequence=12,
    )
    path.write_bytes(batch)
    text = run(path, "--hex", "--offset", "41").stdout
    for words in (
        "attributes           0x0014         zstd, CreateTime, transactional",
        "isTransactional: transactional (1: part of a transaction; a read_committed consumer receives",
        *("CRC-32C of bytes 21..", "sequence 12 to 14", "bytes of zstd at 61.."),
        *("positions marked + are in the decompressed payload", "record 1: offset 41", "offset 41"),
    ):
        assert words in text, words


def test_every_layout_position_in_the_hexdump_is_right() -> None:
    """The bytes in each line are those of the file at that position, and together they are the whole batch."""
    data = PAYMENTS.read_bytes()
    covered: set[int] = set()
    for line in run(PAYMENTS, "--hex", "--full", "--producer-id", "10").stdout.splitlines():
        match = re.match(r"^ {0,9}(\d+)[ !]((?:[0-9a-f]{2} )+)", line)
        if match:
            start, found = int(match[1]), bytes.fromhex(match[2])
            assert data[start : start + len(found)] == found
            covered |= set(range(start, start + len(found)))
    assert covered
    for batch in objects(PAYMENTS, "--producer-id", "10"):
        assert set(range(batch["position"], batch["position"] + batch["size"])) <= covered


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "no records are left: compaction keeps the empty batch"),
        (1, "records for 3 offsets: compaction has removed some"),
        (3, "records in the batch"),
    ],
)
def test_a_record_count_says_what_compaction_left(count: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(craft.batch([craft.record(number, b"k", b"v") for number in range(count)], lastOffsetDelta=2))
    (line,) = (line for line in run(path, "--hex").stdout.splitlines() if " recordCount " in line)
    assert line.split("recordCount", 1)[1].split(maxsplit=1) == [str(count), said]


def test_the_delete_horizon_is_not_a_timestamp() -> None:
    path = segment("clean-1/users-0")
    (batch,) = [b for b in objects(path) if b["hasDeleteHorizonMs"] and b["recordCount"]][:1]
    (record,) = [r for r in records(path) if r["position"] == batch["position"]]
    assert batch["deleteHorizonMs"] == batch["baseTimestamp"]
    assert record["timestamp"] == batch["maxTimestamp"]
    assert record["timestampDelta"] < 0


# Raw bytes and format strings.


def test_extract() -> None:
    expected = records(PAYMENTS, "--offset", "10")[0]
    assert run(PAYMENTS, "--offset", "10", "--extract", "value").stdout_bytes == expected["value"].encode()
    assert run(PAYMENTS, "--offset", "10", "--extract", "key").stdout_bytes == b"b4"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--extract", "value"], "more than one record matches"),
        (["--extract", "value", "--offset", "999"], "offset 999 does not exist: the log end offset is 120"),
        (["--extract", "key", "--offset", "10", "--json"], "choose one of"),
    ],
)
def test_extract_refuses(options: list[str], words: str) -> None:
    result = run(PAYMENTS, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_extract_null() -> None:
    result = run(segment("clean-1/orders-zstd-0"), "--offset", "0", "--extract", "value")
    assert (result.exit_code, result.stdout) == (2, "")
    assert numbers_in(result.stderr) == [0]


def test_extract_does_not_write_to_a_terminal() -> None:
    assert "redirect it to a file" in in_terminal(80, PAYMENTS, "--offset", "10", "--extract", "value")


def test_format_string(tmp_path: Path) -> None:
    directory = tmp_path / "topic.with-dash-7"
    directory.mkdir()
    path = directory / f"{0:020}.log"
    path.write_bytes(craft.batch([craft.record(0, key=None, value=b"\x00\xff", headers=[(b"h", b"1"), (b"n", None)])]))
    out = run(path, "-f", r"%t %p %o %K %S %R|%k|%s|%h|%T%%\x41\n").stdout_bytes
    assert out == b"topic.with-dash 7 0 -1 2 \x00\x00\x00\x02||\x00\xff|h=1,n=NULL|1700000000000%A\n"


# Rejecting.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--json", "--hex"], "choose one of"),
        (["--format", "json", "--hex"], "choose one of"),
        (["--json", "-f", "%k"], "choose one of"),
        (["--columns", "position", "--json"], "--columns applies only to tables"),
        (["--columns", "nope"], "unknown column 'nope'"),
        (["--limit", "1", "--last", "1"], "choose one of --limit and --last"),
        (["--follow", "--limit", "1"], "--follow does not end"),
        (["--offset", "5..3"], "ends before it begins"),
        (["--offset", ".."], "is not a range"),
        (["--offset", "-4"], "negative"),
        (["--time", "yesterday"], "is not a time"),
        (["--time", "2026-11-21..2026-11-20"], "ends before it begins"),
        (["--key-regex", "("], "--key-regex"),
        (["--tz", "Mars"], "is not a time zone"),
        (["-f", "%y"], "unknown token %y"),
        (["--max-batch-size", "lots"], "is not a size"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_contradictions(options: list[str], words: str) -> None:
    result = run(PAYMENTS, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("directory", [FIXTURES / "clean-1/payments-0", FIXTURES / "clean-2"])
def test_a_kind_is_for_files(directory: Path) -> None:
    """In a directory, only segments are shown, and the option had no effect on them."""
    result = run(PAYMENTS, directory, "--as", "index")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{directory} is a directory" in result.stderr


def test_json_said_twice_is_no_contradiction() -> None:
    assert run(PAYMENTS, "--json", "--format", "json").exit_code == 0


def test_bad_paths(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, words in {
        tmp_path / "absent.log": "no such file or directory",
        tmp_path / "empty": "no segment",
        Path("nosuch://x/y.log"): "nosuch",
    }.items():
        result = run(str(path).replace("nosuch:/", "nosuch://", 1))
        assert (result.exit_code, result.stdout) == (2, ""), path
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_one_bad_path_does_not_hide_the_others(tmp_path: Path) -> None:
    result = run(tmp_path / "absent.log", PAYMENTS, "--json")
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == len(objects(PAYMENTS))


@pytest.mark.parametrize(
    "data",
    [b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, b"\x7fELF" + random.Random(3).randbytes(3000), b"x"],
    ids=["png", "elf", "byte"],
)
def test_no_segment(data: bytes, tmp_path: Path) -> None:
    path = craft.write_file(tmp_path / "file", data)
    result = run(path, "--json", "--as", "segment")
    assert result.exit_code == 0
    entries = [json.loads(line) for line in result.stdout.splitlines()]
    assert {entry["kind"] for entry in entries} <= {"junk", "torn", "padding"}
    assert sum(entry["size"] for entry in entries) == len(data)
    assert "if this is not a segment" in result.stderr


def test_empty_and_devices() -> None:
    result = run("/dev/null")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("kdump: /dev/null")


def test_a_cut_gzip_file_shows_what_came_out(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log.gz"
    packed = gzip.compress(PAYMENTS.read_bytes())
    path.write_bytes(packed[: len(packed) // 2])
    result = run(path, "--json")
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) > 5
    assert result.stderr.startswith(f"kdump: {path}: ")


def test_a_gzip_file_on_a_bad_device_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = craft.write_file(tmp_path / "00000000000000000000.log.gz", gzip.compress(os.urandom(1 << 20)))
    pread = os.pread

    def failing(fd: int, count: int, position: int) -> bytes:
        if position >= 1 << 19:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(fd, count, position)

    monkeypatch.setattr(os, "pread", failing)
    result = run(path, "--json")
    assert result.exit_code == 2
    assert any(line.count(path.name) == 1 and "Input/output error" in line for line in result.stderr.splitlines())
    assert not any(line.count(path.name) > 1 for line in result.stderr.splitlines())


def test_a_file_that_grows_is_read_to_the_end_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = craft.split(PAYMENTS.read_bytes())
    path = craft.write_file(tmp_path / f"{0:020}.log", b"".join(data[:3]))
    whole = JsonView.batch

    def and_grow(*arguments: Any) -> int:
        with path.open("ab") as file:
            file.write(data[3])
        return whole(*arguments)

    monkeypatch.setattr(JsonView, "batch", and_grow)
    result = run(path, "--json", "--limit", "9")
    assert len(result.stdout.splitlines()) == 3
    assert 3 * len(data[3]) in numbers_in(result.stderr)


def test_a_url() -> None:
    assert [b["baseOffset"] for b in objects(f"file://{PAYMENTS}")] == [b["baseOffset"] for b in objects(PAYMENTS)]


# Problems found in a review.


def write(path: Path, *batches: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(batches))
    return path


def test_copies_of_a_segment_are_not_neighbours(tmp_path: Path) -> None:
    for name in ("a/t-0", "b/t-0", "x", "y"):
        write(tmp_path / name / f"{0:020}.log", craft.one(b"v"))
    assert len(objects(tmp_path, "--offset", "0")) == 4
    os.symlink(tmp_path / "a", tmp_path / "z")
    os.symlink(tmp_path, tmp_path / "a" / "loop")
    assert len(objects(tmp_path, "--offset", "0")) == 4


def test_a_cut_zstd_file_is_told(tmp_path: Path) -> None:
    packed = zstandard.compress(PAYMENTS.read_bytes() * 20)
    path = write(tmp_path / "00000000000000000000.log.zst", packed[: len(packed) - 9])
    result = run(path, "--json")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"kdump: {path}: ")


def test_nothing_is_cut_in_a_pipe(tmp_path: Path) -> None:
    value = bytes(range(97, 123)) * 100
    path = write(tmp_path / f"{0:020}.log", craft.batch([craft.record(0, key=value, value=value)]))
    assert run(path, "--records").stdout.count(value.decode()) == 2


def test_a_broken_inner_message(tmp_path: Path) -> None:
    good, bad = craft.message(1, b"good", offset=0), craft.message(1, b"bad", offset=1)
    path = write(tmp_path / f"{0:020}.log", craft.wrapper(1, [good, craft.flip(bad, 8 * len(bad) - 1)], offset=1))
    found = objects(path, "--records")
    assert [entry.get("damaged") or entry.get("code") for entry in found] == [None, True, "crc-mismatch"]
    assert "! crc-mismatch" in run(path, "--records").stdout
    assert run(path, "--records", "--columns", "damaged").stdout.split()[:3] == ["damaged", "no", "yes"]
    assert "the computed checksum differs" in run(path, "--hex").stdout
    for form in (["--records", "--format", "csv"], ["-f", "%s"]):
        assert "crc-mismatch at byte 0: offset 1: " in run(path, *form).stderr
        assert not run(path, "--offset", "0", *form).stderr
    extracted = run(path, "--offset", "1", "--extract", "value")
    assert "the message at offset 1 in the batch at byte 0 does not match its checksum" in extracted.stderr
    assert not run(path, "--offset", "0", "--extract", "value").stderr


def test_a_control_record_that_does_not_decode_is_named_in_every_form(tmp_path: Path) -> None:
    marker = craft.batch([craft.record(key=b"\0\0\0\1", value=b"\0")], attributes=0x30, producerId=1, producerEpoch=0)
    path = write(tmp_path / f"{0:020}.log", marker)
    for form in (["--records"], ["--records", "--json"], ["--records", "--format", "csv"], ["-f", "%s"]):
        assert "control-batch-invalid" in run(path, *form).output


def test_a_wrapper_offset_below_its_inner_ones(tmp_path: Path) -> None:
    inner = [craft.message(1, b"v", offset=10), craft.message(1, b"v", offset=11)]
    path = write(tmp_path / f"{0:020}.log", craft.wrapper(1, inner, offset=6))
    batch, finding = objects(path)
    assert (batch["baseOffset"], batch["recordCount"]) == (None, 2)
    assert finding["code"] == "message-set-invalid"


@pytest.mark.parametrize("columns", [20, 40, 48])
def test_a_hexdump_on_a_very_narrow_terminal(columns: int) -> None:
    assert "Traceback" not in in_terminal(columns, PAYMENTS, "--hex", "-n", "2")


def test_a_broken_record_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    record = craft.record(0, key=b"kk", value=b"vv")
    for codec in ("none", "zstd"):
        batch = craft.batch([craft.record(0), record[:-1] + b"\x02"], codec)
        lines = run(write(tmp_path / f"{0:020}.log", batch), "--hex").stdout.splitlines()
        (at,) = [i for i, line in enumerate(lines) if "decoding stops here" in line]
        assert [line.split()[-3] for line in lines[at - 3 : at - 2]] == ["2"] or "key " in lines[at - 3]
        assert "headersCount" in lines[at]


def test_a_broken_lone_message_is_shown(tmp_path: Path) -> None:
    message = bytearray(craft.message(0, b"value", key=b"k"))
    message[18:22] = (99).to_bytes(4, "big")
    text = run(write(tmp_path / f"{0:020}.log", craft.fix_crc(bytes(message))), "--hex").stdout
    assert "WRONG: keySize 99" in text
    assert "CRC-32 of bytes 16.." in text


def test_torn_headers_are_named(tmp_path: Path) -> None:
    data = craft.one(b"v")
    text = run(write(tmp_path / f"{0:020}.log", data[:20]), "--hex").stdout
    assert "partitionLeaderEpoch" in text
    message = craft.message(1, b"value", key=b"k")
    text = run(write(tmp_path / f"{0:020}.log", message[:-2]), "--hex").stdout
    positions = [int(line.split()[0]) for line in text.splitlines() if re.match(r"^ +[0-9]+ ", line)]
    assert positions == sorted(set(positions))


def test_a_count_that_lies_points_at_its_field(tmp_path: Path) -> None:
    path = write(tmp_path / f"{0:020}.log", craft.batch([craft.record(0)], count=3))
    finding = objects(path, "--records")[-1]
    found = [finding[key] for key in ("code", "position", "size", "expected", "actual")]
    assert found == ["record-count-mismatch", 57, 4, 1, 3]
    path = write(tmp_path / f"{0:020}.log", craft.batch([craft.record(0)], recordCount=-1))
    assert run(path, "--hex").stdout.count("cannot be negative") == 1


def test_what_our_own_limits_hide_has_no_consequence(tmp_path: Path) -> None:
    path = write(tmp_path / f"{0:020}.log", craft.batch([craft.record(0, value=bytes(9000))], "gzip"))
    finding = objects(path, "--records", "--max-decompressed-size", "1k")[-1]
    assert finding["code"] == "decompression-failed"
    assert finding["consequence"] == shared_impact("ours")


def test_local_time_has_its_summer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    batch = craft.batch([craft.record(0)], baseTimestamp=1774747800000, maxTimestamp=1774747800000)
    text = run(write(tmp_path / f"{0:020}.log", batch), "--tz", "local").stdout
    assert "2026-03-29T03:30:00.000+02:00" in text


@pytest.mark.parametrize(("path", "words"), [("/proc/self/mem", "/proc/self/mem: "), ("-", "closed")])
def test_what_cannot_be_read_at_all(path: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if path == "-":
        with kdump("-", stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(0)) as process:
            _, error = process.communicate(timeout=20)
            assert process.returncode == 2
            assert words in error.decode()
        return
    result = run(path)
    assert result.exit_code == 2
    assert words in result.stderr


def test_follow_reads_again_what_was_cut_or_preallocated(tmp_path: Path) -> None:
    """The file is truncated and written again, then overwritten in place with zeros: only what is on the disk is
    shown."""
    path = write(tmp_path / f"{0:020}.log", craft.one(b"old0", 0), craft.one(b"old1", 1))
    lines: list[bytes] = []
    with kdump(path, "--json", "--records", "--follow", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            wait_for(lines, process.stdout, 2)
            first = len(craft.one(b"old0", 0))
            os.truncate(path, first)
            time.sleep(0.6)
            with path.open("ab") as file:
                file.write(craft.one(b"new1", 1))
            wait_for(lines, process.stdout, 3)
            os.truncate(path, 4096)
            time.sleep(0.6)
            with path.open("r+b") as file:
                file.seek(2 * first)
                file.write(craft.one(b"new2", 2))
            wait_for(lines, process.stdout, 4)
        finally:
            process.terminate()
    assert [json.loads(line)["value"] for line in lines] == ["old0", "old1", "new1", "new2"]


def test_a_rare_match_comes_out_at_once(tmp_path: Path) -> None:
    """A matching row is written while the search continues, and not lost if it is interrupted."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with kdump(fifo, "--key", "rare", stdout=subprocess.PIPE) as process, fifo.open("wb") as file:
        file.write(craft.batch([craft.record(0, key=b"rare")]))
        for number in range(1, 3000):
            file.write(craft.one(bytes(1000), number))
        file.flush()
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert len(out.splitlines()) == 2
    assert process.returncode == 130


# As a separate process.


def kdump(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "kdump", "inspect", *map(str, arguments)], **options)


def test_a_closed_pipe_ends_it_at_once(tmp_path: Path) -> None:
    """With `| head -1` on a huge file, the first line is printed, and the process stops reading."""
    path = tmp_path / f"{0:020}.log"
    data = b"".join(craft.split(PAYMENTS.read_bytes())[:6])
    with path.open("wb") as file:
        file.write(data)
        file.truncate(1 << 40)
    with kdump(path, "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["position"] == 0
        process.stdout.close()
        assert process.stderr is not None
        assert process.wait(20) in (0, 2)
        assert b"Traceback" not in process.stderr.read()


def test_a_fifo_that_closes_early(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with kdump(fifo, "--json", stdout=subprocess.PIPE) as process:
        fifo.write_bytes(PAYMENTS.read_bytes()[:200])
        out, _ = process.communicate(timeout=20)
    assert [json.loads(line).get("kind") for line in out.splitlines()] == [None, "torn"]
    assert process.returncode == 0


def wait_for(lines: list[bytes], stream: Any, count: int) -> None:
    while len(lines) < count:
        lines.append(stream.readline())


def test_follow(tmp_path: Path) -> None:
    """Batches are shown when they are complete, also those in a new segment; a torn tail is not shown yet."""
    directory = tmp_path / "payments-0"
    directory.mkdir()
    data = craft.split(PAYMENTS.read_bytes())
    first, second = directory / f"{0:020}.log", directory / f"{4:020}.log"
    first.write_bytes(data[0] + data[1][:50])
    lines: list[bytes] = []
    with kdump(directory, "--json", "--follow", stdout=subprocess.PIPE) as process:
        try:
            wait_for(lines, process.stdout, 1)
            with first.open("ab") as file:
                file.write(data[1][50:])
            wait_for(lines, process.stdout, 2)
            with first.open("ab") as file:
                file.write(data[2])
            second.write_bytes(data[3])
            wait_for(lines, process.stdout, 4)
        finally:
            process.terminate()
    assert [json.loads(line)["baseOffset"] for line in lines] == [0, 1, 2, 4]


def test_version_and_help() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert result.stdout.startswith("kdump, version ")
    for command in ([], ["inspect"]):
        result = CliRunner().invoke(cli, [*command, "--help"])
        assert result.exit_code == 0
        assert "More examples:" in result.stdout or not command


@pytest.mark.sampled
def test_keys_are_those_of_the_declarations(tmp_path: Path) -> None:
    """Every object has the keys of its declaration, in their order; only optional keys may be missing. This holds for
    the fast and the plain writers, with and without decoding."""
    from kdump.all_answers import TYPES

    torn = craft.write_file(tmp_path / f"{0:020}.log", segment("clean-1/payments-0").read_bytes()[:-10])
    seen: dict[str, set[str]] = {}
    unshown = (".md", ".avsc", ".desc", "bootstrap.checkpoint.deleted")
    small = [path for path in FIXTURES.rglob("*") if path.is_file() and path.suffix not in (".log", ".checkpoint")]
    logs = [each.values[0] for each in some_segments(each_segment(), 3)]
    for path in [torn, *logs, *(path for path in sample(sorted(small), 2) if not path.name.endswith(unshown))]:
        ways: list[tuple[str, ...]] = [()]
        if path.suffix in (".log", ".checkpoint"):
            ways += [("--records",), ("--records", "--no-decode"), ("--records", "--limit", "1")]
        for entry in (entry for way in ways for entry in objects(path, *way)):
            kind = entry.pop("type")
            declared = {key.name: key.optional for key in TYPES[kind]}
            assert list(entry) == [name for name, optional in declared.items() if name in entry or not optional], path
            seen.setdefault(kind, set()).update(entry)
    assert seen.keys() >= {"batch", "record", "region", "indexEntry", "timeIndexEntry", "txnIndexEntry"}
    assert seen.keys() >= {"producerState", "checkpointEntry", "property"}
    rare = {"keyProblem", "keyNote", "valueProblem", "valueNote", "damaged", "tier"}
    assert {key.name for key in TYPES["record"]} - seen["record"] <= rare
    assert {key.name for key in TYPES["checkpointEntry"]} == seen["checkpointEntry"]


def test_large_batches_that_their_headers_exclude_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [os.urandom(300_000) for _ in range(3)]
    data = b""
    for number in range(60):
        fields = {"producerId": number // 20, "producerEpoch": 0, "baseSequence": number % 20}
        data += craft.batch([craft.record(value=values[number % 3])], offset=number, **fields)
    path = craft.write_file(tmp_path / f"{0:020}.log", data)
    sizes: list[int] = []
    whole = FileSource.read_at

    def counting(source: FileSource, position: int, count: int) -> bytes:
        found = whole(source, position, count)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(FileSource, "read_at", counting)
    for producer, offsets in ((1, range(20, 40)), (2, range(40, 60)), (7, range(0))):
        sizes.clear()
        found = objects(path, "--records", "--producer-id", str(producer))
        assert [record["offset"] for record in found] == list(offsets)
        assert sum(sizes) < len(offsets) * 300_000 + 8_000_000
    sizes.clear()
    assert len(objects(path)) == 60
    assert sum(sizes) >= len(data)


# --- What is wrong with a batch shows at its field and in its row ----------------------------------------------------

THREE = [craft.record(n) for n in range(3)]
HEADERS: dict[str, tuple[dict[str, int], str, str, bool]] = {
    "count-too-small": ({"recordCount": 2}, "recordCount", "COUNT!", False),
    "count-too-large": ({"recordCount": 4, "lastOffsetDelta": 3}, "recordCount", "COUNT!", True),
    "count-impossible": ({"recordCount": 9000}, "recordCount", "COUNT!", True),
    "count-negative": ({"recordCount": -1}, "recordCount", "COUNT!", True),
    "max-timestamp": ({"maxTimestamp": 5}, "maxTimestamp", "", False),
    "attributes": ({"attributes": 0x100}, "attributes", "ATTRIBUTES!", True),
    "producer-epoch": ({"producerId": 4}, "producerEpoch", "PRODUCER!", True),
    "no-sequence": ({"producerId": 4, "producerEpoch": 0}, "baseSequence", "PRODUCER!", True),
    "no-producer": ({"attributes": 0x10}, "producerId", "PRODUCER!", True),
    "last-offset": ({"lastOffsetDelta": -2}, "lastOffsetDelta", "OFFSET!", True),
    "valid": ({}, "", "", False),
}
"""Header fields; the field at which the hexdump marks it; the flag; and whether the header alone shows it."""


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_wrong_field_is_marked(name: str, codec: str, tmp_path: Path) -> None:
    fields, marked, flag, in_header = HEADERS[name]
    attributes = {"none": 0, "gzip": 1}[codec] | fields.get("attributes", 0)
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(craft.batch(THREE, codec, **(fields | {"attributes": attributes})))
    dump = run(path, "--hex").stdout
    wrong = [line for line in dump.splitlines() if "WRONG" in line]
    assert not [line for line in wrong if f" {marked} " not in line]
    assert bool(wrong) == bool(marked)
    assert not [line for line in dump.splitlines() if line.startswith("! RecordBatch.")]
    flags = [row["flags"] for row in table_rows(run(path, "--columns", "flags").stdout)]
    if name == "count-too-large" and codec == "gzip":
        in_header = False  # compressed, there may be room for 4 records
    assert [each.split(",")[-1] for each in flags] == [flag if in_header else ("txn" if attributes & 0x10 else "")]


@pytest.mark.parametrize(
    ("inner", "options", "marked"),
    [
        (craft.flip(craft.message(1, b"v", offset=0), 8 * 34), {}, ""),  # of the checksum of what is inside
        (craft.message(1, b"v", offset=0), {}, ""),
        (craft.message(1, b"v", offset=0, timestamp=7), {}, "timestamp"),
        (craft.message(1, b"v", offset=0), {"key": b"k"}, "keySize"),
        (craft.message(0, b"v", offset=4), {"magic": 0}, "offset"),
    ],
    ids=["checksum-inside", "valid", "timestamp", "key", "offset"],
)
def test_a_field_of_a_wrapper_is_marked_if_it_is_wrong(
    inner: bytes, options: dict[str, Any], marked: str, tmp_path: Path
) -> None:
    log = craft.write_file(tmp_path / f"{0:020}.log", craft.wrapper(**{"magic": 1, "inner": inner, **options}))
    header = run(log, "--hex").stdout.partition("payload")[0]
    wrong = [line for line in header.splitlines() if "WRONG" in line]
    assert [line for line in wrong if f" {marked} " in line] == wrong
    assert bool(wrong) == bool(marked)


def table_rows(text: str) -> list[dict[str, str]]:
    _, *lines = text.splitlines()
    return [{"flags": line.strip()} for line in lines if not line.startswith("  !")]


# --- Conditions on records, and files that have none -----------------------------------------------------------------

ON_RECORDS = [
    ("--key", "k"), ("--key-regex", "k"), ("--value-regex", "v"), ("--header", "h"), ("--control",),
    ("--transactional",), ("--producer-id", "1"), ("--time", "2026-01-01.."), ("--read-committed",),
    ("--extract", "key"),
]  # fmt: skip


@pytest.mark.parametrize("condition", ON_RECORDS, ids=lambda each: each[0])
@pytest.mark.parametrize("name", [f"{0:020}.index", "leader-epoch-checkpoint", "partition.metadata"])
def test_a_condition_on_records_of_a_file_without_any(name: str, condition: tuple[str, ...]) -> None:
    folder = next((FIXTURES / "indexed-1").iterdir())
    result = run(folder / name, *condition)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = (each for each in result.stderr.splitlines() if "time range" not in each)
    assert f"has no records, to which {condition[0]} applies; give " in line
    assert line.endswith(f"{0:020}.log" if name.endswith(".index") else "a segment or a directory of them")


def test_a_directory_that_is_searched_has_other_files(tmp_path: Path) -> None:
    folder = next((FIXTURES / "indexed-1").iterdir())
    result = run(folder, "--key", "no such key")
    assert result.exit_code == 1
    assert "nothing matches in 1 file" in result.stderr
    assert "has no records" not in result.stderr


def test_files_without_records_next_to_a_segment() -> None:
    """As a shell names them for PARTITION/*: with the segments, everything with records was searched."""
    folder = next((FIXTURES / "indexed-1").iterdir())
    result = run(*sorted(folder.iterdir()), "--key", "no such key")
    assert result.exit_code == 1
    assert "nothing matches in 1 file" in result.stderr
    assert "has no records" not in result.stderr


def test_conditions_that_entries_meet() -> None:
    folder = next((FIXTURES / "indexed-1").iterdir())
    assert run(folder / f"{0:020}.index", "--offset", "0..").exit_code == 0
    assert run(folder / f"{0:020}.timeindex", "--time", "2000-01-01..").exit_code == 0
    assert run(folder / f"{120:020}.snapshot", "--producer-id", "-5").exit_code == 1


def test_an_offset_that_compaction_removed(tmp_path: Path) -> None:
    """The next one is named, whichever of them was removed; the exit status is that of a filter that leaves nothing."""
    log, offsets = tmp_path / f"{0:020}.log", [3, 4, 9, 20]
    log.write_bytes(b"".join(data(offset, -1) for offset in offsets))
    for offset in range(21):
        done = run(log, "--offset", str(offset))
        following = next(each for each in offsets if each >= offset)
        if offset == following:
            assert (done.exit_code, done.stderr) == (0, "")
        else:
            assert (
                done.exit_code,
                f"no record: compaction removed it, or it is lost; the next is {following}" in done.stderr,
            ) == (1, True)


def test_what_scripts_expect() -> None:
    """Every object states its topic and partition, also as columns; --columns shows the key and value of the default
    table, and --partition selects."""
    disk = FIXTURES / "disk-1"
    for command in (["inspect", "--json"], ["inspect", "--json", "--records"], ["verify", "--json", "--info"]):
        for line in CliRunner().invoke(cli, [*command, str(disk)]).stdout.splitlines():
            answer = json.loads(line)
            if answer["type"] in ("batch", "record", "region", "finding", "indexEntry", "producerState"):
                name = Path(answer["file"]).parent.name  # a finding may be about the log directory
                assert f"{answer['topic']}-{answer['partition']}" == name or name in ("disk-1", "fixtures"), answer
    offsets = disk / "__consumer_offsets-0"
    default = run(offsets, "--records", "-n", "3").stdout.splitlines()
    chosen = run(offsets, "--records", "-n", "3", "--columns", "topic,partition,offset,key,value").stdout.splitlines()
    assert [line.split(None, 3)[:3] for line in chosen[1:]] == [["__consumer_offsets", "0", str(n)] for n in range(3)]
    assert all(line.split(None, 3)[3].replace(" ", "") in full.replace(" ", "") for line, full in zip(chosen, default))
    both = run(FIXTURES / "tiered", "--partition", "1", "--json").stdout.splitlines()
    assert {json.loads(line)["partition"] for line in both} <= {1, None}
    absent = run(disk, "--partition", "7", "--records")
    assert (absent.exit_code, "--partition 7: no match; there is 0" in absent.stderr) == (2, True)


def test_a_dot_is_any_byte(tmp_path: Path) -> None:
    """Also the end of a line, and one that is not UTF-8; a record matches wherever the match is."""
    values = [b"a\nb", b"xa\xffb", b"ab", b"a..b"]
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(craft.batch([craft.record(number, value=value) for number, value in enumerate(values)]))
    assert [each["offset"] for each in objects(path, "--records", "--value-regex", "a.b")] == [0, 1]
    assert [each["offset"] for each in objects(path, "--records", "--value-regex", "^a.*b$")] == [0, 2, 3]


def test_a_segment_that_the_cleaner_emptied_is_no_note(tmp_path: Path) -> None:
    """Notes on standard error are about what a person must know."""
    users = FIXTURES / "clean-1" / "users-0"
    there = tmp_path / "users-0"
    there.mkdir()
    data = (users / f"{0:020}.log").read_bytes()
    (there / f"{0:020}.log").write_bytes(data[:61])  # a batch without records
    (there / f"{66:020}.log").write_bytes(data[61:])
    shutil.copy(users / f"{254:020}.log", there)
    for command in ("inspect", "inspect --records", "ls", "stats", "verify", "transactions --list"):
        done = CliRunner().invoke(cli, [*command.split(), str(there)])
        assert (done.exit_code, done.stderr) == (0, ""), command


COUNTED = (
    ("--key", "a3"), ("--offset", "5..9"), ("--time", "2026-11-21T07:58:22..2026-11-21T07:58:23"), ("--control",),
    ("--read-committed",), ("--read-committed", "--by-markers"), ("--value-regex", "sku-4"), ("--producer-id", "9"),
    ("--topic", "pay*", "--transactional"), ("--header", "trace"), ("--key-regex", "^k1"), (),
)  # fmt: skip


@each_case("filters", COUNTED)
def test_a_count_is_that_of_the_rows(filters: tuple[str, ...], tmp_path: Path) -> None:
    """With any filter, of every format, damaged batches included."""
    damaged = tmp_path / "payments-7" / PAYMENTS.name
    damaged.parent.mkdir()
    damaged.write_bytes(craft.flip(PAYMENTS.read_bytes(), 540))
    paths = (FIXTURES / "disk-1", FIXTURES / "legacy" / "upgraded-gzip-0", damaged.parent)
    rows = [each for each in objects(*paths, "--records", *filters) if each["type"] == "record"]
    found = objects(*paths, "--count", *filters)
    *parts, total = found if len(found) != 1 else (*found, found[0])
    of = {(row["topic"], row["partition"]) for row in rows}
    assert {(part["topic"], part["partition"]) for part in parts} == of
    for part in parts:
        mine = [row for row in rows if (row["topic"], row["partition"]) == (part["topic"], part["partition"])]
        offsets = [row["offset"] for row in mine]
        assert (part["records"], part["controlRecords"]) == (len(mine), sum("control" in row for row in mine))
        assert part["damagedRecords"] == sum("damaged" in row for row in mine)
        assert (part["firstOffset"], part["lastOffset"]) == (min(offsets), max(offsets))
        assert part["batches"] == len({(row["file"], row["position"]) for row in mine}) or "upgraded" in part["topic"]
    assert total["records"] == len(rows)
    shown = run(*paths, "--count", *filters)
    assert shown.stdout.splitlines()[-1].startswith(f"{len(rows):,} record")
    assert shown.exit_code == (0 if rows else run(*paths, "--records", *filters).exit_code)
