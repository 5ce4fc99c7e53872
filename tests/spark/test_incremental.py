"""A second scan into a result gives the same as a scan from scratch, whatever has happened to the disks meanwhile.

The tasks run in this process, because only files are compared, for which no Spark is needed."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kdump.check.options import Options
from kdump.io.run import Limits, Run
from kdump.spark.delta_tables import KEEP, LAYOUT_NAME, LOG, OLD_LIST, files_of, finished_scans
from kdump.spark.read_chunk import read_chunk_file
from kdump.spark.result_views import scan_at
from kdump.spark.scan import ScanResult, scan
from kdump.spark.scan_answer import ScanQuery
from kdump.spark.store import OWN, Store, StoreError
from kdump.spark.unit_read import UnitObserver
from kdump.spark.unit_sums import UnitSums, sum_entries
from kdump.spark.units import entries
from kdump.tables.declarations import COUNTS, UNITS
from kdump.tables.segment_split import opened
from kdump.tables.small_tables import segment_rows
from tests import craft
from tests.command import objects
from tests.conftest import FIXTURES, ROOT, SEED, few, sample, seeded
from tests.spark import same

TOPIC = "payments-0"


class Here:
    """Runs the tasks in this process. They and their results travel as in Spark."""

    parallelism = 2

    def run(self, tasks: Sequence[partial[Any]], on_wait: Any = None) -> list[Any]:
        return [pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(task))())) for task in tasks]


def run(disk: Path, out: Path, store: Store | None = None, keep: int = KEEP, **options: Any) -> ScanResult:
    # Slices of 2 KiB: a change in one part of a segment must not leave the old rows of another.
    chosen: dict[str, Any] = {"records": True, "split_size": 2048, **options}
    with closing(store or Store(str(out))) as writing:
        return same.scanned(Here(), ScanQuery((str(disk),), **chosen), writing, keep)


OWN_WAY = {"seconds", "run", "scanUnit", "firstSegment", "kept", "keptState"}
"""Columns of an entry that depend on how its rows were written, not on the rows."""


def rows(out: Path, at: int | None = None) -> dict[str, Any]:
    """Return the rows of every table of the result, and the entries of the units. The owner of a row and the state that
    is kept depend on what the earlier scans have read."""
    found: dict[str, Any] = defaultdict(list)
    store = Store(str(out))
    versions = scan_at(store, at).versions
    owners: set[str] = set()
    for table in sorted(versions.keys() - {LAYOUT_NAME}):
        for file in files_of(store, table, versions[table]):
            made = pq.read_table(out / table / file.name).to_pylist()
            assert len(made) == file.rows
            owners |= {row["scanUnit"] for row in made}
            found[table] += [repr({name: row[name] for name in row if name not in OWN_WAY}) for row in made]
            assert table != UNITS.name or all(row["fingerprint"] for row in made)
    units = {owner[:-1] for owner in owners if owner.endswith("=")}
    assert {owner.rstrip("+=") for owner in owners} == units
    assert len(found[UNITS.name]) == len(units)
    return {name: sorted(each) for name, each in found.items() if each}


def unknown(out: Path) -> set[str]:
    """Return the files that no scan that can be read has."""
    store = Store(str(out))
    known = {f"{OWN}/README", *(f"scans/{name}" for name in store.list("scans"))}
    for done in finished_scans(store):
        for table in done.versions.keys() - {LAYOUT_NAME}:
            known |= {f"{table}/{file.name}" for file in files_of(store, table, done.versions[table])}
    there = [path.relative_to(out) for path in out.rglob("*") if path.is_file()]
    return {str(path) for path in there if LOG not in path.parts} - known


Change = Callable[[Path, random.Random], None]


def logs(disk: Path) -> list[Path]:
    return sorted((disk / TOPIC).glob("*.log"))


def lines(path: Path, *rows: str) -> None:
    path.write_text("\n".join(["0", str(len(rows)), *rows, ""]))


def grow(disk: Path, dice: random.Random) -> None:
    """Append to the active segment what follows in the real one, up to the end of some batch."""
    active = logs(disk)[-1]
    begin = begins(active)
    reached = begin + active.stat().st_size
    ends = [row["position"] + row["size"] for row in BATCHES if row["position"] >= reached]
    if ends:
        with open(active, "ab") as file:
            file.write(WHOLE[reached : dice.choice(ends)])


def begins(log: Path) -> int:
    """Return the position in the real segment at which this one begins."""
    return next(row["position"] for row in BATCHES if row["baseOffset"] == int(log.stem))


def roll(disk: Path, dice: random.Random) -> None:
    """Close the active segment after some batch, and move the rest to a new one."""
    active = logs(disk)[-1]
    data = active.read_bytes()
    before = begins(active)
    inside = [row for row in BATCHES if before < row["position"] < before + len(data)]
    if inside:
        row = dice.choice(inside)
        cut = row["position"] - before
        active.write_bytes(data[:cut])
        (active.parent / f"{row['baseOffset']:020}.log").write_bytes(data[cut:])


def truncate(disk: Path, dice: random.Random) -> None:
    active = logs(disk)[-1]
    os.truncate(active, dice.randrange(active.stat().st_size + 1))


def retain(disk: Path, dice: random.Random) -> None:
    """Delete the oldest segment, as retention does."""
    if len(logs(disk)) > 1:
        logs(disk)[0].unlink()


def damage(disk: Path, dice: random.Random) -> None:
    """Flip a bit in some segment, without changing its size."""
    path = dice.choice(logs(disk))
    data = bytearray(path.read_bytes())
    if data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)


def clean(disk: Path, dice: random.Random) -> None:
    """Rewrite a segment as the log cleaner does, without some of its batches."""
    path = dice.choice(logs(disk))
    begin, size = begins(path), path.stat().st_size
    inside = [row for row in BATCHES if begin <= row["position"] < begin + size]
    left = [row for row in inside if row["isControlBatch"] or dice.random() < 0.7]
    path.write_bytes(b"".join(WHOLE[row["position"] : row["position"] + row["size"]] for row in left))


def touch(disk: Path, dice: random.Random) -> None:
    """Change the modification time of some file, perhaps to an earlier one."""
    time = dice.choice((1_600_000_000, 1_790_000_000))
    os.utime(dice.choice([path for path in (disk / TOPIC).iterdir() if path.is_file()]), (time, time))


def checkpoint(disk: Path, dice: random.Random) -> None:
    name = dice.choice(("replication-offset", "recovery-point-offset", "log-start-offset", "cleaner-offset"))
    lines(disk / f"{name}-checkpoint", f"payments 0 {dice.randrange(300)}")


def epochs(disk: Path, dice: random.Random) -> None:
    """Write another leader-epoch-checkpoint, as after an election, or with other old entries."""
    starts = sorted(dice.sample(range(150), dice.randrange(1, 4)))
    lines(disk / TOPIC / "leader-epoch-checkpoint", *(f"{number} {start}" for number, start in enumerate(starts)))


def stopped(disk: Path, dice: random.Random) -> None:
    """Add the clean-shutdown file, or remove it."""
    mark = disk / ".kafka_cleanshutdown"
    if mark.exists():
        mark.unlink()
    else:
        mark.write_text('{"version": 0, "brokerEpoch": 1}')


def beside(disk: Path, dice: random.Random) -> None:
    """Add or remove an index or a snapshot, with the name of a segment or another."""
    there = [path for ending in ("index", "timeindex", "snapshot") for path in (disk / TOPIC).glob(f"*.{ending}")]
    if there and dice.random() < 0.5:
        dice.choice(there).unlink()
        return
    source = FIXTURES / "clean-1" / TOPIC
    ending = dice.choice(("index", "timeindex", "snapshot"))
    data = next((path.read_bytes() for path in sorted(source.glob(f"*.{ending}"))), b"")
    offset = dice.choice([int(path.stem) for path in logs(disk)] + [dice.randrange(130)])
    (disk / TOPIC / f"{offset:020}.{ending}").write_bytes(
        data if ending == "snapshot" else bytes(8 * dice.randrange(3))
    )


def nothing(disk: Path, dice: random.Random) -> None:
    """Change nothing."""


def mend(disk: Path, dice: random.Random) -> None:
    """Restore the whole partition."""
    for path in logs(disk):
        path.unlink()
    (disk / TOPIC / f"{0:020}.log").write_bytes(WHOLE)


WHOLE = (FIXTURES / "clean-1" / TOPIC / f"{0:020}.log").read_bytes()
BATCHES: list[dict[str, Any]] = []
OFTEN: tuple[Change, ...] = (grow, roll, roll, truncate)
"""Changes after which a scan can resume, if there are no others."""
CHANGES: tuple[Change, ...] = (
    *(grow, roll, truncate, retain, damage, clean, touch, checkpoint, epochs, stopped, beside, nothing, mend),
    *OFTEN,
)


@pytest.fixture(autouse=True, scope="module")
def batches() -> None:
    BATCHES.extend(same.cli_batches(FIXTURES / "clean-1" / TOPIC))


def a_disk(root: Path) -> Path:
    disk = root / "disk"
    for name in (TOPIC, "users-0"):
        shutil.copytree(FIXTURES / "clean-1" / name, disk / name)
    half = BATCHES[len(BATCHES) // 2]["position"]
    (disk / TOPIC / f"{0:020}.log").write_bytes(WHOLE[:half])
    return disk


class Failing(Store):
    """A store that fails after this number of files, as if the machine had crashed."""

    left = 0
    """Of the class, because each task has its own copy of the store."""

    def writing(self, name: str) -> Any:
        Failing.left -= 1
        if Failing.left < 0:
            raise StoreError(f"{name}: no more")
        return super().writing(name)


def interrupted(disk: Path, out: Path, dice: random.Random) -> None:
    store = Failing(str(out))
    Failing.left = dice.randrange(1, 80)
    with suppress(StoreError):
        run(disk, out, store, compact=dice.random() < 0.5)


def sums(out: Path, result: ScanResult) -> UnitSums:
    return sum_entries(Store(str(out)), result.names(UNITS.name))


def history(seed: object, steps: int, tmp_path: Path) -> int:
    """Run changes and scans, and compare each scan with one from scratch. Returns how many scans resumed where an
    earlier one ended."""
    dice = seeded(seed)
    fleet, out = tmp_path / "fleet", tmp_path / "out"
    disk = a_disk(fleet)
    for number in range(dice.randrange(3)):
        shutil.copytree(FIXTURES / "clean-2" / "ledger-0", fleet / f"other-{number}" / "ledger-0")
    for _ in range(dice.randrange(3)):
        roll(disk, dice)
    if dice.random() < 0.5:
        (disk / "meta.properties").write_text("cluster.id=c\nnode.id=1\nversion=1\n")
    run(fleet, out)
    done: list[str] = []
    continued = 0
    for step in range(steps):
        chosen = OFTEN if dice.random() < 0.4 else CHANGES
        for change in dice.choices(chosen, k=dice.choice((1, 1, 2))):
            change(disk, dice)
            done.append(change.__name__)
        if dice.random() < 0.3:
            interrupted(fleet, out, dice)
            done.append("interrupted")
            if dice.random() < 0.3:
                chosen[0](disk, dice)
        compact = dice.random() < 0.4
        found = run(fleet, out, compact=compact)
        done.append(f"scan {'--compact ' * compact}that continued {found.continued}")
        continued += found.continued
        scratch = tmp_path / f"scratch-{step}"
        alone = run(fleet, scratch)
        assert rows(out) == rows(scratch), done
        assert not unknown(out)
        assert sums(out, found) == sums(scratch, alone)
        shutil.rmtree(scratch)
    assert run(fleet, out).read == 0
    run(fleet, out, from_scratch=True)
    run(fleet, tmp_path / "scratch")
    assert rows(out) == rows(tmp_path / "scratch"), done
    return continued


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Stop the clock by which scans check. Files of the result are large from 3,000 bytes on."""
    monkeypatch.setattr("kdump.spark.scan.time", SimpleNamespace(time=lambda: 1_800_000_000.0))
    monkeypatch.setattr("kdump.spark.scan.SMALL", 3000)
    return monkeypatch


