"""Compares kdump.questions.diff.run with a naive implementation that keeps every record of both copies in a dict."""

from __future__ import annotations

import functools
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.format.batch_header import BATCH_HEADER
from kdump.io.hash_key import read_hash_key
from kdump.io.run import QUIET_RUN, Limits
from kdump.log.batch_records import records
from kdump.log.region import PADDING, TORN, Batch
from kdump.questions.bundle.run import _BundleWriter, bundle
from kdump.questions.diff.compare_copies import compare
from kdump.questions.diff.differences import CLEANED, DIVERGENT, WITHHELD
from kdump.questions.diff.run import LITTLE, Diff, diff
from tests import craft
from tests.conftest import DISKS, FIXTURES, covering, examples, iter_regions, kinds_of, numbers_in, sample, seeded
from tests.each_case import each_case
from tests.questions.bundle.test_command import in_place_of
from tests.test_damaged_disks import DAMAGES

KAFKA = DISKS / "kafka-4.3"
OF_ONE_CLUSTER = ("clean-1", "clean-2", "crash-1", "live-1", "diverged-1", "diverged-2")
FIRST = f"{0:020}.log"
LEDGER = FIXTURES / "diverged-1" / "ledger-0" / FIRST


class Naive:
    """One copy, read completely."""

    def __init__(self, directory: Path) -> None:
        self.records: dict[int, tuple[Any, ...]] = {}
        self.end = 0
        self.has_gaps = self.is_damaged = False
        self.tail = ""
        self.start = 0
        files = sorted(directory.glob("*.log")) if directory.is_dir() else [directory]
        for number, path in enumerate(files):
            name = path.stem
            if name.isdigit():
                self.start = int(name) if number == 0 else self.start
                self.end = max(self.end, int(name))
            for region in iter_regions(path):
                self.tail = "" if isinstance(region, Batch) and region.crcValid else region.kind
                if not isinstance(region, Batch) or not region.crcValid or region.problems:
                    self.is_damaged = True
                    continue
                found = list(records(region))
                if len(found) < region.lastOffset - (region.baseOffset or 0) + 1 or region.hasDeleteHorizonMs:
                    self.has_gaps = True
                for record in found:
                    assert record.offset is not None
                    content = (
                        -1 if record.timestamp is None else record.timestamp,
                        record.key,
                        record.value,
                        record.headers,
                        -1 if region.producerId is None else region.producerId,
                    )
                    self.records.setdefault(record.offset, content)  # the first one counts
                self.end = max(self.end, region.lastOffset + 1)


naive = functools.cache(Naive)
"""One copy of the corpus or of the fixtures, which do not change."""


def twin(one: Naive, other: Naive, log_start: int = 0) -> tuple[str | None, int | None]:
    """Return relation and firstDivergentOffset, for copies without damage."""
    low = max(one.start, other.start, log_start)
    high = min(one.end, other.end)
    for offset in range(low, high):
        mine, theirs = one.records.get(offset), other.records.get(offset)
        if mine is not None and theirs is not None and mine != theirs:
            return "divergent", offset
        if mine is None and theirs is not None and not one.has_gaps:
            return "divergent", offset
        if theirs is None and mine is not None and not other.has_gaps:
            return "divergent", offset
    return ("same" if one.end == other.end else "prefix"), None


def only(*paths: Path, bundled: bool = True, **options: Any) -> Diff:
    """Return the answer about these copies. `bundled`: check that with some of them, or all, in a bundle it is the
    same."""
    (found,) = diff(map(str, paths), Options(only=LITTLE, **options))
    states_what_a_follower_truncates(found)
    if bundled and all(path.is_dir() for path in paths):
        for key in (None, KEY):
            for answer in from_bundles(paths, Options(only=LITTLE, **options), key):
                agrees(found, answer, hashed=key is not None)
    return found


def states_what_a_follower_truncates(found: Diff) -> None:
    """Check that two copies diverge, at the latest, where one truncates what both have because of its leader epochs."""
    for choice in found.choices:
        pair = tuple(sorted((choice.leader, choice.follower)))
        end = min(found.copies[number].logEndOffset or 0 for number in pair)
        if choice.does.by == "epochs" and choice.does.offset is not None and choice.does.offset < end:
            compared = found.pairs[pair[0], pair[1]]
            assert found.relation == compared.relation == DIVERGENT
            assert compared.first is not None
            assert compared.first.first <= choice.does.offset


