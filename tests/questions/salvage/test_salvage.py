"""Output of salvage: for real disks, healthy and damaged by every recipe, and for replicas that diverge."""

from __future__ import annotations

import errno
import gzip
import os
import random
import re
import shutil
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.format.batch_header import BATCH_HEADER
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import BLOCK, FaultTolerantSource
from kdump.io.source import FileSource, Source, open_source
from kdump.log.batch_validity import OFFSETS
from kdump.log.output_directory import OutputDirectory, OutputError
from kdump.questions.salvage import partition_run
from kdump.questions.salvage.byte_outcomes import (
    CONTRADICTS,
    DAMAGED,
    DIVERGED,
    DUPLICATE,
    KEPT,
    MENDED,
    OVERLAPS,
    RECOVERED,
    SUPERSEDED,
    UNDECIDED,
    UNREAD,
    UNTAKEN,
    UNUSED,
)
from kdump.questions.salvage.merge import EQUAL, EQUAL_EXCEPT
from kdump.questions.salvage.source.batch_index import BatchIndex
from kdump.questions.salvage.source.file_parts import LostOffsets
from kdump.questions.salvage.source.source_file import CORRECTED_BIT
from kdump.questions.salvage.source.survey import survey
from tests import craft, damages
from tests.conftest import DISKS, FIXTURES, few, numbers_in
from tests.each_case import each_case
from tests.questions.salvage.salvage_model import NAMES
from tests.questions.salvage.salvaging import Run, offsets

FIRST = f"{0:020}.log"


def place(root: Path, name: str, *batches: bytes, base: int = 0, ending: str = "") -> Path:
    """Write a partition directory with a segment of these batches."""
    craft.write_file(root / name / f"{base:020}.log{ending}", b"".join(batches))
    return root / name


def ten(first: int, epoch: int = 0, text: str = "v", codec: str = "none", **fields: Any) -> bytes:
    """Return a batch of ten records."""
    records = [craft.record(delta, b"k%d" % delta, f"{text}-{first + delta}".encode()) for delta in range(10)]
    return craft.batch(records, codec, offset=first, partitionLeaderEpoch=epoch, **fields)


def broken(batch: bytes) -> bytes:
    """Return the batch with two changed bytes in its last value, which no single bit explains."""
    return batch[:-4] + b"##" + batch[-2:]


def epoch_file(directory: Path, *entries: tuple[int, int]) -> None:
    lines = [f"{epoch} {start}\n" for epoch, start in entries]
    (directory / "leader-epoch-checkpoint").write_text(f"0\n{len(lines)}\n" + "".join(lines))


# --- Sound disks ------------------------------------------------------------------------------------------------------


@each_case("disk", ["clean-1", "clean-2", "crash-1", "legacy", "tiered", "framed", "live-1"])
def test_a_sound_disk_comes_out_as_it_went_in(disk: str, tmp_path: Path) -> None:
    run = Run(tmp_path / "out", FIXTURES / disk)
    assert run.made
    for made in run.made:
        assert made.is_whole, made.losses
        for file in made.files:
            was = (FIXTURES / disk / file).read_bytes()
            now = (run.out / file).read_bytes()
            assert was.startswith(now)
            assert len(was) - len(now) == made.bytes.get("padding", 0)
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        for path in (FIXTURES / disk).glob(f"*-0/{name}"):
            if (run.out / path.parent.name).exists():
                assert (run.out / path.parent.name / name).read_bytes() == path.read_bytes()


def test_an_empty_last_segment_keeps_the_log_end(tmp_path: Path) -> None:
    source = place(tmp_path, "t-0", ten(0))
    place(tmp_path, "t-0", base=500)
    run = Run(tmp_path / "out", source)
    assert run.only.files == [f"t-0/{FIRST}", f"t-0/{500:020}.log"]
    assert (run.only.logEndOffset, run.only.is_whole) == (500, True)


def test_a_name_above_its_first_offset_moves_no_end(tmp_path: Path) -> None:
    source = place(tmp_path, "t-0", ten(0))
    place(tmp_path, "t-0", ten(10), base=16)
    run = Run(tmp_path / "out", source)
    assert run.only.files == [f"t-0/{FIRST}"]
    assert (run.only.logEndOffset, run.only.is_whole) == (20, True)


# --- Damaged disks ----------------------------------------------------------------------------------------------------

RECIPES = [each for each in (*damages.DAMAGES, *damages.DOUBTS) if each.disk in damages.DISK_PATHS]
USUAL = (
    *("value-bit", "crc-magic-1-wrapper", "length-past-the-end", "torn-clean", "junk-clean"),
    *("zeros-for-a-batch", "magic-3", "count-zero", "zstd-cut", "control-type-unknown", "wrapper-null"),
    *("offset-bit", "offset-back", "name-above-first-offset", "offset-too-far-clean", "overlap-stale"),
    *("epoch-falls-clean", "data-outside-transaction", "txn-index-lost", "epochs-falling"),
    "partition-metadata-other-id",
)
"""Recipes that stand for the others in `make test`."""


def each_recipe() -> list[Any]:
    usual = [each for each in RECIPES if each.name in USUAL]
    assert len(usual) == len(USUAL)
    rest = [each for each in RECIPES if each.name not in USUAL]
    marked = [pytest.param(each, id=each.name, marks=pytest.mark.every_disk) for each in rest]
    return [*(pytest.param(each, id=each.name) for each in usual), *marked]


@pytest.mark.parametrize("damage", few(each_recipe(), 9))
def test_what_a_recipe_leaves(damage: Any, tmp_path: Path) -> None:
    source = DISKS / damages.DISK_PATHS[damage.disk]
    root = damages.copy_disk(source, tmp_path / "disk")
    hit = damage.apply(root).file.split("/")[0]
    if not (root / hit).is_dir() or not any((root / hit).glob("*.log")):
        hit = "__cluster_metadata-0" if damage.disk == "clean-0" else "trimmed-0"
    run = Run(tmp_path / "out", root / hit)
    name = run.only.directory
    begins = min(int(path.stem) for path in (root / hit).glob("0*.log"))  # a recipe may increase that
    run.holds(offset for offset in offsets(source / name) if offset >= begins)
    assert (run.out / name / "leader-epoch-checkpoint").exists() or damage.disk == "legacy"
    metadata = source / name / "partition.metadata"
    if metadata.exists():
        assert (run.out / name / "partition.metadata").read_bytes() == metadata.read_bytes()


