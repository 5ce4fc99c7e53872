"""Tests of kdump.carve: real segments among other bytes, at any position, complete, truncated, overlapping or split."""

from __future__ import annotations

import gzip
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import kdump
from kdump.check.options import Options
from kdump.core import candidates
from kdump.log.output_directory import OutputDirectory, OutputError
from kdump.log.region import Batch
from kdump.questions.carve.carved_runs import CarvedRun
from kdump.questions.carve.run import CarvedFile
from kdump.questions.carve.search import PIECE, CarvedBatch
from tests import craft
from tests.conftest import FIXTURES, read_regions, sample, seeded, segment

TEXT = b'{"user":"u-17","when":1795247903012,"what":"clicked"}\n'
FIRST = f"{0:020}.log"


def found(path: Path, **options: object) -> list[CarvedBatch | CarvedRun | CarvedFile]:
    """Return all rows for a file."""
    return list(kdump.carve(str(path), **options))  # type: ignore[arg-type]


def batches(path: Path, **options: object) -> list[tuple[int, int, int]]:
    """Return position, size and last offset of each batch that is not inside another."""
    return [
        (each.batch.position, each.batch.size, each.batch.lastOffset)
        for each in found(path, **options)
        if isinstance(each, CarvedBatch) and each.within is None
    ]


def runs(path: Path, **options: object) -> list[CarvedRun]:
    return [each for each in found(path, **options) if isinstance(each, CarvedRun)]


def stand(data: bytes, position: int) -> list[tuple[int, int, int]]:
    """Return the batches of a valid segment that starts at `position`."""
    regions = [each for each in read_regions(data) if isinstance(each, Batch)]
    return [(position + each.position, each.size, each.lastOffset) for each in regions]


def segments() -> Iterator[bytes]:
    """Yield one segment of each format and codec."""
    for name in ("clean-1/payments-0", "clean-1/orders-zstd-0", "clean-1/users-0", "clean-1/orders-none-0"):
        yield segment(name).read_bytes()
    for path in sorted((FIXTURES / "legacy").glob(f"*/{FIRST}")):
        yield path.read_bytes()


@pytest.mark.parametrize("filling", ["random", "zeros", "text"])
def test_real_segments_at_odd_positions(filling: str, tmp_path: Path) -> None:
    """Every batch of each segment is found at its position, and nothing else."""
    dice = seeded(filling)
    image, expected = bytearray(), []
    for data in segments():
        size = dice.randrange(1, 9000)
        image += {"random": dice.randbytes(size), "zeros": bytes(size), "text": (TEXT * 200)[:size]}[filling]
        expected += stand(data, len(image))
        image += data
    image += dice.randbytes(100)
    path = craft.write_file(tmp_path / "image", image)
    assert len(expected) > 150
    assert batches(path) == expected
    for window in (4096, 61):
        assert batches(path, options=Options(window=window)) == expected


@pytest.mark.sampled
def test_a_batch_across_each_byte_of_a_piece(tmp_path: Path) -> None:
    """The batch is found wherever the boundary between two pieces falls, with or without zeros around it."""
    path = tmp_path / "image"
    for one in (craft.one(b"value", 5), craft.message(0, b"value", offset=5), craft.message(1, b"value", offset=5)):
        for shift in sample(range(-len(one) - 1, 20), 7, len(one)):
            for byte in (b"\0", b"\x55"):
                at = PIECE + shift
                path.write_bytes(byte * at + one + byte * 100)
                assert batches(path) == [(at, len(one), 5)], (shift, byte)
    path.write_bytes(bytes(PIECE) + one)
    assert batches(path) == [(PIECE, len(one), 5)]


def test_no_code_finds_other_candidates_than_the_other() -> None:
    """The compiled search and the regular expressions agree, on bytes that look like headers and on others."""
    dice = random.Random(4)
    mixed = b"".join(
        dice.choice([b"\0", b"\0\0\0\0", b"\1", b"\2", b"\xff\xff\xff\xff", b"\x0e"]) for _ in range(60_000)
    )
    for data in (mixed, dice.randbytes(1 << 18), b"".join(segments()), bytes(5000)):
        assert candidates.find_candidates(data, 0, len(data)) == candidates._by_patterns(data, 0, len(data))
    assert candidates.find_candidates(mixed, 0, len(mixed))
    assert candidates.find_candidates(mixed, 500, 900) == [
        at for at in candidates.find_candidates(mixed, 0, len(mixed)) if 500 <= at < 900
    ]


