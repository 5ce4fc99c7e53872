"""Reading only headers gives the same as the full reader, and loses nothing of a damaged file."""

from __future__ import annotations

import io
import os
import shutil
import struct
from pathlib import Path

import pytest

from kdump.format.batch_header import BATCH_HEADER
from kdump.io.run import Run
from kdump.io.source import SeekableSource
from kdump.io.window import DEFAULT_SIZE, HEADER_BLOCK, Window
from kdump.log import segment_summary as module
from kdump.log.header_totals import HeaderTotals
from kdump.log.legacy_records import read_wrapper
from kdump.log.paths import target
from kdump.log.region import Batch, LegacyRecordBatch
from kdump.log.segment_summary import summarize_headers
from tests import craft
from tests.conftest import DISKS, FIXTURES, iter_regions, opened, segment
from tests.each_case import each_case

LOGS = sorted(path for root in (FIXTURES, DISKS) for path in root.rglob("*.log"))


def walk(path: Path, *, quick: bool = False, window_size: int = DEFAULT_SIZE) -> HeaderTotals:
    window = Window(opened(path), window_size)
    try:
        return summarize_headers(target(str(path)), window, quick=quick)
    finally:
        window.source.close()


def put(directory: Path, data: bytes, offset: int = 0) -> Path:
    path = craft.write_file(directory / "topic-0" / f"{offset:020}.log", data)
    return path


@each_case("window_size", [DEFAULT_SIZE, 4096, 61, 100])
def test_every_sound_segment(window_size: int) -> None:
    """Compare with the full reader, which reads every byte."""
    assert LOGS
    for path in LOGS:
        if window_size != DEFAULT_SIZE and path.stat().st_size > 300_000:
            continue
        expected = HeaderTotals()
        batches = []
        for region in iter_regions(path):
            if isinstance(region, Batch):
                if isinstance(region, LegacyRecordBatch):
                    read_wrapper(region)
                batches.append(region)
            else:
                assert region.kind == "padding"
                expected.padding += region.size
        found = walk(path, window_size=window_size)
        assert found.batches == len(batches), path
        assert found.padding == expected.padding, path
        assert (found.torn, found.junk, found.damage, found.partial) == (0, 0, "", False), path
        assert found.formats == {batch.magic for batch in batches}, path
        assert found.codecs == {batch.compression for batch in batches}, path
        if not batches:
            continue
        assert (found.first, found.last) == (batches[0].baseOffset, batches[-1].lastOffset), path
        times = [batch.maxTimestamp for batch in batches if batch.maxTimestamp is not None and batch.maxTimestamp >= 0]
        assert found.newest == max(times, default=None), path
        if all(batch.magic == 2 or not batch.is_compressed for batch in batches):
            assert found.records == sum(batch.recordCount or 0 for batch in batches), path
        else:
            assert found.records is None, path


def test_a_stream_says_the_same_as_a_file() -> None:
    for path in LOGS:
        if path.stat().st_size < 300_000:
            window = Window(SeekableSource(str(path), io.BytesIO(path.read_bytes())))
            assert summarize_headers(target(str(path)), window) == walk(path), path


@pytest.fixture
def every_segment_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `quick` use the indexes of small fixtures, too."""
    monkeypatch.setattr(module, "FEW_READS", -1)
    monkeypatch.setattr(module, "SMALL", 0)


@pytest.mark.usefixtures("every_segment_is_long")
def test_quick_never_claims_more_than_it_read() -> None:
    partial = 0
    for path in LOGS:
        whole, quick = walk(path), walk(path, quick=True)
        partial += quick.partial
        if not quick.partial:
            assert quick == whole, path
            continue
        assert (quick.first, quick.last, quick.damage) == (whole.first, whole.last, ""), path
        assert quick.formats <= whole.formats, path
        assert quick.codecs <= whole.codecs, path
        assert quick.batches < whole.batches, path
        assert quick.newest == whole.newest, path
    assert partial > 10


class Reads:
    """Files opened and bytes read since it was created."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: list[str] = []
        self.bytes = 0
        real_open, real_pread = os.open, os.pread

        def open_(path: str, *arguments: int) -> int:
            self.files.append(Path(path).suffix)
            return real_open(path, *arguments)

        def pread(fd: int, count: int, position: int) -> bytes:
            data = real_pread(fd, count, position)
            self.bytes += len(data)
            return data

        monkeypatch.setattr(os, "open", open_)
        monkeypatch.setattr(os, "pread", pread)


