"""A log directory of many partitions: the work is that of what was asked for, and a finished partition is freed."""

from __future__ import annotations

import builtins
import gc
import io
import os
import pickle
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.check.engine import workers
from kdump.check.engine.units import CheckUnit
from kdump.check.totals import CheckTotals
from kdump.cli import cli
from kdump.io.run import PLAIN_RUN
from kdump.io.shared_counter import FromWorker
from kdump.log import partition_directory
from tests.conftest import FIXTURES, few
from tests.craft import flip

SOURCE = FIXTURES / "clean-1" / "trimmed-0"
COMMANDS = (
    *("doctor", "ls", "ls --quick", "stats", "verify --jobs 1", "transactions", "producers", "retention"),
    *("restart-plan", "reindex"),
)
COUNT = 16
"""Partitions of the disk: more than the largest of the numbers below."""
LISTED = 1
"""A partition is listed once, when its turn comes. It is listed again only if something in it could not be read."""
AT_ROOT = 8
"""The log directory may be listed for several questions, but not once per partition."""
READ_AT_ROOT = 4
"""A small file there is read for the partitions, for the release, and for the cluster, each time once."""
GROUPED = 2
"""The names of its files are grouped when a partition is found and when its turn comes; by doctor for each question."""
ALL_QUESTIONS = 14
"""The same for doctor, which asks the questions of several commands."""


class Calls:
    """What the file system was asked for, by path, while `count` is entered.

    It replaces functions: an audit hook stays for the rest of the process, and is called at every object of some types.
    """

    def __init__(self) -> None:
        self.listed: Counter[str] = Counter()
        self.opened: Counter[str] = Counter()
        self.alive: list[int] = []
        """Objects alive when the first segment of each partition is opened, if they are to be counted: there are a
        million of pytest's own."""
        self.counts_objects = False

    def _listing(self, path: object) -> None:
        if isinstance(path, str):
            self.listed[os.path.abspath(path)] += 1

    def _opening(self, path: object) -> None:
        if not isinstance(path, str):
            return
        self.opened[os.path.abspath(path)] += 1
        if (
            self.counts_objects
            and path.endswith("/00000000000000000000.log")
            and self.opened[os.path.abspath(path)] == 1
        ):
            self.alive.append(len(gc.get_objects()))

    @contextmanager
    def count(self, *, objects: bool = False) -> Iterator[None]:
        self.counts_objects = objects
        self.listed.clear()
        self.opened.clear()
        self.alive.clear()
        with pytest.MonkeyPatch.context() as patched:
            for module, name, called in (
                (os, "scandir", self._listing),
                (os, "listdir", self._listing),
                (os, "open", self._opening),
                (io, "open", self._opening),
                (builtins, "open", self._opening),
            ):
                patched.setattr(module, name, _passing_on(getattr(module, name), called))
            yield


def _passing_on(function: Callable[..., Any], called: Callable[[object], None]) -> Callable[..., Any]:
    """Return a function that first calls `called` with its first argument, a path."""

    def wrapped(path: Any = ".", *arguments: Any, **options: Any) -> Any:
        called(os.fspath(path) if isinstance(path, os.PathLike) else path)
        return function(path, *arguments, **options)

    return wrapped


CALLS = Calls()