KEY = b"sixteen bytes or more"


def from_bundles(paths: tuple[Path, ...], options: Options, key: bytes | None) -> Iterator[Diff]:
    """Yield the answers with all of the copies in a bundle, and with only the first one. `key`: with hashes of all
    records."""
    with tempfile.TemporaryDirectory() as temporary, pytest.MonkeyPatch.context() as patch:
        secret = Path(temporary) / "key"
        secret.write_bytes(KEY)
        patch.setattr(_BundleWriter, "_known", lambda self, path: PartitionContext(compacted=True))
        bundles = {path: Path(temporary) / str(number) / "out" for number, path in enumerate(dict.fromkeys(paths))}
        for path, out in bundles.items():
            out.parent.mkdir()
            bundle([str(path)], out=str(out), hash_key=key and str(secret), run=QUIET_RUN)
        for packed in (bundles, paths[:1]):
            with ExitStack() as stack:
                for path in packed:
                    stack.enter_context(in_place_of(path, bundles[path]))
                (found,) = diff(map(str, paths), options, hash_key=key and read_hash_key(str(secret)))
            yield found


def agrees(disk: Diff, bundle: Diff, *, hashed: bool = False) -> None:
    """Check that the answer from a bundle is that of the disk, or says what it does not know. `hashed`: with hashes of
    all records, it knows what the disk knows, apart from damage, and whether the log cleaner removed records: there are
    no hashes of keys."""
    is_cleaned = any(each.kind == CLEANED for pair in disk.pairs.values() for each in pair.differences)
    if hashed and not is_cleaned and not any(copy.damaged or copy.unread for copy in disk.copies):
        assert (bundle.relation, bundle.firstDivergentOffset, bundle.cause) == (
            disk.relation,
            disk.firstDivergentOffset,
            disk.cause,
        )
    kinds = [{each.kind for each in pair.differences} for pair in bundle.pairs.values()]
    unknown = any(WITHHELD in each for each in kinds)
    for mine, theirs in zip(disk.copies, bundle.copies):
        left_out = ("copy", "notes", "damages", "damaged", "tail", "unread", "lacks")
        assert bool(mine.unread) == bool(theirs.unread)
        assert {name: value for name, value in vars(mine).items() if name not in left_out} == {
            name: value for name, value in vars(theirs).items() if name not in left_out
        }
    if bundle.relation is None and unknown:
        return
    assert bundle.relation == disk.relation
    if not unknown:
        # Of batches that are not compressed, a bundle may only know that some record differs: it states the first one.
        batches = {batch.baseOffset for batch in map(disk.batch_at, range(len(disk.copies))) if batch}
        assert bundle.firstDivergentOffset in {disk.firstDivergentOffset, *batches}
        assert bundle.cause == disk.cause
    assert None not in (bundle.firstDivergentOffset, disk.firstDivergentOffset) or bundle.relation != DIVERGENT


LARGE = 1 << 20
"""Partitions with more bytes take long, because the naive implementation decodes every record in Python."""


def pairs(*, large: bool) -> Iterator[Any]:
    for one, other in combinations(OF_ONE_CLUSTER, 2):
        for path in sorted((KAFKA / one).iterdir()):
            there = KAFKA / other / path.name
            if path.is_dir() and any(path.glob("*.log")) and there.is_dir():
                size = sum(file.stat().st_size for file in there.glob("*.log"))
                if (size > LARGE) == large:
                    yield pytest.param(path, there, id=f"{one}-{other}-{path.name}")


PAIRS = covering(pairs(large=False), 48, lambda pair: [pair.values[0].name.partition("-")[0]], "pairs")
BUNDLED_PAIRS = [[*pair.values] for pair in sample(PAIRS, 8, "bundled pairs")]


@pytest.mark.sampled
@each_case("one, other", PAIRS)
def test_disks_of_one_cluster(one: Path, other: Path) -> None:
    check_disks_of_one_cluster(one, other, bundled=[one, other] in BUNDLED_PAIRS)


