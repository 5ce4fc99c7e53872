"""Random histories of a partition, and checks of their salvage that compare batches by their bytes.

A log is written batch by batch, copied to replicas, and then batches are swapped, moved, doubled, removed, contradicted
and damaged, in the files of any copy. The model knows of every batch in every file whether its bytes are unchanged; it
is independent of how salvage finds that out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests import craft
from tests.questions.salvage.salvaging import Run

WRITTEN = {"kept", "mended"}
GIVES_WAY = {"contradicts", "overlaps", "diverged", "undecided", "untaken"}
LATER = 1_700_000_000_000
NAMES = (
    "{base}.log", "-{base}.log", "{base:020}.copy.log", "{base:021}.log", "9{base:019}.log", "orders.log",
    "orders {number}.log", "{base:020}.log.bak", "{base:020}.log.1", "{base:020}.log~", "{base:020}.log.tmp", ".log",
    "{base:020}.LOG",
)  # fmt: skip
"""Names under which segments are found after somebody copied or renamed them; none is a segment's."""


@dataclass(frozen=True)
class Piece:
    """Some bytes of a file. `first` and `last`: the offsets of an intact batch, None and -1 for anything else;
    `is_rebased`: its base offset, which no checksum covers, has been changed."""

    data: bytes
    first: int | None = None
    last: int = -1
    is_rebased: bool = False
    is_contrary: bool = False
    """Whether another batch has its offsets. If it fills a gap exactly, salvage may take this for a damaged base
    offset."""

    def __repr__(self) -> str:
        return (
            f"<{len(self.data)} bytes>" if self.first is None else f"{self.first}..{self.last}{'!' * self.is_rebased}"
        )

    @property
    def key(self) -> bytes:
        """Bytes that identify a batch: all except the leader epoch."""
        return key(self.data)


def key(data: bytes) -> bytes:
    return data[:12] + data[16:] if data[16] > 1 else data


def checked(data: bytes) -> bytes:
    return data[21:] if data[16] > 1 else data[16:]


@dataclass
class File:
    """A segment. `name`: its file name, if that is not a segment's."""

    base: int
    pieces: list[Piece] = field(default_factory=list)
    name: str = ""

    @property
    def file_name(self) -> str:
        return self.name or f"{self.base:020}.log"


@dataclass
class Copy:
    """The files of a replica, by base offset."""

    files: list[File]

    @property
    def places(self) -> list[tuple[File, int]]:
        return [(file, at) for file in self.files for at in range(len(file.pieces))]

    def choose(self, number: int) -> tuple[File, int]:
        places = self.places
        return places[number % len(places)]


