"""What the log cleaner removed and what it did not: diff, a model of the cleaner, and Kafka's own."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.io.errors import SourceError
from kdump.io.source import Source, open_source
from kdump.log.batch_records import records
from kdump.log.partition_directory import partition
from kdump.log.region import DefaultRecordBatch
from kdump.questions.diff import lost_records
from kdump.questions.diff.differences import DAMAGE, DIVERGENT, MISSING
from kdump.questions.diff.run import Diff, diff_copies
from kdump.questions.find_copies import Copy, copy_of
from tests import craft
from tests.cleaner_model import RETENTION, START, Log, Stored, StoredBatch, random_log, random_rounds
from tests.conftest import iter_regions, sample, seeded

PAIRS = 2000
LOGS = 1000
"""Logs of which Kafka cleans five copies each, so that there are ten pairs."""


def compacted(directory: Path, retention: int | None = None) -> Copy:
    known = PartitionContext("c", 0, compacted=True, delete_retention=retention)
    return copy_of(partition(str(directory), str(directory)), known)


def compared(one: Path, other: Path, *, retention: int | None = None, now: int = 0) -> Diff:
    return diff_copies([compacted(one, retention), compacted(other, retention)], Options(now=now))


def missing(found: Diff) -> list[tuple[int | None, int, int, str]]:
    """Return what copies have lost: the copy, the first and last offset, and why it was not the cleaner."""
    differences = found.pairs[0, 1].differences
    return [(each.lacking, each.first, each.last, each.reason) for each in differences if each.kind == MISSING]


def state(log: Log, aborted: set[int]) -> dict[bytes, bytes | None]:
    """Return what a read_committed consumer has, once it has read the log."""
    values: dict[bytes, bytes | None] = {}
    for offset, record in sorted(log.records.items()):
        if record.key is not None and offset not in aborted:
            values[record.key] = record.value
    return {key: value for key, value in values.items() if value is not None}


def without(log: Log, offset: int) -> Log:
    """Return the log without a record."""
    kept = [
        (base, [replace(each, records=tuple(r for r in each.records if r.offset != offset)) for each in batches])
        for base, batches in log.segments
    ]
    return Log(kept)


def pair(dice: random.Random) -> tuple[Log, list[Log]]:
    """Return a log, and two replicas of it, each cleaned up to some offset at some time; one may end earlier."""
    history = random_log(dice)
    ends = history.up_to(dice.randint(1, sum(1 for _ in history.batches))), history
    logs = [log.cleaned(random_rounds(log, dice)) for log in (dice.choice(ends), history)]
    dice.shuffle(logs)
    return history, logs


@pytest.mark.sampled
def test_two_replicas_and_one_that_lost_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two replicas, cleaned on their own, never diverge. Without a record that consumers need, they do, at its offset;
    without one that a later record replaces, they do not."""
    lost = 0
    for number in sample(range(PAIRS), 20, "cleaner"):
        dice = seeded(f"cleaner {number}")
        monkeypatch.setattr(lost_records, "MAX_KEYS", dice.choice((1, 2, 300_000)))
        history, logs = pair(dice)
        paths = [log.write(tmp_path / str(number) / name / "c-0") for log, name in zip(logs, "ab")]
        found = compared(*paths)
        assert found.relation in ("same", "prefix"), (number, missing(found))
        both = sorted(set(logs[0].records) & set(logs[1].records))
        if not both:
            continue
        offset = dice.choice(both)
        aborted, before = history.aborted(), logs[0]
        key, value = before.records[offset][1:]
        later = [each.key for each in logs[1].records.values() if each.offset > offset and each.offset not in aborted]
        logs[0] = without(before, offset)
        logs[0].write(paths[0])
        found = compared(*paths)
        if state(before, aborted) == state(logs[0], aborted):
            assert found.relation in ("same", "prefix") or value is None, number
        elif key in later:  # the other replica, which ends later, has it
            assert found.relation in ("same", "prefix"), number
        else:
            lost += 1
            assert (found.relation, found.firstDivergentOffset) == (DIVERGENT, offset), number
            assert [each[:3] for each in missing(found)] == [(0, offset, offset)], number
        shutil.rmtree(tmp_path / str(number))
    assert lost