@pytest.mark.every_disk
@pytest.mark.parametrize(("one", "other"), pairs(large=True))
def test_large_disks_of_one_cluster(one: Path, other: Path) -> None:
    check_disks_of_one_cluster(one, other)


def check_disks_of_one_cluster(one: Path, other: Path, *, bundled: bool = True) -> None:
    found = only(one, other, bundled=bundled)
    mine, theirs = naive(one), naive(other)
    start = max(copy.logStartOffset for copy in found.copies)
    assert (found.relation, found.firstDivergentOffset) == twin(mine, theirs, start)
    assert [copy.logEndOffset for copy in found.copies] == [mine.end, theirs.end]
    assert found.is_read
    assert not any(copy.damaged for copy in found.copies)


def test_the_two_replicas_after_an_unclean_election() -> None:
    """They diverge at 50: the second was elected in epoch 2 with 50 records, and the first had 20 more of epoch 0."""
    found = only(KAFKA / "diverged-1" / "ledger-0", KAFKA / "diverged-2" / "ledger-0")
    assert (found.relation, found.firstDivergentOffset, found.cause) == ("divergent", 50, "records")
    assert [found.batch_at(number).leaderEpoch for number in (0, 1)] == [0, 2]  # type: ignore[union-attr]
    assert [copy.checkpoint_epoch(50) for copy in found.copies] == [0, 2]
    assert [found.tail(number).records for number in (0, 1)] == [20, 15]  # type: ignore[union-attr]
    does = {(each.leader, each.follower): each.does for each in found.choices}
    assert {pair: (each.offset, each.loses, each.by) for pair, each in does.items()} == {
        (1, 0): (50, 20, "epochs"),
        (0, 1): (50, 15, "epochs"),
    }
    assert all(each.mends for each in found.choices)


@pytest.mark.every_disk
@pytest.mark.parametrize("window", [1 << 20, 4096])
def test_a_copy_is_the_same(window: int) -> None:
    partitions = sorted(path for path in FIXTURES.glob("*/*-0") if any(path.glob("*.log")))
    directories = covering(partitions, 12, lambda path: kinds_of(min(path.glob("*.log"))), window)
    few = sample(directories, 7, "bundled")
    for directory in directories:
        bundled = window > 4096 and directory in few
        found = only(directory, directory, bundled=bundled, window=window)
        assert (found.relation, found.firstDivergentOffset) == ("same", None), directory
        assert found.pairs[(0, 1)].alike == len(naive(directory).records), directory


def copy_of(data: bytes, directory: Path, name: str = FIRST) -> Path:
    craft.write_file(directory / name, data)
    return directory


@pytest.mark.sampled
def test_a_truncated_copy_is_a_prefix(tmp_path: Path) -> None:
    """Truncated at any byte, the copy is never divergent, and its length is that of its complete batches."""
    data = LEDGER.read_bytes()
    parts = craft.split(data)
    ends = [sum(map(len, parts[: number + 1])) for number in range(len(parts))]
    offsets = [int.from_bytes(part[:8], "big") + int.from_bytes(part[23:27], "big") + 1 for part in parts]
    whole = copy_of(data, tmp_path / "whole-0")
    bundled = {*sample(range(len(data)), 500, "bundled cuts"), ends[0] - 1, ends[0], ends[0] + 1}
    for size in sorted({*sample(range(len(data)), 19, "cuts"), *ends[:-1], *bundled}):
        found = only(whole, copy_of(data[:size], tmp_path / "cut-0"), bundled=size in bundled)
        kept = sum(end <= size for end in ends)
        assert (found.relation, found.firstDivergentOffset) == ("prefix", None), size
        assert found.pairs[(0, 1)].shorter == 1
        assert found.copies[1].logEndOffset == (offsets[kept - 1] if kept else 0), size
        assert bool(found.copies[1].tail) == (size not in (0, *ends)), size


