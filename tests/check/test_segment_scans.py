"""Checks that verify finds the same whether its segments are read in one process or in several, and that pieces which
do not fit what was read are not used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kdump.check.engine import partition_scan, segment_scans
from kdump.check.engine.record_suspects import record_suspects
from kdump.check.engine.segment_scans import Piece, PieceScan, SegmentScans, pieces, scan
from kdump.check.engine.units import units
from kdump.check.engine.workers import LARGE, usual_jobs_for
from kdump.check.options import Options
from kdump.format.index import INDEX_ENTRY
from kdump.incident.report.run import postmortem
from kdump.io.run import Limits
from kdump.log.paths import Target, target
from kdump.log.region import BatchRun
from kdump.log.region_reader import Depth, regions
from tests import craft
from tests.check.test_batch_runs import KAFKA, change_header, drop_or_repeat, swap, verify
from tests.command import run
from tests.conftest import SEED, sample, seeded, window_of
from tests.damages import DAMAGES, aged
from tests.each_case import each_case
from tests.restored_disk import RestoredDisks

LIMITS = Limits()
WINDOW = 3000


class Immediate:
    """An executor that does everything at once, in this process, and counts it."""

    def __init__(self) -> None:
        self.given: list[Piece] = []

    def submit(self, call: Callable[[Piece], PieceScan], piece: Piece) -> Future[PieceScan]:
        future: Future[PieceScan] = Future()
        future.set_result(call(piece))
        self.given.append(piece)
        return future


class Scanning:
    """Has the segments of partitions scanned in small pieces, and counts the batches that are used."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.used = 0

    @contextmanager
    def on(self, size: int) -> Iterator[None]:
        original = SegmentScans._next_run

        def counting(it: SegmentScans, *given: Any) -> BatchRun | None:
            found = original(it, *given)
            self.used += 0 if found is None else found.run.batches
            return found

        @contextmanager
        def immediate(targets: Sequence[Target], jobs: int, planned: Iterator[Piece]) -> Iterator[SegmentScans]:
            yield SegmentScans(Immediate(), targets, planned, 3)  # type: ignore[arg-type]

        with self.monkeypatch.context() as patch:
            patch.setattr(segment_scans, "PIECE", size)
            patch.setattr(SegmentScans, "_next_run", counting)
            patch.setattr(partition_scan, "segment_scans", immediate)
            yield

    def compare(self, path: Path, *options: str, size: int = 500) -> None:
        alone = verify(path, "--jobs", "1", *options)
        with self.on(size):
            assert verify(path, "--jobs", "1", *options) == alone


@pytest.fixture
def scanning(monkeypatch: pytest.MonkeyPatch) -> Scanning:
    return Scanning(monkeypatch)


OPTIONS = [("--crc",), ("--only", "log"), ("--only", "records")]


@pytest.mark.parametrize(
    ("disk", "options"),
    [
        ("clean-0", ()),
        pytest.param("crash-1", (), marks=pytest.mark.every_disk),
        ("clean-1", ()),
        *(("clean-1/payments-0", options) for options in OPTIONS),
        *(pytest.param("clean-1", options, marks=pytest.mark.every_disk) for options in OPTIONS),
    ],
)
def test_a_healthy_disk(disk: str, options: tuple[str, ...], scanning: Scanning) -> None:
    scanning.compare(KAFKA / disk, *options)
    assert scanning.used > 10


@pytest.mark.sampled
def test_a_damaged_disk(scanning: Scanning, tmp_path: Path) -> None:
    disks = RestoredDisks(tmp_path)
    for damage in sorted(sample(DAMAGES, 24, "scans"), key=lambda damage: damage.disk):
        disk, expected = disks.damaged(damage)
        place = disk.root / expected.file
        scanning.compare(place if place.is_dir() else place.parent, size=700)


@pytest.mark.sampled
@pytest.mark.parametrize("partition", sample(["payments-0", "users-0", "clicks-0"], 2, "partitions"))
def test_a_damaged_partition(partition: str, scanning: Scanning, tmp_path: Path) -> None:
    dice = seeded(partition)
    for number in range(12 if SEED else 6):
        copy = shutil.copytree(KAFKA / "clean-1" / partition, tmp_path / str(number) / partition)
        for _ in range(dice.randrange(1, 3)):
            segment = dice.choice(sorted(copy.glob("*.log")))
            data = bytearray(segment.read_bytes())
            if len(data) > 200:
                dice.choice([change_header, drop_or_repeat, swap])(data, dice)
                segment.write_bytes(data)
        for index in copy.glob("*.index") if dice.random() < 0.3 else ():
            index.write_bytes(dice.randbytes(index.stat().st_size))
        aged(copy)
        scanning.compare(copy, size=dice.choice([200, 900, 5000]))
        shutil.rmtree(copy.parent)
    assert scanning.used