class History:
    """A partition and what happens to it. Numbers select batches and files, modulo how many there are."""

    def __init__(self) -> None:
        self.end = self.epoch = self.written = 0
        self.open: dict[int, int] = {}  # first sequence of the last batch in each open transaction, by producer
        self.sequences: dict[int, int] = {}
        self.copies = [Copy([File(0)])]
        self.checked: set[bytes] = set()
        """Bytes covered by the checksum, of every batch that was ever written."""

    def __repr__(self) -> str:
        return "; ".join(
            "copy " + ", ".join(f"{file.file_name}: {file.pieces}" for file in copy.files) for copy in self.copies
        )

    # -- writing

    def append(self, kind: int, size: int) -> None:
        """Append a batch of 1 to 4 records to the first copy."""
        count = size % 4 + 1
        if kind % 8 == 7:
            self.epoch += 1
        file = self.copies[0].files[-1]
        file.pieces.append(self._made(self.end, count, kind % 8))
        self.end = file.pieces[-1].last + 1

    def _made(self, first: int, count: int, kind: int) -> Piece:
        made = self._batch(first, count, kind)
        self.checked.add(checked(made.data))
        return made

    def _batch(self, first: int, count: int, kind: int) -> Piece:
        self.written += 1
        if kind == 1:
            data = craft.message(1, b"value %d" % self.written, offset=first, timestamp=LATER + self.written)
            return Piece(data, first, first)
        values = [b"%d of %d " % (number, self.written) + b"v" * (self.written % 7 * 5) for number in range(count)]
        records = [craft.record(number, b"k", value) for number, value in enumerate(values)]
        fields: dict[str, int] = {"baseTimestamp": LATER + self.written, "maxTimestamp": LATER + self.written}
        fields["partitionLeaderEpoch"] = self.epoch
        if kind in (2, 3, 4):
            return self._of_producer(first, records, kind, fields)
        codec = "gzip" if kind == 5 else "none"
        return Piece(craft.batch(records, codec, offset=first, **fields), first, first + count - 1)

    def _of_producer(self, first: int, records: list[bytes], kind: int, fields: dict[str, int]) -> Piece:
        """Return a piece of a producer. Kind 2: idempotent; 3: in a transaction; 4: the marker that ends the
        transaction if one is open."""
        producer = 7 if kind == 2 else 9
        fields |= {"producerId": producer, "producerEpoch": 0}
        if kind == 4 and producer in self.open:
            marker = craft.record(0, b"\0\0\0" + bytes([self.written % 2]), b"\0\0\0\0\0\0")
            self.open.pop(producer)
            return Piece(craft.batch([marker], offset=first, attributes=48, **fields), first, first)
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + len(records)
        if kind != 2:
            self.open[producer] = sequence
            fields["attributes"] = 16
        data = craft.batch(records, offset=first, baseSequence=sequence, **fields)
        return Piece(data, first, first + len(records) - 1)

    def roll(self) -> None:
        """Start a new segment, unless the last one is empty."""
        files = self.copies[0].files
        if files[-1].pieces:
            files.append(File(self.end))

    def replicate(self, keep: int) -> None:
        """Add a copy without the last few batches, up to three copies."""
        if len(self.copies) == 3:
            return
        copy = Copy([File(file.base, list(file.pieces), file.name) for file in self.copies[0].files])
        for _ in range(keep % 3):
            if len(copy.places) > 1:
                file, at = copy.places[-1]
                del file.pieces[at]
        self.copies.append(copy)

    # -- damage

    def swap(self, which: int, one: int, other: int) -> None:
        copy = self._copy(which)
        (file, at), (file2, at2) = copy.choose(one), copy.choose(other)
        file.pieces[at], file2.pieces[at2] = file2.pieces[at2], file.pieces[at]

    def move(self, which: int, one: int, other: int) -> None:
        """Move a batch within the copy or into another one."""
        file, at = self._copy(which).choose(one)
        piece = file.pieces.pop(at)
        self._insert(which + one % 2, other, piece)

    def double(self, which: int, one: int, other: int) -> None:
        file, at = self._copy(which).choose(one)
        self._insert(which + one % 2, other, file.pieces[at])

    def contradict(self, which: int, one: int, other: int) -> None:
        """Insert a batch that no other copy has, whose offsets equal or overlap those of another batch."""
        first = one % (self.end + 3)
        self._insert(which, other, replace(self._made(first, other % 4 + 1, 0), is_contrary=True))

    def remove(self, which: int, one: int, other: int) -> None:
        file, at = self._copy(which).choose(one)
        del file.pieces[at]

    def lose_file(self, which: int, one: int, other: int) -> None:
        copy = self._copy(which)
        if len(copy.files) > 1:
            copy.files.pop(one % len(copy.files))

    def rename(self, which: int, one: int, other: int) -> None:
        """Give a file a name that no broker gives to a segment."""
        copy = self._copy(which)
        copy.files[one % len(copy.files)].name = self._name(copy, one % len(copy.files), other)

    def double_file(self, which: int, one: int, other: int) -> None:
        """Add a copy of a file, under such a name."""
        copy = self._copy(which)
        file = copy.files[one % len(copy.files)]
        copy.files.append(File(file.base, list(file.pieces), self._name(copy, one % len(copy.files), other)))

    def _name(self, copy: Copy, number: int, other: int) -> str:
        base = copy.files[number].base
        taken = {file.file_name for file in copy.files}
        names = [pattern.format(base=base, number=number) for pattern in NAMES]
        free = [name for name in names if name not in taken]
        return free[other % len(free)] if free else f"another-{len(copy.files)}.log"

    def damage(self, which: int, one: int, other: int) -> None:
        """Change some bytes of a batch, but not its base offset."""
        file, at = self._copy(which).choose(one)
        data = bytearray(file.pieces[at].data)
        if len(data) <= 16:  # what a torn batch has left has nothing but its base offset, perhaps
            return
        start = 8 + other % (len(data) - 8)
        if 12 <= start < 16 and data[16] > 1:
            start = 16  # checksums do not cover the leader epoch either
        data[start : start + 3] = bytes(byte ^ 0xA5 for byte in data[start : start + 3])
        file.pieces[at] = Piece(bytes(data))

    def flip_offset(self, which: int, one: int, other: int) -> None:
        """Flip a bit of a base offset."""
        file, at = self._copy(which).choose(one)
        piece = file.pieces[at]
        bit = other % 16
        if piece.first is not None:
            first = piece.first ^ (1 << bit)
            data = craft.rebase(piece.data, first)
            file.pieces[at] = replace(
                piece, data=data, first=first, last=piece.last + first - piece.first, is_rebased=True
            )

    def junk(self, which: int, one: int, other: int) -> None:
        self._insert(which, other, Piece(bytes(one % 251 + 1 for _ in range(other % 100 + 1))))

    def zeros(self, which: int, one: int, other: int) -> None:
        self._insert(which, other, Piece(bytes(one % 200 + 1)))

    def tear(self, which: int, one: int, other: int) -> None:
        """Truncate a file within its last batch."""
        copy = self._copy(which)
        file = copy.files[one % len(copy.files)]
        if file.pieces:
            data = file.pieces[-1].data
            file.pieces[-1] = Piece(data[: max(1, other % len(data))])

    def _copy(self, which: int) -> Copy:
        return self.copies[which % len(self.copies)]

    def _insert(self, which: int, number: int, piece: Piece) -> None:
        copy = self._copy(which)
        places = [(file, at) for file in copy.files for at in range(len(file.pieces) + 1)]
        file, at = places[number % len(places)]
        file.pieces.insert(at, piece)

    # -- on the disk

    def write(self, root: Path) -> list[Path]:
        """Write the copies and return their directories."""
        made = []
        for number, copy in enumerate(self.copies):
            directory = root / str(number) / "t-0"
            directory.mkdir(parents=True)
            (directory / "partition.metadata").write_text("version: 0\ntopic_id: Ra3-wkJYTpWAUUFRjzXqJg\n")
            for file in copy.files:
                data = b"".join(piece.data for piece in file.pieces)
                (directory / file.file_name).write_bytes(data)
            made.append(directory)
        return made