@pytest.mark.sampled
def test_every_byte_changed(tmp_path: Path) -> None:
    """A changed byte that a checksum covers makes the copies diverge at the first offset of its batch, and so does one
    in a base offset or a length. Only the leader epoch may differ."""
    data = LEDGER.read_bytes()
    parts = craft.split(data)
    whole = copy_of(data, tmp_path / "whole-0")
    position = 0
    for number, part in enumerate(parts):
        base = int.from_bytes(part[:8], "big")
        inside_it = range(0, len(part), 1 if number < 2 else 7)
        bundled = {*sample(inside_it, 500, number), *(() if number else BATCH_HEADER.positions.values())}
        for inside in sorted({*sample(inside_it, 15, number), *bundled}):
            changed = bytearray(data)
            changed[position + inside] ^= 0x10
            found = only(whole, copy_of(bytes(changed), tmp_path / "changed-0"), bundled=inside in bundled)
            if 12 <= inside < 16:
                assert (found.relation, found.firstDivergentOffset) == ("same", None), (number, inside)
                assert [each.kind for each in found.pairs[(0, 1)].differences] == ["leaderEpoch"]
                continue
            last = number == len(parts) - 1
            if last and found.relation == "prefix":
                # Truncated, or the length is too large: nothing is left at this position.
                assert inside < 12 or inside == 16, inside
                continue
            assert (found.relation, found.firstDivergentOffset) == ("divergent", base), (number, inside)
        position += len(part)


@pytest.mark.sampled
@pytest.mark.parametrize("damage", sample(DAMAGES, 7, "test_damaged_copies"), ids=lambda damage: damage.__name__)
def test_damaged_copies(damage: Callable[[bytearray, random.Random], None], tmp_path: Path) -> None:
    """Compared with the original, each loss is found at the first record that can no longer be read, and never taken
    for compaction."""
    directories = sorted(path for path in FIXTURES.glob("*/*-0") if any(path.glob("*.log")))
    for directory in sample(directories, 15, damage.__name__):
        dice = seeded(f"{damage.__name__} {directory.relative_to(FIXTURES)}")
        original = next(iter(sorted(directory.glob("*.log"))))
        data = bytearray(original.read_bytes())
        if not data:
            continue
        damage(data, dice)
        changed = copy_of(bytes(data), tmp_path / directory.parent.name / directory.name, original.name)
        found = only(original, changed / original.name)
        mine, theirs = naive(original), Naive(changed)
        lost = min(
            (offset for offset, record in mine.records.items() if theirs.records.get(offset) != record), default=None
        )
        low = found.copies[0].logStartOffset
        if mine.has_gaps and not theirs.is_damaged:
            continue  # bytes of the size of an empty batch were removed: no checksum covers the next position
        if lost is None:
            assert found.firstDivergentOffset is None, directory
        elif found.relation == "prefix":
            assert theirs.tail in (TORN, PADDING, ""), directory
            assert all(offset < found.copies[1].logEndOffset for offset in theirs.records)
            assert found.copies[1].logEndOffset <= min(o for o in mine.records if o not in theirs.records)
        elif lost >= low:
            assert found.firstDivergentOffset == lost, (directory, damage)
            if not mine.has_gaps:
                # No checksum covers baseOffset: a batch with another one is valid, and its records are elsewhere.
                moved = ["records"] * (lost in theirs.records)
                assert found.cause in ("damage", "missing", *moved), directory


