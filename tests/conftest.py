"""Paths of the real files, and helpers to read them with the code under test."""

from __future__ import annotations

import compileall
import contextlib
import functools
import gc
import io
import os
import random
import re
import shutil
import signal
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from kdump.check.engine import second_look
from kdump.io.run import Limits
from kdump.io.source import FileSource, SeekableSource, Source, open_source
from kdump.io.window import DEFAULT_SIZE, Window
from kdump.log import live_files
from kdump.log.batch_records import records
from kdump.log.paths import target
from kdump.log.record import Record
from kdump.log.region import Batch, LegacyRecordBatch, Region
from kdump.log.region_reader import regions
from kdump.questions.bundle import run as bundle_run
from kdump.questions.diff import run as diff_run
from kdump.questions.reindex import run as reindex_run
from kdump.questions.restart_plan import first_checks
from kdump.questions.restart_plan.log_loading import log_manager
from tests import effort
from tests.clock.sitecustomize import EVENING
from tools.corpus import changes, unpack

Each = TypeVar("Each")

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FIXTURES = ROOT / "fixtures"
CORPUS = unpack()
DISKS, ORACLE = CORPUS / "disks", CORPUS / "oracle"
"""Disks of real brokers, and what kafka-dump-log printed about their files (tests/corpus/README.md)."""
RELEASES = CORPUS / "releases"
"""Small disks of brokers of every release (tests/corpus/README.md)."""
ORACLE_DISKS = {
    "kafka-4.3-clean-1": "kafka-4.3/clean-1",
    "kafka-4.3-diverged-1": "kafka-4.3/diverged-1",
    "kafka-4.3-diverged-2": "kafka-4.3/diverged-2",
    "kafka-2.8-legacy": "kafka-2.8-legacy",
    "kafka-4.3-tiered": "kafka-4.3-tiered/disk",
    "kafka-4.4-clean": "../releases/4.4.0-kraft/clean",
    "kafka-4.4-controller": "../releases/4.4.0-kraft/controller",
}
"""Directories of ORACLE, and the disk in DISKS that each is about."""

first_checks.current_time = lambda: EVENING * 1000
"""Starts are predicted as of the evening on which the fixtures were made, before retention deletes their records."""

for module in (live_files, second_look, bundle_run, diff_run, reindex_run, log_manager):
    vars(module)["PAUSES"] = (0.0001, 0.0004, 0.001)
"""What changes while it is read is looked at as often as ever, but not waited for."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell that runs the tests in the background lets them ignore SIGINT, and what they start would ignore it, too."""

WINDOWS = (DEFAULT_SIZE, 4096, 61)
"""Window sizes: the default, one that splits batches, and the smallest that can hold a header."""


SEED = os.environ.get("KDUMP_SEED", "")
"""Seed of samples: always the same in `make test`; in `make test-all`, which prints it, the date."""


def seeded(name: object) -> random.Random:
    """Return a random generator whose results depend only on the name and KDUMP_SEED."""
    return random.Random(f"{SEED}{name}")


def sample(items: Iterable[Each], one_in: int, name: object = "") -> list[Each]:
    """Return one in `one_in` items, at least one, evenly spaced, with a start that depends on `name`; with KDUMP_SEED,
    return all.

    A test that takes a sample has the marker `sampled`; make test-all runs it with all items."""
    found = list(items)
    start = random.Random(f"start {name}").randrange(min(one_in, len(found)) or 1)
    return found if SEED else found[start::one_in]


def few(cases: Iterable[Any], count: int) -> list[Any]:
    """Return the cases of a parametrized test: `count` of them, evenly spaced, run in `make test`, all of them in
    make test-all."""
    found = list(cases)
    quick = {number * len(found) // count for number in range(count)}
    later = pytest.mark.every_disk
    return [case if number in quick else _marked(case, later) for number, case in enumerate(found)]


def _marked(case: Any, mark: pytest.MarkDecorator) -> Any:
    if hasattr(case, "marks"):  # made by pytest.param
        return pytest.param(*case.values, id=case.id, marks=(*case.marks, mark))
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark)


def covering(
    items: Iterable[Each], one_in: int, kinds: Callable[[Each], Iterable[object]], name: object = ""
) -> list[Each]:
    """Return a sample (see `sample`), and others so that every kind of items is there."""
    found = list(items)
    chosen = sample(range(len(found)), one_in, name)
    seen = {kind for number in chosen for kind in kinds(found[number])}
    for number, item in enumerate(found):
        if not seen.issuperset(kinds(item)):
            chosen.append(number)
            seen.update(kinds(item))
    return [found[number] for number in sorted(set(chosen))]


