"""Compares `kdump stats` with naive sums of the output of `kdump inspect`, with kafka-dump-log, and with `kdump
verify`."""

from __future__ import annotations

import base64
import json
import random
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from kdump.all_answers import TYPES
from kdump.questions.stats import run as read_stats
from kdump.questions.stats.report import CountReport
from tests import command, craft
from tests.conftest import FIXTURES, each_segment, seeded, some_segments
from tests.each_case import each_case

FIRST = f"{0:020}.log"


def stats(*args: str | Path, status: int = 0) -> list[dict[str, Any]]:
    return command.objects("stats", *args, status=status, types=TYPES)


def objects(*args: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in command.run("inspect", *args, "--json").stdout.splitlines()]


def raw(value: dict[str, Any], name: str) -> bytes | None:
    text = value[name]
    if text is None:
        return None
    return base64.b64decode(text) if value.get(name + "Encoding") else str(text).encode()


def within(classes: list[dict[str, Any]], number: int) -> int:
    found = (n for n, each in enumerate(classes) if each["from"] <= number)
    return next(n for n in found if classes[n]["to"] is None or number <= classes[n]["to"])


def check_classes(classes: list[dict[str, Any]], numbers: list[int]) -> None:
    """Check that a histogram counts each of these numbers in its own class."""
    counted = Counter(within(classes, number) for number in numbers)
    assert [each["count"] for each in classes] == [counted[n] for n in range(len(classes))]