@pytest.mark.sampled
def test_damage_is_not_taken_for_lost_records(tmp_path: Path) -> None:
    """What a replica lacks may have been replaced by a record that damage hides."""
    damaged = 0
    for number in sample(range(PAIRS // 4), 20, "damage"):
        dice = seeded(f"damaged {number}")
        _, logs = pair(dice)
        paths = [log.write(tmp_path / str(number) / name / "c-0") for log, name in zip(logs, "ab")]
        file = dice.choice([path for path in sorted(paths[0].iterdir()) if path.stat().st_size])
        parts = craft.split(file.read_bytes())
        which = dice.randrange(len(parts))
        parts[which] = parts[which][:-1] + bytes([parts[which][-1] ^ 1])
        file.write_bytes(b"".join(parts))
        found = compared(*paths)
        assert missing(found) == [], number
        damaged += any(each.kind == DAMAGE for each in found.pairs[0, 1].differences)
    assert damaged


HISTORY = {
    "value": [(0, b"k", b"1"), (1, b"l", b"1"), (2, b"k", b"2")],
    "tombstone": [(0, b"k", b"1"), (1, b"l", b"1"), (2, b"k", None)],
}
"""Logs of batches with one record each."""
REMOVED = [
    ("value", {0}, None, []),
    ("value", {2}, None, [(0, 2, 2, lost_records.NOT_SUPERSEDED)]),
    ("value", {0, 2}, None, [(0, 2, 2, lost_records.NOT_SUPERSEDED)]),
    ("tombstone", {0}, None, []),
    ("tombstone", {0, 2}, None, []),
    ("tombstone", {2}, None, [(0, 2, 2, lost_records.OLDER_LEFT)]),
    ("tombstone", {0, 2}, 1, [(0, 2, 2, lost_records.TOO_YOUNG)]),
    ("tombstone", {0, 2}, RETENTION + 1, []),
    ("tombstone", {0, 2}, -1, []),  # its timestamp cannot be right
]


@pytest.mark.parametrize(("name", "removed", "age", "expected"), REMOVED)
def test_what_is_lost(
    name: str, removed: set[int], age: int | None, expected: list[tuple[int, int, int, str]], tmp_path: Path
) -> None:
    stored = [Stored(*record) for record in HISTORY[name]]
    for copy, offsets in (("a", removed), ("b", set[int]())):
        batches = [StoredBatch(each.offset, each.offset, (each,)) for each in stored]
        kept = [replace(each, records=()) if each.base in offsets else each for each in batches]
        Log([(0, kept), (3, [StoredBatch(3, 3, (Stored(3, b"m", b"1"),))])]).write(tmp_path / copy / "c-0")
    now = 0 if age is None else START + age
    found = compared(tmp_path / "a" / "c-0", tmp_path / "b" / "c-0", retention=RETENTION, now=now)
    assert missing(found) == expected
    assert (found.relation == DIVERGENT) == bool(expected)


@pytest.mark.parametrize(("is_data_left", "marker"), [(True, "COMMIT"), (True, "ABORT"), (False, "COMMIT")])
def test_a_marker_is_lost_if_its_data_are_left(is_data_left: bool, marker: str, tmp_path: Path) -> None:
    data = StoredBatch(0, 0, (Stored(0, b"k", b"1"),), 7, 0)
    end = StoredBatch(1, 1, (Stored(1, bytes((0, 0, 0, marker == "COMMIT")), bytes(6)),), 7, -1, marker)
    last = StoredBatch(2, 2, (Stored(2, b"k", b"2"),))
    Log([(0, [data, end, last])]).write(tmp_path / "b" / "c-0")
    left = data if is_data_left else replace(data, records=())
    Log([(0, [left, replace(end, records=()), last])]).write(tmp_path / "a" / "c-0")
    found = compared(tmp_path / "a" / "c-0", tmp_path / "b" / "c-0")
    assert missing(found) == ([(0, 1, 1, lost_records.DATA_LEFT)] if is_data_left else [])


@pytest.mark.jars
def test_what_kafkas_own_cleaner_leaves(tmp_path: Path) -> None:
    """It leaves the records that the model leaves, and no two of the logs that it cleaned diverge: 10,000 pairs."""
    logs: dict[Path, Log] = {}
    lines = []
    for number in range(LOGS):
        dice = random.Random(f"cleaned by Kafka {number}")
        history = random_log(dice)
        for version in range(5):
            log = history.up_to(dice.randint(1, sum(1 for _ in history.batches))) if not version else history
            rounds = random_rounds(log, dice)
            path = log.write(tmp_path / f"{number}-{version}" / "c-0")
            logs[path] = log.cleaned(rounds)
            lines.append("\t".join(map(str, [path, *(each for once in rounds for each in once)])))
    jars = Path(os.environ["KDUMP_JARS"]).resolve()
    options = ["-Xmx300m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{jars}/*"]
    command = ["java", *options, str(Path(__file__).with_name("CleanLogs.java")), str(RETENTION)]
    subprocess.run(command, input="\n".join(lines), text=True, check=True, stdout=subprocess.DEVNULL)
    for path, log in logs.items():
        batches = [batch for file in sorted(path.glob("*.log")) for batch in batches_of(file)]
        assert [offset for batch in batches for offset in batch] == sorted(log.records), path
    pairs = [pair for first in range(0, len(logs), 5) for pair in combinations([*logs][first : first + 5], 2)]
    assert len(pairs) == 10 * LOGS
    for one, other in pairs:
        found = compared(one, other)
        assert found.relation in ("same", "prefix"), (one, other, missing(found))


def batches_of(file: Path) -> Iterator[list[int]]:
    """Yield the offsets of the data records of each batch."""
    for region in iter_regions(file):
        assert isinstance(region, DefaultRecordBatch), (file, region)
        if not region.isControlBatch:
            yield [record.offset for record in records(region) if record.offset is not None]


def test_a_copy_that_cannot_be_read_again(tmp_path: Path) -> None:
    """Whether its records were removed by the cleaner is unknown then."""
    stored = [Stored(*record) for record in HISTORY["value"]]
    for copy, removed in (("a", {0}), ("b", set[int]())):
        batches = [StoredBatch(each.offset, each.offset, () if each.offset in removed else (each,)) for each in stored]
        Log([(0, batches)]).write(tmp_path / copy / "c-0")
    opened: list[str] = []

    def open_once(path: str) -> Source:
        opened.append(path)
        if len(opened) > 2:
            raise SourceError(f"{path}: Input/output error")
        return open_source(path)

    copies = [compacted(tmp_path / "a" / "c-0"), compacted(tmp_path / "b" / "c-0")]
    found = diff_copies(copies, Options(open_source=open_once))
    assert (found.relation, found.is_read) == (None, False)
    assert diff_copies(copies, Options()).relation == "same"
