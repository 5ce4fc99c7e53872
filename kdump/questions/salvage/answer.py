"""Result of salvaging a partition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, NESTED, OFFSET, Doc, PathText, answer
from kdump.questions.salvage.byte_outcomes import (
    INCOMPLETE,
    WRITTEN,
    ByteRange,
    MissingOffsetRange,
    SalvagedPartition,
    SalvagedTopic,
)

__all__ = ["Salvaged"]


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
    """A partition. bytes, batches and records are by outcome (kdump.questions.salvage.byte_outcomes); logStartOffset
    and logEndOffset are None if no batch was written. `losses` and `holes` contain the first ones; the ledger has
    all."""

    topic: SalvagedTopic
    partition: SalvagedPartition
    sources: Annotated[list[PathText], Doc("paths of the copies, the reference copy first")]
    directory: str
    files: Annotated[
        list[str], Doc("segments, or the file of records, in the output directory; empty if nothing was kept")
    ] = field(default_factory=list)
    bytes: Annotated[dict[str, int], Doc("all bytes of the sources' segments, by fate (see salvageSpan)", BYTES)] = (
        field(default_factory=Counter)
    )
    batches: Annotated[dict[str, int], Doc("number of batches, by fate")] = field(default_factory=Counter)
    records: Annotated[dict[str, int], Doc("number of records, by fate")] = field(default_factory=Counter)
    excluded: Annotated[
        dict[str, int], Doc("number of records left out on request, by option: from, until, without")
    ] = field(default_factory=dict)
    undecided: Annotated[
        int, Doc("number of records that are kept although it is not known whether --without matches them")
    ] = 0
    logStartOffset: Annotated[int | None, Doc("first offset in the output", OFFSET)] = None
    logEndOffset: Annotated[int | None, Doc("offset after the last one in the output", OFFSET)] = None
    lostPlaces: Annotated[
        int, Doc("number of spans that were lost or not written, according to their fates (see salvageSpan)")
    ] = 0
    lostHoles: Annotated[
        int, Doc("number of offset gaps in which something was lost; 0 if other copies have what is damaged")
    ] = 0
    lostOffsets: Annotated[int, Doc("number of offsets in these gaps, except a gap without a known end", "offsets")] = 0
    absentOffsets: Annotated[int, Doc("number of offsets in gaps that no source fills", "offsets")] = 0
    absentHoles: int = 0
    losses: Annotated[list[ByteRange], Doc("first lost spans, as salvageSpan without topic and partition")] = field(
        default_factory=list
    )
    guesses: Annotated[list[ByteRange], Doc("first batches rebuilt from damaged ones, in the same form")] = field(
        default_factory=list
    )
    holes: Annotated[
        list[MissingOffsetRange], Doc("first offset gaps in which something was lost: {offset, lastOffset, cause}")
    ] = field(default_factory=list)
    mended: Annotated[dict[str, int], Doc("number of batches with a corrected field, by its name")] = field(
        default_factory=Counter
    )
    odd: Annotated[dict[str, int], Doc("number of batches with a remaining error, by its code")] = field(
        default_factory=Counter
    )
    leaderEpochs: Annotated[
        str, Doc("origin of leader-epoch-checkpoint: source or batches; empty if there is none")
    ] = ""
    topicId: Annotated[str | None, Doc("topic ID in partition.metadata")] = None
    openTransactions: Annotated[
        list[OpenTransaction],
        Doc(
            f"transactions without a marker in the output, each {NESTED}; lost: something was lost after its first "
            "batch, possibly its marker"
        ),
    ] = field(default_factory=list)
    abortedTransactions: Annotated[
        list[OpenTransaction], Doc("transactions that --abort-open ended: an ABORT marker was written for each")
    ] = field(default_factory=list)
    lastStableOffset: Annotated[
        int | None, Doc("offset at which read_committed consumers stop; null if no transaction is open", OFFSET)
    ] = None
    doubtfulTransactions: Annotated[
        list[DoubtfulTransaction],
        Doc(
            f"transactions in which something was lost between first batch and marker, each {NESTED}; if that was an "
            "earlier marker, this marker now also decides the earlier transaction"
        ),
    ] = field(default_factory=list)
    onlyRemote: Annotated[
        list[int] | None,
        Doc("first and last offset below the output that the log has in remote storage; null if there are none"),
    ] = None
    stop: Annotated[int | None, Doc("offset at which histories diverge, if nothing shows which is right", OFFSET)] = (
        None
    )
    notes: Annotated[list[PathText], Doc("other remarks")] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_whole(
        self,
    ) -> Annotated[
        bool,
        Doc(
            "as far as offsets show, no record is missing, except those left out on request, and undecided is 0; no "
            "values may be wrong; every valid batch, or another version, is in the output; and onlyRemote is null",
            name="whole",
            after="files",
        ),
    ]:
        """Whether the output lacks no record of the sources, as far as offsets show, contains no best-effort recovery,
        and contains every valid batch or another version of it. Damage without records, or whose offsets came from
        elsewhere, is not a loss."""
        return self.onlyRemote is None and not self.has_losses

    @property
    def has_losses(self) -> bool:
        """Whether a record of the sources is missing, or may be wrong."""
        return bool(self.lostHoles or self.undecided or any(self.bytes.get(fate) for fate in INCOMPLETE))

    @property
    def is_written(self) -> bool:
        """Whether the output directory contains anything of the partition."""
        return any(self.bytes.get(fate) for fate in WRITTEN) or bool(self.files)


@answer("salvageSummary")
class SalvageSummary(NamedTuple):
    """Totals of all partitions."""

    out: Annotated[PathText, Doc("output directory")]
    ledger: Annotated[PathText, Doc("path of the ledger")]
    partitions: Annotated[int, Doc("number of partitions read")]
    whole: Annotated[int, Doc("number of partitions that are complete (see whole in salvage)")]
    empty: Annotated[int, Doc("number of partitions of which nothing was written")]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    seconds: Annotated[float, Doc("elapsed time", "s")]
