"""Result of salvaging a partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, NESTED, OFFSET, Doc, PathText, answer
from kdump.forensics.salvage.fates import INCOMPLETE, WRITTEN, Hole, SalvagedPartition, SalvagedTopic, Span


class OpenTransaction(NamedTuple):
    """A transaction without a marker in the output: read_committed consumers stop at firstOffset. `lost`: whether
    something was lost after its first batch, possibly its marker; otherwise it was open in the source, too, as far as
    is known."""

    producerId: int
    producerEpoch: int
    firstOffset: int
    lastOffset: int
    records: int
    lost: bool


class DoubtfulTransaction(NamedTuple):
    """A transaction for which something was lost between its first batch and its marker (COMMIT or ABORT, at
    markerOffset). If a marker of that producer was lost there, this one now also decides about the records before the
    lost one."""

    producerId: int
    producerEpoch: int
    firstOffset: int
    markerOffset: int
    marker: str


@answer("salvage")
@dataclass
class Salvaged:
    """A partition. bytes, batches and records are by outcome (kdump.forensics.salvage.fates); logStartOffset and
    logEndOffset are None if no batch was written. `losses` and `holes` contain the first ones; the ledger has all."""

    topic: SalvagedTopic
    partition: SalvagedPartition
    sources: Annotated[list[PathText], Doc("paths of the copies, the one that is followed first")]
    directory: str
    files: Annotated[
        list[str], Doc("segments, or the file of records, below the output directory; empty: nothing was kept")
    ] = field(default_factory=list)
    bytes: Annotated[dict[str, int], Doc("of the sources' segments by fate (see salvageSpan): all of them", BYTES)] = (
        field(default_factory=dict)
    )
    batches: Annotated[dict[str, int], Doc("by fate")] = field(default_factory=dict)
    records: Annotated[dict[str, int], Doc("by fate")] = field(default_factory=dict)
    logStartOffset: Annotated[int | None, Doc("the first that was written", OFFSET)] = None
    logEndOffset: Annotated[int | None, Doc("behind the last", OFFSET)] = None
    lostPlaces: Annotated[
        int, Doc("spans of which nothing was written for a bad reason, as salvageSpan's fates tell")
    ] = 0
    lostHoles: Annotated[int, Doc("holes with something lost in them: none, if other copies had what is damaged")] = 0
    lostOffsets: Annotated[int, Doc("in holes with something lost in them, as far as they have an end", "offsets")] = 0
    absentOffsets: Annotated[int, Doc("in holes that no source fills", "offsets")] = 0
    absentHoles: int = 0
    losses: Annotated[list[Span], Doc("the first spans that are lost, as salvageSpan without topic and partition")] = (
        field(default_factory=list)
    )
    guesses: Annotated[list[Span], Doc("the first batches that were made of damaged ones, likewise")] = field(
        default_factory=list
    )
    holes: Annotated[list[Hole], Doc("the first holes with something lost in them: {offset, lastOffset, cause}")] = (
        field(default_factory=list)
    )
    mended: Annotated[dict[str, int], Doc("batches with a field put right, by its name")] = field(default_factory=dict)
    odd: Annotated[dict[str, int], Doc("batches with an error that stays, by its code")] = field(default_factory=dict)
    leaderEpochs: Annotated[
        str, Doc("where leader-epoch-checkpoint is from: source, batches; empty: there is none")
    ] = ""
    topicId: Annotated[str | None, Doc("in partition.metadata")] = None
    openTransactions: Annotated[
        list[OpenTransaction],
        Doc(
            f"of {NESTED}: without a marker in what was written; lost: something lost lies behind its first batch, "
            "where the marker may have been"
        ),
    ] = field(default_factory=list)
    lastStableOffset: Annotated[int | None, Doc("where read_committed consumers stop; null: nowhere", OFFSET)] = None
    doubtfulTransactions: Annotated[
        list[DoubtfulTransaction],
        Doc(
            f"of {NESTED}: something was lost between a transaction's first batch and the marker that ends it; if that "
            "was a marker, this one decides over what it had decided"
        ),
    ] = field(default_factory=list)
    stop: Annotated[int | None, Doc("from here on histories part, and nothing says which is right", OFFSET)] = None
    notes: Annotated[list[PathText], Doc("what else is to be known")] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_whole(
        self,
    ) -> Annotated[
        bool,
        Doc(
            "no record is lacking, as far as offsets show, none is a guess, and every valid batch is in the output, or "
            "another version of it is",
            name="whole",
            after="files",
        ),
    ]:
        """Whether the output lacks no record of the sources, as far as offsets show, contains no best-effort recovery,
        and contains every valid batch or another version of it. Damage without records, or whose offsets came from
        elsewhere, is not a loss."""
        return not (self.lostHoles or any(self.bytes.get(fate) for fate in INCOMPLETE))

    @property
    def is_written(self) -> bool:
        """Whether the output directory contains anything of the partition."""
        return any(self.bytes.get(fate) for fate in WRITTEN) or bool(self.files)


@answer("salvageSummary")
class SalvageSummary(NamedTuple):
    """Totals of all partitions."""

    out: Annotated[PathText, Doc("the output directory")]
    ledger: Annotated[PathText, Doc("path of the ledger")]
    partitions: Annotated[int, Doc("that were read")]
    whole: Annotated[int, Doc("of them, those that are whole")]
    empty: Annotated[int, Doc("of them, of which nothing was written")]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    seconds: Annotated[float, Doc("how long it took", "s")]