@pytest.mark.every_disk
def test_what_happens_to_a_log(tmp_path: Path, still: pytest.MonkeyPatch) -> None:
    still.setattr("kdump.spark.unit_writer.SPAN", 1)
    assert history("short", 1 if not SEED else 20, tmp_path) > 0


@pytest.mark.every_disk
@pytest.mark.parametrize("seed", range(20))
def test_what_may_happen_to_a_log(seed: int, tmp_path: Path, still: pytest.MonkeyPatch) -> None:
    still.setattr("kdump.spark.unit_writer.SPAN", 1 if seed % 2 else 8 << 30)
    history(seed, 25, tmp_path)


def in_four(disk: Path) -> list[Path]:
    """Split the first half of the partition into four segments."""
    dice = random.Random(3)
    while len(logs(disk)) < 4:
        roll(disk, dice)
    return logs(disk)


class Preads:
    """Counts the bytes that are read, by file."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.read: dict[str, int] = defaultdict(int)
        self.pread = os.pread
        patch.setattr(os, "pread", self)

    def __call__(self, fd: int, count: int, position: int) -> bytes:
        data = self.pread(fd, count, position)
        self.read[os.readlink(f"/proc/self/fd/{fd}")] += len(data)
        return data


@pytest.mark.every_disk
def test_the_bytes_of_closed_segments_are_not_read(tmp_path: Path, still: pytest.MonkeyPatch) -> None:
    disk, out = a_disk(tmp_path), tmp_path / "out"
    paths = in_four(disk)
    (disk / TOPIC / "leader-epoch-checkpoint").unlink(missing_ok=True)
    dice = random.Random(1)
    counted = Preads(still)
    run(disk, out)
    names = [*map(str, paths)]
    assert set(names) <= counted.read.keys()

    def read_again() -> set[str]:
        counted.read.clear()
        assert run(disk, out).continued == 1
        assert rows(out)
        return {name for name in counted.read if name.endswith(".log")}

    grow(disk, dice)
    assert read_again() == {names[3]}
    assert counted.read[names[3]] >= paths[3].stat().st_size
    assert run(disk, out).kept == 3
    roll(disk, dice)  # the last segment is now closed, and followed by another
    assert read_again() == {*map(str, logs(disk)[3:])}
    grow(disk, dice)
    assert read_again() == {str(logs(disk)[-1])}
    lines(disk / TOPIC / "leader-epoch-checkpoint", "0 0", "1 9000")  # an election, after everything that is kept
    counted.read.clear()
    assert run(disk, out).continued == 0  # the file did not exist before, so its entry of the first epoch is new
    lines(disk / TOPIC / "leader-epoch-checkpoint", "0 0", "1 9000", "2 9001")
    assert read_again() == {str(logs(disk)[-1])}
    os.utime(paths[1])
    counted.read.clear()
    assert run(disk, out).continued == 0
    assert set(names) <= counted.read.keys()


def put(name: str, text: str = "") -> Change:
    return lambda disk, dice: [None, (disk / name).write_text(text)][0]


def checkpoints(name: str, offset: int) -> Change:
    return put(f"{name}-checkpoint", f"0\n1\npayments 0 {offset}\n")


def epoch_lines(*starts: int) -> Change:
    rows = [f"{number} {start}" for number, start in enumerate(starts)]
    return put(f"{TOPIC}/leader-epoch-checkpoint", "\n".join(["0", str(len(rows)), *rows, ""]))


def flipped(disk: Path, dice: random.Random) -> None:
    data = bytearray(logs(disk)[1].read_bytes())
    data[-1] ^= 1
    logs(disk)[1].write_bytes(data)


def both(*changes: Change) -> Change:
    return lambda disk, dice: [None, *(change(disk, dice) for change in changes)][0]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("before", "change", "goes_on"),
    few(
        [
            (nothing, grow, True),
            (nothing, checkpoints("replication-offset", 7), True),
            (nothing, checkpoints("recovery-point-offset", 7), True),
            (both(flipped, checkpoints("recovery-point-offset", 300)), checkpoints("recovery-point-offset", 299), True),
            (both(flipped, checkpoints("recovery-point-offset", 300)), checkpoints("recovery-point-offset", 7), False),
            (checkpoints("cleaner-offset", 3), checkpoints("cleaner-offset", 7), True),
            (checkpoints("replication-offset", 3), checkpoints("cleaner-offset", 7), False),
            (checkpoints("replication-offset", 3), checkpoints("log-start-offset", 7), False),
            (epoch_lines(0, 500), epoch_lines(0, 400, 600), True),
            (epoch_lines(0, 500), epoch_lines(0, 20, 500), False),
            (epoch_lines(0, 500), epoch_lines(0, 600, 500), False),
            (nothing, put(f"{TOPIC}/{900:020}.snapshot"), True),
            (nothing, put(f"{TOPIC}/{20:020}.snapshot"), False),
            (put(f"{TOPIC}/{20:020}.snapshot"), put(f"{TOPIC}/{20:020}.snapshot", "other"), False),
            (nothing, put(f"{TOPIC}/{0:020}.timeindex"), False),
            (put(f"{TOPIC}/{0:020}.index"), lambda disk, dice: (disk / TOPIC / f"{0:020}.index").unlink(), False),
            (nothing, lambda disk, dice: os.utime(logs(disk)[2], (1_600_000_000, 1_600_000_000)), False),
            (nothing, flipped, False),
            (nothing, retain, False),
            (nothing, lambda disk, dice: logs(disk)[-1].unlink(), False),
            (nothing, lambda disk, dice: logs(disk)[1].rename(logs(disk)[1].with_suffix(".log.deleted")), False),
            (put("meta.properties", "node.id=1\n"), put("meta.properties", "node.id=2\n"), False),
            (put("meta.properties"), put(".kafka_cleanshutdown"), False),
        ],
        3,
    ),
)
def test_what_has_to_be_as_it_was(
    before: Change, change: Change, goes_on: bool, tmp_path: Path, still: pytest.MonkeyPatch
) -> None:
    """A check resumes after closed segments only if they are unchanged; what a live broker writes all the time does not
    matter."""
    dice = random.Random(5)
    disk, out = a_disk(tmp_path), tmp_path / "out"
    shutil.rmtree(disk / "users-0")
    put("replication-offset-checkpoint", "0\n0\n")(disk, dice)
    in_four(disk)
    before(disk, dice)
    run(disk, out, records=False)
    change(disk, dice)
    if goes_on:
        os.utime(logs(disk)[-1])
    assert run(disk, out, records=False).continued == goes_on
    if goes_on or SEED:  # otherwise, it has read everything
        run(disk, tmp_path / "scratch", records=False)
        assert rows(out) == rows(tmp_path / "scratch")


@pytest.mark.every_disk
@pytest.mark.sampled
def test_what_was_kept_and_is_not_what_was_written(tmp_path: Path, still: pytest.MonkeyPatch) -> None:
    """Such a state is not used: the partition is read from its first segment on."""
    disk = a_disk(tmp_path)
    shutil.rmtree(disk / "users-0")
    in_four(disk)
    run(disk, tmp_path / "first")
    grow(disk, random.Random(1))
    run(disk, tmp_path / "scratch")
    expected = rows(tmp_path / "scratch")

    def with_entry(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
        def changed(out: Path) -> None:
            for path in (out / UNITS.name).glob("*.parquet"):
                table = pq.read_table(path)
                found = table.to_pylist()
                for entry in found:
                    if entry["kept"]:
                        change(entry)
                pq.write_table(pa.Table.from_pylist(found, table.schema), path)

        return changed

    def with_kept(change: Callable[[Any], Any]) -> Callable[[Path], None]:
        return with_entry(lambda entry: entry.update(kept=json.dumps(change(json.loads(entry["kept"])))))

    def with_state(change: Callable[[bytes], bytes | None]) -> Callable[[Path], None]:
        return with_entry(lambda entry: entry.update(keptState=change(entry["keptState"])))

    def with_sound_state(change: Callable[[Any], Any]) -> Callable[[Path], None]:
        return with_state(lambda data: zlib.compress(json.dumps(change(json.loads(zlib.decompress(data)))).encode()))

    changes: list[Callable[[Path], None]] = [
        with_state(lambda data: None),
        with_state(lambda data: data[:-3]),
        with_state(lambda data: data[:50] + bytes([data[50] ^ 1]) + data[51:]),
        with_kept(lambda kept: {**kept, "segments": 2}),
        with_kept(lambda kept: {**kept, "print_": "another version's"}),
        with_kept(lambda kept: {name: value for name, value in kept.items() if name != "reached"}),
        with_kept(lambda kept: [1]),
        with_kept(lambda kept: {**kept, "segments": "3"}),
        with_entry(lambda entry: entry.update(kept="{")),
        with_sound_state(lambda state: {**state, "check": "[]"}),
        with_sound_state(lambda state: {**state, "totals": 3}),
        with_sound_state(lambda state: {**state, "tally": {}}),
        with_sound_state(lambda state: [state]),
    ]
    for number, change in sample(enumerate(changes), 7, "kept"):
        out = shutil.copytree(tmp_path / "first", tmp_path / str(number))
        change(out)
        assert run(disk, out).continued == 0, number
        assert rows(out) == expected, number
    out = tmp_path / "first"
    assert run(disk, out).continued == 1
    assert rows(out) == expected


CHOSEN: list[dict[str, Any]] = [
    {"run": Options(max_message_bytes=100)},
    {"run": Run(Limits(5000))},
    {"tables": ("segments", "findings")},
]


@pytest.mark.every_disk
@pytest.mark.sampled
def test_other_options_begin_anew(tmp_path: Path, still: pytest.MonkeyPatch) -> None:
    disk, out = a_disk(tmp_path), tmp_path / "out"
    in_four(disk)
    run(disk, out)
    grow(disk, random.Random(1))
    for options in sample(CHOSEN, 7, "options"):
        assert run(disk, out, **options).continued == 0
        run(disk, tmp_path / "scratch", **options)
        assert rows(out) == rows(tmp_path / "scratch")
        shutil.rmtree(tmp_path / "scratch")


def test_a_long_check_that_was_interrupted_goes_on(tmp_path: Path, still: pytest.MonkeyPatch) -> None:
    """It resumes not only after a partition, but also after some of its segments."""
    still.setattr("kdump.spark.unit_writer.SPAN", 1)
    disk, out = a_disk(tmp_path), tmp_path / "out"
    names = [*map(str, in_four(disk))]
    broken = logs(disk)[3]
    still.setattr("kdump.spark.unit_read.segment_rows", _failing_at(broken))
    with pytest.raises(StoreError):
        run(disk, out, records=False)
    still.undo()
    still.setattr("kdump.spark.scan.time.time", lambda: 1_800_000_000.0)
    counted = Preads(still)
    assert run(disk, out, records=False).continued == 1
    read = {name for name in counted.read if name in names}
    assert read == {names[3]}
    run(disk, tmp_path / "scratch", records=False)
    assert rows(out) == rows(tmp_path / "scratch")


def _failing_at(path: Path) -> Callable[[Any], Any]:
    def failing(what: Any) -> Any:
        if what[0].segment.log.path == str(path):
            raise StoreError("no more")
        return segment_rows(what)

    return failing


def test_a_segment_that_did_not_change_has_its_records_kept(tmp_path: Path, still: pytest.MonkeyPatch) -> None:
    disk, out = a_disk(tmp_path), tmp_path / "out"
    dice = random.Random(3)
    roll(disk, dice)
    run(disk, out)
    old, active = map(str, logs(disk))
    grow(disk, dice)
    counted = Preads(still)
    seen: list[str] = []

    def opening(target: Any, size: int) -> Any:
        seen.append(target.path)
        return opened(target, size)

    still.setattr("kdump.tables.table_read.opened", opening)
    run(disk, out)
    assert set(seen) == {active}
    assert old not in counted.read


def test_a_killed_task_leaves_what_it_had(tmp_path: Path, still: pytest.MonkeyPatch) -> None:
    """Spark runs a failed task again: it uses what the first attempt has saved."""
    still.setattr("kdump.spark.unit_writer.SPAN", 1)
    disk, out = a_disk(tmp_path), tmp_path / "out"
    names = [*map(str, in_four(disk))]
    failing = _failing_at(logs(disk)[3])
    counted = Preads(still)
    read: list[set[str]] = []

    class Retrying(Here):
        def run(self, tasks: Sequence[partial[Any]], on_wait: Any = None) -> list[Any]:
            if not tasks or tasks[0].func is not read_chunk_file:
                return super().run(tasks)
            still.setattr("kdump.spark.unit_read.segment_rows", failing)
            with pytest.raises(StoreError):
                super().run(tasks)
            still.setattr("kdump.spark.unit_read.segment_rows", segment_rows)
            counted.read.clear()
            found = super().run(tasks)
            read.append({name for name in counted.read if name in names})
            return found

    options = ScanQuery((str(disk),))
    assert same.scanned(Retrying(), options, Store(str(out))).continued == 1
    assert read == [{names[3]}]
    same.scanned(Here(), options, Store(str(tmp_path / "scratch")))
    assert rows(out) == rows(tmp_path / "scratch")


def test_left_over_files_of_a_killed_scan_are_swept(tmp_path: Path) -> None:
    disk, out = a_disk(tmp_path), tmp_path / "out"
    run(disk, out)
    for directory in ("batches", "segments", "findings", "_kdump/units"):
        (out / directory / f".0123-0-0.parquet.{os.getpid()}").write_bytes(b"cut")
        (out / directory / "0123-0-0.parquet").write_bytes(b"cut")
    craft.write_file(out / "_kdump" / "runs" / "0123" / "0-0", b"cut")
    grow(disk, random.Random(1))
    run(disk, out)
    assert not unknown(out)


@pytest.mark.parametrize("directory", few(["batches", "_kdump/units"], 1))
def test_what_is_missing_in_a_result_is_read_again(directory: str, tmp_path: Path) -> None:
    disk, out = a_disk(tmp_path), tmp_path / "out"
    run(disk, out)
    before = rows(out)
    for path in (out / directory).glob("*.parquet"):
        path.unlink()
    assert run(disk, out).read
    assert rows(out) == before


@pytest.mark.parametrize("directory", few(["batches", "_kdump/units"], 1))
def test_a_scan_from_scratch_replaces_a_damaged_result(directory: str, tmp_path: Path) -> None:
    disk, out = a_disk(tmp_path), tmp_path / "out"
    run(disk, out, compact=True)
    before = rows(out)
    for path in (out / directory).glob("*.parquet"):
        os.truncate(path, path.stat().st_size // 2)
    grow(disk, random.Random(1))
    with pytest.raises(StoreError, match="is damaged, so scan with --from-scratch"):
        run(disk, out)
    assert run(disk, out, from_scratch=True, compact=True).kept == 0
    run(disk, tmp_path / "scratch")
    assert rows(out) == rows(tmp_path / "scratch") != before


def test_two_scans_do_not_write_into_one_result(tmp_path: Path) -> None:
    """The second one would delete what the first one has written."""
    disk, out = a_disk(tmp_path), tmp_path / "out"

    class Interrupting(Here):
        def run(self, tasks: Sequence[partial[Any]], on_wait: Any = None) -> list[Any]:
            if tasks and tasks[0].func is read_chunk_file:
                with pytest.raises(StoreError, match="another scan is writing to this directory"):
                    run(FIXTURES / "clean-2", out)
            return super().run(tasks)

    same.scanned(Interrupting(), ScanQuery((str(disk),)), Store(str(out)))
    assert run(disk, out, records=False).kept


def test_a_result_of_an_earlier_version_is_not_mixed_with_this_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "out"))
    store.write(OLD_LIST, b"{}")
    with pytest.raises(StoreError, match="an earlier version of kdump; scan into a new directory"):
        run(a_disk(tmp_path), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").rglob("*") if path.is_file()) == ["README", "packs.json"]


def test_earlier_scans_can_be_read(tmp_path: Path) -> None:
    """Until they were followed by another one long enough ago; a killed scan is none of them, whatever it has
    written."""
    disk, out = a_disk(tmp_path), tmp_path / "out"
    dice = random.Random(2)
    seen = []
    for _ in range(3):
        roll(disk, dice)
        run(disk, out)
        seen.append(rows(out))
    assert [scan_at(Store(str(out)), number).scan for number in (1, 2, 3)] == [1, 2, 3]
    assert [rows(out, number) for number in (1, 2, 3)] == seen
    assert scan_at(Store(str(out)), finished_scans(Store(str(out)))[1].finished).scan == 2
    with pytest.raises(StoreError, match="no such scan; it has those from 1 "):
        scan_at(Store(str(out)), 4)
    roll(disk, dice)
    scan(Here(), ScanQuery((str(disk),), records=True, split_size=2048), Store(str(out)))  # and killed
    assert rows(out) == seen[2]
    assert by_delta(out, "segments") != len(seen[2]["segments"])  # it was committed
    run(disk, out, keep=0)
    run(disk, tmp_path / "scratch")
    assert rows(out) == rows(tmp_path / "scratch")
    assert by_delta(out, "segments") == len(rows(out)["segments"])
    assert [each.scan for each in finished_scans(Store(str(out)))] == [4]
    assert not unknown(out)


@pytest.mark.every_disk
def test_what_a_killed_scan_has_committed_is_undone_if_the_disk_is_as_before(tmp_path: Path) -> None:
    disk, out = a_disk(tmp_path), tmp_path / "out"
    run(disk, out)
    before = by_delta(out, "segments")
    shutil.copytree(FIXTURES / "clean-1" / "users-0", disk / "users-1")
    scan(Here(), ScanQuery((str(disk),), records=True, split_size=2048), Store(str(out)))  # and killed
    assert by_delta(out, "segments") > before
    shutil.rmtree(disk / "users-1")
    run(disk, out, keep=0)
    assert by_delta(out, "segments") == before
    assert not unknown(out)
    run(disk, tmp_path / "scratch")
    assert rows(out) == rows(tmp_path / "scratch")


@pytest.mark.every_disk
def test_logs_of_versions_do_not_grow_with_each_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.spark.delta_tables.OLD_COMMITS", 3)
    disk, out = a_disk(tmp_path), tmp_path / "out"
    seen = {}
    for number in range(1, 9):
        shutil.copytree(FIXTURES / "clean-1" / "users-0", disk / f"users-{number}")
        run(disk, out, keep=0 if number < 7 else KEEP)
        seen[number] = rows(out)
        assert max(len([*log.iterdir()]) for log in out.rglob(LOG)) <= 7
        assert by_delta(out, "segments") == len(seen[number]["segments"])
    assert {number: rows(out, number) for number in (6, 7, 8)} == {number: seen[number] for number in (6, 7, 8)}
    assert max(DeltaTable(log.parent).version() for log in out.rglob(LOG)) == 8


ALONE = """
import sys
from kdump.spark.scan import finish_scan, scan
from kdump.spark.scan_answer import ScanQuery
from kdump.spark.store import Store
from kdump.spark.task_runner import LocalTasks

