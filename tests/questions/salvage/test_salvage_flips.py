"""One flipped bit in a header field that no checksum covers: a model decides what can be known."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from kdump.questions.salvage.run import salvage
from tests import craft
from tests.conftest import SEED, sample, seeded

FIELDS = {"baseOffset": (0, 64), "batchLength": (64, 32), "partitionLeaderEpoch": (96, 32), "magic": (128, 8)}
"""First bit, and number of bits."""


class Log(NamedTuple):
    """A log. `sizes`: records of each batch; `gaps`: offsets that are missing before it; `rolls`: batches that begin a
    segment; `epochs`: their leader epochs."""

    sizes: tuple[int, ...]
    gaps: tuple[int, ...] = ()
    rolls: tuple[int, ...] = ()
    epochs: tuple[int, ...] = ()

    def batches(self) -> list[tuple[int, bytes]]:
        """Return the batches with their base offsets."""
        made, offset = [], 0
        for number, size in enumerate(self.sizes):
            offset += self.gaps[number] if self.gaps else 0
            epoch = self.epochs[number] if self.epochs else 0
            records = [craft.record(each, b"k%d" % offset, b"value" * 4) for each in range(size)]
            made.append((offset, craft.batch(records, offset=offset, partitionLeaderEpoch=epoch)))
            offset += size
        return made

    def starts(self) -> list[int]:
        return [0, *self.rolls]


LOGS = (
    Log((1,) * 9),
    Log((3, 1, 4, 2, 5, 3)),
    Log((1,) * 8, rolls=(3, 6)),
    Log((2, 3, 2, 1, 2, 4), rolls=(2,), epochs=(0, 0, 1, 1, 1, 3)),
    Log((1,) * 8, gaps=(0, 0, 3, 0, 0, 1, 0, 0)),
    Log((2, 1, 3, 1, 1), gaps=(4, 0, 2, 1, 6), rolls=(3,)),
)
CASES = [
    (log, place, field, bit)
    for log in LOGS
    for place in range(len(log.sizes))
    for field, (_, width) in FIELDS.items()
    for bit in range(width)
]


def written(root: Path, log: Log, batches: list[bytes], true: list[tuple[int, bytes]]) -> tuple[list[bytes], bool]:
    """Write a log and salvage it; return the batches of the output, and whether it is complete."""
    home = root / "t-0"
    home.mkdir()
    starts = log.starts()
    for start, stop in zip(starts, [*starts[1:], len(batches)]):
        name = 0 if start == 0 else true[start][0]
        (home / f"{name:020}.log").write_bytes(b"".join(batches[start:stop]))
    (made,) = salvage([str(home)], str(root / "out"))
    found = [batch for file in made.files for batch in craft.split((root / "out" / file).read_bytes())]
    return found, made.is_whole


def is_decided(log: Log, place: int, field: str) -> bool:
    """Return True if the true value can be known: the checksum confirms length and magic, the neighbors an epoch,
    and a log without gaps every base offset."""
    if field in ("batchLength", "magic"):
        return True
    if field == "partitionLeaderEpoch":
        epochs = log.epochs or (0,) * len(log.sizes)
        inside = place not in log.starts() and place + 1 not in (*log.starts(), len(log.sizes))
        return inside and epochs[place - 1] == epochs[place] == epochs[place + 1]
    return not any(log.gaps)


def may_lack_marker(log: Log, place: int, field: str, bit: int) -> bool:
    """Return True if the bit moves the last batch on by one offset, as if a transaction marker before it were lost."""
    is_next = (field, bit) == ("baseOffset", 63) and sum(log.sizes[:place]) % 2 == 0
    return is_next and place + 1 == len(log.sizes) and not any(log.gaps)


def is_legal(batches: list[bytes], names: list[int]) -> bool:
    """Return True if the offsets ascend, so that nothing shows that one of them is wrong."""
    headers = [craft.BATCH_HEADER.read(each) for each in batches]
    ends = [-1, *(header.lastOffset for header in headers)]
    return all(header.baseOffset > end for header, end in zip(headers, ends)) and names[-1] <= headers[-1].baseOffset


def check(log: Log, place: int, field: str, bit: int, root: Path) -> str:
    """Return what is wrong with the salvage of the log with this bit flipped; empty if nothing is."""
    root.mkdir()
    true = log.batches()
    right = [data for _, data in true]
    hurt = list(right)
    hurt[place] = craft.flip(hurt[place], FIELDS[field][0] + bit)
    found, is_whole = written(root, log, hurt, true)
    if may_lack_marker(log, place, field, bit):
        return "" if (found, is_whole) == (hurt, False) else f"decided, complete: {is_whole}"
    if is_decided(log, place, field):
        return "" if (found, is_whole) == (right, True) else f"not restored, complete: {is_whole}"
    if field == "partitionLeaderEpoch":
        return "" if found in (right, hurt) and is_whole else f"changed, complete: {is_whole}"
    if found == right or not is_whole:
        return ""
    return "" if found == hurt and is_legal(hurt, [true[start][0] for start in log.starts()]) else "a wrong offset"


@pytest.mark.sampled
def test_one_flipped_bit(tmp_path: Path) -> None:
    wrong = {}
    for number, case in enumerate(sample(CASES, 80)):
        if found := check(*case, tmp_path / str(number)):
            wrong[case[1:]] = (case[0], found)
    assert not wrong


def test_no_batch_is_moved_to_offsets_before_its_segment(tmp_path: Path) -> None:
    """Two segments with each other's batches: one flipped bit explains neither of the places before them."""
    home = tmp_path / "t-0"
    home.mkdir()
    for name, offset in ((0, 3), (3, 1)):
        batch = craft.batch([craft.record(0, b"a"), craft.record(1, b"b")], offset=offset)
        (home / f"{name:020}.log").write_bytes(batch)
    (made,) = salvage([str(home)], str(tmp_path / "out"))
    found = [batch for file in made.files for batch in craft.split((tmp_path / "out" / file).read_bytes())]
    assert not made.is_whole
    assert {craft.BATCH_HEADER.read(each).baseOffset for each in found} <= {1, 3}