@pytest.mark.sampled
def test_what_is_cut_off_overwritten_or_split_is_lost_and_nothing_else(tmp_path: Path) -> None:
    data = segment("clean-1/payments-0").read_bytes()
    stands = stand(data, 0)
    path = tmp_path / "image"
    for end in sample(range(0, len(data), 97), 7, "ends"):
        path.write_bytes(data[:end])
        whole = [each for each in stands if each[0] + each[1] <= end]
        found, torn = batches(path)[: len(whole)], batches(path)[len(whole) :]
        assert found == whole
        assert [each[0] for each in torn] in ([], [stands[len(whole)][0]])  # its complete records
    other = b"\x55" * 9 + segment("clean-1/orders-zstd-0").read_bytes()[:4991]
    for at in sample(range(0, 6000, 501), 4, "other"):  # another file overwrites the middle
        path.write_bytes(craft.overwrite(data, at, other))
        kept = [each for each in stands if each[0] + each[1] <= at or each[0] >= at + 5000]
        kept += [each for each in stand(other[9:], at + 9) if each[0] + each[1] <= at + 5000]
        assert batches(path) == sorted(kept)
    at = stands[10][0]
    path.write_bytes(data[: at + 70] + b"\x55" * 4096 + data[at + 70 :])
    moved = [(position + 4096, size, last) for position, size, last in stands[11:]]
    assert batches(path) == stands[:10] + moved


