"""`inspect --last` without an index: the same rows as at the end of the whole file, without decoding the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdump.io.run import Limits
from kdump.log.paths import target
from kdump.log.region import Batch, Region
from kdump.log.region_scan import RegionScan
from kdump.log.selection import Selection
from tests.conftest import FIXTURES, SEED, seeded
from tests.craft import batch, record, write_file
from tests.each_case import each_case

SOURCES = [
    "clean-1/orders-none-0",
    "clean-1/orders-gzip-0",
    "clean-1/acks0-0",
    "clean-1/payments-0",
    "legacy/v1-client010-gzip-0",
]


def small_batches(count: int) -> bytes:
    value = record(value=b"v" * 20)
    return b"".join(batch(value, offset=offset, count=1) for offset in range(count))


def large_batches(count: int) -> bytes:
    """Batches of which the windows of these tests hold only one."""
    value = record(value=b"v" * 5000)
    return b"".join(batch(value, offset=offset, count=1) for offset in range(count))


def last(path: Path, count: int, *, by_record: bool) -> list[tuple[str, int, int]]:
    scan = RegionScan(Selection(), Limits(), by_record, 8 * 1024, use_index=False)
    where = target(str(path))
    window = scan.open(where, keep=True)
    try:
        return [(region.kind, region.position, rows) for region, rows in scan.last(where, window, count)]
    finally:
        window.source.close()


def naive(path: Path, *, by_record: bool) -> list[tuple[str, int, int]]:
    """Everything that one walk finds."""
    scan = RegionScan(Selection(), Limits(), by_record, 8 * 1024, use_index=False, keeps=True)
    where = target(str(path))
    window = scan.open(where, keep=True)

    def each() -> Iterator[tuple[Region, int]]:
        for region in scan.chosen(where, window, 0):
            rows = 0
            if isinstance(region, Batch):
                rows = sum(1 for _ in scan.selection.records(region)) if by_record else 1
            if rows or not isinstance(region, Batch):
                yield region, rows

    try:
        return [(region.kind, region.position, rows) for region, rows in each()]
    finally:
        window.source.close()


def end_of(everything: list[tuple[str, int, int]], count: int) -> list[tuple[str, int, int]]:
    """The last rows of them."""
    found = list(everything)
    kept: list[tuple[str, int, int]] = []
    while found and sum(rows for _, _, rows in kept) < count:
        kept.insert(0, found.pop())
    while found and not found[-1][2] and sum(rows for _, _, rows in kept) < count:
        kept.insert(0, found.pop())
    return kept


def damaged(data: bytes, name: str) -> Iterator[bytes]:
    """Yield the bytes as they are, and with a few kinds of damage at random positions."""
    yield data
    draw = seeded(name)
    for _ in range(12 if SEED else 2):
        changed = bytearray(data)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(changed))
            size = min(draw.choice((1, 8, 200)), len(changed) - at)
            changed[at : at + size] = draw.choice((bytes(size), draw.randbytes(size)))
        kind = draw.randrange(4)
        if kind == 0:
            del changed[draw.randrange(len(changed)) :]
        elif kind == 1:
            changed += bytes(draw.randrange(1, 5000))
        yield bytes(changed)


@pytest.mark.sampled
@each_case("by_record", [False, True])
@each_case("source", ["small", "large", *SOURCES])
def test_the_same_rows_as_at_the_end_of_the_whole_file(source: str, by_record: bool, tmp_path: Path) -> None:
    crafted = {"small": small_batches(300), "large": large_batches(110)}
    data = crafted.get(source) or (FIXTURES / source / f"{0:020}.log").read_bytes()
    for name in (f"{0:020}.log", f"{700:020}.log"):  # the second contradicts the offsets
        path = tmp_path / name
        for changed in damaged(data, f"{source} {name}"):
            path.write_bytes(changed)
            everything = naive(path, by_record=by_record)
            for count in (1, 3, 100):
                assert last(path, count, by_record=by_record) == end_of(everything, count)


@each_case("data", [small_batches(20_000), large_batches(2000)], ids=["small", "large"])
def test_only_the_end_is_decoded(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_file(tmp_path / f"{0:020}.log", data)
    walked: list[int] = []
    chosen = RegionScan.chosen

    def counted(self: RegionScan, where: object, window: object, start: int = 0) -> Iterator[Region]:
        for region in chosen(self, where, window, start):  # type: ignore[arg-type]
            walked.append(region.position)
            yield region

    monkeypatch.setattr(RegionScan, "chosen", counted)
    assert len(last(path, 5, by_record=False)) == 5
    assert len(walked) < 500
