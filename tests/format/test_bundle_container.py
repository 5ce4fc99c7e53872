"""Containers come from other hosts: every lie about a frame is refused before memory is allocated for it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest
import zstandard

from kdump.format.checksum import castagnoli
from kdump.format.container import FOOTER, MAGIC, ContainerReader, ContainerWriter, Frame
from kdump.format.errors import DecodeError
from tests.conftest import seeded
from tests.each_case import each_case

PARTS = (b"", b"one", bytes(3_000_000), b" ".join(b"%d" % number for number in range(20_000)))


def container(index: object, parts: tuple[bytes, ...] = PARTS) -> tuple[bytes, list[Frame]]:
    file = io.BytesIO()
    writer = ContainerWriter(file)
    frames = [writer.add(part) for part in parts]
    writer.finish(index)
    return file.getvalue(), frames


def reader(data: bytes) -> ContainerReader:
    return ContainerReader(lambda position, count: data[position : position + count], len(data))


def test_what_was_written_is_read() -> None:
    index = {"name": "a\udcff", "numbers": [1, -1, 1 << 63]}
    data, frames = container(index)
    found = reader(data)
    assert found.head == index
    assert tuple(map(found.read, frames)) == PARTS
    assert all(frame.size <= 100 * max(frame.stored, 1) for frame in frames)
    assert frames[2].stored == frames[2].size // 100, "of zeros, no more is stored than a reader accepts"
    assert frames[3].stored < frames[3].size


def copied(data: bytes) -> tuple[bytes, list[Frame]]:
    file = io.BytesIO()
    writer = ContainerWriter(file)
    before = reader(data)
    frames = [writer.copy(before.stored(frame), frame.size) for frame in container(0)[1]]
    writer.finish(0)
    return file.getvalue(), frames


def test_frames_are_copied_as_they_are() -> None:
    data, frames = copied(container(0)[0])
    assert tuple(map(reader(data).read, frames)) == PARTS


@each_case(
    "lie",
    [
        lambda frame: frame._replace(position=-1),
        lambda frame: frame._replace(position=1 << 40),
        lambda frame: frame._replace(stored=frame.stored - 1),
        lambda frame: frame._replace(stored=-1),
        lambda frame: frame._replace(size=frame.size + 1),
        lambda frame: frame._replace(size=1 << 40),
        lambda frame: frame._replace(size=frame.stored - 1),
        lambda frame: frame._replace(crc=frame.crc ^ 1),
    ],
)
def test_a_lie_about_a_frame(lie: Callable[[Frame], Frame]) -> None:
    data, frames = container(0)
    with pytest.raises(DecodeError):
        reader(data).read(lie(frames[3]))


@each_case("stated", [10, 1 << 20, None])
def test_a_frame_that_expands_to_more_than_the_index_states(stated: int | None) -> None:
    """The library allocates what the header of a frame states, so that is compared first."""
    packed = zstandard.ZstdCompressor(write_content_size=stated is not None).compress(bytes(1 << 26))
    data, _ = container(0)
    data = data[:8] + packed + data[8:]
    with pytest.raises(DecodeError):
        reader(data).read(Frame(8, len(packed), stated or 5000, castagnoli(packed)))


def test_a_head_that_expands_too_far() -> None:
    packed = zstandard.ZstdCompressor().compress(json.dumps(["x" * (1 << 15)]).encode())
    data = MAGIC + packed + FOOTER.pack(8, len(packed), (1 << 15) + 4, castagnoli(packed), MAGIC)
    with pytest.raises(DecodeError, match="more than 100 to 1"):
        reader(data)


def test_every_byte_of_a_small_container() -> None:
    dice = seeded("container")
    data, frames = container({"files": [1, 2, 3]}, (b"payload" * 20,))
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << dice.randrange(8)
        with pytest.raises(DecodeError):
            reader(bytes(damaged)).read(frames[0])
        with pytest.raises(DecodeError):
            reader(data[:at])
