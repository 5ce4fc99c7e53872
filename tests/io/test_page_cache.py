"""Reading leaves the page cache as it was: in a model with arbitrary reads, and in the kernel."""

from __future__ import annotations

import errno
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.io import page_cache
from kdump.io.fault_tolerant import careful_source
from kdump.io.page_cache import PAGE, PageCache, cached_pages, merged, without
from kdump.io.window import Window
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from tests import craft
from tests.conftest import examples, few, sample
from tests.each_case import each_case

MIB = 1 << 20

RUNS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=8).map(
    lambda runs: [(start, start + size) for start, size in runs]
)


def members(runs: list[tuple[int, int]]) -> set[int]:
    return {i for start, stop in runs for i in range(start, stop)}


@given(RUNS, RUNS)
def test_runs(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    assert members(merged(one)) == members(one)
    assert members(without(merged(one), merged(other))) == members(one) - members(other)
    for runs in (merged(one), without(merged(one), merged(other))):
        assert all(start < stop for start, stop in runs)
        assert all(stop < start for (_, stop), (start, _) in zip(merged(one), merged(one)[1:]))


class Kernel:
    """Model of a page cache that reads ahead as much as allowed, and counts what it is told to drop."""

    def __init__(self, present: set[int], size: int, readahead: int) -> None:
        self.pages = set(present)
        self.size, self.readahead = size, readahead
        self.dropped: set[int] = set()
        self.busy: set[int] = set()
        self.calls = 0

    def cached(self, _fd: int, start: int, stop: int) -> int:
        assert start % PAGE == stop % PAGE == 0
        assert start < stop
        self.calls += 1
        return sum(page in self.pages for page in range(start // PAGE, stop // PAGE))

    def fadvise(self, _fd: int, start: int, size: int, _advice: int) -> None:
        assert start % PAGE == size % PAGE == 0
        told = set(range(start // PAGE, (start + size) // PAGE))
        self.dropped |= told
        self.pages -= told - self.busy
        self.busy.clear()

    def read(self, position: int, count: int, ahead: int) -> None:
        stop = min(position + count + min(ahead, 2 * self.readahead), self.size)
        read = set(range(position // PAGE, -(-stop // PAGE)))
        # Readahead may still be in progress the next time that something is dropped.
        self.busy = {page for page in read - self.pages if page * PAGE > position + count}
        self.pages |= read


@pytest.mark.sampled
@examples(300)
@given(
    st.sets(st.integers(0, 600), max_size=200),
    st.integers(1, 600 * PAGE),
    st.lists(
        st.tuples(st.integers(0, 600 * PAGE), st.sampled_from([4, PAGE, 9 * PAGE, 40 * PAGE]), st.integers(0, 10**6)),
        max_size=20,
    ),
    st.booleans(),
)
def test_any_reads(present: set[int], size: int, reads: list[tuple[int, int, int]], walk: bool) -> None:
    """Any pages are cached before, and any are read: in random or in sequential order."""
    present = {page for page in present if page * PAGE < size}
    kernel = Kernel(present, size, readahead=4 * PAGE)
    with (
        mock.patch.multiple(page_cache, cached_pages=kernel.cached, GRANULE=8 * PAGE, ALIGN=4 * PAGE),
        mock.patch.object(os, "posix_fadvise", kernel.fadvise),
        mock.patch("time.sleep"),
    ):
        cache = PageCache(-1, 4 * PAGE)
        position = 0
        for at, count, ahead in reads:
            position = position if walk else at
            count = min(count, size - position)
            if count <= 0:
                continue
            cache.before(position, count, size)
            kernel.read(position, count, ahead)
            position += count
            # One read, the maximum readahead, a granule at both ends, and the pages that were busy the last time.
            zone = 40 + 8 + 2 * 8
            ours = (1 if walk else page_cache.ZONES) * zone + 8
            assert len(kernel.pages - present) <= ours, "what is not dropped behind"
        cache.close()
    assert not kernel.dropped & present
    assert max(kernel.dropped, default=0) * PAGE < size, "beyond the end is the broker's"
    assert kernel.pages == present


@each_case("code", [errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP])
def test_nothing_is_dropped_where_the_kernel_cannot_be_asked(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> int:
        raise OSError(code, os.strerror(code))

    def drop(*_arguments: object) -> None:
        raise AssertionError("dropped")

    monkeypatch.setattr(page_cache, "cached_pages", refuse)
    monkeypatch.setattr(os, "posix_fadvise", drop)
    path = craft.write_file(tmp_path / "file", b"x" * 10 * PAGE)
    source = careful_source(str(path))
    assert source.read_at(0, MIB) == b"x" * 10 * PAGE
    source.close()


def test_an_old_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_call", page_cache._unavailable)
    with pytest.raises(OSError) as failed:
        cached_pages(0, 0, PAGE)
    assert failed.value.errno == errno.ENOSYS


SIZE = 16 * MIB
"""Larger than the most that the kernel reads ahead, with a granule at both ends."""
VALUE = 100_000


def cached(fd: int, size: int) -> set[int]:
    """Return the pages in the kernel's cache; asks for each page."""
    return {page for page in range(-(-size // PAGE)) if cached_pages(fd, page * PAGE, (page + 1) * PAGE)}


def forget(fd: int) -> None:
    os.fdatasync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def shows(directory: Path) -> bool:
    """Return True if pages of files in this directory can be counted and dropped, which is not the case on tmpfs."""
    with tempfile.TemporaryFile(dir=directory) as file:
        file.write(bytes(16 * PAGE))
        file.flush()
        try:
            forget(file.fileno())
            return not cached_pages(file.fileno(), 0, 16 * PAGE)
        except OSError:
            return False


def on_a_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory in which `shows` is true; skips the test if there is none."""
    for parent in (tmp_path_factory.getbasetemp(), Path("/var/tmp"), Path.home()):
        if os.access(parent, os.W_OK) and shows(parent):
            return parent
    pytest.skip("needs cachestat(2), and a file system whose pages can be dropped")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A segment on a disk."""
    with tempfile.TemporaryDirectory(prefix="kdump-", dir=on_a_disk(tmp_path_factory)) as directory:
        path = Path(directory) / f"{0:020}.log"
        batch = craft.one(random.Random(3).randbytes(VALUE))
        with path.open("wb") as file:
            for offset in range(SIZE // len(batch)):
                file.write(craft.rebase(batch, offset))
        yield path


def nothing(_fd: int, _size: int) -> None:
    pass


def first_half(fd: int, size: int) -> None:
    """Read from the start, as a consumer does: the kernel has marked where to read ahead next."""
    for position in range(0, size // 2, MIB):
        os.pread(fd, MIB, position)


def islands(fd: int, size: int) -> None:
    chance = random.Random(5)
    for _ in range(20):
        os.pread(fd, chance.randrange(1, MIB), chance.randrange(size))


def single_pages(fd: int, size: int) -> None:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    for position in range(0, size, 64 * PAGE):
        os.pread(fd, 1, position)


def newest(fd: int, size: int) -> None:
    """Read what was written last, as on a live broker."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    for position in range(size - 5 * MIB - 777, size, MIB):
        os.pread(fd, MIB, position)


def read_all(window: Window) -> None:
    size = window.source.size
    assert size is not None
    assert sum(len(piece) for piece in window.chunks(0, size)) == size


def read_regions(window: Window) -> None:
    for region in regions(window, name_offset=0):
        assert isinstance(region, Batch)
        assert region.crcValid


def read_a_third(window: Window) -> None:
    """Read a third of the file, and stop with readahead in progress."""
    assert sum(len(piece) for piece in window.chunks(0, SIZE // 3)) == SIZE // 3


def walk_headers(window: Window) -> None:
    for _ in regions(window, name_offset=0):
        pass


@pytest.mark.sampled
@pytest.mark.parametrize("size", sample([MIB, 4096], 4, "sizes"))
@pytest.mark.parametrize("read", [read_all, read_regions, read_a_third, walk_headers])
@pytest.mark.parametrize("warm", few([nothing, first_half, islands, single_pages, newest], 2))
def test_the_kernels_cache(
    log: Path, warm: Callable[[int, int], None], read: Callable[[Window], None], size: int
) -> None:
    total = log.stat().st_size
    fd = os.open(log, os.O_RDONLY)
    for _attempt in range(4):
        forget(fd)
        reader = os.open(log, os.O_RDONLY)
        warm(reader, total)
        os.close(reader)
        before = settled(fd, total)
        source = careful_source(str(log))
        read(Window(source, size))
        source.close()
        after = cached(fd, total)
        # A kernel that is short of memory also drops pages, so one unchanged run is enough.
        if after == before:
            break
    os.close(fd)
    assert sorted(after - before) == [], "brought in, and left there"
    assert sorted(before - after) == [], "dropped, and not ours"


def settled(fd: int, size: int) -> set[int]:
    """Return the cached pages once readahead has finished."""
    pages = cached(fd, size)
    while (now := cached(fd, size)) != pages:
        pages = now
    return pages


def test_without_care_pages_stay(log: Path) -> None:
    """Control for the tests above: without dropping, pages stay in the cache."""
    fd = os.open(log, os.O_RDONLY)
    forget(fd)
    with log.open("rb") as file:
        assert len(file.read()) == log.stat().st_size
    assert len(cached(fd, log.stat().st_size)) > SIZE // PAGE // 2
    os.close(fd)
