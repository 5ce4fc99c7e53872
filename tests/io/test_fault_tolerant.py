"""Reading a failing disk: what is readable is read, the rest is replaced with zeros, and this takes a bounded time."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.io import fault_tolerant as module
from kdump.io import low_impact_reads
from kdump.io.errors import SourceError, is_gone
from kdump.io.fault_tolerant import BLOCK, NEAR, FaultTolerantSource, careful_source
from kdump.io.source import SMALL, FileSource, Source, open_source
from kdump.io.token_bucket import TokenBucket
from kdump.io.window import Window
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from tests import craft
from tests.conftest import examples, numbers_in, tiles
from tests.each_case import each_case
from tests.io.test_token_bucket import Clock

MIB = 1 << 20
DATA = random.Random(7).randbytes(300 * BLOCK + 1234)


class Broken(FaultTolerantSource):
    """A file of zeros, or of `data`, whose blocks numbered in `bad` cannot be read.

    `short`: as on Linux, a read returns the bytes before a bad block instead of failing completely."""

    def __init__(
        self, bad: set[int] | range, size: int, data: bytes = b"", short: bool = True, code: int = errno.EIO
    ) -> None:
        super().__init__(os.devnull, os.open(os.devnull, os.O_RDONLY))
        self.size = size
        self.bad, self.data, self.short, self.code = bad, data, short, code
        self.failures = 0

    def _pread(self, count: int, position: int) -> bytes:
        assert self.size is not None
        assert 0 <= position < self.size
        stop = min(position + count, self.size)
        for block in range(position // BLOCK, -(-stop // BLOCK)):
            if block in self.bad:
                if block * BLOCK <= position or not self.short:
                    self.failures += 1
                    raise OSError(self.code, os.strerror(self.code))
                stop = block * BLOCK
                break
        return self.data[position:stop] if self.data else bytes(stop - position)


def runs(blocks: set[int], size: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for block in sorted(blocks):
        start, stop = block * BLOCK, min((block + 1) * BLOCK, size)
        if found and sum(found[-1]) == start:
            found[-1] = (found[-1][0], stop - found[-1][0])
        else:
            found.append((start, stop - start))
    return found


def blanked(data: bytes, stretches: list[tuple[int, int]]) -> bytes:
    out = bytearray(data)
    for position, size in stretches:
        out[position : position + size] = bytes(size)
    return bytes(out)


BAD = st.sets(st.integers(0, 300), max_size=60)
READS = st.lists(st.tuples(st.integers(0, len(DATA) + 10), st.integers(0, len(DATA))), max_size=8)


def is_scattered(bad: set[int]) -> bool:
    return all(size < NEAR for _, size in runs(bad, 1 << 62))


@pytest.mark.sampled
@examples()
@given(BAD.filter(is_scattered), READS, st.booleans(), st.sampled_from([errno.EIO, errno.ENODATA]))
def test_scattered_bad_blocks_are_found_exactly(
    bad: set[int], reads: list[tuple[int, int]], short: bool, code: int
) -> None:
    source = Broken(bad, len(DATA), DATA, short, code)
    expected = blanked(DATA, runs(bad, len(DATA)))
    seen: set[int] = set()
    for position, count in reads:
        assert source.read_at(position, count) == expected[position : position + count]
        stop = min(position + count, len(DATA))
        if position < stop:
            seen |= bad & set(range(position // BLOCK, -(-stop // BLOCK)))
        assert source.unreadable == runs(seen, len(DATA))
    assert bool(source.fault) == bool(seen)
    failures = source.failures
    for position, count in reads:
        source.read_at(position, count)
    assert source.failures == failures, "bad blocks were read again"
    source.close()


@pytest.mark.sampled
@examples()
@given(st.sets(st.integers(0, 300)), READS, st.booleans())
def test_whatever_is_bad_the_rest_is_right(bad: set[int], reads: list[tuple[int, int]], short: bool) -> None:
    source = Broken(bad, len(DATA), DATA, short)
    for position, count in [*reads, (0, len(DATA))]:
        data = source.read_at(position, count)
        expected = bytearray(DATA[position : position + count])
        for at, size in source.unreadable_in(position, count):
            expected[at - position : at - position + size] = bytes(size)
        assert data == expected
        for (at, size), (after, _) in zip(source.unreadable, source.unreadable[1:]):
            assert at + size < after
    given_up = {block for at, size in source.unreadable for block in range(at // BLOCK, -(-(at + size) // BLOCK))}
    assert bad & set(range(301)) <= given_up
    assert all(size > 0 and at % BLOCK == 0 for at, size in source.unreadable)
    source.close()


@each_case("first, last", [(100, 100), (3, 9), (3, 10), (3, 11), (17, 250), (0, 299), (0, 300)])
@each_case("count", [61, BLOCK, 61_000, MIB])
def test_the_ends_of_a_long_bad_stretch_are_exact(first: int, last: int, count: int) -> None:
    bad = set(range(first, last + 1))
    source = Broken(bad, len(DATA), DATA)
    found = b"".join(source.read_at(position, count) for position in range(0, len(DATA), count))
    assert source.unreadable == runs(bad, len(DATA))
    assert found == blanked(DATA, source.unreadable)
    assert source.failures < 40
    source.close()


@each_case("size", [MIB, 1 << 30, 1 << 44, (1 << 30) + 777])
def test_a_dead_file_costs_few_reads(size: int) -> None:
    source = Broken(range(size), size)
    for position in (0, 4096, size // 2, size - 1000):
        assert not any(source.read_at(position, MIB))
    assert source.unreadable == [(0, size)]
    assert source.failures <= 50
    source.close()


def test_a_disk_that_is_bad_all_over_costs_bounded_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second block of 256 MiB is bad: after more failures, more blocks are skipped at a time."""
    monkeypatch.setattr(module, "PATIENCE", 32)
    size = 256 * MIB
    source = Broken(range(0, size, 2), size)
    for position in range(0, size, MIB):
        assert len(source.read_at(position, MIB)) == MIB
    assert source.failures < 32 * 20
    assert len(source.unreadable) < source.failures
    source.close()


