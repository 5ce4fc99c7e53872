"""Where the real bytes are, and the reader under test in one call."""

from __future__ import annotations

import gc
import io
import os
import random
import shutil
import sys
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from kdump.log.paths import target
from kdump.log.payload import records
from kdump.log.reader import regions
from kdump.log.record import Record
from kdump.log.region import Batch, BatchLegacy, Limits, Region
from kdump.log.source import FileSource, SeekableSource, Source, open_source
from kdump.log.window import DEFAULT_SIZE, Window
from tools.corpus import changes, unpack

Each = TypeVar("Each")

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
CORPUS = unpack()
DISKS, ORACLE = CORPUS / "disks", CORPUS / "oracle"
"""The disks of real brokers, and what kafka-dump-log printed about their files (tests/corpus/README.md)."""
ORACLE_DISKS = {
    "kafka-4.3-clean-1": "kafka-4.3/clean-1",
    "kafka-4.3-diverged-1": "kafka-4.3/diverged-1",
    "kafka-4.3-diverged-2": "kafka-4.3/diverged-2",
    "kafka-2.8-legacy": "kafka-2.8-legacy",
    "kafka-4.3-tiered": "kafka-4.3-tiered/disk",
}
"""The directories of ORACLE, and the disk in DISKS that each is about."""

WINDOWS = (DEFAULT_SIZE, 4096, 61)
"""The default, one that splits things, and the smallest that holds a header."""


SEED = os.environ.get("KDUMP_SEED", "")
"""What samples are drawn by: always the same in `make test`, and the day's in `make test-all`, which prints it."""


def seeded(name: object) -> random.Random:
    """What a sweep draws its samples with: the same of the same name, with the same KDUMP_SEED."""
    return random.Random(f"{SEED}{name}")


def sample(items: Iterable[Each], one_in: int, name: object = "") -> list[Each]:
    """One in so many of the items, evenly, beginning with another of them for each name; all of them with KDUMP_SEED.

    A test that takes a sample has the marker `sampled`: make test-all runs it with all."""
    found = list(items)
    return found if SEED else found[random.Random(f"start {name}").randrange(one_in) :: one_in]


settings.register_profile(
    "kdump", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not SEED, database=None
)
settings.load_profile("kdump")
"""No test fails because the machine is busy with something else."""


@pytest.fixture(autouse=True)
def quiet_disks() -> Iterator[None]:
    """No broker writes to the disks of tests, though their files are young: nothing is looked at twice for that. (Tests
    undo their own monkeypatch.)"""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kdump.log.at_work.YOUNG", 0)
        yield


IN_SESSION = ("delta", "docs", "scan", "source", "stores")
"""Files in tests/spark/ whose tests share a session of Spark, which takes seconds to start."""


SHARING = ("tests/test_memory.py", "tests/test_package.py", "tests/test_twins.py")
"""Files whose tests share what takes seconds to make."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each test goes to the process that is free next; but all that share a session of Spark go to one, and so do those
    of each file of SHARING."""
    from xdist.scheduler import LoadScopeScheduling

    files = tuple(f"tests/spark/test_{name}.py" for name in IN_SESSION)

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "spark" if nodeid.startswith(files) else file if file in SHARING else nodeid

    return Scheduling(config, log)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if SEED:
        terminalreporter.write_line(f"samples drawn with KDUMP_SEED={SEED}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """No test may change the corpus: the next one would read something else.

    A process of xdist collects garbage while there is time: five seconds after it has reported that it is finished, it
    gets a SIGINT. What pytest collects afterwards took longer on a busy machine, and was interrupted."""
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
    """(DIRECTORY/PATH, what kafka-dump-log printed, the file that it read): those of some directories, else of all."""
    for name in disks or ORACLE_DISKS:
        for printed in sorted((ORACLE / name).rglob("*.txt")):
            path = printed.relative_to(ORACLE / name).with_suffix("")
            yield f"{name}/{path}", printed, DISKS / ORACLE_DISKS[name] / path


def segments(pattern: str = "") -> list[Path]:
    """Every fixture that holds batches, or those with `pattern` in their path, in order."""
    found = [*FIXTURES.rglob("*.log"), *FIXTURES.rglob("*.checkpoint")]
    return sorted(path for path in found if pattern in str(path.relative_to(FIXTURES)))


def segment(name: str) -> Path:
    """The first segment of a partition: clean-1/orders-none-0."""
    return next(path for path in segments(name + "/") if path.suffix == ".log")


def each_segment(pattern: str = "") -> list[Any]:
    """Parameters for a test over `segments`, named by their paths."""
    return [pytest.param(path, id=str(path.relative_to(FIXTURES))) for path in segments(pattern)]


def opened(path: Path | str) -> Source:
    """A file that closes itself when nobody reads it any more: batches can be read as long as they are there."""
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
    """The regions as they come; a path gives its own name_offset."""
    if isinstance(data, Path) and name_offset is None:
        name_offset = target(str(data)).name_offset
    return regions(window_of(data, window_size), name_offset=name_offset, limits=limits)


def read_regions(
    data: bytes | Path,
    window_size: int = DEFAULT_SIZE,
    name_offset: int | None = None,
    limits: Limits | None = None,
) -> list[Region]:
    """All regions of a file; their batches can still be read."""
    return list(iter_regions(data, window_size, name_offset, limits))


def batches(found: list[Region]) -> list[Batch]:
    return [region for region in found if isinstance(region, Batch)]


def tiles(found: list[Region], size: int) -> bool:
    """Whether the regions cover `size` bytes exactly, in order, none empty."""
    position = 0
    for region in found:
        if region.position != position or region.size <= 0:
            return False
        position = region.end
    return position == size


def record_facts(record: Record) -> dict[str, Any]:
    """Everything that a record says, less what depends on how the payload was split."""
    names = ("index", "magic", "offset", "timestamp", "timestampType", "attributes", "offsetDelta", "timestampDelta")
    names += ("sequence", "crc", "crcValid", "position", "space_position", "key", "value", "headers", "raw")
    return {name: getattr(record, name) for name in names}


def facts(region: Region) -> dict[str, Any]:
    """Everything that a region says, its records and its problems included."""
    said: dict[str, Any] = {"kind": region.kind, "position": region.position, "size": region.size}
    if not isinstance(region, Batch):
        return said | {"reason": region.reason, "claimed": region.claimed}
    said["records"] = [record_facts(record) for record in records(region)]
    said["header"] = region.header  # type: ignore[attr-defined]
    said["crcValid"] = region.crcValid
    said["problems"] = list(region.problems)
    if isinstance(region, BatchLegacy):
        said["inside"] = (region.baseOffset, region.recordCount)
    return said


def all_facts(data: bytes | Path | Source, window_size: int = DEFAULT_SIZE, **options: Any) -> list[dict[str, Any]]:
    """The facts of every region, each taken before the next is asked for."""
    return [facts(region) for region in iter_regions(data, window_size, **options)]