def test_runs_are_what_stands_one_behind_the_other(tmp_path: Path) -> None:
    """Two adjacent files are two runs, even if the offsets of one could follow those of the other; so are parts of one
    file."""
    one, other = segment("clean-1/payments-0").read_bytes(), segment("clean-1/orders-zstd-0").read_bytes()
    path = craft.write_file(tmp_path / "image", one + other + bytes(100) + one[: len(one) // 2])
    first, second, third = runs(path)
    assert (first.position, first.end, first.firstOffset, first.lastOffset, first.records) == (0, len(one), 0, 119, 120)
    assert (second.position, second.batches, second.producerIds, second.codecs) == (len(one), 5, [3], ["zstd"])
    assert (third.firstOffset, third.mayFollow) == (0, [])
    parts = craft.split(one)
    path.write_bytes(b"".join(parts[40:]) + b"junk" + b"".join(parts[:40]) + b"junk" + b"".join(parts[40:]))
    assert [run.mayFollow for run in runs(path)] == [[], [], [2]]
    gap = craft.one(b"x" * (512 - len(craft.one(b""))), 3)
    gap = craft.one(b"x" * (512 - len(craft.one(b"")) - (len(gap) - 512)), 3)
    assert len(gap) == 512
    path.write_bytes(gap + craft.rebase(gap, 4) + craft.rebase(gap, 9))  # on a sector boundary, but not the next offset
    assert [(run.firstOffset, run.lastOffset) for run in runs(path)] == [(3, 4), (9, 9)]
    old = craft.patch(gap, partitionLeaderEpoch=3)
    path.write_bytes(old + craft.rebase(craft.patch(gap, partitionLeaderEpoch=2), 4))
    assert [(run.firstEpoch, run.lastEpoch) for run in runs(path)] == [(3, 3), (2, 2)]


def test_sequences_that_do_not_follow_end_a_run(tmp_path: Path) -> None:
    def one(offset: int, base: int) -> bytes:
        return craft.one(b"v", offset, producerId=7, producerEpoch=0, baseSequence=base)

    path = craft.write_file(tmp_path / "image", one(0, 0) + one(1, 1) + one(2, 9) + one(3, 10) + one(4, 10))
    assert [run.batches for run in runs(path)] == [2, 2, 1]


def test_a_batch_in_a_value(tmp_path: Path) -> None:
    """The inner batch is listed once, as a nested one: in no run, and in no segment."""
    inner = craft.one(b"inside", 77)
    deeper = craft.one(inner, 50)
    outer = [craft.one(b"before", 0), craft.one(b"<" + deeper + b">", 1), craft.one(b"behind", 2)]
    path = craft.write_file(tmp_path / "image", b"?" + b"".join(outer))
    told = [each for each in found(path, out=str(tmp_path / "out")) if isinstance(each, CarvedBatch)]
    at = 1 + len(outer[0])
    assert [(each.batch.lastOffset, each.within, each.run) for each in told] == [
        (0, None, 1),
        (1, None, 1),
        (50, at, None),
        (77, at, None),
        (2, None, 1),
    ]
    assert (tmp_path / "out" / "run-000001" / FIRST).read_bytes() == b"".join(outer)


def test_runs_are_written_as_segments_with_their_indexes(tmp_path: Path) -> None:
    """The bytes are unchanged; the indexes equal those that a broker would rebuild, and verify accepts them."""
    from click.testing import CliRunner

    from kdump.cli import cli

    image, parts = bytearray(), []
    for data in segments():
        image += b"\x55" * 1001
        parts.append(data)
        image += data
    path, out = tmp_path / "image", tmp_path / "out"
    path.write_bytes(image)
    made = runs(path, out=str(out))
    written = [Path(run.written or "").read_bytes() for run in made]
    assert written == parts
    verdicts = [each.status for found in kdump.reindex(str(out)) for each in found.verdicts]
    assert set(verdicts) == {"identical", "notNeeded"}
    assert len(verdicts) == 3 * len(parts)
    result = CliRunner().invoke(cli, ["verify", str(out), "--ignore", "timestamp-in-future"])
    assert result.exit_code == 0, result.stdout
    assert path.read_bytes() == image


def test_who_does_not_go_on_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = craft.write_file(tmp_path / "image", segment("clean-1/payments-0").read_bytes())
    told = kdump.carve(str(path), str(tmp_path / "out"))
    next(told)
    told.close()  # type: ignore[attr-defined]
    assert [each for each in (tmp_path / "out").rglob("*") if each.is_file()] == []


def test_a_run_without_its_indexes_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_disk = OutputError("no space left on device")

    def full(self: OutputDirectory, name: str, data: bytes) -> None:
        raise full_disk

    path = craft.write_file(tmp_path / "image", segment("clean-1/payments-0").read_bytes())
    monkeypatch.setattr(OutputDirectory, "write", full)
    with pytest.raises(OutputError) as caught:
        found(path, out=str(tmp_path / "out"))
    assert caught.value is full_disk
    assert list((tmp_path / "out").iterdir()) == []


def test_holes_are_not_read(tmp_path: Path) -> None:
    """The file has 4 GiB of holes, and a segment in the middle."""
    data = segment("clean-1/payments-0").read_bytes()
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.seek(2 << 30)
        file.write(data)
        file.truncate(4 << 30)
    began = time.monotonic()
    told = found(path)
    searched = told[-1]
    assert isinstance(searched, CarvedFile)
    assert [each.position for each in told if isinstance(each, CarvedRun)] == [2 << 30]
    if os.stat(path).st_blocks * 512 < 1 << 30 and searched.skipped:  # not every file system supports holes
        assert searched.skipped > 3 << 30
        assert time.monotonic() - began < 20


def test_what_is_compressed_is_seen_through(tmp_path: Path) -> None:
    data = segment("clean-1/payments-0").read_bytes()
    path = tmp_path / "backup.gz"
    path.write_bytes(gzip.compress(b"tar" * 500 + data)[:-3000])  # truncated
    told = found(path)
    assert [each.batch.position for each in told if isinstance(each, CarvedBatch)][:2] == [1500, 1653]
    assert isinstance(told[-1], CarvedFile)
    assert told[-1].notes


def test_headers_that_only_look_like_some_cost_no_square(tmp_path: Path) -> None:
    """Each header claims megabytes: the number of checksums is limited, and this is reported. A real batch is still
    found."""
    one = craft.one(b"value", 5)
    fake = craft.patch(one, crc=False, batchLength=20 << 20)[:61]
    path = craft.write_file(tmp_path / "image", fake * 20_000 + one + b"\x55" * (24 << 20))
    began = time.monotonic()
    told = found(path)
    assert time.monotonic() - began < 20
    assert [each.batch.lastOffset for each in told if isinstance(each, CarvedBatch)] == [5]
    assert isinstance(told[-1], CarvedFile)
    assert told[-1].unchecked > 10_000


def test_directories_and_what_is_not_there(tmp_path: Path) -> None:
    for name in ("a", "b/c"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(b"?" + craft.one(b"v", 1))
    assert [run.file for run in runs(tmp_path / "in")] == [str(tmp_path / "in" / name) for name in ("a", "b/c")]
    with pytest.raises(kdump.SourceError):
        found(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(kdump.SourceError, match="no file"):
        found(tmp_path / "empty")