DEEDS: dict[str, Callable[..., None]] = {
    name: getattr(History, name)
    for name in (
        "swap", "move", "double", "contradict", "remove", "lose_file", "damage", "flip_offset", "junk", "zeros", "tear",
        "rename", "double_file",
    )
}  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Up to forty batches in several files and copies, and up to six kinds of damage."""
    made = History()
    small = st.integers(0, 63)
    for kind, size, rolls in draw(st.lists(st.tuples(small, small, st.integers(0, 5)), min_size=2, max_size=40)):
        made.append(kind, size)
        if rolls == 5:
            made.roll()
    for keep in draw(st.lists(small, max_size=2)):
        made.replicate(keep)
    number = st.integers(0, 999)
    deeds = st.tuples(st.sampled_from(list(DEEDS)), st.integers(0, 2), number, number)
    for name, which, one, other in draw(st.lists(deeds, max_size=6)):
        if made._copy(which).places:
            DEEDS[name](made, which, one, other)
    return made


def check(history: History, root: Path) -> Run:
    """Salvage the history, and compare the output and the ledger with the model."""
    first, *others = history.write(root)
    run = Run(root / "out", first, replicas=[str(each) for each in others])
    written = [batch for file in run.only.files for batch in craft.split((run.out / file).read_bytes())]
    counts: dict[bytes, int] = {}
    for batch in written:
        counts[key(batch)] = counts.get(key(batch), 0) + 1
        assert checked(batch) in history.checked, batch
    assert all(count == 1 for count in counts.values())
    spans = {}
    for span in run.spans:
        spans.setdefault(span["file"], []).append(span)
    for number, copy in enumerate(history.copies):
        for file in copy.files:
            path = str(root / str(number) / "t-0" / file.file_name)
            position = 0
            for piece in file.pieces:
                if piece.first is not None:
                    within = [s for s in spans[path] if s["position"] <= position < s["position"] + s["size"]]
                    _check_batch(piece, position, within[0], counts, run)
                position += len(piece.data)
    _check_holes(history, run)
    return run


def _check_batch(piece: Piece, position: int, span: dict[str, Any], counts: dict[bytes, int], run: Run) -> None:
    """Check that an intact batch of a source is in the output, or else is in the ledger with its offsets and the
    reason, and the partition is not marked as whole."""
    if (piece.is_rebased or piece.is_contrary) and span["fate"] in ("mended", "duplicate"):
        return
    if piece.key in counts:
        assert span["fate"] in WRITTEN | {"duplicate"}, (piece, span)
        assert "baseOffset" not in span["mended"], (piece, span)
        return
    assert span["fate"] in GIVES_WAY, (piece, span)
    assert (span["position"], span["size"]) == (position, len(piece.data)), (piece, span)
    if not piece.is_rebased:
        assert (span["offset"], span["lastOffset"]) == (piece.first, piece.last), (piece, span)
    assert span["reason"], span
    assert not run.only.is_whole, span


def _check_holes(history: History, run: Run) -> None:
    """Check that offsets reported as absent are in no source."""
    for line in run.lines:
        if line["type"] != "salvageHole" or line["cause"] != "absent":
            continue
        for copy in history.copies:
            for file, at in copy.places:
                piece = file.pieces[at]
                if piece.first is not None and not piece.is_rebased:
                    assert piece.last < line["offset"] or piece.first > line["lastOffset"], (piece, line)