def test_what_no_checksum_covers_is_put_right(tmp_path: Path) -> None:
    """Base offset, leader epoch and length of one batch are corrected if its neighbors leave only one answer."""
    middle = ten(10)
    sound = [ten(0), middle, ten(20), ten(30)]
    wrong = {
        "baseOffset": craft.rebase(middle, 14),
        "partitionLeaderEpoch": craft.patch(middle, crc=False, partitionLeaderEpoch=7),
        "batchLength": craft.overwrite(middle, 8, (len(middle) + 500).to_bytes(4, "big")),
    }
    for field, changed in wrong.items():
        source = place(tmp_path / field, "t-0", sound[0], changed, *sound[2:])
        run = Run(tmp_path / field / "out", source)
        assert run.only.mended == {field: 1}
        assert run.only.is_whole
        assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(sound)
        (span,) = [each for each in run.spans if each["fate"] == MENDED]
        assert (span["offset"], span["lastOffset"], span["mended"]) == (10, 19, [field])


def test_an_offset_that_fits_nowhere_is_lost(tmp_path: Path) -> None:
    run = Run(tmp_path / "out", place(tmp_path, "t-0", ten(0), craft.rebase(ten(10), 3), ten(30)))
    assert [(span["fate"], span["offset"]) for span in run.lost()] == [(OVERLAPS, 3)]
    assert run.holes == [(10, 29)]
    assert run.offsets() == {*range(10), *range(30, 40)}


@each_case("where", ["one segment", "another segment", "batches of other sizes"])
def test_sound_batches_with_the_same_offsets_are_a_loss(where: str, tmp_path: Path) -> None:
    """No offsets are missing, but ten valid records are in no output file."""
    other = ten(10, text="other")
    if where == "one segment":
        source = place(tmp_path, "t-0", ten(0), ten(10), other, ten(20))
    elif where == "another segment":
        source = place(tmp_path, "t-0", ten(0), ten(10))
        place(tmp_path, "t-0", other, ten(20), base=10)
    else:
        halves = [craft.one(b"%d" % offset, offset) for offset in (12, 13)]
        source = place(tmp_path, "t-0", ten(0), ten(10))
        place(tmp_path, "t-0", *halves, ten(20), base=12)
    run = Run(tmp_path / "out", source)
    assert {span["fate"] for span in run.lost()} == {CONTRADICTS}
    assert {(span["offset"], span["records"]) for span in run.lost()} >= {(12, 1) if len(run.lost()) > 1 else (10, 10)}
    assert run.offsets() == {*range(30)}
    assert not run.only.is_whole


def test_the_same_batch_in_two_live_segments_is_no_loss(tmp_path: Path) -> None:
    source = place(tmp_path, "t-0", ten(0), ten(10))
    place(tmp_path, "t-0", ten(10), ten(20), base=10)
    run = Run(tmp_path / "out", source)
    assert run.fates() == {KEPT: 3, DUPLICATE: 1}
    assert run.only.is_whole


# --- Batches out of order ---------------------------------------------------------------------------------------------

SORTED = [ten(first) for first in range(0, 60, 10)]
TOP = (1 << 63) - 1
ORDERS = {
    "two swapped": (0, 2, 1, 3, 4, 5),
    "the last two": (0, 1, 2, 3, 5, 4),
    "two swaps": (1, 0, 2, 4, 3, 5),
    "moved to the front": (5, 0, 1, 2, 3, 4),
    "moved to the end": (1, 2, 3, 4, 5, 0),
    "reversed": (5, 4, 3, 2, 1, 0),
}


@each_case("order", ORDERS.values(), ids=ORDERS)
def test_batches_out_of_order_are_written_in_order(order: tuple[int, ...], tmp_path: Path) -> None:
    run = Run(tmp_path / "out", place(tmp_path, "t-0", *(SORTED[number] for number in order)))
    assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(SORTED)
    assert (run.only.is_whole, run.fates(), run.holes) == (True, {KEPT: 6}, [])
    assert "out of order" in run.only.notes[-1]


def test_batches_moved_between_files(tmp_path: Path) -> None:
    source = place(tmp_path, "t-0", SORTED[0], SORTED[4], SORTED[1])
    place(tmp_path, "t-0", SORTED[3], SORTED[2], SORTED[5], base=30)
    run = Run(tmp_path / "out", source)
    assert run.only.files == [f"t-0/{base:020}.log" for base in (0, 30)]
    assert b"".join((run.out / file).read_bytes() for file in run.only.files) == b"".join(SORTED)
    assert run.only.is_whole