store = Store(sys.argv[2])
print("begins", flush=True)
finish_scan(store, scan(LocalTasks(), ScanQuery((sys.argv[1],), records=True, split_size=2048), store))
"""


def alone(disk: Path, out: Path) -> subprocess.Popen[bytes]:
    """Start a scan in a process of its own; returns when it begins."""
    process = subprocess.Popen([sys.executable, "-c", ALONE, disk, out], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begins\n"
    return process


@pytest.mark.parametrize("seed", few(range(10), 0))
def test_a_scan_that_is_killed_leaves_a_result(seed: int, tmp_path: Path) -> None:
    """That of the scan before, or its own; to Delta's readers, each table is that of one or the other."""
    dice = seeded(seed)
    disk, out = a_disk(tmp_path), tmp_path / "out"
    begin = time.monotonic()
    assert alone(disk, out).wait() == 0
    taken = time.monotonic() - begin
    for turn in range(4):
        before, count = rows(out), by_delta(out, "segments")
        roll(disk, dice)
        process = alone(disk, out)
        time.sleep(dice.uniform(0, taken))
        process.kill()
        process.wait()
        run(disk, tmp_path / f"scratch-{turn}")
        after = rows(tmp_path / f"scratch-{turn}")
        changed = {"findings"}  # some name the time of the scan
        found = rows(out)
        assert any(
            {name: found[name] for name in found.keys() - changed} == {name: one[name] for name in one.keys() - changed}
            for one in (before, after)
        )
        assert by_delta(out, "segments") in (count, len(after["segments"]))
    run(disk, out)
    assert rows(out).keys() == after.keys()
    assert rows(out)["batches"] == after["batches"]
    assert not unknown(out)