def test_compaction_is_no_difference(tmp_path: Path) -> None:
    """Compare a log with the same log after compaction: batches with fewer records, some batches gone, one empty."""
    keyed = [
        craft.batch(
            [craft.record(delta, key=b"k%d" % (delta % 3), value=b"v%d" % (offset + delta)) for delta in range(10)],
            offset=offset,
            codec="gzip" if offset % 20 else "none",
        )
        for offset in range(0, 100, 10)
    ]
    cleaned = [
        craft.batch(
            [craft.record(delta, key=b"k%d" % (delta % 3), value=b"v%d" % (offset + delta)) for delta in (7, 8, 9)],
            offset=offset,
            lastOffsetDelta=9,
        )
        for offset in range(40, 90, 10)
    ]
    empty = craft.batch([], offset=30, count=0, lastOffsetDelta=9)
    one = copy_of(b"".join(keyed), tmp_path / "users-0")
    other = copy_of(b"".join([empty, *cleaned, keyed[9]]), tmp_path / "b" / "users-0")
    found = only(one, other)
    assert (found.relation, found.firstDivergentOffset) == ("same", None)
    kinds = {each.kind: each for each in found.pairs[(0, 1)].differences}
    assert set(kinds) == {"cleaned", "rewritten"}
    assert (kinds["cleaned"].records, kinds["cleaned"].first, kinds["cleaned"].lacking) == (75, 0, 1)
    assert kinds["rewritten"].records == 15
    # The log cleaner does not change the records that it keeps.
    lying = craft.batch([craft.record(7, key=b"k1", value=b"other")], offset=50, lastOffsetDelta=9)
    other = copy_of(b"".join([empty, cleaned[0], lying, *cleaned[2:], keyed[9]]), tmp_path / "c" / "users-0")
    found = only(one, other)
    assert (found.relation, found.firstDivergentOffset, found.cause) == ("divergent", 57, "records")
    assert found.pairs[(0, 1)].history.fields == ("value",)  # type: ignore[union-attr]


def test_a_batch_that_is_simply_gone(tmp_path: Path) -> None:
    parts = craft.split((FIXTURES / "clean-1" / "trimmed-0" / FIRST).read_bytes())
    one = copy_of(b"".join(parts), tmp_path / "a-0")
    other = copy_of(b"".join([*parts[:1], *parts[2:]]), tmp_path / "b-0")
    found = only(one, other)
    gone = int.from_bytes(parts[1][:8], "big")
    assert (found.relation, found.firstDivergentOffset, found.cause) == ("divergent", gone, "missing")
    assert all(each.mends is False for each in found.choices)  # the epochs are equal: no broker would detect it


@each_case("codec", craft.CODECS)
def test_codec_batching_segments_and_retention_are_no_difference(codec: str, tmp_path: Path) -> None:
    rows = [craft.record(number % 5, key=b"%d" % number, value=b"v" * number) for number in range(40)]
    fives = [craft.batch(rows[start : start + 5], codec, offset=start) for start in range(0, 40, 5)]
    eights = [
        craft.batch(
            [craft.record(at, key=b"%d" % (start + at), value=b"v" * (start + at)) for at in range(8)], offset=start
        )
        for start in range(0, 40, 8)
    ]
    one = copy_of(b"".join(fives), tmp_path / "a" / "t-0")
    other = copy_of(b"".join(eights[1:3]), tmp_path / "b" / "t-0", f"{8:020}.log")
    copy_of(b"".join(eights[3:]), other, f"{24:020}.log")
    found = only(one, other, window=4096)
    assert (found.relation, found.firstDivergentOffset) == ("same", None)
    (said,) = found.pairs[(0, 1)].differences
    assert (said.kind, said.records, said.first, said.last) == ("rewritten", 32, 8, 39)
    assert "recordCount" in said.fields
    assert ("compression" in said.fields) == (codec != "none")


def test_old_formats_written_anew_are_the_same(tmp_path: Path) -> None:
    """Compare magic 1 with the same records as Kafka 4's log cleaner writes them."""
    old = craft.message(1, b"one", key=b"k", timestamp=5) + craft.message(1, b"two", key=b"l", offset=1, timestamp=7)
    new = craft.batch(
        [craft.record(key=b"k", value=b"one"), craft.record(1, key=b"l", value=b"two", timestamp=2)],
        baseTimestamp=5,
        maxTimestamp=7,
        partitionLeaderEpoch=-1,
    )
    found = only(copy_of(old, tmp_path / "a-0"), copy_of(new, tmp_path / "b-0"))
    assert (found.relation, found.pairs[(0, 1)].alike) == ("same", 2)


def test_three_copies_vote(tmp_path: Path) -> None:
    parts = craft.split(LEDGER.read_bytes())
    lying = craft.one(b"lie", offset=int.from_bytes(parts[1][:8], "big"))
    last = int.from_bytes(parts[1][23:27], "big")
    lying = craft.patch(lying, lastOffsetDelta=last)
    for name, data in (("a", parts), ("b", [parts[0], lying, *parts[2:]]), ("c", parts)):
        copy_of(b"".join(data), tmp_path / name / "t-0")
    found = only(*(tmp_path / name / "t-0" for name in "abc"))
    assert found.relation == "divergent"
    assert found.votes == [[0, 2], [1]]
    assert found.majority == [0, 2]
    two = only(tmp_path / "a" / "t-0", tmp_path / "b" / "t-0")
    assert two.majority == []