def examples(count: int = 100) -> settings:
    """Let Hypothesis try a fifth of `count` examples; with KDUMP_SEED, all. Such a test has the marker `sampled`."""
    return settings(max_examples=count if SEED else count // 5)


NUMBER = re.compile(r"(?<![\w-])(?<!\d\.)-?\d+(?:,\d{3})*(?![\w-]|\.\d)")


def numbers_in(text: str) -> list[int]:
    """Return the numbers in a text, in order: what a sentence states, however it is worded."""
    return [int(found.replace(",", "")) for found in NUMBER.findall(text)]


settings.register_profile(
    "kdump", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not SEED, database=None
)
settings.load_profile("kdump")
"""Hypothesis has no deadline, so that no test fails because the machine is busy."""


ROOMY = os.statvfs_result((4096, 4096, 1 << 28, 1 << 27, 1 << 27, 1 << 26, 1 << 25, 1 << 25, 0, 255))
"""A file system of 1 TiB, half of which is free, and half of its inodes."""


@pytest.fixture(autouse=True)
def quiet_disks() -> Iterator[None]:
    """Turn off the second look at young files: the disks of tests are young, but no broker writes to them. Do not wait
    until written files are on the disk, which takes longer than most tests. Every disk has room: that of this machine
    may be full. Tests that undo their own monkeypatch do not turn this on."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kdump.log.live_files.YOUNG", 0)
        patched.setattr(os, "fsync", lambda fd: None)
        patched.setattr("kdump.log.output_directory.sync_file_system", lambda path: None)
        patched.setattr(os, "statvfs", lambda path: ROOMY)
        yield


IN_SESSION = ("compare", "delta", "docs", "embedded_engine", "group_lag", "scan", "source", "stores")
"""Files in tests/spark/ whose tests share a Spark session, which takes seconds to start."""


SHARING = (
    "tests/test_memory.py",
    "tests/test_package.py",
    "tests/incident/report/test_command.py",
    "tests/test_twins.py",
)
"""Files whose tests share objects that take seconds to create."""
OF_SOURCES = tuple(
    f"tests/{name}.py" for name in ("test_answer", "test_layers", "test_plurals", "test_sentences_of_problems")
)
"""Files with tests that look at every module of kdump, and share their syntax trees."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each test to the next free process, but all tests that share a Spark session to one process, and those of
    each file in SHARING to one as well. Other tests that write a report join test_report.py: the engine that draws its
    charts takes a second to start."""
    from xdist.scheduler import LoadScopeScheduling

    files = tuple(f"tests/spark/test_{name}.py" for name in IN_SESSION)

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if "[report" in nodeid:
                return "tests/incident/report/test_command.py"
            if file in OF_SOURCES:
                return "sources"
            return "spark" if nodeid.startswith(files) else file if file in SHARING else nodeid

    return Scheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(effort.Measuring())
    elif config.getoption("numprocesses", None):
        config.pluginmanager.register(effort.Summing(config))


gc.disable()
"""While tests are collected: nothing of them is garbage, and looking for some takes a quarter of the time."""


def pytest_collection(session: pytest.Session) -> None:
    """In a process of xdist, first compile its share of kdump's modules, and import its share of the test modules,
    which pytest compiles. The other processes take the results from the disk."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    share = slice(int(worker["workerid"][2:]), None, worker["workercount"])
    for path in sorted((ROOT / "kdump").rglob("*.py"))[share]:
        compileall.compile_file(path, quiet=2)
    for path in sorted(HERE.rglob("test_*.py"))[share]:
        with contextlib.suppress(Exception):  # which pytest then reports
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Leave what was collected, which stays to the end, out of every later garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 50)
    gc.enable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if SEED:
        terminalreporter.write_line(f"samples drawn with KDUMP_SEED={SEED}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a test has changed the corpus, because later tests would read something else.

    In a process of xdist, collect garbage now. Five seconds after it reports that it is finished, it gets a SIGINT.
    Collecting later, which pytest does, took longer on a busy machine and was interrupted."""
    if hasattr(session.config, "workerinput"):
        gc.collect()
        gc.freeze()
        return
    if found := changes():
        shutil.rmtree(CORPUS)
        listed = "".join(f"\n  {each}" for each in found[:20])
        print(f"\n{CORPUS} was changed by a test, and has been removed:{listed}", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def oracle_files(*disks: str) -> Iterator[tuple[str, Path, Path]]:
    """Yield (DIRECTORY/PATH, file with kafka-dump-log's output, file that it read) for the given directories, or for
    all."""
    for name in disks or ORACLE_DISKS:
        for printed in sorted((ORACLE / name).rglob("*.txt")):
            path = printed.relative_to(ORACLE / name).with_suffix("")
            yield f"{name}/{path}", printed, DISKS / ORACLE_DISKS[name] / path


def segments(pattern: str = "") -> list[Path]:
    """Return all fixtures with batches, or those with `pattern` in their path, in order."""
    found = [*FIXTURES.rglob("*.log"), *FIXTURES.rglob("*.checkpoint")]
    return sorted(path for path in found if pattern in str(path.relative_to(FIXTURES)))


def segment(name: str) -> Path:
    """Return the first segment of a partition, such as clean-1/orders-none-0."""
    return next(path for path in segments(name + "/") if path.suffix == ".log")


def each_segment(pattern: str = "") -> list[Any]:
    """Return parameters for a test over `segments`, with their paths as IDs."""
    return [pytest.param(path, id=str(path.relative_to(FIXTURES))) for path in segments(pattern)]


def some_segments(files: list[Any], one_in: int) -> list[Any]:
    """Return a sample of parameters from `each_segment` that has every format of batches with every codec; with
    KDUMP_SEED, return all."""
    return covering(files, one_in, lambda file: kinds_of(file.values[0]), "segments")


@functools.cache
def kinds_of(path: Path) -> list[tuple[int, int]]:
    """Return format and codec of the first batch of a segment, unless it is empty."""
    head = path.read_bytes()[:61]
    return [(head[16], head[22 if head[16] == 2 else 17] & 7)] if len(head) == 61 else []


def opened(path: Path | str) -> Source:
    """Return a source that closes its file when it is garbage collected, so that batches can be read as long as they
    exist."""
    source = open_source(str(path))
    if isinstance(source, FileSource):
        source.close = weakref.finalize(source, os.close, source.fd)  # type: ignore[method-assign]
    return source


def window_of(data: bytes | Path | Source, size: int = DEFAULT_SIZE) -> Window:
    if isinstance(data, Path):
        return Window(opened(data), size)
    return Window(SeekableSource("bytes", io.BytesIO(data)) if isinstance(data, bytes) else data, size)


def iter_regions(
    data: bytes | Path | Source,
    window_size: int = DEFAULT_SIZE,
    name_offset: int | None = None,
    limits: Limits | None = None,
) -> Iterator[Region]:
    """Yield the regions of a file. A path determines its own name_offset."""
    if isinstance(data, Path) and name_offset is None:
        name_offset = target(str(data)).name_offset
    return regions(window_of(data, window_size), name_offset=name_offset, limits=limits)


def read_regions(
    data: bytes | Path, window_size: int = DEFAULT_SIZE, name_offset: int | None = None, limits: Limits | None = None
) -> list[Region]:
    """Return all regions of a file; their batches can still be read."""
    return list(iter_regions(data, window_size, name_offset, limits))


def batches(found: list[Region]) -> list[Batch]:
    return [region for region in found if isinstance(region, Batch)]


def tiles(found: list[Region], size: int) -> bool:
    """Return True if the regions cover `size` bytes exactly, in order, and none is empty."""
    position = 0
    for region in found:
        if region.position != position or region.size <= 0:
            return False
        position = region.end
    return position == size


FACTS = ("index", "magic", "offset", "timestamp", "timestampType", "attributes", "offsetDelta", "timestampDelta")
FACTS += ("sequence", "crc", "crcValid", "position", "space_position", "key", "value", "headers", "raw")
FACTS_OF = attrgetter(*FACTS)


def record_facts(record: Record) -> dict[str, Any]:
    """Return all attributes of a record, except those that depend on how the payload was split."""
    return dict(zip(FACTS, FACTS_OF(record)))


def facts(region: Region) -> dict[str, Any]:
    """Return all attributes of a region, including its records and problems."""
    said: dict[str, Any] = {"kind": region.kind, "position": region.position, "size": region.size}
    if not isinstance(region, Batch):
        return said | {"reason": region.reason, "claimed": region.claimed}
    said["records"] = [record_facts(record) for record in records(region)]
    said["header"] = region.header  # type: ignore[attr-defined]
    said["crcValid"] = region.crcValid
    said["problems"] = list(region.problems)
    if isinstance(region, LegacyRecordBatch):
        said["inside"] = (region.baseOffset, region.recordCount)
    return said


def all_facts(data: bytes | Path | Source, window_size: int = DEFAULT_SIZE, **options: Any) -> list[dict[str, Any]]:
    """Return the facts of every region; each is read before the next region."""
    return [facts(region) for region in iter_regions(data, window_size, **options)]
