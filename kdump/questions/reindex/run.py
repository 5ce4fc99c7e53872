"""`kdump.reindex`: rebuilds the indexes of segments as a broker does, and compares the existing ones with them.

A broker does this at startup for a segment without an .index, or with a .timeindex or .txnindex that fails its sanity
check; and, after an unclean shutdown, for the segment that contains the recovery point and those after it. Source:
LogLoader.loadSegmentFiles, LogLoader.recoverLog, LogSegment.recover.

A broker loads the newest producer snapshot up to that offset, and replays the batches after it; without a snapshot, it
replays the batches from the log start. Source: LogLoader.recoverSegment, UnifiedLog.rebuildProducerState."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, NESTED, OFFSET, PATH, Doc, PathText, Shown, answer, columns
from kdump.check.engine.units import units
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.io import file_system
from kdump.io.command_line_paths import missing
from kdump.io.errors import SourceError, went_away
from kdump.io.fault_tolerant import careful_source
from kdump.io.run import Run
from kdump.kafka.log_segment import first_unflushed
from kdump.kafka.producer_state_manager import OngoingTxns, SnapshotFiles
from kdump.log.file_kinds import CLEAN_MARK, INDEX, INDEXES, SEGMENT, TIME_INDEX, TXN_INDEX, FileKind
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.live_files import PAUSES, FileWatch, identity
from kdump.log.log_directory import log_directory_above
from kdump.log.output_directory import OutputDirectory, OutputError
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles, current, partition
from kdump.log.paths import Target, is_live, target
from kdump.query import Query, TopicsQuery, flag, offered, option, topic_option
from kdump.questions.reindex.segment import RebuildOptions, RebuiltSegment, RecoveryEnd, rebuild
from kdump.questions.reindex.verdict import IDENTICAL, MISSING, NOT_NEEDED, UNREAD, Verdict

__all__ = ["Reindexed", "reindex"]

ENDINGS: dict[FileKind, str] = {INDEX: ".index", TIME_INDEX: ".timeindex", TXN_INDEX: ".txnindex"}
LITTLE = frozenset({"offsets"})
"""Rule families for which as little as possible is read from the files around a partition."""


def _verdict(made: Reindexed, kind: FileKind) -> str:
    for verdict in made.verdicts:
        if verdict.kind is kind and verdict.status != NOT_NEEDED:
            return verdict.status + f" {verdict.entries}" * (verdict.status not in (MISSING, UNREAD))
    return ""


@columns(
    bytes=Shown(rank=5, right=True, cell=lambda made: str(made.size)),
    indexed=Shown("batches", 4, right=True, cell=lambda made: str(made.batches)),
    **{kind.name: Shown(name, cell=partial(_verdict, kind=kind)) for kind, name in ENDINGS.items()},
)
@answer("reindex")
@dataclass
class Reindexed:
    """One segment: its rebuilt indexes compared with the existing ones."""

    topic: Annotated[str | None, Doc("topic, from the directory's name")]
    partition: Annotated[int | None, Doc("partition, from the directory's name")]
    file: Annotated[PathText, Doc("path of the segment"), Shown("segment", least=24, cuts=PATH)]
    baseOffset: Annotated[int, Doc("base offset, from the segment's name", OFFSET)]
    interval: Annotated[
        int, Doc("index.interval.bytes used to rebuild", BYTES, name="indexInterval", after="lastOffset")
    ]
    rebuilt: RebuiltSegment
    notes: Annotated[list[PathText], Doc("what could not be considered", after="indexes")] = field(default_factory=list)
    segmentsBehind: Annotated[
        int, Doc("number of later segments, which log recovery deletes if it truncates this one", after="endings")
    ] = 0

    @property
    def size(self) -> Annotated[int, Doc("size of the segment", BYTES)]:
        return self.rebuilt.size

    @property
    def validSize(
        self,
    ) -> Annotated[int, Doc("bytes that recovery accepts; less than size if it would truncate the log", BYTES)]:
        return self.rebuilt.valid

    @property
    def batches(self) -> Annotated[int, Doc("number of indexed batches")]:
        return self.rebuilt.batches

    @property
    def lastOffset(
        self,
    ) -> Annotated[int | None, Doc("last offset of the indexed batches; null if there are none", OFFSET)]:
        return self.rebuilt.lastOffset

    @property
    def endings(
        self,
    ) -> Annotated[
        list[RecoveryEnd],
        Doc(
            f"why recovery stops before the end, and with --past-damage each damaged byte range, each {NESTED}; "
            "empty if recovery accepts everything"
        ),
    ]:
        return self.rebuilt.endings

    @property
    def verdicts(
        self,
    ) -> Annotated[list[Verdict], Doc(f"verdicts on .index, .timeindex and .txnindex, each {NESTED}", name="indexes")]:
        """Verdicts on the existing indexes; empty if the segment is too large, or its indexes cannot be built."""
        return self.rebuilt.verdicts

    @property
    def is_valid(self) -> bool:
        """Whether a broker can use the existing indexes."""
        return all(verdict.is_valid for verdict in self.verdicts)

    @property
    def is_rebuilt(self) -> bool:
        """Whether there are indexes as a broker would have written them."""
        return self.rebuilt.indexes is not None

    @property
    def is_cut(self) -> bool:
        """Whether recovery stops before the end of the segment because of damage."""
        return self.rebuilt.ending is not None and not self.rebuilt.ending.is_usual

    @property
    def is_ordinary(self) -> bool:
        """Whether there is nothing to report."""
        as_rebuilt = all(verdict.status in (IDENTICAL, NOT_NEEDED) for verdict in self.verdicts)
        return as_rebuilt and not self.rebuilt.endings and not self.notes

    @property
    def is_unread(self) -> bool:
        return any(verdict.status == UNREAD for verdict in self.verdicts)


@dataclass(frozen=True)
class ReindexQuery(TopicsQuery):
    """Which segments to rebuild the indexes of, and how."""

    paths_option = {**Query.paths_option, "metavar": "SEGMENT…"}
    out: str | None = option(
        "--out", metavar="DIR", help="Write the rebuilt indexes to this new directory.  [only compare]"
    )
    _: KW_ONLY
    topics: Iterable[str] = topic_option("Rebuild only these topics")
    interval: int | None = option(
        "--interval", type="int", help="Assume this index.interval.bytes.  [the topic's, or 4096]"
    )
    past_damage: bool = flag("--past-damage", help="Also index batches after damage, which no broker does.")


def answers(query: ReindexQuery) -> Iterator[Reindexed]:
    """Yield the segments that `paths` stand for: files, partition directories, log directories, or directories above.
    Rebuilt indexes are written to `out`, a new directory, as topic-partition/<base offset>.index …; by default nothing
    is written.

    `interval`: index.interval.bytes, by default the topic's if the metadata is on the same disk, else 4096.
    `run.unreadable` is called with the SourceError for what could not be read. Raises SourceError, and
    kdump.log.output_directory.OutputError."""
    named, out = list(query.paths), query.out
    options = Options.given(query.run, only=LITTLE, open_source=careful_source)
    output = None if out is None else OutputDirectory(out, named)
    places = [place for place in find_segments(named, options) if query.has_topic(place.partition.topic)]
    names = _names(places) if output is not None else [""] * len(places)
    for listed, name in zip(places, names):
        place = now(listed)
        if not place.selected_segments:
            options.unreadable(SourceError(went_away(place.partition.path)))
            continue
        question = RebuildOptions(
            interval=place.known.index_interval if query.interval is None else query.interval,
            largest=place.known.index_size,
            compacted=place.known.is_cleaned,
            past_damage=query.past_damage,
        )
        with nullcontext() if output is None else output.synced_once():
            for made in _Partition(place, question, options).run():
                if output is not None and made.rebuilt.indexes is not None:
                    _write(output, name, made)
                yield made


reindex = offered("reindex", ReindexQuery, answers)


def _names(places: list[ReindexInput]) -> list[str]:
    """Return the subdirectory of the output directory for each partition: topic-partition, preceded by the name of its
    log directory if there are several. Raises OutputError if two are the same."""
    directories = {place.directory for place in places}
    names = []
    for place in places:
        name = place.partition.name if place.partition.topic is not None else ""
        if len(directories) > 1 and place.directory is not None:
            name = f"{os.path.basename(os.path.abspath(place.directory))}/{name}"
        names.append(name)
    for number, name in enumerate(names):
        if name in names[:number]:
            one, other = places[names.index(name)].partition.path, places[number].partition.path
            raise OutputError(f"{one} and {other} would be written to the same path; rebuild each with its own --out")
    return names


def _write(output: OutputDirectory, name: str, made: Reindexed) -> None:
    """Write the files that a broker leaves next to the segment: a .txnindex only if it has entries, or existed before.
    Indexes of a .deleted, .swap or .cleaned segment get the same suffix, because they are not live."""
    stem, _, rest = os.path.basename(made.file).partition(".")
    ending = "" if is_live(made.file) else rest.removeprefix("log")
    indexes = made.rebuilt.indexes
    assert indexes is not None
    data = {INDEX: indexes.index, TIME_INDEX: indexes.timeindex, TXN_INDEX: indexes.txnindex}
    for verdict in made.verdicts:
        if verdict.kind is not TXN_INDEX or data[verdict.kind] or verdict.path is not None:
            path = "/".join(part for part in (name, stem + ENDINGS[verdict.kind] + ending) if part)
            output.write(path, data[verdict.kind])
            verdict.written = output.path(path)


@answer("reindexSummary")
class ReindexSummary(NamedTuple):
    """Totals of all segments."""

    segments: Annotated[int, Doc("number of segments that were rebuilt or could not be")]
    identical: Annotated[int, Doc("number of index files that equal the rebuilt ones byte for byte")]
    legal: Annotated[int, Doc("number of index files that differ as a broker may write them")]
    wrong: Annotated[int, Doc("number of index files that contradict their segment")]
    missing: Annotated[int, Doc("number of missing index files that a broker needs")]
    cut: Annotated[int, Doc("number of segments that recovery would truncate because of damage")]
    refused: Annotated[int, Doc("number of segments that a broker does not recover, so that nothing was rebuilt")]
    written: Annotated[int, Doc("number of files written")]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    seconds: Annotated[float, Doc("elapsed time", "s")]


class _Partition:
    """One partition. Its segments are read in order, because each needs the transactions that those before it left
    open."""

    def __init__(self, place: ReindexInput, question: RebuildOptions, options: Options) -> None:
        self.place, self.question, self.options = place, question, options
        self.transactions = OngoingTxns()
        self.reached = -1
        """Number of the segment at whose beginning `transactions` is valid; -1: of none."""
        self.is_broken = False
        """Whether the segment before that one was not replayed completely."""

    def run(self) -> Iterator[Reindexed]:
        segments = self.place.partition.segments
        named = self.place.named
        paths = None if named is None else {segment.log.path for segment in named if segment.log is not None}
        for number, segment in enumerate(segments):
            if paths is None or (segment.log is not None and segment.log.path in paths):
                made = self._confirmed(segment, self._lead_to(number))
                self.reached = number + 1
                if made is not None:
                    yield made
        live = {segment.log.path for segment in segments if segment.log is not None}
        for segment in named or ():
            if segment.log is not None and segment.log.path not in live:  # .deleted, .swap, .cleaned
                made = self._segment(segment, self._begin(segment.offset))
                if made is not None:
                    yield made

    def _confirmed(self, segment: SegmentFiles, notes: list[str]) -> Reindexed | None:
        """Return a segment, read again if its indexes contradict it and a broker has changed them since. What changes
        all the time is not judged."""
        begins = dict(self.transactions.open), self.transactions.known
        for pause in (*PAUSES, None):
            watch, indexes = FileWatch(), (index.path for index in segment.indexes.values())
            for path in (self.place.partition.path, *filter(None, (segment.log and segment.log.path,)), *indexes):
                watch.look(path, identity(path))
            if self.place.directory is not None and self.place.known.clean:
                mark = os.path.join(self.place.directory, CLEAN_MARK)
                watch.look(mark, identity(mark))
                if identity(mark) is None:  # a broker that has started since opens the indexes
                    self.place.known = replace(self.place.known, clean=False)
            made = self._segment(segment, notes)
            if made is None or (made.is_valid and not made.is_unread) or not watch.any_changed():
                return made
            if pause is not None:
                time.sleep(pause)
                self.transactions.open, self.transactions.known = dict(begins[0]), begins[1]
                again = now(self.place).partition.segments
                listed = next((each for each in again if each.offset == segment.offset), None)
                if listed is None or listed.log is None:
                    self.options.unreadable(SourceError(went_away(made.file)))
                    return None
                segment = listed
        assert made is not None
        made.rebuilt.verdicts[:] = [
            verdict for verdict in made.verdicts if verdict.is_valid and verdict.status != UNREAD
        ]
        made.notes.append("its indexes are not compared: they kept changing while this ran")
        return made

    def _lead_to(self, number: int) -> list[str]:
        """Bring `transactions` to the beginning of a segment; return notes on what is unknown about them."""
        place, offset = self.place.partition, self.place.partition.segments[number].offset
        if self.reached == number:
            if not self.is_broken:
                return []
            if snapshot_at(place, offset, self.options) is None:
                return ["damage in the previous segment hides which transactions are open at the start of this one"]
            return self._begin(offset)
        first = first_needed(place, number, self.options)
        notes = [] if first <= self.reached else self._begin(place.segments[first].offset)
        for before in place.segments[max(first, self.reached) : number]:
            self._segment(before, [], judged=False)
        return notes

    def _begin(self, offset: int) -> list[str]:
        """Set `transactions` to what a broker knows at the beginning of a segment after a startup: the state in the
        producer snapshot there, or nothing. Return notes on what is unknown."""
        self.question.known_from = 0
        loaded = snapshot_at(self.place.partition, offset, self.options) if offset > 0 else None
        self.transactions = OngoingTxns() if loaded is None else loaded
        if offset == 0 or loaded is not None:
            return []
        self.question.known_from = offset
        problem = f"no valid producer snapshot at offset {offset}"
        return [f"{problem}: a transaction that started before it is unknown, to a broker as well"]

    def _segment(self, segment: SegmentFiles, notes: list[str], *, judged: bool = True) -> Reindexed | None:
        assert segment.log is not None
        place = self.place
        self.question.is_last = is_last(place, segment)
        self.question.open_end = place.known.may_be_open(self.question.is_last)
        self.question.unflushed = is_unflushed(place, segment)
        try:
            rebuilt = rebuild(segment, self.transactions, self.question, self.options, judged=judged)
        except SourceError as error:
            self.options.unreadable(error)
            self.is_broken = True
            return None
        self.is_broken = bool(rebuilt.endings)
        for verdict in rebuilt.verdicts:
            if verdict.unread:
                self.options.unreadable(SourceError(verdict.unread))
        matters = self.transactions.known or any(verdict.size for verdict in rebuilt.verdicts[2:])
        target, interval = segment.log, self.question.interval
        topic, number = place.partition.topic, place.partition.partition
        following = sum(other.offset > segment.offset for other in place.partition.segments)
        notes = notes if matters else []
        return Reindexed(topic, number, target.path, segment.offset, interval, rebuilt, notes, following)


def snapshot_at(partition: PartitionDirectory, offset: int, options: Options) -> OngoingTxns | None:
    """Return the transactions that are open in the producer snapshot at that offset; None if there is no valid one."""
    for snapshot in partition.snapshots:
        if snapshot.name_offset == offset:
            with suppress(SourceError):
                ongoing = SnapshotFiles({offset: snapshot}, options.open).read(offset)
                return None if ongoing is None else OngoingTxns(ongoing)
    return None


def first_needed(partition: PartitionDirectory, number: int, options: Options) -> int:
    """Return the number of the segment at which the replay for segment `number` has to start."""
    for before in range(number, 0, -1):
        if snapshot_at(partition, partition.segments[before].offset, options) is not None:
            return before
    return 0


@dataclass
class ReindexInput:
    """One partition and the segments of it to reindex: those in `named`, or all. `directory`: the log directory that
    contains the partition, if any."""

    partition: PartitionDirectory
    known: PartitionContext
    named: list[SegmentFiles] | None
    directory: str | None

    @property
    def selected_segments(self) -> list[SegmentFiles]:
        return self.partition.segments if self.named is None else self.named


def find_segments(paths: Iterable[str], options: Options) -> list[ReindexInput]:
    """Return the partitions at `paths`, in order. Calls `options.unreadable` for paths that are not segments, or not
    readable."""
    inputs: list[ReindexInput] = []
    files: dict[str, ReindexInput] = {}
    for unit in units(tuple(paths), options):
        place, target = unit.partition, unit.target
        if place is not None:
            for problem in place.listing_errors:
                options.unreadable(SourceError(problem))
            if place.segments:
                inputs.append(_asked(place, unit.known, None))
        elif target is not None:
            segment = _segment(target, options)
            folder = os.path.dirname(target.path) or "."
            if segment is not None and folder not in files:
                files[folder] = _asked(partition(folder), unit.known, [])
                inputs.append(files[folder])
            if segment is not None:
                here = files[folder]
                assert here.named is not None
                here.named.append(segment)
    for here in files.values():
        _use_given_paths(here)
    return inputs


def now(place: ReindexInput) -> ReindexInput:
    """The partition at its turn: listed again if its directory has changed since, unless segments were named."""
    here = current(place.partition)
    return place if here is place.partition or place.named is not None else replace(place, partition=here)


def _use_given_paths(made: ReindexInput) -> None:
    """Put the segments that were given as paths in the place of those of the directory."""
    assert made.named is not None
    given = {os.path.basename(segment.log.path): segment.log for segment in made.named if segment.log is not None}
    segments = []
    for segment in made.partition.segments:
        file = given.get(os.path.basename(segment.log.path)) if segment.log is not None else None
        segments.append(segment if file is None else segment.with_log(file))
    live = {os.path.basename(segment.log.path): segment for segment in segments if segment.log is not None}
    made.named = [live.get(os.path.basename(segment.log.path), segment) for segment in made.named if segment.log]
    made.partition = made.partition.with_segments(segments)


def _segment(target: Target, run: Run) -> SegmentFiles | None:
    """Return a file given by the user as a segment; if it is not one, tell `options.unreadable` and return None."""
    if target.path == "-" or "://" in target.path:
        run.unreadable(
            SourceError.at(
                target.path, "the base offset comes from the segment's name; copy the segment to a file with that name"
            )
        )
    elif not file_system.exists(target.path):
        run.unreadable(missing(target.path))
    elif target.kind is None or (target.name_offset is None and target.kind is SEGMENT):
        run.unreadable(
            SourceError.at(target.path, "not named like a segment (<20 digits>.log), whose name states its base offset")
        )
    elif target.kind is not SEGMENT:
        run.unreadable(
            SourceError.at(target.path, f"{target.kind.title}, not a segment; pass the .log in the same directory")
        )
    else:
        return SegmentFiles("", target.name_offset or 0, target, _adjacent_indexes(target))
    return None


def _adjacent_indexes(segment: Target) -> dict[FileKind, Target]:
    """Return the indexes of a segment file. If it is not live, their names have the same suffix (.deleted, .swap)."""
    stem, _, ending = segment.path.rpartition(".log")
    paths = {kind: f"{stem}.{kind.name}{ending}" for kind in INDEXES}
    return {kind: target(path, source=segment.source) for kind, path in paths.items() if file_system.isfile(path)}


def _asked(place: PartitionDirectory, known: PartitionContext, named: list[SegmentFiles] | None) -> ReindexInput:
    directory = log_directory_above(place.path)
    return ReindexInput(place, known, named, directory.path if directory is not None else None)


def is_last(made: ReindexInput, segment: SegmentFiles) -> bool:
    """Return True if no segment of the partition follows."""
    return not made.partition.segments or segment.offset >= made.partition.segments[-1].offset


def is_unflushed(made: ReindexInput, segment: SegmentFiles) -> bool:
    """Return True if a startup recovers a segment because it may not be flushed: after an unclean shutdown, one that
    does not end below the recovery point; of the metadata log, every time."""
    context = made.known
    if context.topic == METADATA_TOPIC:
        return True
    point = context.checkpoints.get("recovery-point-offset")
    bases = [segment.offset for segment in made.partition.segments]
    first = bases[first_unflushed(bases, 0 if point is None else point.offset)] if bases else 0
    return context.clean is False and segment.offset >= first
