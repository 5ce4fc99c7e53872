"""Parts of bundles: what is written as frames is read again from any place, and nothing in them is believed."""

from __future__ import annotations

import io
import random
import subprocess
from pathlib import Path
from shutil import which

import pytest
import zstandard

from kdump.format.errors import DecodeError
from kdump.io import frames
from kdump.io.frames import FRAME, FramesReader, FramesWriter, last_end, part_before
from tests.conftest import seeded
from tests.each_case import each_case


def written(*pieces: bytes | int, name: str = "a") -> bytes:
    """Return a part with these bytes, and as many zeros as the numbers state."""
    file = io.BytesIO()
    writer = FramesWriter(file)
    for piece in pieces:
        if isinstance(piece, int):
            writer.zeros(piece)
        else:
            writer.write(piece)
    writer.finish(name, index=[0, 1])
    return file.getvalue()


def reader(data: bytes, end: int | None = None) -> FramesReader:
    def read_at(position: int, count: int) -> bytes:
        assert position >= 0 <= count
        return data[position : position + count]

    return FramesReader(read_at, part_before(read_at, len(data) if end is None else end))


def test_bytes_are_read_from_any_place() -> None:
    dice = seeded("frames")
    pieces: list[bytes | int] = [b"", 5, dice.randbytes(3 * FRAME // 2), FRAME, 3 * FRAME + 7, dice.randbytes(100)]
    whole = b"".join(bytes(piece) if isinstance(piece, int) else piece for piece in pieces)
    part = written(*pieces)
    found = reader(part)
    assert found.size == len(whole)
    assert zstandard.ZstdDecompressor().stream_reader(part, read_across_frames=True).read() == whole
    for _ in range(200):
        start, count = dice.randrange(len(whole) + 10), dice.randrange(2 * FRAME)
        assert found.read(start, count) == whole[start : start + count]


@pytest.mark.skipif(which("zstd") is None, reason="zstd is not installed")
def test_the_command_of_zstd_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.zst").write_bytes(written(b"first") + written(2 * FRAME, b"last"))
    done = subprocess.run(["zstd", "-dc", tmp_path / "a.zst"], check=True, capture_output=True)
    assert done.stdout == b"first" + bytes(2 * FRAME) + b"last"


def test_parts_after_one_another_are_found_from_the_end() -> None:
    parts = [written(b"x" * number, name=str(number)) for number in (1, 70_000, 0, 3)]
    data = b"".join(parts)
    end, names = len(data), []
    while end:
        part = part_before(lambda position, count: data[position : position + count], end)
        names.append(part.name)
        end = part.start
    assert names == ["3", "0", "70000", "1"]
    for cut in (*range(len(data) - 200, len(data)), len(parts[0]), 10, 0):
        ends = [0]
        for each in parts:
            ends.append(ends[-1] + len(each))
        short = data[:cut]
        found = last_end(lambda position, count, short=short: short[position : position + count], cut)  # type: ignore[misc]
        assert found == max(end for end in ends if end <= cut)


def test_damage_is_noticed_wherever_it_is() -> None:
    dice = seeded("damaged frames")
    data = written(dice.randbytes(1000), 100_000, b"end")
    whole = reader(data).read(0, 200_000)
    for _ in range(2000):
        damaged = bytearray(data)
        damaged[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        try:
            assert reader(bytes(damaged)).read(0, 200_000) == whole
        except DecodeError:
            continue
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            reader(data[:size])


@each_case("sizes", [(FRAME + 1,), (0,), (FRAME, 0)])
def test_frames_of_other_sizes_are_refused(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    writer = FramesWriter(file)
    compress = zstandard.ZstdCompressor(write_checksum=True).compress
    for size in sizes:
        writer._add(compress(bytes(size)), size)
    writer.finish("a")
    with pytest.raises(DecodeError):
        reader(file.getvalue())


@each_case("options", [{"write_checksum": False}, {"write_content_size": False}])
def test_frames_that_state_less_are_refused(options: dict[str, bool]) -> None:
    file = io.BytesIO()
    writer = FramesWriter(file)
    writer._add(zstandard.ZstdCompressor(**{"write_checksum": True, **options}).compress(b"abc"), 3)
    writer.finish("a")
    with pytest.raises(DecodeError):
        reader(file.getvalue()).read(0, 3)


def test_a_frame_that_expands_to_more_than_it_should() -> None:
    file = io.BytesIO()
    writer = FramesWriter(file)
    writer._add(zstandard.ZstdCompressor(write_checksum=True).compress(bytes(1 << 28)), 1000)
    writer.finish("a")
    with pytest.raises(DecodeError, match="its size differs"):
        reader(file.getvalue()).read(0, 3)


def test_random_bytes_are_no_part() -> None:
    dice = random.Random(5)
    for size in (0, 1, 16, 17, 100, 10_000):
        data = dice.randbytes(size) + frames.SEEKABLE.to_bytes(4, "little")
        with pytest.raises(DecodeError):
            reader(data)
