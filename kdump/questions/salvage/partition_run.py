"""Salvages one partition: reads its copies, and writes its new directory, with leader-epoch-checkpoint and
partition.metadata, and its lines of the ledger."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import KW_ONLY, MISSING, dataclass, replace
from itertools import islice
from typing import BinaryIO

from kdump.check.engine.unflipped import batch_of
from kdump.check.options import Options
from kdump.decode.record_cut import AFTER, BEFORE, CutRequest, RecordCut
from kdump.format.batch_writer import abort_marker
from kdump.format.count_text import count_text, first_of, plain_count
from kdump.io.directory_listing import is_inside, length, real_path
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.io.work_progress import WorkProgress
from kdump.kafka.small_files import topic_id
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.legacy_records import read_wrapper
from kdump.log.output_directory import OutputDirectory
from kdump.log.paths import Target
from kdump.log.region import DefaultRecordBatch, LegacyRecordBatch
from kdump.problems.problem import title_of
from kdump.query import Query, TopicsQuery, flag, many, option, topic_option
from kdump.questions.salvage.answer import DoubtfulTransaction, OpenTransaction, Salvaged
from kdump.questions.salvage.byte_outcomes import (
    ABSENT,
    CUT_REASONS,
    DIVERGED,
    EXCLUDED,
    FILTERED,
    KEPT,
    LOSS,
    LOST,
    MENDED,
    RECOVERED,
    UNDECIDED,
    UNTAKEN,
    UNUSED,
    ByteRange,
    ExcludedRecords,
    MissingOffsetRange,
)
from kdump.questions.salvage.ledger import SalvageLedger
from kdump.questions.salvage.merge import Merge
from kdump.questions.salvage.reference_copy import ReplicaHistories, histories_of
from kdump.questions.salvage.source.damaged_records import rescue
from kdump.questions.salvage.source.file_parts import Disordered, InputFile, LostBytes, LostOffsets
from kdump.questions.salvage.source.salvage_reader import SalvageCandidate, SalvageReader
from kdump.questions.salvage.source.source_file import CORRECTED_BIT, is_one_bit, with_fields
from kdump.questions.salvage.source.sources import FoundCopy, SalvageInput
from kdump.questions.salvage.source.survey import OrderedReader, survey
from kdump.questions.salvage.write_segments import (
    BatchRejected,
    BatchWriter,
    EpochsWritten,
    SegmentWriter,
    checkpoint_text,
    count_batch,
)
from kdump.state.transaction_marker import marker_of
from kdump.state.transaction_tracker import OngoingTxn, OpenTransactions

METADATA = "partition.metadata"
EPOCHS = "leader-epoch-checkpoint"


def write_epochs(
    out: OutputDirectory,
    directory: str,
    made: Salvaged,
    copy: FoundCopy,
    epochs: EpochsWritten,
    cut_at: int | None = None,
) -> None:
    """Write leader-epoch-checkpoint; `made.logEndOffset` must be known. `cut_at`: the log start offset, if the log was
    cut. Raises OutputError."""
    entries, made.leaderEpochs = epochs.entries(made.logEndOffset or 0, cut_at)
    if made.leaderEpochs == "batches" and copy.copy.epochs is not None:
        made.notes.append("leader-epoch-checkpoint does not match the batches and is rebuilt from them")
    if entries:
        out.write(f"{directory}/{EPOCHS}", checkpoint_text(entries))


def write_topic_id(out: OutputDirectory, directory: str, made: Salvaged, copies: Sequence[FoundCopy]) -> None:
    """Write partition.metadata: the topic ID is that of the cluster's metadata on the same disk, or else of the first
    valid partition.metadata among the copies. Raises OutputError."""
    known_id = next((copy.copy.known.topic_id for copy in copies if copy.copy.known.topic_id), None)
    for given in copies:
        target = given.place.text(METADATA) if given.place is not None else None
        if target is None or given.place is None:
            continue
        own = topic_id(given.place)
        if own is None:
            made.notes.append(f"{target.path} is invalid and was not used")
        elif known_id is not None and own != known_id:
            made.notes.append(f"{target.path} has topic ID {own}, but the cluster's metadata has {known_id}")
        else:
            known_id = own
            break
    made.topicId = known_id
    if known_id is not None:
        out.write(f"{directory}/{METADATA}", f"version: 0\ntopic_id: {known_id}".encode())
    else:
        made.notes.append(title_of("salvage-use", "topicId"))


def note_surroundings(made: Salvaged, copy: FoundCopy) -> None:
    """Add notes on the log start offset in the source's log directory, and on the other files of a metadata log."""
    known, first, end = copy.copy.known, made.logStartOffset, made.logEndOffset or 0
    start = known.log_start
    only_remote = None if first is None or made.excluded else known.only_remote(first)
    if only_remote is not None:
        below, last = only_remote[0], only_remote[1] - 1
        made.onlyRemote = [below, last]
        made.notes.append(f"offsets {below}..{last} are in remote storage: --remote URL reads them")
    if start is not None and start > end:
        made.notes.append(title_of("salvage-use", "startBeyond", start=start))
    elif start is not None and first is not None and first < start:
        made.notes.append(title_of("salvage-use", "startOffset", start=start, first=first, last=start - 1))
    if made.topic == METADATA_TOPIC and made.lostHoles:
        made.notes.append(title_of("salvage-use", "metadata"))