def counted(path: Path, *, quick: bool) -> tuple[HeaderTotals, Reads]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        reads = Reads(monkeypatch)
        return walk(path, quick=quick), reads


def test_quick_is_never_dearer() -> None:
    """It opens no index of a segment that takes few reads, and its answer is then complete. It reads no more bytes than
    without `quick`."""
    for path in LOGS:
        (whole, plain), (found, quick) = counted(path, quick=False), counted(path, quick=True)
        assert quick.bytes < plain.bytes + 256, path  # the end of a preallocated index
        if quick.files == [".log"]:
            assert found == whole, path
        else:
            data = path.read_bytes()  # how many batches there are is estimated by the first
            first = 12 + int.from_bytes(data[8:12], "big")
            assert len(data) / first > module.FEW_HEADERS / 2 or whole.padding, path


@each_case("preallocated", [0, 10 << 20])
@each_case(
    "count, size, is_long",
    [
        (1, 300, False),
        (128, 300, False),
        (129, 300, False),  # a small file
        (229, 300, True),
        (128, 16_000, False),
        (129, 16_000, True),
        (15, 200_000, False),
        (17, 200_000, True),
        (100, 40_000, False),
        (128, 40_000, True),
    ],
)
def test_quick_uses_the_indexes_of_long_segments(
    tmp_path: Path, count: int, size: int, is_long: bool, preallocated: int
) -> None:
    one = craft.batch(craft.record(value=bytes(size)))
    path = put(tmp_path, b"".join(craft.rebase(one, number) for number in range(count)))
    last = struct.pack(">ii", count - 1, (count - 1) * len(one)) if count > 1 else b""
    path.with_suffix(".index").write_bytes(last.ljust(preallocated, b"\0"))
    path.with_suffix(".timeindex").write_bytes(struct.pack(">qi", 1_700_000_000_000, count - 1))
    (whole, plain), (found, quick) = counted(path, quick=False), counted(path, quick=True)
    assert quick.bytes < plain.bytes + BATCH_HEADER.size
    if not is_long:
        assert quick.files == [".log"]
        assert found == whole
    else:
        assert quick.files == [".log", ".index", ".timeindex"]
        assert (found.partial, found.last, found.batches) == (True, whole.last, 2)


@pytest.mark.usefixtures("every_segment_is_long")
def test_quick_reads_little(tmp_path: Path) -> None:
    path = segment("clean-1/orders-none-0")
    shutil.copytree(path.parent, tmp_path / "orders-none-0")
    copy = tmp_path / "orders-none-0" / path.name
    data = bytearray(copy.read_bytes())
    data[6000:20000] = bytes(14000)  # neither the first batch nor those after the last entry
    copy.write_bytes(data)
    assert walk(copy, quick=True).damage == ""
    assert walk(copy).damage


@pytest.mark.usefixtures("every_segment_is_long")
def test_quick_does_not_believe_an_index(tmp_path: Path) -> None:
    """The entries are wrong, not in ascending order, or truncated: all headers are read, and nothing is partial."""
    path = segment("clean-1/orders-none-0")
    index = path.with_suffix(".index").read_bytes()
    assert len(index) >= 16
    shutil.copytree(path.parent, tmp_path / "orders-none-0")
    copy = tmp_path / "orders-none-0" / path.name
    assert walk(copy, quick=True).partial
    for wrong in (index[:-1], index[8:] + index[:8], index[:-1] + bytes([index[-1] ^ 1]), b""):
        copy.with_suffix(".index").write_bytes(wrong)
        found = walk(copy, quick=True)
        assert found == walk(copy)
    copy.with_suffix(".index").write_bytes(index + bytes(8 * 1000))  # preallocated
    assert walk(copy, quick=True).partial