def test_a_gap_that_a_dropped_batch_explains_is_no_flip(tmp_path: Path) -> None:
    """The last batch keeps its offsets if a batch that is left out had those before it."""
    home = tmp_path / "t-0"
    home.mkdir()
    batches = [craft.batch([craft.record(n) for n in range(size)], offset=at) for at, size in OUT_OF_ORDER]
    (home / f"{0:020}.log").write_bytes(b"".join(batches))
    (made,) = salvage([str(home)], str(tmp_path / "out"))
    found = [batch for file in made.files for batch in craft.split((tmp_path / "out" / file).read_bytes())]
    assert {craft.BATCH_HEADER.read(each).baseOffset for each in found} <= {at for at, _ in OUT_OF_ORDER}
    assert not made.is_whole


def moved(root: Path, batches: list[bytes]) -> list[str]:
    """Salvage a segment with these batches; return those that are written before the end of the one before them."""
    home = root / "t-0"
    home.mkdir(parents=True)
    (home / f"{0:020}.log").write_bytes(b"".join(batches))
    (made,) = salvage([str(home)], str(root / "out"))
    found = [batch for file in made.files for batch in craft.split((root / "out" / file).read_bytes())]
    headers = {batch[8:]: craft.BATCH_HEADER.read(batch) for batch in found}
    places = {batch[8:]: len({other[:8] for other in batches if other[8:] == batch[8:]}) for batch in batches}
    wrong = []
    for previous, batch in pairwise(batches):
        before, header = headers.get(previous[8:]), headers.get(batch[8:])
        is_known = places[previous[8:]] == places[batch[8:]] == 1  # else which of them was written is not
        if before is not None and header is not None and is_known and header.packed()[:8] != batch[:8]:
            wrong += [f"to {header.baseOffset}, after {before.lastOffset}"] * (header.baseOffset <= before.lastOffset)
    return wrong


@pytest.mark.sampled
def test_no_batch_is_moved_before_the_end_of_the_one_before_it(tmp_path: Path) -> None:
    """Whatever base offsets are damaged, and whatever is missing, twice or elsewhere in the file."""
    first, last = (data for _, data in Log((8, 1)).batches())
    assert moved(tmp_path / "0", [craft.flip(first, 58), craft.flip(first, 58), last]) == []
    for number in range(1, 3000 if SEED else 150):
        rng = seeded(f"moved {number}")
        batches = [data for _, data in Log(tuple(rng.choice((1, 2, 3, 8)) for _ in range(rng.randint(2, 9)))).batches()]
        for _ in range(rng.randint(1, 3)):
            place, other = rng.randrange(len(batches)), rng.randrange(len(batches))
            change = rng.choice(("flip", "flip", "double", "swap", "drop"))
            if change == "flip":
                batches[place] = craft.flip(batches[place], rng.randrange(55, 64))
            elif change == "double":
                batches.insert(other, batches[place])
            elif change == "swap":
                batches[place], batches[other] = batches[other], batches[place]
            elif len(batches) > 2:
                del batches[place]
        assert moved(tmp_path / str(number), batches) == [], number


OUT_OF_ORDER = [(0, 2), (8, 2), (2, 2), (2, 4), (6, 2)]
"""Base offsets and numbers of records."""