def run(command: str, *paths: Path) -> str:
    result = CliRunner().invoke(cli, [*command.split(), *map(str, paths)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code in (0, 1), (result.stdout, result.stderr)
    return result.stdout


def partitions(at: Path, count: int, *, damaged: bool = False) -> Path:
    """Create a log directory with copies of a partition of a real broker; `damaged`: every other one is."""
    at.mkdir()
    (at / "meta.properties").write_text("version=1\ncluster.id=k2xrTMYLRJGYFaSRS_Wf6w\nnode.id=1\n")
    names = [f"many-{number}" for number in range(count)]
    for number, name in enumerate(names):
        shutil.copytree(SOURCE, at / name)
        (at / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 21}Q\n")
        if damaged and number % 2:
            log = at / name / "00000000000000000000.log"
            log.write_bytes(flip(log.read_bytes(), 400))
    rows = "".join(f"many {number} 0\n" for number in range(count))
    (at / "replication-offset-checkpoint").write_text(f"0\n{count}\n{rows}")
    (at / "recovery-point-offset-checkpoint").write_text(f"0\n{count}\n{rows}")
    return at


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return partitions(tmp_path_factory.mktemp("many") / "disk", COUNT)


@pytest.fixture(scope="module")
def half_damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return partitions(tmp_path_factory.mktemp("damaged") / "disk", COUNT, damaged=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_directory_is_listed_and_grouped_as_often_as_with_few_partitions(disk: Path, command: str) -> None:
    partition_directory._grouped.cache_clear()
    with CALLS.count():
        run(command, disk)
    listed = {path: count for path, count in CALLS.listed.items() if path.startswith(str(disk / "many-"))}
    assert len(listed) == COUNT
    assert max(listed.values()) <= LISTED, command
    assert CALLS.listed[str(disk)] <= (ALL_QUESTIONS if command == "doctor" else AT_ROOT)
    grouped = partition_directory._grouped.cache_info().misses
    assert grouped <= (3 * GROUPED if command == "doctor" else GROUPED) * COUNT


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "restart-plan"])
def test_paths_in_one_directory_do_not_list_it_again_and_again(disk: Path, command: str) -> None:
    os.utime(disk, (1, 1))  # a directory that changed just now is not trusted
    with CALLS.count():
        run(command, *sorted(disk.glob("many-*")))
    assert CALLS.listed[str(disk)] <= AT_ROOT
    roots = {path: count for path, count in CALLS.opened.items() if os.path.dirname(path) == str(disk)}
    assert max(roots.values(), default=0) <= READ_AT_ROOT, roots


def test_diff_lists_each_disk_a_few_times(disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory of a broker at work has always changed just now."""
    other = Path(shutil.copytree(disk, tmp_path / "other"))
    monkeypatch.setattr("kdump.log.log_directory.is_young", lambda seen: True)
    with CALLS.count():
        run("diff", disk, other)
    assert all(CALLS.listed[str(each)] <= AT_ROOT for each in (disk, other)), CALLS.listed


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "restart-plan"])
def test_one_partition_reads_no_other(disk: Path, command: str) -> None:
    with CALLS.count():
        run(command, disk / "many-7")
    asked = {path for path in (*CALLS.listed, *CALLS.opened) if path.startswith(str(disk))}
    others = {path for path in asked if "/many-" in path and "/many-7" not in path}
    assert not others
    assert any("/many-7/" in path for path in asked)


@pytest.mark.parametrize("command", few([each for each in COMMANDS if each not in ("restart-plan", "doctor")], 2))
def test_a_finished_partition_is_freed(half_damaged: Path, command: str) -> None:
    """Counts objects without garbage collection: those in reference cycles stay alive, too."""
    run(command, half_damaged)  # caches, and modules that are imported when they are needed
    gc.collect()
    gc.freeze()  # what is there already is not counted
    gc.disable()
    try:
        with CALLS.count(objects=True):
            run(command, half_damaged)
    finally:
        gc.enable()
    alive = CALLS.alive
    assert len(alive) >= COUNT
    grown = [after - before for before, after in pairwise(alive[5:])]
    for each in (grown[::2], grown[1::2]):  # of intact partitions, and of damaged ones
        assert median(each) <= 30, f"{each} objects a partition"  # another thread may have some for a moment


def test_what_a_worker_is_sent_does_not_grow_with_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of all partitions, with a name for each file, stays in the process that has it."""
    sizes: list[int] = []

    def submit(_worker: object, _work: object, unit: CheckUnit) -> Future[FromWorker[workers.UnitResult]]:
        sizes.append(len(pickle.dumps(unit)))
        future: Future[FromWorker[workers.UnitResult]] = Future()
        future.set_result((([], "", CheckTotals()), {}))
        return future

    pool = SimpleNamespace(submit=submit, shutdown=lambda **_options: None, _processes=None)
    counter = SimpleNamespace(take=lambda: 0)
    monkeypatch.setattr(workers, "worker_pool", lambda *_arguments: (pool, counter))
    largest = []
    for count in (4, COUNT):
        sizes.clear()
        run("verify --jobs 2", partitions(tmp_path / f"disk-{count}", count))
        assert len(sizes) == count
        largest.append(max(sizes))
    assert largest[1] < largest[0] + 200, largest


def test_what_a_directory_of_many_files_keeps(tmp_path: Path) -> None:
    """Of the files of a partition, their names are kept, packed, and one object for each segment: a directory of
    200,000 files takes ls and verify less than 100 MiB."""
    from kdump.check.engine.units import units_of
    from kdump.check.options import Options
    from kdump.cluster.disks import Disks
    from kdump.cluster.partition_summary import partition_summary, segments_of
    from kdump.log.find_directories import find_directories
    from kdump.log.partition_directory import partition

    disk = tmp_path / "many-0"
    disk.mkdir()
    (source,) = SOURCE.glob("*.log")
    for number in range(120):
        shutil.copy(source, disk / f"{number:020}.log")
        for ending in ("index", "timeindex"):
            (disk / f"{number:020}.{ending}").touch()

    def kept(make: Any) -> Counter[str]:
        """Return how many objects of each type there are more of for each segment."""
        gc.collect()
        gc.freeze()  # what is there already is not counted
        before = Counter(type(each).__name__ for each in gc.get_objects())
        held = make()
        gc.collect()
        after = Counter(type(each).__name__ for each in gc.get_objects())
        assert held
        return Counter({name: (count - before[name]) // 80 for name, count in after.items()})

    walk = find_directories(str(disk), PLAIN_RUN)
    assert not +kept(lambda: next(walk))
    place = partition(str(disk))
    assert +kept(lambda: place.segments) == {"SegmentFiles": 1}
    assert len(place.segments) == 120
    assert not +kept(lambda: partition_summary(place))
    assert +kept(lambda: segments_of(place)) == {"SegmentSummary": 1, "HeaderTotals": 1}
    (unit,) = units_of(Disks([place]), Options())

    def checked() -> CheckUnit:
        list(unit.run(CheckTotals()))
        return unit

    assert not +kept(checked)