def test_one_wrong_length_loses_one_batch(tmp_path: Path) -> None:
    """If a header is not where it should be, the length of the batch before it is wrong."""
    batches = craft.split(segment("clean-1/trimmed-0").read_bytes())
    for number in range(len(batches)):
        for wrong in (len(batches[number]) - 12 + 16, len(batches[number]) - 12 - 16, 3, 1 << 30):
            bad = craft.patch(batches[number], crc=False, batchLength=wrong)
            path = put(tmp_path, b"".join([*batches[:number], bad, *batches[number + 1 :]]))
            found = walk(path)
            assert found.batches >= len(batches) - 1, (number, wrong)
            assert found.damage or found.tail == "torn", (number, wrong)


def test_each_lie_is_seen(tmp_path: Path) -> None:
    batches = craft.split(segment("clean-1/trimmed-0").read_bytes())
    header = BATCH_HEADER.read(batches[4])
    lies = {
        "junk": [*batches[:4], b"#" * 300, *batches[4:]],
        "padding": [*batches[:4], bytes(300), *batches[4:]],
        "offsets decrease": [*batches[:4], batches[1], *batches[4:]],
        "compression unknown(6)": [
            *batches[:4],
            craft.patch(batches[4], attributes=header.attributes | 6),
            *batches[5:],
        ],
        "below the one in the file's name": batches,
    }
    for word, parts in lies.items():
        found = walk(put(tmp_path, b"".join(parts), 20 if word.startswith("below") else 0))
        assert word in found.damage, (word, found)
        assert found.batches >= len(batches), word
        assert found.last == 49, word
    cut = walk(put(tmp_path, b"".join(batches)[:-5]))
    assert (cut.damage, cut.tail, cut.batches, cut.last) == ("", "torn", len(batches) - 1, 44)
    assert cut.torn == len(batches[-1]) - 5
    padded = walk(put(tmp_path, b"".join(batches) + bytes(5000)))
    assert (padded.damage, padded.tail, padded.padding, padded.batches) == ("", "padding", 5000, len(batches))
    assert walk(put(tmp_path, b"")) == HeaderTotals()


def test_large_batches_are_not_read_through(tmp_path: Path) -> None:
    big = craft.patch(segment("clean-1/acks0-0").read_bytes() + bytes(1 << 20), batchLength=271 - 12 + (1 << 20))
    step = BATCH_HEADER.read(big).lastOffsetDelta + 1
    path = put(tmp_path, b"".join(craft.rebase(big, number * step) for number in range(8)))
    read: list[int] = []
    window = Window(opened(path))
    real = window.source.read_at
    window.source.read_at = lambda position, count: read.append(count) or real(position, count)  # type: ignore
    assert summarize_headers(target(str(path)), window).batches == 8
    last = len(big)  # its checksum decides where the log ends
    assert sum(read) < module.BLOCK + 8 * HEADER_BLOCK + last


@each_case("quick", [False, True])
def test_progress_adds_up(quick: bool) -> None:
    for path in LOGS:
        done: list[int] = []
        summarize_headers(target(str(path)), Window(opened(path)), quick=quick, run=Run(more=done.append))
        assert sum(done) == path.stat().st_size, path


def test_the_last_offset_is_that_of_the_last_batch_whose_checksum_matches(tmp_path: Path) -> None:
    data = segment("clean-1/orders-none-0").read_bytes()
    whole = walk(put(tmp_path, data))
    batches = craft.split(data)
    for damaged in (1, 2):
        kept, lost = batches[:-damaged], batches[-damaged:]
        lost = [craft.flip(each, 8 * len(each) - 8) for each in lost]
        found = walk(put(tmp_path, b"".join([*kept, *lost])))
        assert found.last == BATCH_HEADER.read(kept[-1]).lastOffset
        assert (found.batches, found.records) == (whole.batches, whole.records)
        assert "a damaged batch" in found.damage