@each_case("count", [-5, 0, 1, 49, 51, 105, 106, 1_000_000_000, 2**31 - 1])
@each_case("swapped", [False, True])
def test_a_wrong_record_count_is_damage(count: int, swapped: bool, tmp_path: Path) -> None:
    """50 records of 14 or 15 bytes: with any other count, a consumer cannot read the batch, or not all of it."""
    first, *rest = craft.split((FIXTURES / "clean-2" / "ledger-0" / FIRST).read_bytes())
    one = copy_of(b"".join([first, *rest]), tmp_path / "a-0")
    other = copy_of(b"".join([craft.patch(first, recordCount=count), *rest]), tmp_path / "b-0")
    found = only(*((other, one) if swapped else (one, other)))
    parting = count if 0 < count < 50 else 0
    assert (found.relation, found.firstDivergentOffset, found.cause) == ("divergent", parting, "damage")
    assert {each.kind for each in found.pairs[(0, 1)].differences} <= {"damage", "rewritten"}
    assert found.pairs[(0, 1)].first.lacking == int(not swapped)  # type: ignore[union-attr]
    assert all(each.kind == "damage" for each in found.pairs[(0, 1)].differences if count >= 50)


@each_case("which", [0, 1])
def test_nothing_is_predicted_from_a_copy_that_was_not_read(which: int, tmp_path: Path) -> None:
    batches = [craft.one(b"v", offset=number) for number in range(2)]
    paths = [copy_of(batches[0], tmp_path / name) for name in ("a-0", "b-0")]
    for path in paths:
        copy_of(batches[1], path, f"{1:020}.log")
    unreadable = sorted(paths[0].glob("*.log"))[which]
    unreadable.unlink()
    unreadable.symlink_to("/proc/self/mem")
    found = only(*paths)
    assert found.relation is None
    assert [copy.logEndOffset for copy in found.copies] == [None if which else 2, 2]
    assert found.choices == []


def test_both_damaged(tmp_path: Path) -> None:
    """Copies with the same bytes do not diverge; if the damage differs, they diverge there."""
    data = bytearray(LEDGER.read_bytes())
    at = len(craft.split(bytes(data))[0]) + 70
    data[at] ^= 1
    one, same = copy_of(bytes(data), tmp_path / "a-0"), copy_of(bytes(data), tmp_path / "b-0")
    found = only(one, same)
    assert found.relation == "same"
    assert [each.kind for each in found.pairs[(0, 1)].differences] == ["damagedAlike"]
    data[at + 1] ^= 1
    found = only(one, copy_of(bytes(data), tmp_path / "c-0"))
    assert (found.relation, found.cause, found.pairs[(0, 1)].first.lacking) == ("divergent", "damage", None)  # type: ignore[union-attr]


def test_nothing_in_common_cannot_be_told(tmp_path: Path) -> None:
    one = copy_of(craft.one(b"a", 0), tmp_path / "a-0")
    other = copy_of(craft.one(b"b", 9), tmp_path / "b-0", f"{9:020}.log")
    assert only(one, other).relation is None
    next_one = copy_of(craft.one(b"b", 1), tmp_path / "c-0", f"{1:020}.log")
    assert only(one, next_one).relation is None
    assert only(one, copy_of(b"", tmp_path / "d-0")).relation == "prefix"
    assert only(copy_of(b"", tmp_path / "e-0"), copy_of(b"", tmp_path / "d-0")).relation == "same"


def test_a_segment_that_cannot_be_opened(tmp_path: Path) -> None:
    one = copy_of(craft.one(b"a", 0), tmp_path / "a-0")
    copy_of(craft.one(b"b", 1), one, f"{1:020}.log")
    other = shutil.copytree(one, tmp_path / "b-0")
    (other / f"{1:020}.log").unlink()
    (other / f"{1:020}.log").symlink_to(tmp_path / "nowhere")
    found = only(one, other)
    assert found.relation is None
    assert not found.is_read