def test_unreadable_in_gives_parts() -> None:
    source = Broken({1, 2, 5}, 10 * BLOCK)
    source.read_at(0, 10 * BLOCK)
    assert source.unreadable_in(0, 10 * BLOCK) == [(BLOCK, 2 * BLOCK), (5 * BLOCK, BLOCK)]
    assert source.unreadable_in(BLOCK + 10, 20) == [(BLOCK + 10, 20)]
    assert source.unreadable_in(2 * BLOCK, 3 * BLOCK + 1) == [(2 * BLOCK, BLOCK), (5 * BLOCK, 1)]
    assert source.unreadable_in(3 * BLOCK, 2 * BLOCK) == []
    assert source.unreadable_in(6 * BLOCK, BLOCK) == []
    source.close()


def test_other_errors_are_raised() -> None:
    source = Broken({1}, 10 * BLOCK, code=errno.ETIMEDOUT)
    with pytest.raises(SourceError) as caught:
        source.read_at(BLOCK, 10)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ETIMEDOUT
    assert BLOCK in numbers_in(str(caught.value))
    assert not source.unreadable
    source.close()


def test_a_file_that_is_truncated_behind_a_bad_block(tmp_path: Path) -> None:
    path = craft.write_file(tmp_path / "file", DATA)

    class Bad(FaultTolerantSource):
        def _pread(self, count: int, position: int) -> bytes:
            if position < BLOCK:
                raise OSError(errno.EIO, "bad")
            return super()._pread(count, position)

    source = Bad(str(path), os.open(path, os.O_RDONLY))
    os.truncate(path, 3 * BLOCK)
    assert source.read_at(0, MIB) == bytes(BLOCK) + DATA[BLOCK : 3 * BLOCK]
    assert source.size == 3 * BLOCK
    assert source.grown() == 0
    source.close()


LIBC = ctypes.CDLL(None, use_errno=True)
PAGE = mmap.PAGESIZE


@pytest.fixture
def memory() -> Iterator[tuple[int, int]]:
    """Return address and size of memory in this process whose pages 3 and 4 cannot be read: they are mapped beyond the
    end of a file."""
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    if not hasattr(os, "memfd_create") or not os.access("/proc/self/mem", os.R_OK):
        pytest.skip("no /proc/self/mem")
    size = 9 * PAGE
    start = LIBC.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    empty = os.memfd_create("empty")
    fixed = 0x10
    LIBC.mmap(start + 3 * PAGE, 2 * PAGE, mmap.PROT_READ, mmap.MAP_SHARED | fixed, empty, 0)
    os.close(empty)
    ctypes.memset(start, 0x5A, 3 * PAGE)
    ctypes.memset(start + 5 * PAGE, 0xA5, 4 * PAGE)
    yield start, size
    LIBC.munmap(start, size)