@pytest.mark.sampled
@pytest.mark.parametrize("path", some_segments(each_segment(), 12))
def test_naive_sums(path: Path) -> None:
    (said,) = stats(path, "--top", "100000")
    batches = [each for each in objects(path) if each["type"] == "batch"]
    records = [each for each in objects(path, "--records", "--no-decode") if each["type"] == "record"]
    data = [each for each in records if "control" not in each]
    assert said["batches"] == len(batches)
    assert said["records"] == len(records)
    assert (said["dataRecords"], said["controlRecords"]) == (len(data), len(records) - len(data))
    assert said["bytes"] == path.stat().st_size
    assert said["undecodedRecords"] == said["damagedPlaces"] == said["topKeys"]["error"] == 0
    for name, size in (("keys", "keySize"), ("values", "valueSize")):
        sizes = [each[size] for each in data if each[size] >= 0]
        assert said[name]["nulls"] == len(data) - len(sizes)
        assert said[name]["bytes"] == sum(sizes)
        assert said[name]["most"] == max(sizes, default=None)
        check_classes(said[name]["histogram"], sizes)
        if sizes:
            first = next(each for each in data if each[size] == max(sizes))
            assert (said[name]["mostAt"]["offset"], said[name]["mostAt"]["position"]) == (
                first["offset"],
                first["position"],
            )
    assert said["headers"]["count"] == sum(len(each["headers"]) for each in data)
    times = [each["timestamp"] for each in data if each["timestamp"] is not None and each["timestamp"] >= 0]
    assert (said["oldest"], said["newest"]) == (min(times, default=None), max(times, default=None))
    assert said["untimedRecords"] == len(data) - len(times)
    width = said["times"]["milliseconds"]
    counted = Counter(time // width * width for time in times)
    assert {each["timestamp"]: each["count"] for each in said["times"]["buckets"]} == counted
    late, newest = [], -1
    for time in times:
        if time < newest:
            late.append(newest - time)
        newest = max(newest, time)
    assert (said["late"]["records"], said["late"]["most"]) == (len(late), max(late, default=None))
    check_classes(said["late"]["histogram"], late)
    keys = Counter(raw(each, "key") for each in data if each["key"] is not None)
    found = {raw(each, "key"): each["records"] for each in said["topKeys"]["keys"] if not each.get("isCut")}
    assert found == {key: count for key, count in keys.items() if key is not None and len(key) <= 128}
    counts = [each["recordCount"] for each in batches]
    assert said["batchRecords"]["mean"] == round(sum(counts) / len(counts), 3)
    assert (said["batchRecords"]["most"], said["batchRecords"]["ones"]) == (max(counts), counts.count(1))
    check_classes(said["batchRecords"]["histogram"], counts)
    check_classes(said["batchSizes"]["histogram"], [each["size"] for each in batches])
    stored = defaultdict[str, list[int]](list)
    for each in batches:
        stored[each["compression"]].append(each["size"] - (61 if each["magic"] == 2 else 0))
    assert {each["compression"]: (each["batches"], each["storedBytes"]) for each in said["codecs"]} == {
        codec: (len(sizes), sum(sizes)) for codec, sizes in stored.items()
    }
    assert {each["magic"]: each["batches"] for each in said["formats"]} == Counter(each["magic"] for each in batches)
    producers = Counter[int]()
    for each in batches:
        if each["producerId"] is not None and each["producerId"] >= 0:
            producers[each["producerId"]] += each["recordCount"]
    assert {each["producerId"]: each["records"] for each in said["topProducers"]["producers"]} == producers


READ = ("clean-1/payments-0", "clean-1/trimmed-0", "clean-1/users-0", "disk-1/payments-0", "clean-2/ledger-0")


@pytest.mark.parametrize("name", READ)
def test_what_consumers_receive(name: str, tmp_path: Path) -> None:
    """As inspect shows it, from any log start on."""
    log = shutil.copytree(FIXTURES / name, tmp_path / "disk" / Path(name).name)
    topic, _, number = log.name.rpartition("-")

    def offsets(*options: str) -> list[int]:
        lines = command.run("inspect", log, "--records", "--no-decode", "--json", *options).stdout.splitlines()
        records = [row for row in map(json.loads, lines) if row["type"] == "record"]
        return [row["offset"] for row in records if "control" not in row]

    every, committed = offsets(), offsets("--read-committed")
    assert len(committed) < len(every) or "payments" not in name
    for start in (None, min(every), every[len(every) // 3], committed[-1], max(every) + 1):
        if start is not None:
            checkpoint = log.parent / "log-start-offset-checkpoint"
            checkpoint.write_text(f"0\n1\n{topic} {number} {start}\n")
        (said,) = stats(log)
        assert said["readableRecords"] == sum(offset >= (start or 0) for offset in every)
        assert said["committedRecords"] == sum(offset >= (start or 0) for offset in committed)
        shown = f" from log start offset {start} on" in command.run("stats", log).stdout
        assert shown == (start is not None and start > said["firstOffset"])


def test_total_is_the_sum() -> None:
    *parts, total = stats(FIXTURES / "clean-1", "--top", "1000")
    assert [each["scope"] for each in parts] == ["partition"] * len(parts)
    assert total["scope"] == "total"
    assert total["partitions"] == len(parts) > 20
    for name in ("bytes", "batches", "records", "dataRecords", "recordBytes", "untimedRecords"):
        assert total[name] == sum(each[name] for each in parts), name
    for name in ("keys", "values"):
        assert total[name]["nulls"] == sum(each[name]["nulls"] for each in parts)
        assert total[name]["most"] == max(each[name]["most"] or 0 for each in parts)
    found = {
        (each["topic"], each["key"], each.get("keyEncoding")): each["records"] for each in total["topKeys"]["keys"]
    }
    for each in parts:
        for key in each["topKeys"]["keys"]:
            assert found[(each["topic"], key["key"], key.get("keyEncoding"))] >= key["records"]


def test_choosing_topics() -> None:
    assert {each["topic"] for each in stats(FIXTURES / "clean-1", "--topic", "orders-*")[:-1]} == {
        f"orders-{codec}" for codec in craft.CODECS
    }
    assert all(each["topic"].startswith("__") for each in stats(FIXTURES / "clean-1", "--internal")[:-1])
    nothing = command.run("stats", FIXTURES / "clean-1", "--topic", "none-such")
    assert (nothing.exit_code, nothing.stdout) == (2, "")
    assert command.unmatched(nothing.stderr) == ["--topic none-such"]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    assert command.run("stats", tmp_path / "nothing").exit_code == 2
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / FIRST).symlink_to(tmp_path / "nowhere")
    result = command.run("stats", tmp_path / "t-0")
    assert result.exit_code == 2
    assert "not read" in result.stdout


def test_a_pipe(tmp_path: Path) -> None:
    data = (FIXTURES / "clean-1" / "orders-lz4-0" / FIRST).read_bytes()
    result = command.run("stats", "-", "--json", stdin=data)
    assert json.loads(result.stdout)["records"] == 300


def test_control_characters_stay_out(tmp_path: Path) -> None:
    craft.write_file(tmp_path / "t-0" / FIRST, craft.batch([craft.record(key=b"\x1b[2J\x9b", value=b"v")]))
    for options in ((), ("--full",), ("--json",)):
        result = command.run("stats", tmp_path / "t-0", *options)
        assert result.exit_code == 0
        assert "\x1b" not in result.stdout


def test_impossible_timestamps_and_sizes(tmp_path: Path) -> None:
    """Deltas that exceed 64 bits, the largest base timestamp, and a key that is a long."""
    (tmp_path / "t-0").mkdir()
    most = (1 << 63) - 1
    rows = [craft.record(0, timestamp=most), craft.record(1, timestamp=-most), craft.record(2, key=b"k" * 5000)]
    data = craft.batch(rows, baseTimestamp=most) + craft.batch([craft.record(timestamp=5)], offset=3, baseTimestamp=7)
    (tmp_path / "t-0" / FIRST).write_bytes(data)
    (said,) = stats(tmp_path / "t-0")
    assert (said["untimedRecords"], said["oldest"], said["newest"]) == (3, 12, 12)
    (key,) = said["topKeys"]["keys"]
    assert (key["key"], key["keySize"], key["isCut"]) == ("k" * 64, 5000, True)


def odd_batches(dice: random.Random) -> bytes:
    """Return batches of few records, of which some cannot be counted together with others."""
    data, offset = b"", 0
    for _ in range(60):
        count = dice.choice([0, 1, 1, 2, 3])
        rows = [
            craft.record(i, dice.choice([None, b"", b"k%d" % i]), dice.choice([None, b"v" * i]), timestamp=i)
            for i in range(count)
        ]
        fields = {
            "attributes": dice.choice([0, 0, 0, 0, 8, 0x10, 0x20, 0x30, 0x40, 0x80]),
            "producerId": dice.choice([-1, 7, 7, 8]),
            "baseTimestamp": dice.choice([-1, 0, 1_700_000_000_000 - offset, 1 << 62]),
            "recordCount": count + dice.choice([0] * 9 + [1]),
        }
        data += craft.batch(rows, dice.choice(["none"] * 5 + ["lz4"]), offset=offset, lastOffsetDelta=3, **fields)
        offset += 4
    return data


@pytest.mark.parametrize("number", range(10))
def test_small_batches_are_counted_together_as_alone(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = seeded(f"small batches {number}")
    path = craft.write_file(tmp_path / FIRST, odd_batches(dice))
    together = stats(path)
    monkeypatch.setattr(read_stats, "ROWS", dice.randrange(1, 8))
    assert stats(path) == together
    monkeypatch.setattr(read_stats, "decode_batches", lambda heads, row, *more: row)
    assert stats(path) == together


@each_case("size", [1, 400])
def test_offsets_that_do_not_rise_are_named(size: int, tmp_path: Path) -> None:
    """A flipped bit in a base offset, which no checksum covers, was 1,048,577 offsets; also in a run of batches."""
    batches = [craft.one(b"v", offset) for offset in range(2 * size)]
    batches[size - 1] = craft.rebase(batches[size - 1], 1 << 20)
    path = craft.write_file(tmp_path / f"{0:020}.log", b"".join(batches))
    output = command.run("stats", path).stdout
    assert f"offsets      {0 if size > 1 else 1}..1048576, not in order" in output
    assert f"the batch at byte {size * len(batches[0])} has base offset {size}, after offset 1048576" in output


def test_no_colour_and_no_cut_in_a_pipe() -> None:
    result = command.run("stats", FIXTURES / "clean-1" / "orders-none-0")
    assert "\x1b" not in result.stdout
    assert all(len(line) <= 100 for line in result.stdout.splitlines())


@pytest.mark.every_disk
def test_memory(tmp_path: Path) -> None:
    """There are as many keys as records, all of them long, each record with another time."""
    (tmp_path / "t-0").mkdir()
    with (tmp_path / "t-0" / FIRST).open("wb") as out:
        for offset in range(0, 200_000, 1000):
            rows = [
                craft.record(
                    delta, key=b"%0100d" % (offset + delta), value=b"v" * 50, timestamp=(offset + delta) * 60_000
                )
                for delta in range(1000)
            ]
            out.write(craft.batch(rows, offset=offset))
    code = "import resource, subprocess, sys; s = subprocess.call(sys.argv[1:], stdout=2)"
    code += "; print(s, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = [sys.executable, "-m", "kdump", "stats", str(tmp_path / "t-0"), "--json"]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    status, peak = map(int, done.stdout.split())
    assert status == 0, done.stderr
    assert peak < 100 * 1024
    said = json.loads(done.stderr)
    assert len(said["times"]["buckets"]) <= 2048
    assert 0 < said["topKeys"]["error"] <= 2 * 200_000 / 16_384


MIDNIGHT = {"hour": 0, "minute": 0, "second": 0}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_counts_by_period_key_and_producer(zone: str) -> None:
    """The sums of the rows of inspect; a local day begins at local midnight."""
    disk = FIXTURES / "disk-1"
    data = [row for row in objects(disk, "--records", "--no-decode") if row["type"] == "record"]
    timed = [row["timestamp"] for row in data if "control" not in row and row["timestamp"] >= 0]
    for by, fields in (("minute", {"second": 0}), ("hour", {"minute": 0, "second": 0}), ("day", MIDNIGHT)):
        expected: Counter[int | None] = Counter()
        for stamp in timed:
            local = datetime.fromtimestamp(stamp // 1000, ZoneInfo(zone)).replace(**fields)
            expected[round(local.timestamp() * 1000)] += 1
        rows = stats(disk, "--by", by, "--tz", zone)
        assert {row["timestamp"]: row["records"] for row in rows if row["timestamp"] is not None} == expected, by
    total = next(row for row in stats(disk) if row["scope"] == "total")
    assert sum(row["records"] for row in rows) == total["dataRecords"]
    assert sum(row["bytes"] for row in rows) == total["recordBytes"]
    for by, many, each in (("key", "topKeys", "keys"), ("producer", "topProducers", "producers")):
        found = command.objects("stats", disk, "--by", by)
        untyped = [{name: value for name, value in row.items() if name != "type"} for row in found]
        assert untyped == total[many][each]
    shown = command.run("stats", disk, "--by", "hour").stdout
    assert f"{total['dataRecords']:,} data records" in shown
    assert command.run("stats", disk, "--by", "hour", "--detail").exit_code == 2


def test_counts_have_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest is that of the most records."""
    end = CountReport.end

    def on_terminal(report: CountReport) -> None:
        report.output.terminal = True
        end(report)

    disk = FIXTURES / "disk-1"
    assert "█" not in command.run("stats", disk, "--by", "hour").stdout
    monkeypatch.setattr(CountReport, "end", on_terminal)
    rows = [line for line in command.run("stats", disk, "--by", "hour").stdout.splitlines() if "%" in line]
    records = [int(line.split("Z")[-1].split()[0].replace(",", "")) for line in rows]
    bars = [line.count("█") for line in rows]
    assert max(bars) > 10
    assert records.index(max(records)) == bars.index(max(bars))