def by_delta(out: Path, table: str) -> int:
    return DeltaTable(out / table).to_pyarrow_table().num_rows


@pytest.mark.every_disk
def test_small_files_are_merged(tmp_path: Path) -> None:
    """Those of one broker's packs, and those of a table of several brokers."""
    fleet, out = tmp_path / "fleet", tmp_path / "out"
    dice = random.Random(3)
    disks = [a_disk(fleet / f"broker-{number}") for number in range(3)]
    for _ in range(3):
        for disk in disks:
            grow(disk, dice)
            roll(disk, dice)
            shutil.copytree(disk / "users-0", disk / f"users-{dice.randrange(1000)}")
        run(fleet, out)
    before = rows(out)
    assert run(fleet, out, compact=True).read == 0
    assert {len(files) for files in parquet_files(out).values()} == {1}
    assert rows(out) == before
    again = parquet_files(out)
    assert run(fleet, out, compact=True).read == 0
    assert parquet_files(out) == again  # nothing left to do
    grow(disks[0], dice)
    run(fleet, out)
    run(fleet, tmp_path / "scratch")
    assert rows(out) == rows(tmp_path / "scratch")


def parquet_files(out: Path) -> dict[str, list[str]]:
    """Return the names of the files of each table."""
    store = Store(str(out))
    versions = scan_at(store).versions
    found = {table: files_of(store, table, versions[table]) for table in versions.keys() - {LAYOUT_NAME}}
    return {table: [file.name for file in files] for table, files in found.items() if files}