def test_the_kernels_own_error(memory: tuple[int, int]) -> None:
    """The error comes from the kernel: short reads up to the unreadable bytes, then EIO."""
    start, size = memory

    class Memory(FaultTolerantSource):
        def _pread(self, count: int, position: int) -> bytes:
            return os.pread(mem, count, start + position)

    mem = os.open("/proc/self/mem", os.O_RDONLY)
    source = Memory(os.devnull, os.open(os.devnull, os.O_RDONLY))
    source.size = size
    with pytest.raises(OSError, match="error") as failed:
        source._pread(PAGE, 3 * PAGE)
    assert failed.value.errno == errno.EIO
    assert source.read_at(0, size) == b"\x5a" * 3 * PAGE + bytes(2 * PAGE) + b"\xa5" * 4 * PAGE
    assert source.unreadable == [(3 * PAGE, 2 * PAGE)]
    assert source.fault == os.strerror(errno.EIO)
    source.close()
    os.close(mem)


@each_case("window", [MIB, 4096])
@each_case("block", [0, 7, 40])
def test_the_reader_walks_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int, block: int) -> None:
    """The bad block may be anywhere, including the first one."""
    path = tmp_path / f"{0:020}.log"
    data = b"".join(craft.one(bytes([i]) * 5000, i) for i in range(50))
    path.write_bytes(data)
    pread = FaultTolerantSource._pread

    def broken(self: FaultTolerantSource, count: int, position: int) -> bytes:
        if position < (block + 1) * BLOCK and block * BLOCK < position + count:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(self, count, position)

    monkeypatch.setattr(FaultTolerantSource, "_pread", broken)
    source = careful_source(str(path))
    assert isinstance(source, FaultTolerantSource)
    hurt, whole, count = 0, set(), 0
    for region in regions(Window(source, window), name_offset=0):
        count += region.size
        if isinstance(region, Batch) and region.crcValid:
            whole.add(region.baseOffset)
        elif source.unreadable_in(region.position, region.size):
            hurt += 1
    assert count == len(data)
    assert source.unreadable == [(block * BLOCK, BLOCK)]
    assert hurt
    each = len(data) // 50
    touched = {i for i in range(50) if i * each < (block + 1) * BLOCK and block * BLOCK < (i + 1) * each}
    assert whole == set(range(50)) - touched
    source.close()


def test_every_byte_is_counted_and_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = craft.write_file(tmp_path / f"{0:020}.log", b"".join(craft.one(b"v" * 5000, i) for i in range(50)))
    size = path.stat().st_size
    clock = Clock()
    rate = TokenBucket(1000, clock=clock, sleep=clock.sleep)
    monkeypatch.setattr(low_impact_reads, "_rate", rate)
    before = low_impact_reads.bytes_read()
    source = careful_source(str(path))
    assert low_impact_reads.bytes_read() - before == 4, "the look whether it is a compressed file"
    found = list(regions(Window(source), name_offset=0))
    assert tiles(found, size)
    count = low_impact_reads.bytes_read() - before
    assert size + 4 <= count < size + 1000
    assert clock.now == pytest.approx(1000 + count / 1000 - 0.25)
    source.close()


def test_a_small_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was when it was opened, unless more of it is asked for."""
    path = craft.write_file(tmp_path / "file", b"x" * 100)
    reads = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda *asked: reads.append(asked[1:]) or pread(*asked))
    source = careful_source(str(path))
    assert isinstance(source, FaultTolerantSource)
    assert (source.name, source.size, source.read_at(90, 100)) == (str(path), 100, b"x" * 10)
    path.write_bytes(b"y" * 120)
    assert source.grown() == 20
    assert source.read_at(0, 200) == b"x" * 100
    assert reads == [(100, 0)]
    source.extend()
    assert source.read_at(0, 200) == b"y" * 120
    assert reads == [(100, 0), (120, 0)]
    path.unlink()
    assert source.is_deleted()
    source.close()


def test_the_beginning_of_a_small_file_whose_end_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = craft.write_file(tmp_path / "file", b"x" * (BLOCK + 1))
    pread = FileSource._pread

    def broken(self: FileSource, count: int, position: int) -> bytes:
        if position + count > BLOCK:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(self, count, position)

    monkeypatch.setattr(FileSource, "_pread", broken)
    source = open_source(str(path))
    assert source.read_at(0, BLOCK) == b"x" * BLOCK
    with pytest.raises(SourceError, match="cannot read at byte 4000"):
        source.read_at(4000, 200)
    source.close()


@pytest.mark.parametrize("opener", [open_source, careful_source])
def test_an_open_file_that_another_machine_has_deleted(
    opener: Callable[[str], Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opener(str(craft.write_file(tmp_path / "file", b"x" * (SMALL + 1))))

    def stale(fd: int, count: int, position: int) -> bytes:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "pread", stale)
    with pytest.raises(SourceError) as raised:
        source.read_at(0, 10)
    assert is_gone(raised.value)
    source.close()
