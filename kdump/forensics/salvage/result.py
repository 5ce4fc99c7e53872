"""What came of salvaging a partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.forensics.salvage.fates import INCOMPLETE, WRITTEN, Hole, Span


class OpenTransaction(NamedTuple):
    """A transaction without a marker in what was written: read_committed consumers stop at firstOffset. `lost`:
    something lost lies behind its first batch, where its marker may have been; else it was open in the source, too, as
    far as that shows."""

    producerId: int
    producerEpoch: int
    firstOffset: int
    lastOffset: int
    records: int
    lost: bool


class DoubtfulTransaction(NamedTuple):
    """A transaction with something lost between its first batch and the marker that ends it (COMMIT or ABORT, at
    markerOffset). If a marker of that producer was lost there, this one decides over what the lost one had decided."""

    producerId: int
    producerEpoch: int
    firstOffset: int
    markerOffset: int
    marker: str


@dataclass
class Salvaged:
    """A partition. `sources` are the paths of its copies, the one that is followed first; `files` the names that were
    written below the output directory. bytes, batches and records are by fate (kdump.forensics.salvage.fates): the
    bytes are all those of the sources' segments. logStartOffset..logEndOffset-1 is what was written, None without a
    batch. `losses` and `holes` are the first of them; the ledger has all. `notes`: what else is to be known."""

    topic: str
    partition: int
    sources: list[str]
    directory: str
    files: list[str] = field(default_factory=list)
    bytes: dict[str, int] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    records: dict[str, int] = field(default_factory=dict)
    logStartOffset: int | None = None
    logEndOffset: int | None = None
    losses: list[Span] = field(default_factory=list)
    lostPlaces: int = 0
    guesses: list[Span] = field(default_factory=list)
    """The first batches that were made of damaged ones."""
    holes: list[Hole] = field(default_factory=list)
    lostHoles: int = 0
    lostOffsets: int = 0
    absentOffsets: int = 0
    absentHoles: int = 0
    mended: dict[str, int] = field(default_factory=dict)
    odd: dict[str, int] = field(default_factory=dict)
    leaderEpochs: str = ""
    """Where leader-epoch-checkpoint comes from: source, batches, or empty: there is none."""
    topicId: str | None = None
    openTransactions: list[OpenTransaction] = field(default_factory=list)
    lastStableOffset: int | None = None
    doubtfulTransactions: list[DoubtfulTransaction] = field(default_factory=list)
    stop: int | None = None
    """From here on histories part, and nothing says which is right."""
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_whole(self) -> bool:
        """Whether no record is lacking that a source had, as far as offsets show it, none is a guess, and every valid
        batch is in the output, or gave way to another version of it. Damage whose offsets came from elsewhere, or that
        holds none, is no loss."""
        return not (self.lostHoles or any(self.bytes.get(fate) for fate in INCOMPLETE))

    @property
    def is_written(self) -> bool:
        """Whether there is something of it in the output directory."""
        return any(self.bytes.get(fate) for fate in WRITTEN) or bool(self.files)