SURVEYS = 3
"""How often the files of a partition are surveyed at most."""
MAX_REPORTED_TRANSACTIONS = 100
"""Maximum number of open transactions, and of doubtful ones, that are reported per partition."""

MakeSink = Callable[[OutputDirectory, SalvageInput], BatchWriter]
OnPass = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Begins a pass over some files, given its description and its number of bytes. The context receives the bytes read."""


def segments(out: OutputDirectory, job: SalvageInput) -> BatchWriter:
    return SegmentWriter(out, job.name)


def no_progress(_what: str, _size: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda count: None)


@dataclass(frozen=True)
class SalvageQuery(TopicsQuery):
    """What to salvage, from which copies, and what to leave out."""

    paths_option = {**Query.paths_option, "metavar": "SOURCE…"}
    out: str = option(
        "--out",
        metavar="DIR",
        required=True,
        otherwise=MISSING,
        help="Write to this directory, which must be new or empty.",
    )
    _: KW_ONLY
    replicas: Iterable[str] = many(
        "--replica", metavar="PATH", help="Fill what SOURCE lost from this other copy; repeatable."
    )
    prefer: str | None = option("--prefer", metavar="PATH", help="Follow this copy where the replicas diverge.")
    deleted: bool = flag("--deleted", help="Also take missing records from .deleted, .swap and .cleaned files.")
    damaged_records: bool = flag(
        "--damaged-records", help="Also recover the records of damaged batches that decode; their values may be wrong."
    )
    cut: CutRequest | None = None
    abort_open: bool = flag("--abort-open", help="End the transactions that are open in the output with ABORT markers.")
    topics: Iterable[str] = topic_option("Salvage only these topics")
    name: str | None = option(
        "--name", metavar="TOPIC-PARTITION", help="Use this name for SOURCE, if its directory has another."
    )
    on_pass: OnPass = no_progress
    sink: MakeSink = segments


def copy_named(job: SalvageInput, prefer: str | None) -> int | None:
    """Return the number of the only copy that is at the path `prefer`, or below it; None if there is no such copy."""
    if prefer is None:
        return None
    places = [real_path(given.copy.path) for given in job.copies]
    matches = [number for number, place in enumerate(places) if is_inside(place, real_path(prefer))]
    return matches[0] if len(matches) == 1 else None


def salvage_partition(
    job: SalvageInput,
    out: OutputDirectory,
    ledger: BinaryIO,
    wishes: SalvageQuery,
    options: Options,
) -> Salvaged:
    """Salvage one partition into `out`, in one pass. If a valid batch is out of order, survey the files and start
    again; a broker may replace or truncate a file after that, so up to SURVEYS times. Raises SourceError."""
    start = ledger.tell()
    first = PartitionRun(job, out, ledger, wishes, options)
    try:
        return first.run()
    except Disordered as error:
        found = error
    for _ in range(SURVEYS):
        ledger.seek(start)
        ledger.truncate()
        again = PartitionRun(job, out, ledger, wishes, options, LostOffsets())
        try:
            made = again.run(first.histories)
        except Disordered as error:
            found = error
            continue
        made.notes.append(f"{found}; they are written in offset order")
        return made
    raise SourceError.at(found.path, f"changed after each of {SURVEYS} surveys")


def bytes_to_read(job: SalvageInput, wishes: SalvageQuery) -> int:
    """Return how many bytes one pass over the copies reads, after the comparison of the copies with each other."""
    total = 0
    for given in job.copies:
        segments = _size(given.copy.segments)
        total += len(job.copies) * segments + _size(given.misnamed) + _size(given.replaced)
        total += _size(given.spares) if wishes.deleted else 0
    return total


def _size(files: Iterable[Target]) -> int:
    return sum(length(file.path) or 0 for file in files)


class PartitionRun:
    """The salvage of one partition into `out`. `losses`: to be filled by a survey of the files; if None, there is no
    survey, and Disordered is raised for batches out of order."""

    def __init__(
        self,
        job: SalvageInput,
        out: OutputDirectory,
        ledger: BinaryIO,
        wishes: SalvageQuery,
        options: Options,
        losses: LostOffsets | None = None,
    ) -> None:
        self.losses = losses
        self._passes = ExitStack()
        self.job, self.out, self.wishes = job, out, wishes
        self.options = replace(options, more=self._on_read)
        self._more = options.more
        self.made = Salvaged(job.topic, job.partition, [], job.name)
        self.ledger = SalvageLedger(self.made, ledger)
        self.sink = wishes.sink(out, job)
        self.histories: ReplicaHistories
        self.copies: list[FoundCopy] = []
        self.readers: list[SalvageReader] = []
        self.used: set[int] = set()
        """Base offsets in the names of the files from which a batch in order was written."""
        self.first: int | None = None
        self.next: int | None = None
        """The next offset, if nothing is missing."""
        self.lost_since = False
        """Whether something was lost since the last written batch."""
        self.dropped: list[tuple[int, int]] = []
        """Offset ranges (inclusive) of valid batches that have not been written, from any copy."""
        self.dropped_to = -1
        """The last of these offsets, except for those of another history: this history lacks nothing that another one
        has after its end."""
        self.lost_since_marker = -2
        """The offset after which something was lost most recently; -2 if nothing was."""
        self.doubted: tuple[SalvageCandidate, str] | None = None
        """The last batch, if one flipped bit may explain the gap before it, and what else may."""
        self.claimed: int | None = None
        """The last offset that was lost since the last written batch, according to headers; None if unknown."""
        self.cut = None if wishes.cut is None else RecordCut(wishes.cut)
        self.is_cut_off = False
        """Whether the end of the cut has been reached: nothing more is written."""
        self.before = OpenTransactions()
        """The transactions that are open at --from."""
        self.coordinator_epochs: dict[int, int] = {}
        """By producer ID, the epoch of the coordinator that wrote its last marker."""
        self.newest_timestamp = 0
        self.tail: SalvageCandidate | None = None
        """The last batch that was written."""

    def run(self, histories: ReplicaHistories | None = None) -> Salvaged:
        """Salvage the partition. `histories`: the decisions about the copies, if they have been made before."""
        with self._passes:
            return self._run(histories)

    def _run(self, histories: ReplicaHistories | None) -> Salvaged:
        given = self.job.copies
        self.histories = histories or histories_of(
            [copy.copy for copy in given], self.options, copy_named(self.job, self.wishes.prefer)
        )
        self.copies = [given[number] for number in self.histories.order]
        compacted = self.copies[0].copy.known.is_cleaned
        self.readers = self._all_readers()
        if self.losses is not None:
            size = _size(reader.place.target for reader in self.readers)
            self._begin_pass("2nd pass", size)
            self.readers = survey(self.readers, self.losses)
            self._begin_pass("3rd pass", size)
            if not self.histories.from_checkpoint and any(
                isinstance(reader, OrderedReader) and reader.tier == 0 for reader in self.readers
            ):
                self.histories.epochs = []  # batches out of order do not show where an epoch begins
        self.merge = Merge(self.readers, self.histories, self._disposed, compacted=compacted, losses=self.losses)
        named = [target.name_offset for target in self.copies[0].copy.segments if target.name_offset is not None]
        self.next = min(named, default=None)
        epochs = EpochsWritten(self.copies[0].copy.epochs)
        self.made.sources = [copy.copy.path for copy in self.copies]
        with self.out.together(self.job.name) if isinstance(self.sink, SegmentWriter) else nullcontext():
            try:
                for head in self.merge.chosen():
                    self._take(head, epochs)
                self._end(self.made, epochs, max(named, default=None))
            except BaseException:
                self.sink.abandon()
                raise
            finally:
                for reader in self.readers:
                    reader.close()
        return self.made

    def _begin_pass(self, name: str, size: int) -> None:
        """Begin a pass over all files, which have `size` bytes; ends the one before."""
        self._passes.close()
        pass_progress = self._passes.enter_context(self.wishes.on_pass(f"{self.job.name}: {name}", size))
        self._more = WorkProgress(size, Run(more=pass_progress)).more

    def _notes(self) -> Iterable[str]:
        """Yield notes on .swap files, and on files whose names are not a segment's: which were read, and which not."""
        for given in self.copies:
            yield from given.copy.notes
            for target in given.misnamed:
                yield f"{target.path}: not a segment's name; its batches are used where the segments lack their offsets"
            if given.unknown_names:
                which = first_of(given.unknown_names)
                yield f"{given.copy.path}: not read, because neither name nor first bytes are a segment's: {which}"

    def _cut_notes(self) -> Iterable[str]:
        """Yield notes on what the cut divides."""
        if self.cut is None:
            return
        if self.before.open:
            count = count_text(len(self.before.open), "transaction begins", "transactions begin")
            yield f"{count} before --from: of each, only the records from there on are in the output, and its marker"
        self.made.undecided = self.cut.undecided
        if self.cut.undecided:
            count = count_text(self.cut.undecided, "record is", "records are")
            reasons = "; ".join(self.cut.reasons) or "not known"
            yield f"{count} KEPT, but nothing shows whether --without matches: {reasons}"
        if self.cut.late:
            count = count_text(self.cut.late, "record")
            yield f"{count} after the cut at offset {self.cut.ends} have earlier timestamps than --until; to keep " + (
                "them, pass an offset"
            )

    def _all_readers(self) -> list[SalvageReader]:
        """Return a reader for each file, in order of copies."""
        made: list[SalvageReader] = []
        save = rescue if self.wishes.damaged_records else None
        for copy, given in enumerate(self.copies):
            names = tuple(
                sorted({segment.name_offset for segment in given.copy.segments if segment.name_offset is not None})
            )
            places = [InputFile(target, copy, names=names) for target in given.copy.segments]
            for place in places:
                following = len(names) if place.target.name_offset is None else bisect_right(names, place.name)
                place.beyond = names[following] if following < len(names) else None
            for target in given.misnamed:
                places.append(InputFile(target._replace(name_offset=None), copy, names=names, misnamed=True))
            for target in (*given.replaced, *given.spares):
                is_replaced = target in given.replaced
                if self.wishes.deleted or is_replaced:
                    places.append(InputFile(target, copy, spare=True, names=names, is_replaced=is_replaced))
                else:
                    reason = title_of("salvage-left", "deleted")
                    self.ledger.span(ByteRange(UNUSED, target.path, 0, length(target.path), reason=reason))
            for place in places:
                place.order, place.sizes = len(made), self.job.sizes
                made.append(SalvageReader(place, given.copy.known, self.options, self._lost, save))
        return made

    def _on_read(self, count: int) -> None:
        self._more(count)

    # -- batches

    def _take(self, source: SalvageCandidate, epochs: EpochsWritten) -> None:
        hole = None
        if not self.is_cut_off:
            self._correct_last(source)
        head = self._after_cut(source)
        if head is None:
            return
        first = self.next
        if first is not None and self.cut is not None:
            first = max(first, self.cut.begins or 0)
        if first is not None and head.base > first:
            is_lost = self._is_lost(first, head.base - 1) or (self.doubted is not None and self.doubted[0] is source)
            hole = MissingOffsetRange(first, head.base - 1, LOSS if is_lost else ABSENT)
            if hole.cause == LOSS:
                self.lost_since_marker = first - 1
        doubtful = self._doubtful(head)
        try:
            name, position = self.sink.write(head)
        except BatchRejected as error:
            self._record_outcome(head, UNTAKEN, str(error))
            return
        if doubtful is not None and len(self.made.doubtfulTransactions) < MAX_REPORTED_TRANSACTIONS:
            self.made.doubtfulTransactions.append(doubtful)
        if hole is not None:
            self.ledger.hole(hole)
        self.first = head.base if self.first is None else self.first
        if not head.reader.misplaced:
            self.used.add(head.reader.place.name)
        self._passed(source)
        self._note_marker(head)
        falls = epochs.add(head.epoch, head.base)
        odd = (*head.odd, "leader-epoch-decreased") if falls else head.odd
        if head.recovered is not None:
            fate, code = RECOVERED, head.mended[0]
            mended: tuple[str, ...] = ()
            reason = ", ".join((f"{head.records} of {plain_count(head.recovered, 'record')}", *head.mended[1:]))
            if head.records < head.recovered:
                self.lost_since_marker = head.last
        else:
            fate, mended, code, reason = MENDED if head.mended else KEPT, head.mended, "", ""
            if head.batch is not source.batch:
                fate = FILTERED if head.records else EXCLUDED
        span = self._span(head, fate, code, reason, mended, odd, name, position)
        self.ledger.span(span._replace(is_exact=True) if CORRECTED_BIT in head.mended else span)

    def _after_cut(self, head: SalvageCandidate) -> SalvageCandidate | None:
        """Return what the cut leaves of a batch; None, after recording it, if nothing of it is written."""
        if self.cut is None:
            return head
        batch, path = head.batch, head.reader.place.target.path
        place, result, excluded = self.cut.apply(head.reader.place.target, batch, head.base, head.last)
        for run in excluded:
            self.ledger.excluded(ExcludedRecords(path, *run))
        if result is not None and result.data is None:
            return head
        if result is not None and result.data:
            made = batch_of(result.data, batch.position, batch.limits)
            assert made is not None
            if isinstance(made, LegacyRecordBatch):
                read_wrapper(made)
            self.made.records[EXCLUDED] += result.removed
            return replace(head, batch=made, last=result.last)
        self.ledger.span(self._span(head, EXCLUDED, reason=CUT_REASONS[excluded[-1].cause]))
        if place == BEFORE and isinstance(self.sink, SegmentWriter):
            self.sink.starts_at_batch = True
            count_batch(self.before, head)
        if place != AFTER:
            self._passed(head)
        elif not self.is_cut_off:
            self._cut_off(self.cut.ends or 0)
        return None

    def _cut_off(self, end: int) -> None:
        """Record what is missing before the end, and that nothing more is written."""
        if self.next is not None and self.next < end and self._is_lost(self.next, end - 1):
            self.lost_since_marker = self.next - 1
            self.ledger.hole(MissingOffsetRange(self.next, end - 1, LOSS))
        self.lost_since, self.is_cut_off = False, True

    def _passed(self, head: SalvageCandidate) -> None:
        """Continue after a batch that was written, or left out on request."""
        self.next = head.last + 1
        self.lost_since, self.claimed = False, None
        self.dropped = [offsets for offsets in self.dropped if offsets[1] >= head.last + 1]
        self.is_cut_off = self.cut is not None and self.cut.ends is not None and self.next >= self.cut.ends

    def _note_marker(self, head: SalvageCandidate) -> None:
        self.tail = head
        self.newest_timestamp = max(self.newest_timestamp, head.batch.maxTimestamp or 0)
        marker = marker_of(head.batch) if self.wishes.abort_open else None
        if marker is not None and head.batch.producerId is not None:
            self.coordinator_epochs[head.batch.producerId] = marker.coordinatorEpoch or 0

    def _abort_open(self, sink: SegmentWriter, epochs: EpochsWritten) -> None:
        """Write an ABORT marker for each transaction that is open at the end."""
        for producer_id, running in list(sink.transactions.open.items()):
            assert self.tail is not None
            epoch, offset = self.tail.epoch, (self.next or 0)
            stated = self.coordinator_epochs.get(producer_id, 0)
            data = abort_marker(offset, epoch, self.newest_timestamp, producer_id, running.last_epoch, stated)
            made = batch_of(data, 0, self.tail.batch.limits)
            assert made is not None
            marker = SalvageCandidate(self.tail.reader, made, offset, offset)
            sink.write(marker)
            epochs.add(epoch, offset)
            self.next = offset + 1
            if len(self.made.abortedTransactions) < MAX_REPORTED_TRANSACTIONS:
                self.made.abortedTransactions.append(self._transaction(producer_id, running))

    def _correct_last(self, head: SalvageCandidate) -> None:
        """Correct the base offset of the last batch of the log if one flipped bit explains the gap before it, and no
        other offsets are missing; if some are, or if the gap may be that of a transaction marker, nothing decides, and
        the gap counts as a loss."""
        expected, reader = self.next, head.reader
        is_last = reader.tier == 0 and reader.place.beyond is None and not reader.misplaced and not self.lost_since
        if expected is None or not is_last or head.base <= expected or not is_one_bit(head.base ^ expected):
            return
        tail = self.tail
        is_same_file = tail is not None and tail.reader.place.target.path == reader.place.target.path
        if head.position != (tail.position + tail.size if tail is not None and is_same_file else 0):
            return  # another batch is before it in the file
        if expected < (reader.place.name or 0) or self._is_lost(expected, head.base - 1):
            return  # not an offset of this segment; or something else had the missing offsets
        if not isinstance(head.batch, DefaultRecordBatch) or reader.file.window.reaches(head.position + head.size + 1):
            return
        has_gaps = self.made.absentHoles or self.made.lostHoles or self.merge.is_compacted
        if head.base == expected + 1 or (has_gaps and reader.place.name != expected):
            self.doubted = head, "offsets are missing elsewhere, too" if has_gaps else "a marker may be missing there"
            return
        head.stored, head.batch = head.base, with_fields(head.batch, baseOffset=expected)
        head.last, head.base, head.mended = head.last + expected - head.base, expected, (*head.mended, "baseOffset")

    def _is_lost(self, first: int, last: int) -> bool:
        """Return True if the missing offsets first..last may have been lost, not only absent."""
        if self.lost_since or any(base <= last and end >= first for base, end in self.dropped):
            return True
        return self.losses is not None and self.losses.may_have(first, last, compacted=self.merge.is_compacted)

    def _doubtful(self, head: SalvageCandidate) -> DoubtfulTransaction | None:
        """Return the transaction that a COMMIT or ABORT marker ends, if something inside it was lost; else None."""
        if not (self.lost_since_marker >= 0 and head.batch.isControlBatch and isinstance(self.sink, SegmentWriter)):
            return None
        running = self.sink.transactions.open.get(head.batch.producerId or 0)
        marker = marker_of(head.batch)
        if running is None or marker is None or self.lost_since_marker < running.first_offset:
            return None
        return DoubtfulTransaction(
            head.batch.producerId or 0, running.last_epoch, running.first_offset, head.last, marker.type
        )

    def _disposed(self, head: SalvageCandidate, fate: str, reason: str) -> None:
        outside = "" if self.cut is None or fate not in LOST else self.cut.is_outside(head.base, head.last)
        if outside:
            self.ledger.span(self._span(head, EXCLUDED, "", f"{CUT_REASONS[outside]}; {fate}: {reason}"))
        elif fate in LOST:
            self._record_outcome(head, fate, reason)
        else:
            self.ledger.span(self._span(head, fate, "", reason))

    def _record_outcome(self, head: SalvageCandidate, fate: str, reason: str) -> None:
        if self.next is None or head.last >= self.next:
            self._not_written(head, fate)
        self.ledger.span(self._span(head, fate, "", reason))

    def _not_written(self, head: SalvageCandidate, fate: str) -> None:
        """Record a valid batch that is not written, and some of whose offsets have not been written."""
        if fate != DIVERGED:
            self.dropped_to = max(self.dropped_to, head.last)
            self.merge.damaged = self.merge.damaged or head.reader.tier == 0
        if fate == UNDECIDED:
            return  # as is everything after it
        if self.dropped and head.base <= self.dropped[-1][1] + 1:
            base, last = self.dropped.pop()
            self.dropped.append((min(base, head.base), max(last, head.last)))
        else:
            self.dropped.append((head.base, head.last))

    def _span(
        self,
        head: SalvageCandidate,
        fate: str,
        code: str = "",
        reason: str = "",
        mended: tuple[str, ...] = (),
        odd: tuple[str, ...] = (),
        name: str | None = None,
        position: int | None = None,
    ) -> ByteRange:
        path = head.reader.place.target.path
        base, last = head.base, head.last
        if fate in LOST and head.stored is not None:  # the ledger names the offsets that the batch has in the file
            base, last = head.stored, head.stored + last - base
            reason += f"; judging by its neighbors, its base offset is {head.base}"
        where = (path, head.position, head.size, base, last, 1, head.records)
        return ByteRange(fate, *where, code, reason, mended, odd, name, position)

    def _lost(self, reader: SalvageReader, lost: LostBytes) -> None:
        span = ByteRange(lost.fate, reader.place.target.path, lost.position, lost.size, lost.offset, lost.lastOffset)
        counted = span._replace(batches=int(lost.offset is not None), records=lost.records)
        self.ledger.span(counted._replace(code=lost.code, reason=lost.reason))
        if span.is_lost and not reader.surveyed:
            self._has_lost(reader, lost.lastOffset if lost.is_possible else None)

    def _has_lost(self, reader: SalvageReader, last: int | None) -> None:
        if self.is_cut_off:
            return  # what follows the end is left out, damaged or not
        self.lost_since = True
        if last is not None and (self.next is None or last >= self.next):
            self.claimed = max(last, self.claimed or 0)
        if reader.tier == 0:
            self.merge.damaged = True

    # -- the end

    def _end(self, made: Salvaged, epochs: EpochsWritten, newest: int | None) -> None:
        start, losses = self.next or 0, self.losses
        furthest = max(self.dropped_to, -1 if losses is None else losses.last)
        if furthest >= start and not self.is_cut_off:
            self.lost_since, self.claimed = True, max(furthest, self.claimed or 0)
        if losses is not None and not self.is_cut_off:
            self.lost_since = self.lost_since or (losses.unknown and not made.lostHoles)
        if self.lost_since:
            self.lost_since_marker = start - 1
            self.ledger.hole(MissingOffsetRange(start, self.claimed, LOSS))
        sink = self.sink
        if isinstance(sink, SegmentWriter):
            self._files(made, sink, epochs, newest)
        else:
            sink.close()
        made.files = list(sink.files)
        for reader in self.readers:
            self.ledger.ended(reader.place.target.path)
        self.ledger.close()
        made.logStartOffset, made.stop = self.first, self.histories.stop
        if made.logEndOffset is None and self.first is not None:
            made.logEndOffset = self.next
        made.notes = self.histories.notes + made.notes
        made.notes += [*self._notes(), *self._cut_notes()]
        if self.doubted is not None:
            head, other = self.doubted
            made.notes.append(
                f"the last batch states offset {head.base}, one flipped bit away from the offset that follows the "
                f"batch before it; {other}, so that nothing shows which is right"
            )
        made.notes += dict.fromkeys(note for reader in self.readers for note in reader.notes)

    def _files(self, made: Salvaged, sink: SegmentWriter, epochs: EpochsWritten, newest: int | None) -> None:
        """Write the rest of the partition directory: markers, an empty last segment if there was one, the leader
        epochs, and the topic ID."""
        if self.wishes.abort_open:
            self._abort_open(sink, epochs)
        tail = newest
        is_kept = sink.names or not (made.lostHoles or self.cut is not None)
        if newest in self.used or not is_kept or self.is_cut_off:
            tail = None
        if self.cut is not None and sink.names and self.next is not None and sink.last + 1 < self.next:
            tail = max(self.next, tail or 0)  # what was left out at the end keeps its offsets
        if tail is not None:
            sink.empty(tail)
        sink.close()
        if not sink.names:
            return
        made.logStartOffset, made.logEndOffset = self.first, max(sink.last + 1, sink.names[-1])
        cut_at = None if self.cut is None else sink.names[0]
        write_epochs(self.out, sink.writing, made, self.copies[0], epochs, cut_at)
        write_topic_id(self.out, sink.writing, made, self.copies)
        note_surroundings(made, self.copies[0])
        made.openTransactions = [
            self._transaction(producer_id, transaction)
            for producer_id, transaction in islice(sink.transactions.open.items(), MAX_REPORTED_TRANSACTIONS)
        ]
        made.lastStableOffset = sink.transactions.first_undecided

    def _transaction(self, producer_id: int, transaction: OngoingTxn) -> OpenTransaction:
        lost = self.lost_since_marker >= transaction.first_offset
        return OpenTransaction(
            producer_id,
            transaction.last_epoch,
            transaction.first_offset,
            transaction.last_offset,
            transaction.records,
            lost,
        )