def test_topic_ids_and_lying_checkpoints_are_told(tmp_path: Path) -> None:
    for name, identity in (("a", "CAAAAAAAAAAAAAAAAAAAAA"), ("b", "BAAAAAAAAAAAAAAAAAAAAA")):
        copy_of(LEDGER.read_bytes(), tmp_path / name / "t-0")
        (tmp_path / name / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {identity}\n")
    (tmp_path / "a" / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n5 0\n3 9\n")
    (tmp_path / "b" / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n7 0\n")
    found = only(tmp_path / "a" / "t-0", tmp_path / "b" / "t-0")
    assert any("topic IDs" in note for note in found.notes)
    assert any("not in ascending order" in note for note in found.notes)
    assert [7, 0] in [numbers_in(note)[:2] for note in found.notes]  # the epoch of the checkpoint, and the offset


def test_a_small_window_makes_no_difference() -> None:
    """Windows of 4 KiB and of 61 bytes give the same answers."""
    for name in ("payments-0", "users-0", "orders-lz4-0"):
        one = next(diff([str(FIXTURES / "clean-1" / name)] * 2)).copies[0].copy
        whole = compare(one, one, Options())
        for window in (4096, 61):
            small = compare(one, one, Options(window=window, limits=Limits()))
            assert (small.relation, small.alike, small.left.end) == (whole.relation, whole.alike, whole.left.end)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[bytes], list[bytes], int]:
    """Generate the values of two logs by offset: the same up to a point, then different ones."""
    common = draw(st.integers(0, 25))
    values = [b"v%d" % offset for offset in range(common)]
    one = values + [b"one%d" % number for number in range(draw(st.integers(0, 12)))]
    other = values + [b"other%d" % number for number in range(draw(st.integers(0, 12)))]
    return one, other, common


def written(values: list[bytes], cuts: list[int], codecs: list[str], directory: Path, segments: int) -> Path:
    """Write a log of these values, in batches of these lengths, and in this number of segments."""
    batches, offset, number = [], 0, 0
    while offset < len(values):
        part = values[offset : offset + cuts[number % len(cuts)]]
        rows = [craft.record(delta, value=value) for delta, value in enumerate(part)]
        batches.append((offset, craft.batch(rows, codecs[number % len(codecs)], offset=offset)))
        offset += len(part)
        number += 1
    shutil.rmtree(directory, ignore_errors=True)
    each = max(1, -(-len(batches) // segments))
    for start in range(0, len(batches), each):
        data = b"".join(batch for _, batch in batches[start : start + each])
        copy_of(data, directory, f"{batches[start][0]:020}.log")
    return directory if batches else copy_of(b"", directory)


@pytest.mark.sampled
@examples()
@given(histories(), st.data())
def test_any_two_histories(
    tmp_path_factory: pytest.TempPathFactory, logs: tuple[list[bytes], list[bytes], int], data: st.DataObject
) -> None:
    """However the records are batched, compressed and split into segments, the divergence is found."""
    one, other, common = logs
    root = tmp_path_factory.getbasetemp() / "histories"
    paths = []
    for name, values in (("a", one), ("b", other)):
        cuts = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
        codecs = data.draw(st.lists(st.sampled_from(craft.CODECS), min_size=1, max_size=3))
        paths.append(written(values, cuts, codecs, root / name / "t-0", data.draw(st.integers(1, 4))))
    bundled = data.draw(st.sampled_from([False, False, False, True]))
    found = only(*paths, bundled=bundled, window=data.draw(st.sampled_from([1 << 20, 4096, 100])))
    parted = len(one) > common and len(other) > common
    expected = "divergent" if parted else "same" if len(one) == len(other) else "prefix"
    assert found.relation == expected
    assert found.firstDivergentOffset == (common if parted else None)
    assert found.pairs[(0, 1)].alike == common
    if parted:
        assert [found.tail(number).records for number in (0, 1)] == [len(one) - common, len(other) - common]  # type: ignore[union-attr]