@pytest.mark.parametrize("codec", [pytest.param("none", marks=pytest.mark.every_disk), "zstd"])
def test_worker_processes(codec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with real processes, in verify and in a post-mortem; and they end with the command."""
    place = tmp_path / "orders-0"
    place.mkdir()
    for base in range(0, 600, 200):
        (place / f"{base:020}.log").write_bytes(log(codec, base, 200))
    alone = verify(place, "--jobs", "1")
    used = []
    monkeypatch.setattr(segment_scans, "PIECE", 1000)
    original = SegmentScans._next_run
    monkeypatch.setattr(SegmentScans, "_next_run", lambda it, *given: used.append(1) or original(it, *given))
    assert verify(place, "--jobs", "2") == alone
    assert used
    used.clear()
    assert postmortem(str(place), jobs=2).totals.records == postmortem(str(place), jobs=1).totals.records
    assert used


def log(codec: str, base: int, count: int, bad: frozenset[int] = frozenset()) -> bytes:
    return b"".join(
        craft.batch([craft.record(0, b"k", b"value" * 50, attributes=number in bad)], codec, offset=number)
        for number in range(base, base + count)
    )


def scanned(place: Path, piece: Piece, *, read: int = 0) -> tuple[list[int], SegmentScans]:
    """Return the base offsets of the batches from byte `read` on that a piece yields."""
    scans = SegmentScans(Immediate(), [piece.target], iter([piece]), 1)  # type: ignore[arg-type]
    source = Options().open(piece.target).source
    found = [run.run.first_offset for run in scans.runs(piece.target, source)(read)]
    source.close()
    return found, scans


def test_a_piece_that_starts_elsewhere_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    data = log("none", 0, 20)
    path.write_bytes(data)
    size = len(data) // 20
    piece = Piece(target(str(path)), 5 * size, len(data), LIMITS, WINDOW, True, False)
    assert scanned(tmp_path, piece, read=5 * size)[0][0] == 5
    assert scanned(tmp_path, piece, read=7 * size)[0][0] == 7  # what was read by itself has gone further
    assert scanned(tmp_path, piece, read=0)[0] == []  # it comes later
    inside = piece._replace(start=5 * size + 1)
    assert scanned(tmp_path, inside, read=5 * size)[0] == []
    embedded = log("none", 0, 3) + log("none", 3, 1)
    path.write_bytes(embedded)
    assert scan(Piece(target(str(path)), 1, len(embedded), LIMITS, WINDOW, True, False)).runs == []


@pytest.mark.parametrize("base", [0, 1, 7])
def test_offsets_that_do_not_ascend_between_pieces(base: int, scanning: Scanning, tmp_path: Path) -> None:
    """A worker does not know the offsets before its piece."""
    place = tmp_path / "orders-0"
    place.mkdir()
    path = place / f"{base:020}.log"
    one = log("none", base, 1)
    path.write_bytes(one + log("none", base, 20))
    path.with_suffix(".index").write_bytes(INDEX_ENTRY.struct.pack(0, len(one)))
    aged(place)
    scanning.compare(place, size=len(one))
    assert scanning.used


def test_a_piece_of_another_file_is_not_used(tmp_path: Path) -> None:
    path = craft.write_file(tmp_path / f"{0:020}.log", log("none", 0, 20))
    piece = Piece(target(str(path)), 0, path.stat().st_size, LIMITS, WINDOW, True, False)
    source = Options().open(piece.target).source
    os.replace(shutil.copy(path, tmp_path / "copy"), path)
    scans = SegmentScans(Immediate(), [piece.target], iter([piece]), 1)  # type: ignore[arg-type]
    assert list(scans.runs(piece.target, source)(0)) == []


def test_a_worker_that_the_system_ends(scanning: Scanning, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when memory is short: the check goes on without it."""

    def fails(it: Immediate, call: object, piece: Piece) -> Future[PieceScan]:
        it.given.append(piece)
        if len(it.given) % 2:
            raise BrokenExecutor
        future: Future[PieceScan] = Future()
        future.set_exception(BrokenExecutor())
        return future

    monkeypatch.setattr(Immediate, "submit", fails)
    scanning.compare(KAFKA / "clean-1")
    assert not scanning.used


def test_pieces_tile_the_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """At entries of the index, and none is smaller than worth a process."""
    monkeypatch.setattr(segment_scans, "PIECE", 2000)
    targets = [target(str(path)) for path in sorted((KAFKA / "clean-1").glob("*/*.log")) if path.stat().st_size > 2000]
    found = list(pieces(targets, LIMITS, WINDOW, deep=True, keyed=False))
    assert len(found) > len(targets)
    for each in targets:
        own = [piece for piece in found if piece.target == each]
        assert own[0].start == 0
        assert own[-1].stop == os.path.getsize(each.path)
        assert all(one.stop == other.start for one, other in pairwise(own))
        assert all(piece.stop - piece.start >= 2000 for piece in own)
    assert list(pieces([target("-"), target("s3://a/b.log")], LIMITS, WINDOW, deep=True, keyed=False)) == []


def test_few_pieces_are_ahead_of_the_reader(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    data = log("none", 0, 60)
    path.write_bytes(data)
    size = len(data) // 60
    planned = [Piece(target(str(path)), at, at + size, LIMITS, WINDOW, True, False) for at in range(0, 60 * size, size)]
    pool = Immediate()
    scans = SegmentScans(pool, [planned[0].target], iter(planned), 4)  # type: ignore[arg-type]
    source = Options().open(planned[0].target).source
    for number, _ in enumerate(scans.runs(planned[0].target, source)(0), 1):
        assert len(pool.given) <= number + 4
    assert len(pool.given) == 60
    source.close()


def test_a_worker_stops_after_so_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It returns the columns of all headers, so their number is limited."""
    monkeypatch.setattr(segment_scans, "MAX_BATCHES", 10)
    path = craft.write_file(tmp_path / f"{0:020}.log", log("none", 0, 200))
    found = scan(Piece(target(str(path)), 0, path.stat().st_size, LIMITS, WINDOW, True, False))
    assert 10 < sum(len(run.numbers) for run in found.runs) // 96 < 30


def test_one_partition_is_read_by_as_many_processes_as_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the other units are the log directory's own files. Several partitions are divided among processes."""
    asked: list[int] = []

    @contextmanager
    def noted(targets: Sequence[Target], jobs: int, planned: Iterator[Piece]) -> Iterator[None]:
        asked.append(jobs)
        yield None

    monkeypatch.setattr(partition_scan, "segment_scans", noted)
    partition = tmp_path / "disk" / "orders-0"
    craft.write_file(partition / f"{0:020}.log", log("zstd", 0, 20))
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: FN96DRb6S3GeSIQS03itlw")
    (tmp_path / "disk" / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    for path in (partition, tmp_path / "disk"):
        for options, jobs in ((["--jobs", "4"], 4), ([], 1), (["--jobs", "4", "--crc"], 4)):
            asked.clear()
            run("verify", path, *options)
            assert asked == [jobs]
    asked.clear()
    postmortem(str(tmp_path / "disk"), jobs=4)
    assert asked == [4]


@each_case("codec, several", [("none", False), ("zstd", True)])
def test_the_default_for_a_large_partition(
    codec: str, several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdump.check.engine.workers.usual_jobs", lambda: 4)
    for name in ("a-0", "b-0"):
        (tmp_path / name).mkdir()
        path = craft.write_file(tmp_path / name / f"{0:020}.log", log(codec, 0, 2))
        os.truncate(path, LARGE)
    alone = list(units((str(tmp_path / "a-0"),), Options(unreadable=pytest.fail)))
    assert usual_jobs_for(alone) == (3 if several else 1)
    assert usual_jobs_for(list(units((str(tmp_path),), Options(unreadable=pytest.fail)))) == 4
    os.truncate(tmp_path / "a-0" / f"{0:020}.log", 1000)
    assert usual_jobs_for(list(units((str(tmp_path / "a-0"),), Options(unreadable=pytest.fail)))) == 1


@each_case("codec", ["none", "zstd"])
def test_suspects_of_a_run(codec: str) -> None:
    bad = frozenset({0, 15, 16, 17, 50, 99})
    (found,) = regions(window_of(log(codec, 0, 100, bad)), depth=Depth.CHECKSUMS)
    assert isinstance(found, BatchRun)
    assert record_suspects(found.headers, LIMITS, keyed=False) == sorted(bad)