@pytest.mark.parametrize("changes", [1, 5])
def test_a_file_that_changes_after_its_survey(changes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are surveyed again, a few times; then the error names the file."""
    source = place(tmp_path, "t-0", SORTED[0], SORTED[2], SORTED[1])
    place(tmp_path, "t-0", SORTED[3], SORTED[4], SORTED[5], base=30)
    log, left = source / f"{30:020}.log", [changes]

    def surveyed(*given: Any) -> Any:
        log.write_bytes(b"".join(SORTED[3:]))
        made = survey(*given)
        left[0] -= 1
        if left[0] >= 0:
            log.write_bytes(SORTED[3] + SORTED[5] + SORTED[4])
        return made

    monkeypatch.setattr(partition_run, "survey", surveyed)
    if changes == 1:
        assert Run(tmp_path / "out", source).only.is_whole
    else:
        with pytest.raises(SourceError, match=r"t-0/\d+\.log: changed after each of 3 surveys"):
            Run(tmp_path / "out", source)


def test_a_batch_moved_below_its_file_and_read_late(tmp_path: Path) -> None:
    """Each file is in order, but the second one has what the first lacks."""
    source = place(tmp_path, "t-0", SORTED[0], SORTED[2])
    place(tmp_path, "t-0", SORTED[1], base=30)
    run = Run(tmp_path / "out", source)
    assert run.offsets() == set(range(30))
    assert run.only.is_whole


def test_a_batch_out_of_order_behind_damage_is_found(tmp_path: Path) -> None:
    source = place(tmp_path, "t-0", SORTED[0], SORTED[3], SORTED[4], b"\xff" * 100, SORTED[1], SORTED[5])
    run = Run(tmp_path / "out", source)
    assert run.offsets() == {*range(20), *range(30, 60)}
    assert [(line["offset"], line["cause"]) for line in run.lines if line["type"] == "salvageHole"] == [(20, "lost")]
    assert not run.only.is_whole


def test_doubled_batches_are_duplicates_wherever_they_stand(tmp_path: Path) -> None:
    source = place(tmp_path, "t-0", SORTED[2], *SORTED, SORTED[2], SORTED[0], SORTED[5])
    run = Run(tmp_path / "out", source)
    assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(SORTED)
    assert (run.fates(), run.only.is_whole) == ({KEPT: 6, DUPLICATE: 4}, True)


def test_a_duplicate_with_another_leader_epoch(tmp_path: Path) -> None:
    """No checksum covers the leader epoch, and a follower's copy may have another one."""
    other = place(tmp_path / "b", "t-0", ten(0, 1), ten(10, 3), ten(20, 3))
    run = Run(tmp_path / "out", place(tmp_path / "a", "t-0", ten(0, 1), ten(10, 2), ten(20, 3)), replicas=[str(other)])
    told = [(span["offset"], span["reason"]) for span in run.spans if span["fate"] == DUPLICATE]
    assert (0, EQUAL) in told
    assert (10, EQUAL_EXCEPT.format("partitionLeaderEpoch")) in told


def test_what_overlaps_is_named_and_no_success(tmp_path: Path) -> None:
    """No offsets are missing, but a valid batch is in no output."""
    run = Run(tmp_path / "out", place(tmp_path, "t-0", *SORTED[:3], craft.rebase(ten(0, text="other"), 15)))
    (span,) = run.lost()
    assert (span["fate"], span["offset"], span["lastOffset"]) == (OVERLAPS, 15, 24)
    assert (run.offsets(), run.holes, run.only.is_whole) == (set(range(30)), [], False)


def test_a_moved_batch_is_not_taken_for_one_with_a_damaged_offset(tmp_path: Path) -> None:
    """It fits into a gap that another batch left, but its own position is valid."""
    run = Run(tmp_path / "out", place(tmp_path, "t-0", SORTED[0], SORTED[4], SORTED[2], SORTED[3], SORTED[5]))
    assert run.only.mended == {}
    assert run.offsets() == {*range(10), *range(20, 60)}
    again = Run(tmp_path / "again", place(tmp_path / "2", "t-0", SORTED[0], SORTED[3], *SORTED[2:]))
    assert (again.only.mended, again.fates()) == ({}, {KEPT: 5, DUPLICATE: 1})


def test_a_damaged_offset_does_not_move_the_log_end(tmp_path: Path) -> None:
    """One bit of a base offset is flipped, and the gap that the batch would fill is too large for it."""
    far = craft.rebase(SORTED[1], 10 + (1 << 40))
    run = Run(tmp_path / "out", place(tmp_path, "t-0", SORTED[0], far, *SORTED[3:]))
    (span,) = run.lost()
    assert (span["fate"], span["offset"]) == (CONTRADICTS, 10 + (1 << 40))
    assert (run.only.logEndOffset, run.holes, run.only.is_whole) == (60, [(10, 29)], False)


def test_what_a_block_of_the_disk_held_before_is_not_of_this_log(tmp_path: Path) -> None:
    """A stale batch, out of order, has a leader epoch that does not fit its offsets."""
    log = [ten(0, 4), ten(20, 4), ten(30, 5)]
    for epoch in (1, 7):
        run = Run(tmp_path / f"{epoch}", place(tmp_path / f"in{epoch}", "t-0", *log, ten(10, epoch)))
        (span,) = run.lost()
        assert (span["fate"], span["offset"]) == (CONTRADICTS, 10)
        assert epoch in numbers_in(span["reason"])
    run = Run(tmp_path / "own", place(tmp_path / "in", "t-0", *log, ten(10, 4)))
    assert run.only.is_whole


def test_a_batch_in_the_value_of_a_damaged_one_is_not_written(tmp_path: Path) -> None:
    """Its offset is free and its checksum matches, but the records around it can no longer be decoded."""
    inside = craft.one(b"inside", 4)
    outer = bytearray(craft.batch([craft.record(0, b"k", inside)], offset=20))
    at = outer.index(inside)
    outer[10:at] = b"\xff" * (at - 10)
    log = [ten(5), bytes(outer), ten(30)]
    run = Run(tmp_path / "out", place(tmp_path, "t-0", *log))
    assert run.offsets() == {*range(5, 15), *range(30, 40)}
    assert ("contradicts", 4) in [(span["fate"], span["offset"]) for span in run.lost()]


def test_leader_epochs_of_swapped_batches_stay(tmp_path: Path) -> None:
    """The neighbors, in its file, of a batch that was moved say nothing about its epoch."""
    log = [ten(0, 1), ten(10, 1), ten(20, 2), ten(30, 2)]
    run = Run(tmp_path / "out", place(tmp_path, "t-0", log[0], log[2], log[1], log[3]))
    assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(log)
    assert (run.out / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n2 20\n"


def test_a_leader_epoch_that_is_negative_is_corrected_or_named(tmp_path: Path) -> None:
    """The one in the middle can be corrected; for the last one, the ledger reports what verify finds in the output."""
    log = [ten(0, 4), ten(10, 4), ten(20, 4), ten(30, 4)]
    wrong = [craft.patch(log[at], crc=False, partitionLeaderEpoch=-(1 << 30)) for at in (1, 3)]
    run = Run(tmp_path / "out", place(tmp_path, "t-0", log[0], wrong[0], log[2], wrong[1]))
    assert (run.only.mended, run.only.odd) == ({"partitionLeaderEpoch": 1}, {"leader-epoch-decreased": 1})


def test_a_replica_out_of_order_fills_holes(tmp_path: Path) -> None:
    one = place(tmp_path / "a", "t-0", SORTED[0], broken(SORTED[1]), *SORTED[2:4])
    other = place(tmp_path / "b", "t-0", SORTED[0], SORTED[2], SORTED[1], *SORTED[3:])
    run = Run(tmp_path / "out", one, replicas=[str(other)])
    assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(SORTED)
    assert run.only.is_whole


def test_a_compressed_file_out_of_order_is_named(tmp_path: Path) -> None:
    """It is read only once, from its beginning."""
    source = place(tmp_path, "t-0")
    (source / FIRST).write_bytes(gzip.compress(b"".join(SORTED[number] for number in ORDERS["the last two"])))
    made = kdump.salvage(str(source), str(tmp_path / "out"))[0]
    assert [(each.fate, each.offset) for each in made.losses] == [(CONTRADICTS, 50)]
    assert not made.is_whole


def test_two_segments_of_one_name_are_not_written(tmp_path: Path) -> None:
    """No batch of the file is within 2^31 offsets of the file's name."""
    far = 1 << 32
    run = Run(tmp_path / "out", place(tmp_path, "t-0", ten(far), ten(far + 10)))
    assert run.only.files == [f"t-0/{far:020}.log"]
    assert run.offsets() == set(range(far, far + 20))


@pytest.mark.every_disk
def test_the_index_of_a_file_out_of_order_is_small() -> None:
    """It takes at most 100 bytes per batch, at any time."""
    count = 25_000
    numbers = list(range(count))
    random.Random(7).shuffle(numbers)
    for order in (numbers, range(count - 1, -1, -1)):
        tracemalloc.start()
        index = BatchIndex(0, None)
        for at, number in enumerate(order):
            index.add(at * 100, 100, number * 10, number * 10 + 9, number)
        index.arrange()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 100 * count
        assert len(index.chain) + len(index.misplaced) == count
        assert all(index.bases[a] <= index.bases[b] for a, b in pairwise(index.misplaced))


# --- Files that overlap -----------------------------------------------------------------------------------------------


def test_deleted_files_only_when_asked(tmp_path: Path) -> None:
    source = place(tmp_path, "t-0", ten(10), broken(ten(20)), ten(30), base=10)
    place(tmp_path, "t-0", ten(0), base=0, ending=".deleted")
    place(tmp_path, "t-0", ten(10, text="old"), ten(20), ten(30), base=10, ending=".cleaned")
    spare = sum(path.stat().st_size for path in source.iterdir() if path.suffix != ".log")
    run = Run(tmp_path / "out", source)
    assert (run.holes, run.only.bytes.get(UNUSED)) == ([(20, 29)], spare)
    run = Run(tmp_path / "all", source, deleted=True)
    assert run.offsets() == set(range(40))
    assert run.only.batches == {"kept": 4, DAMAGED: 1, SUPERSEDED: 1, DUPLICATE: 1}
    assert run.only.files == [f"t-0/{FIRST}", f"t-0/{10:020}.log"]
    assert b"old-10" not in (run.out / "t-0" / f"{10:020}.log").read_bytes()


@each_case("checkpoint", [True, False])
def test_deleted_files_of_another_history(checkpoint: bool, tmp_path: Path) -> None:
    """A follower that truncates its log where it diverged from the leader leaves the removed segments as .deleted."""
    source = place(tmp_path, "t-0", ten(0), ten(10, 2))
    place(tmp_path, "t-0", ten(10, text="old"), base=10, ending=".deleted")
    place(tmp_path, "t-0", ten(20, text="old"), ten(30, 2), base=20, ending=".deleted")
    if checkpoint:
        epoch_file(source, (0, 0), (2, 10))
    run = Run(tmp_path / "out", source, deleted=True)
    assert run.offsets() == {*range(20), *range(30, 40)}
    assert run.only.batches[DIVERGED] == 2 if checkpoint else 1
    assert b"old" not in b"".join((run.out / file).read_bytes() for file in run.only.files)


def test_what_the_cleaner_dropped_stays_away(tmp_path: Path) -> None:
    """In a compacted log, other copies fill damaged ranges, and nothing else."""
    thin = craft.batch([craft.record(9, b"k9", b"v-19")], offset=10, lastOffsetDelta=9, count=1)
    source = place(tmp_path / "a", "t-0", ten(0), thin, broken(ten(30)), ten(40))
    other = place(tmp_path / "b", "t-0", *(ten(first) for first in range(0, 50, 10)))
    run = Run(tmp_path / "out", source, replicas=[str(other)])
    assert run.offsets() == {*range(10), 19, *range(30, 50)} | set(range(20, 30))
    assert run.holes == []
    source = place(tmp_path / "c", "t-0", ten(0), thin, ten(30), ten(40))
    run = Run(tmp_path / "without", source, replicas=[str(other)])
    assert run.offsets() == {*range(10), 19, *range(30, 50)}
    assert run.only.batches[UNUSED] == 1


# --- Replicas ---------------------------------------------------------------------------------------------------------


def test_replicas_fill_each_others_holes(tmp_path: Path) -> None:
    batches = [ten(first) for first in range(0, 60, 10)]
    one = place(tmp_path / "a", "t-0", batches[0], broken(batches[1]), batches[2], *batches[3:])
    other = place(tmp_path / "b", "t-0", batches[0], batches[1], b"junk" * 40, batches[3], batches[4])
    run = Run(tmp_path / "out", one, replicas=[str(other)])
    assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(batches)
    assert (run.holes, run.only.is_whole) == ([], True)
    assert run.only.batches[DUPLICATE] == 3
    assert {span["fate"] for span in run.lost()} == {DAMAGED}
    run = Run(tmp_path / "round", other, replicas=[str(one)])
    assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(batches)


def test_the_higher_leader_epoch_is_followed(tmp_path: Path) -> None:
    one, other = FIXTURES / "diverged-1" / "ledger-0", FIXTURES / "diverged-2" / "ledger-0"
    for number, (first, second) in enumerate(((one, other), (other, one))):
        run = Run(tmp_path / str(number), first, replicas=[str(second)])
        assert run.only.sources[0] == str(other)
        assert (run.out / "ledger-0" / FIRST).read_bytes() == (other / FIRST).read_bytes()
        (span,) = run.lost()
        assert (span["fate"], span["offset"], span["records"]) == (DIVERGED, 50, 20)
    run = Run(tmp_path / "preferred", other, replicas=[str(one)], prefer=str(one))
    assert (run.out / "ledger-0" / FIRST).read_bytes() == (one / FIRST).read_bytes()
    assert [span["records"] for span in run.lost()] == [15]


def test_a_hole_is_not_filled_from_another_history(tmp_path: Path) -> None:
    """The reference copy is damaged just where the other copy diverged: only the epochs can tell."""
    one = place(tmp_path / "a", "t-0", ten(0), broken(ten(10, 2)), ten(20, 2))
    epoch_file(one, (0, 0), (2, 10))
    other = place(tmp_path / "b", "t-0", ten(0), ten(10, text="other"))
    run = Run(tmp_path / "out", other, replicas=[str(one)])
    assert run.only.sources[0] == str(one)
    assert run.offsets() == {*range(10), *range(20, 30)}
    assert run.only.batches == {"kept": 2, DUPLICATE: 1, DAMAGED: 1, DIVERGED: 1}
    assert run.holes == [(10, 19)]
    assert (run.out / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n2 10\n"


def test_where_nothing_decides_it_stops(tmp_path: Path) -> None:
    one = place(tmp_path / "a", "t-0", ten(0), ten(10), ten(20))
    other = place(tmp_path / "b", "t-0", ten(0), ten(10, text="other"), ten(20))
    run = Run(tmp_path / "out", one, replicas=[str(other)])
    assert (run.offsets(), run.only.stop) == (set(range(10)), 10)
    assert run.only.batches[UNDECIDED] == 4
    assert "--prefer" in run.only.notes[0]
    for path, text in ((one, b"v-11"), (other, b"other-11")):
        run = Run(tmp_path / text.decode(), one, replicas=[str(other)], prefer=str(path))
        assert run.offsets() == set(range(30))
        assert text in (run.out / "t-0" / FIRST).read_bytes()


def test_fillers_that_disagree(tmp_path: Path) -> None:
    """Neither is used, and the reference copy continues."""
    one = place(tmp_path / "a", "t-0", ten(0, 1), broken(ten(10, 1)), ten(20, 1))
    others = [place(tmp_path / text, "t-0", ten(0, 1), ten(10, 1, text), ten(20, 1)) for text in ("x", "y")]
    run = Run(tmp_path / "out", one, replicas=[str(path) for path in others])
    assert (run.offsets(), run.only.stop) == ({*range(10), *range(20, 30)}, None)
    assert run.holes == [(10, 19)]
    run = Run(tmp_path / "preferred", one, replicas=[str(path) for path in others], prefer=str(others[0]))
    assert run.offsets() == set(range(30))


def test_three_replicas(tmp_path: Path) -> None:
    batches = [ten(first) for first in range(0, 40, 10)]
    paths = []
    for number in range(3):
        mine = [broken(each) if index == number else each for index, each in enumerate(batches)]
        paths.append(place(tmp_path / str(number), "t-0", *mine))
    run = Run(tmp_path / "out", paths[0], replicas=[str(path) for path in paths[1:]])
    assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(batches)


def test_two_partitions_are_never_taken_for_one(tmp_path: Path) -> None:
    one = place(tmp_path / "a", "t-0", ten(0))
    other = place(tmp_path / "b", "t-0", ten(0))
    third = place(tmp_path / "b", "t-1", ten(0))
    nameless = place(tmp_path / "c", "copy", ten(0), ten(10))
    out = tmp_path / "out"

    def refuses(words: str, *sources: Path, **wishes: Any) -> None:
        with pytest.raises(kdump.SalvageError, match=words):
            kdump.salvage([str(path) for path in sources], str(out), **wishes)
        assert not out.exists()

    refuses("replicas of one partition", one, other)
    refuses("not one of the partitions", one, replicas=[str(third)])
    refuses("--name", nameless)
    refuses("not of the form TOPIC-PARTITION", nameless, name="copy")
    refuses("given twice", one, replicas=[str(one)])
    refuses("not one of the sources", one, prefer=str(third))
    for path, name in ((one, "C" * 22), (other, "B" * 22)):
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {name}\n")
    refuses("two topics with the same name", one, replicas=[str(other)])
    run = Run(out, nameless, name="t-3")
    assert run.only.files == [f"t-3/{FIRST}"]
    run = Run(tmp_path / "filled", one, replicas=[str(nameless)])
    assert run.offsets() == set(range(20))


# --- Records out of damaged batches -----------------------------------------------------------------------------------


@each_case("codec", craft.CODECS)
def test_records_of_damaged_batches(codec: str, tmp_path: Path) -> None:
    """Several bytes are wrong: the records that decode are kept, up to the first that does not."""
    records = [craft.record(delta, b"key", bytes(range(200)) * 20) for delta in range(100)]
    damaged = bytearray(craft.batch(records, codec, offset=10))
    damaged[17:19] = bytes(byte ^ 0xFF for byte in damaged[17:19])
    if codec == "none":
        at = len(damaged) // 2
        damaged[at : at + 5000] = b"\xff" * 5000
    source = place(tmp_path, "t-0", ten(0), bytes(damaged), ten(110))
    assert Run(tmp_path / "plain", source).offsets() == {*range(10), *range(110, 120)}
    run = Run(tmp_path / "out", source, damaged_records=True)
    found = run.offsets() - {*range(10), *range(110, 120)}
    assert found == (set(range(10, 110)) if codec != "none" else set(range(10, 10 + len(found))))
    assert len(found) > 40
    (span,) = [each for each in run.spans if each["fate"] == RECOVERED]
    assert (span["records"], span["code"], run.only.is_whole) == (len(found), "crc-mismatch", False)
    values = {record.value for record in kdump.open(str(run.out / "t-0")).records() if 10 <= (record.offset or 0) < 50}
    assert values == {bytes(range(200)) * 20}


def test_one_flipped_bit_is_put_right(tmp_path: Path) -> None:
    batches = [ten(0), ten(10), ten(20)]
    for bit in (17 * 8, 21 * 8 + 15, 30 * 8 + 3, 100 * 8):
        source = place(tmp_path / str(bit), "t-0", batches[0], craft.flip(batches[1], bit), batches[2])
        run = Run(tmp_path / str(bit) / "out", source, damaged_records=True)
        assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(batches)
        assert run.only.batches == {"kept": 2, RECOVERED: 1}
        (span,) = [each for each in run.spans if each["fate"] == RECOVERED]
        assert span["reason"] == f"10 of 10 records, {CORRECTED_BIT}"


def test_one_flipped_bit_in_a_wrapper_whose_offset_is_wrong(tmp_path: Path) -> None:
    """A broker goes by the offset of a wrapper of magic 0, which no checksum covers; consumers by those inside."""
    wrappers = [
        craft.wrapper(0, [craft.message(0, b"v%d" % n, offset=n) for n in range(at, at + 4)], offset=at + 3)
        for at in (0, 4)
    ]
    hurt = craft.flip(craft.overwrite(wrappers[0], 6, b"\x02"), 30 * 8)
    run = Run(tmp_path / "out", place(tmp_path, "t-0", hurt, wrappers[1]), damaged_records=True)
    assert (run.out / "t-0" / FIRST).read_bytes() == b"".join(wrappers)
    (span,) = [each for each in run.spans if each["fate"] == RECOVERED]
    assert span["reason"] == f"4 of 4 records, {CORRECTED_BIT}, offset corrected"


@each_case("magic", [0, 1])
def test_messages_of_a_damaged_wrapper(magic: int, tmp_path: Path) -> None:
    """Each message inside has its own checksum; those whose checksum matches are kept."""
    inner = [craft.message(magic, b"value-%d" % n, offset=n if magic else 5 + n) for n in range(4)]
    inner[2] = inner[2][:-3] + b"###"
    damaged = bytearray(craft.wrapper(magic, inner, offset=8))
    damaged[12:14] = bytes(byte ^ 0xFF for byte in damaged[12:14])
    lone = [craft.message(magic, b"x", offset=n) for n in range(5)]
    source = place(tmp_path, "t-0", *lone, bytes(damaged), craft.message(magic, b"y", offset=9))
    run = Run(tmp_path / "out", source, damaged_records=True)
    assert run.offsets() == {0, 1, 2, 3, 4, 5, 6, 8, 9}
    (span,) = [each for each in run.spans if each["fate"] == RECOVERED]
    assert (span["records"], span["reason"]) == (3, "3 of 4 records")


@each_case(
    "base, order",
    [(TOP - 9, (0, 1, 2)), (TOP - 8, (0, 2, 1)), (TOP, (2, 0, 1)), (-TOP - 1, (0, 2, 1)), (-5, (2, 0, 1))],
)
def test_offsets_at_the_edge_of_64_bits_are_as_stored(base: int, order: tuple[int, ...], tmp_path: Path) -> None:
    """The ledger has each offset of a header as it is stored, and null where the last offset does not exist, with the
    reason. (`make test-all` runs this with the plain core, too.)"""
    parts = [ten(0), ten(20), craft.rebase(ten(0), base)]
    run = Run(tmp_path / "out", place(tmp_path, "t-0", *(parts[number] for number in order)))
    at = sum(len(parts[number]) for number in order[: order.index(2)])
    (span,) = [each for each in run.spans if each["position"] <= at < each["position"] + each["size"]]
    assert span["offset"] == base
    assert span["lastOffset"] == (base + 9 if base + 9 <= TOP else None)
    assert (span["fate"], span["reason"]) == ((KEPT, "") if base == TOP - 9 else (DAMAGED, OFFSETS.reason))
    assert all(last is None or last <= TOP for _, last in run.holes)


def test_guesses_from_numbers_that_cannot_be(tmp_path: Path) -> None:
    """Damaged offsets and timestamps that exceed 64 bits give no recovered record, and no traceback."""
    top = TOP
    late = [craft.record(0, b"k", b"v" * 8), craft.record(1, b"k", b"v" * 8, timestamp=1 << 40)]
    inner = [craft.message(1, b"a", offset=0), craft.message(1, b"b", offset=1)]
    damaged = {
        "v2": broken(craft.batch(late, offset=10, baseTimestamp=top - 5, maxTimestamp=top)),
        "v1": craft.overwrite(craft.wrapper(1, inner, offset=-5), 12, b"####"),
        "v0": craft.overwrite(craft.message(0, b"v" * 8, offset=-5), 12, b"####"),
    }
    for name, odd in damaged.items():
        run = Run(tmp_path / name / "out", place(tmp_path / name, "t-0", odd), damaged_records=True)
        assert [span["fate"] for span in run.spans] == [RECOVERED if name == "v2" else DAMAGED]
        assert run.only.records.get(RECOVERED, 0) == (name == "v2")  # the first of two
        assert not run.only.is_whole


def test_a_sound_copy_is_better_than_a_guess(tmp_path: Path) -> None:
    one = place(tmp_path / "a", "t-0", ten(0), broken(ten(10)), ten(20))
    other = place(tmp_path / "b", "t-0", ten(0), ten(10))
    run = Run(tmp_path / "out", one, replicas=[str(other)], damaged_records=True)
    assert (run.out / "t-0" / FIRST).read_bytes() == b"".join((ten(0), ten(10), ten(20)))
    assert RECOVERED not in run.only.batches


# --- Transactions -----------------------------------------------------------------------------------------------------


def test_a_lost_marker_leaves_a_transaction_open(tmp_path: Path) -> None:
    source = shutil.copytree(FIXTURES / "crash-1" / "payments-0", tmp_path / "payments-0")
    sound = Run(tmp_path / "sound", source).only
    assert [(each.firstOffset, each.lost) for each in sound.openTransactions] == [(114, False)]
    batches = craft.split((source / FIRST).read_bytes())
    marker = next(n for n, each in enumerate(batches) if BATCH_HEADER.read(each).isControlBatch)
    batches[marker] = broken(batches[marker])
    (source / FIRST).write_bytes(b"".join(batches))
    made = Run(tmp_path / "out", source, damaged_records=True).only  # a marker is never recovered from damage
    assert (made.lostPlaces, made.batches[DAMAGED], made.batches.get(RECOVERED)) == (1, 1, None)
    assert any(each.lost for each in made.openTransactions) or made.doubtfulTransactions


def test_a_marker_lost_for_good(tmp_path: Path) -> None:
    who = {"producerId": 7, "producerEpoch": 0}
    data = ten(0, baseSequence=0, attributes=16, **who)
    after = ten(11)
    source = place(tmp_path, "t-0", data, b"\xff" * 78, after)
    made = Run(tmp_path / "out", source).only
    (open_,) = made.openTransactions
    assert (open_.producerId, open_.firstOffset, open_.lost, made.lastStableOffset) == (7, 0, True, 0)


def test_a_marker_that_may_decide_over_two_transactions(tmp_path: Path) -> None:
    who = {"producerId": 7, "producerEpoch": 0}
    data = [ten(first, baseSequence=first, attributes=16, **who) for first in (0, 11)]
    abort = craft.batch([craft.record(0, b"\0\0\0\0", b"\0\0\0\0\0\0")], offset=21, attributes=48, **who)
    source = place(tmp_path, "t-0", data[0], b"\xff" * 78, data[1], abort)
    made = Run(tmp_path / "out", source).only
    assert [tuple(each) for each in made.doubtfulTransactions] == [(7, 0, 0, 21, "ABORT")]
    assert made.openTransactions == []
    assert Run(tmp_path / "sound", place(tmp_path / "s", "t-0", *data, abort)).only.doubtfulTransactions == []


def test_what_a_replica_filled_leaves_no_doubt(tmp_path: Path) -> None:
    sound = FIXTURES / "crash-1" / "payments-0"
    source = shutil.copytree(sound, tmp_path / "payments-0")
    batches = craft.split((source / FIRST).read_bytes())
    (source / FIRST).write_bytes(b"".join(each if n % 4 else broken(each) for n, each in enumerate(batches)))
    alone = Run(tmp_path / "alone", source).only
    assert alone.doubtfulTransactions
    made = Run(tmp_path / "out", source, replicas=[str(sound)]).only
    assert (made.doubtfulTransactions, [each.lost for each in made.openTransactions]) == ([], [False])
    assert made.is_whole


def test_what_a_broker_would_not_load_is_left_out(tmp_path: Path) -> None:
    """Data outside the open transaction of its producer: recovery of the log would fail there."""
    who = {"producerId": 7, "producerEpoch": 0}
    data = ten(0, baseSequence=0, attributes=16, **who)
    run = Run(tmp_path / "out", place(tmp_path, "t-0", data, ten(10, baseSequence=10, **who), ten(20)))
    assert run.only.batches == {"kept": 2, UNTAKEN: 1}
    assert run.holes == [(10, 19)]


# --- The shape of what is written -------------------------------------------------------------------------------------


def test_boundaries_and_reach(tmp_path: Path) -> None:
    """The name of a segment may be below its first batch; offsets beyond 31 bits of it start another segment."""
    source = place(tmp_path, "t-0", broken(ten(0)), ten(10))
    place(tmp_path, "t-0", ten(20), base=20)
    far = 20 + (1 << 31)
    with (source / f"{20:020}.log").open("ab") as file:
        file.write(ten(far))
    run = Run(tmp_path / "out", source)
    assert run.only.files == [f"t-0/{base:020}.log" for base in (0, 20, far)]


def test_nothing_that_is_not_whole_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kdump.questions.salvage import write_segments

    def fails(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source = place(tmp_path, "t-0", ten(0))
    monkeypatch.setattr(write_segments, "write_batch", fails)
    with pytest.raises(kdump.OutputError) as caught:
        kdump.salvage(str(source), str(tmp_path / "out"))
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert list((tmp_path / "out").rglob("*")) == []


def test_large_batches_and_small_windows(tmp_path: Path) -> None:
    """The output has the same bytes with every window."""
    source = FIXTURES / "clean-1" / "orders-none-0"
    for size in (4096, 1 << 20):
        run = Run(tmp_path / str(size), source, options=kdump.Options(window=size))
        assert (run.out / "orders-none-0" / FIRST).read_bytes() == (source / FIRST).read_bytes()


def test_bad_sectors(tmp_path: Path) -> None:
    """Unreadable bytes are reported, and what follows them is kept; a replica fills the gap."""

    class Failing(FaultTolerantSource):
        def _pread(self, count: int, position: int) -> bytes:
            if position // BLOCK <= 2 < -(-(position + count) // BLOCK) and self.name.startswith(str(tmp_path / "bad")):
                raise OSError(errno.EIO, "Input/output error")
            return super()._pread(count, position)

    def failing(path: str) -> Source:
        found = open_source(path)
        assert isinstance(found, FileSource)
        return Failing(path, found.fd)

    source = FIXTURES / "clean-1" / "orders-none-0"
    shutil.copytree(source, tmp_path / "bad" / "orders-none-0")
    options = kdump.Options(open_source=failing)
    run = Run(tmp_path / "out", tmp_path / "bad" / "orders-none-0", options=options)
    assert [span["fate"] for span in run.lost()] == [UNREAD, UNREAD, DAMAGED]  # the last one has lost its header
    assert 2 * BLOCK in numbers_in(run.lost()[0]["reason"])
    assert (run.holes, run.only.records["kept"]) == ([(60, 179)], 180)
    run = Run(tmp_path / "both", tmp_path / "bad" / "orders-none-0", options=options, replicas=[str(source)])
    assert (run.out / "orders-none-0" / FIRST).read_bytes() == (source / FIRST).read_bytes()


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A live broker may truncate it: no incomplete batch is written."""
    from kdump.questions.salvage import write_segments

    large = craft.one(bytes(3 << 20))
    source = place(tmp_path, "t-0", large, craft.one(b"x", offset=1))
    write = write_segments.write_batch

    def cuts(file: Any, batch: Any) -> int:
        (source / FIRST).write_bytes(large[:100_000])
        return write(file, batch)

    monkeypatch.setattr(write_segments, "write_batch", cuts)
    with pytest.raises(kdump.SourceError, match=re.escape(str(source / FIRST))):
        kdump.salvage(str(source), str(tmp_path / "out"))
    assert list((tmp_path / "out").rglob("*")) == []


@pytest.mark.parametrize("order", [range(30), (0, 2, 1, *range(3, 30))], ids=["in order", "out of order"])
@pytest.mark.parametrize("reads", [1, 2, 3, 6])
def test_a_file_that_is_cut_between_two_reads(
    order: Any, reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is gone counts as unread, in whichever pass, and the log is not called whole."""
    source = place(tmp_path, "t-0", *(ten(number * 10, text="v" * 20_000) for number in order))
    size, real, left = (source / FIRST).stat().st_size, FileSource.read_at, reads

    def cuts(self: FileSource, position: int, count: int) -> bytes:
        nonlocal left
        left -= self.name == str(source / FIRST)
        if not left:
            os.truncate(source / FIRST, size // 3)
        return real(self, position, count)

    monkeypatch.setattr(FileSource, "read_at", cuts)
    (made,) = kdump.salvage(str(source), str(tmp_path / "out"))
    assert (source / FIRST).stat().st_size < size
    assert f"{source / FIRST}: changed while being read" in made.notes
    assert not made.is_whole
    assert made.bytes[UNREAD] > 0
    assert sum(made.bytes.values()) == size


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    """It is one region of lost bytes, and its neighbors are kept."""

    def refusing(path: str) -> Source:
        if path.endswith(f"{10:020}.log"):
            raise kdump.SourceError(f"{path}: Permission denied")
        return open_source(path)

    source = place(tmp_path, "t-0", ten(0))
    place(tmp_path, "t-0", ten(10), base=10)
    place(tmp_path, "t-0", ten(20), base=20)
    run = Run(tmp_path / "out", source, options=kdump.Options(open_source=refusing))
    assert [(span["fate"], span["size"]) for span in run.lost()] == [(UNREAD, len(ten(10)))]
    assert (run.holes, run.only.is_whole) == ([(10, 19)], False)


def test_a_full_disk_says_what_stands_without_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    for name in ("a-0", "b-0"):
        place(disk, name, ten(0))
    write = OutputDirectory.write

    def full(self: OutputDirectory, name: str, data: bytes) -> None:
        if name.startswith("b-0"):
            raise OutputError(f"{name}: cannot be written: No space left on device")
        write(self, name, data)

    monkeypatch.setattr(OutputDirectory, "write", full)
    with pytest.raises(OutputError) as caught:
        kdump.salvage(str(disk), str(tmp_path / "out"))
    assert isinstance(caught.value.__cause__, OutputError)
    assert str(caught.value).startswith(str(caught.value.__cause__))
    said = str(caught.value).removeprefix(str(caught.value.__cause__))
    assert numbers_in(said)[:2] == [1, 2]  # partitions that were written, and all
    assert str(tmp_path / "out") in said
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a-0"]


def test_what_a_broker_set_aside_is_named(tmp_path: Path) -> None:
    place(tmp_path / "disk", "a-0", ten(0))
    stray = place(tmp_path / "disk", f"b-0.{'0' * 32}-stray", ten(0))
    told: list[str] = []
    made = kdump.salvage(
        str(tmp_path / "disk"),
        str(tmp_path / "out"),
        options=kdump.Run(unreadable=lambda error: told.append(str(error))),
    )
    assert [each.name for each in made] == ["a-0"]
    assert len(told) == 1
    assert str(stray) in told[0]
    assert Run(tmp_path / "stray", stray).only.name == "b-0"


def test_bad_sectors_are_read_around_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = kdump.questions.salvage.run.careful_source  # type: ignore[attr-defined]
    monkeypatch.setattr("kdump.questions.salvage.run.careful_source", lambda path: opened.append(path) or real(path))
    source = place(tmp_path, "t-0", ten(0))
    kdump.salvage(str(source), str(tmp_path / "out"))
    assert opened


def test_offsets_beyond_a_long_may_be_lost() -> None:
    """A header claims offsets up to the largest number: no offset above it is read, and no offset below it is
    included."""
    losses = LostOffsets()
    losses.add(2**63 - 4, 2**63 + 8)
    assert losses.claims(2**63 - 1, 2**63 - 1)
    assert not losses.claims(0, 2**63 - 5)


@each_case("name", NAMES)
def test_a_file_whose_name_is_not_a_segments(name: str, tmp_path: Path) -> None:
    """Its batches are read wherever a segment lacks them, and a note names it; what has no batch is named, too."""
    path = place(tmp_path, "t-0", ten(0), ten(10))
    place(tmp_path, "t-0", ten(30), base=30)
    misnamed = craft.write_file(path / name.format(base=20, number=1), ten(20) + ten(0, text="other"))
    (path / "README").write_bytes(b"copied on Monday")
    run = Run(tmp_path / "out", path)
    assert (run.offsets(), run.holes) == (set(range(40)), [])
    assert run.fates() == {KEPT: 4, CONTRADICTS: 1}
    assert any(str(misnamed) in note for note in run.only.notes)
    assert any(note.endswith(": README") for note in run.only.notes)


def test_a_partition_of_which_no_segment_has_its_name(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    craft.write_file(path / "0.log", ten(0))
    (path / "orders.bak").write_bytes(ten(10))
    assert Run(tmp_path / "out", path).offsets() == set(range(20))


def test_two_files_of_one_base_offset(tmp_path: Path) -> None:
    path = place(tmp_path, "t-0", ten(0))
    (path / f"{FIRST}.gz").write_bytes(gzip.compress(ten(10)))
    (made,) = kdump.salvage([str(path)], str(tmp_path / "out"))
    assert (offsets(tmp_path / "out" / "t-0"), made.is_whole) == (set(range(20)), True)