@pytest.mark.every_disk
def test_many_small_files_are_merged_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.spark.scan.MANY", 4)
    disk, out = a_disk(tmp_path), tmp_path / "out"
    for number in range(6):
        shutil.copytree(FIXTURES / "clean-1" / "users-0", disk / f"users-{number + 1}")
        run(disk, out, records=False)
        assert max(map(len, parquet_files(out).values())) < 4
    run(disk, tmp_path / "scratch", records=False)
    assert rows(out) == rows(tmp_path / "scratch")


def test_the_records_of_damaged_batches_are_counted_apart(tmp_path: Path, still: pytest.MonkeyPatch) -> None:
    """As by verify, also if they are in a segment that is not read again."""
    disk, out = a_disk(tmp_path), tmp_path / "out"
    log = logs(disk)[0]
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    dice = random.Random(5)
    for change in (nothing, roll, grow):
        change(disk, dice)
        counts = sums(out, run(disk, out)).counts
        (*_, verified) = objects("verify", disk, status=1)
        assert counts["damagedBatches"] == verified["damagedBatches"] == 1
        assert {name: counts[name] for name in COUNTS} == {name: verified[name] for name in COUNTS}


def test_sound_batches_are_taken_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rows equal those of batches processed one by one."""
    together = alone = 0
    accept_run, batch = UnitObserver.accept_run, UnitObserver.batch

    def taking(self: UnitObserver, part: Any, heads: Any, first: int, stop: int) -> None:
        nonlocal together
        together += stop - first
        accept_run(self, part, heads, first, stop)

    def seeing(self: UnitObserver, seen: Any) -> Any:
        nonlocal alone
        alone += 1
        return batch(self, seen)

    monkeypatch.setattr(UnitObserver, "accept_run", taking)
    monkeypatch.setattr(UnitObserver, "batch", seeing)
    disk = tmp_path / "disk"
    for name in ("orders-none-0", "orders-zstd-0", "payments-0", "logappend-0"):
        shutil.copytree(FIXTURES / "clean-1" / name, disk / name)
    monkeypatch.setattr("kdump.spark.scan.time.time", lambda: 1_800_000_000.0)
    run(disk, tmp_path / "quick")
    assert together > alone > 0
    monkeypatch.setattr(UnitObserver, "accepts_runs", False)
    monkeypatch.setattr(UnitObserver, "first_suspect", lambda self, part, heads, first, stop: first)
    together = 0
    run(disk, tmp_path / "slow")
    assert together == 0
    assert rows(tmp_path / "quick") == rows(tmp_path / "slow")


def test_the_last_offset_of_all(tmp_path: Path) -> None:
    """What follows it wraps, as in Java."""
    partition = tmp_path / "disk" / "edge-0"
    craft.write_file(partition / f"{0:020}.log", craft.one(b"x") + craft.one(b"y", offset=(1 << 63) - 1))
    result = run(partition.parent, tmp_path / "out")
    (entry,) = [each for each in entries(Store(str(tmp_path / "out")), result.names(UNITS.name)) if each["topic"]]
    assert (entry["batches"], entry["logEndOffset"]) == (2, -(1 << 63))


def test_large_records_are_not_held_by_the_thousand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when they are read, nor when files are merged, which reads row groups."""
    monkeypatch.setattr("kdump.spark.unit_writer.BYTES", 10_000)
    for broker in "ab":
        partition = tmp_path / "fleet" / broker / "large-0"
        craft.write_file(partition / f"{0:020}.log", b"".join(craft.one(bytes(3000), offset=n) for n in range(20)))
    for compact in (False, True):
        run(tmp_path / "fleet", tmp_path / "out", compact=compact, split_size=6000)
        names = parquet_files(tmp_path / "out")["records"]
        files = [pq.ParquetFile(tmp_path / "out" / "records" / name) for name in names]
        assert (len(files) == 1) == compact
        assert max(file.metadata.row_group(n).num_rows for file in files for n in range(file.num_row_groups)) <= 7
