"""Searches every record in the files of a directory, wherever it is, and counts what could not be searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import KW_ONLY, MISSING, dataclass, replace
from functools import cached_property
from typing import Any

from kdump.check.engine.unflipped import unflipped
from kdump.check.options import Options
from kdump.core.record_columns import RecordColumns, decode
from kdump.decode.decoder_interface import DecodedRecord
from kdump.decode.record_decoder import DecodeOptions, RecordDecoder, schemas_of
from kdump.format.batch_header import BatchHeader
from kdump.format.codec import decompress
from kdump.format.errors import RECORD_COUNT_MISMATCH, DecodeError
from kdump.io.errors import SourceError, is_gone
from kdump.io.fault_tolerant import careful_source
from kdump.io.partly_readable import PartlyReadable
from kdump.io.run import PLAIN_RUN
from kdump.io.window import Window
from kdump.log.batch_records import decode_columns, records, rows_of
from kdump.log.expression.parser import parse
from kdump.log.expression.terms import MAYBE, NO, YES, Expression, FileFacts, RecordFacts
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import (
    PADDING,
    TORN,
    Batch,
    DefaultRecordBatch,
    LegacyRecordBatch,
    Region,
    batches_of,
    without_problems,
)
from kdump.log.region_reader import Depth
from kdump.log.torn_batch import TornBatch
from kdump.log.walk import PartitionReader
from kdump.query import Query, argument, flag, now_option, option
from kdump.questions.carve.search import Search as BatchSearch
from kdump.questions.find.answer import DAMAGED, HIDDEN, LIVE, OUTSIDE, Found
from kdump.questions.find.answer import TORN as INCOMPLETE
from kdump.questions.find.coverage import LIMIT, Coverage, RemoteOffsets
from kdump.questions.find.directory import SearchedDirectory, SearchSurroundings
from kdump.questions.find.listing import states_of
from kdump.questions.find.prefilter import Prefilter

MAX_FRAMES = 100
"""Maximum number of LZ4 frames after the one that consumers read."""
MANY = (1 << 31) - 1
SHORTEST = 3
"""Bytes of text that are worth to be named where they are in something else."""


@dataclass(frozen=True)
class FindQuery(Query):
    """What is searched for, and how."""

    paths_option = {**Query.paths_option, "required": False}  # --verify takes none
    expression: str | Expression = argument(metavar="EXPR", required=False, otherwise=MISSING)
    _: KW_ONLY
    live: bool = flag("--live", help="Show only what a consumer with isolation.level=read_committed receives.")
    when: bool = flag("--when", help="Show what removes each record, and when, by the rules of retention.")
    now: int | None = now_option("With --when: as of this time", needs="when")
    limit: int | None = option("-n", "--limit", type="count", help="Stop after N records.")
    jobs: int | None = 1
    decode: DecodeOptions | None = None

    @cached_property
    def parsed(self) -> Expression:
        return parse(self.expression) if isinstance(self.expression, str) else self.expression

    @cached_property
    def options(self) -> Options:
        return Options.as_of(self.run, self.now, only=frozenset({"indexes"}), open_source=careful_source)


class Search:
    """A search of directories, one after the other. It is what the expression asks about records besides their
    bytes."""

    def __init__(self, query: FindQuery) -> None:
        self.query = query
        self.expression, self.options = query.parsed, query.options
        self.decoding = RecordDecoder(query.decode or DecodeOptions(paths=tuple(query.paths)))
        self.coverage = Coverage()
        self.remote = RemoteOffsets()
        self.around = SearchSurroundings(self.options)
        self.directory = SearchedDirectory([], self.around)
        self._of_file: Target | None = None
        self._prefilters: dict[object, Prefilter] = {}

    def matches(self, files: list[tuple[Target, int]]) -> Iterator[Found]:
        """Yield the matches in the files of a directory, with what each is."""
        self.directory = SearchedDirectory([file for file, _ in files], self.around)
        for found in self.directory.labelled(self._files(files)):
            if not self.query.live or self.directory.is_received(found):
                yield self.directory.with_end(found) if self.query.when else found
        self.remote.directory(self.directory, self.expression)

    def read(self, target: Target, record: Record) -> DecodedRecord | None:
        return self.decoding.read(target, record)

    def is_aborted(self, target: Target, batch: Batch) -> bool | None:
        return self.directory.is_aborted(target, batch)

    def unlisted(self, error: SourceError) -> None:
        """Take note of a directory that cannot be listed."""
        if not is_gone(error):
            self.coverage.add(error.path, str(error), None, 0)
        self.options.unreadable(error)

    def _files(self, files: list[tuple[Target, int]]) -> Iterator[Found]:
        waiting = list(reversed(files))
        try:
            while waiting:
                file, size = waiting.pop()
                states = states_of(file)
                is_out = self.expression.term.truth(FileFacts(file)) == NO or (self.query.live and states != (LIVE,))
                if is_out:
                    self.coverage.rule_out(size)
                else:
                    yield from self._file(file, size, states)
        finally:
            self.coverage.stopped(waiting)

    def _file(self, file: Target, size: int, states: tuple[str, ...]) -> Iterator[Found]:
        """Yield the matches in a file."""
        coverage = self.coverage
        coverage.begin(size)
        self.options.begin(file)
        errors: list[SourceError] = []
        reader = PartitionReader(self.options.open, replace(self.options, unreadable=errors.append))
        reached = 0
        try:
            for region in reader.segment(file, Depth.CHECKSUMS):
                self.options.at(region.position, size)
                self.options.more(region.size)
                yield from self._region(file, region, reader, states)
                reached = region.end
        except GeneratorExit:
            coverage.add(file.path, LIMIT, reached, max(0, size - reached))
            raise
        source = reader.window.source if reader.window is not None else None
        unreadable: list[tuple[int, int]] = source.unreadable if isinstance(source, PartlyReadable) else []
        for position, count in unreadable:
            coverage.add(file.path, "the device cannot read it", position, count)
        for error in errors:
            is_other = file.kind is None and file.source != file.path
            if not is_gone(error):
                reason = self._foreign(file) if is_other else str(error)
                coverage.add(file.path, reason, reached or None, 0 if unreadable else max(0, size - reached))
            if not is_other:
                self.options.unreadable(error)

    def _foreign(self, file: Target) -> str:
        reason = "no file of Kafka's, and without a batch"
        try:
            window = self.options.open(file)
            with closing(window.source):
                return reason + self._where(window, 0, window.source.size or 0)
        except SourceError:
            return reason

    def _add_bytes(self, file: Target, reason: str, window: Window, position: int, size: int) -> None:
        self.coverage.add(file.path, reason + self._where(window, position, size), position, size)

    def _where(self, window: Window, position: int, size: int) -> str:
        """Return where bytes that nothing decodes contain text that is looked for."""
        tests = [content.test for content in self.expression.contents]
        needles = [test.data for test in tests if test.operator in ("==", "in") and len(test.data) >= SHORTEST]
        longest, before = max(map(len, needles), default=0), b""
        for piece in window.chunks(position, size) if needles else ():
            data = before + bytes(piece)
            places = [at for at in map(data.find, needles) if at >= 0]
            if places:
                return f"; what is looked for is in it as text, at byte {position - len(before) + min(places)}"
            before, position = data[len(data) - longest + 1 :], position + len(piece)
        return ""

    def _region(
        self, file: Target, region: Region, reader: PartitionReader, states: tuple[str, ...]
    ) -> Iterator[Found]:
        if region.kind == PADDING:
            return
        has_batch = False
        for batch in batches_of(region):
            has_batch = True
            yield from self._batch(file, batch, states)
        if not has_batch:
            yield from self._rest(file, region, reader, states)

    def _batch(self, file: Target, batch: Batch, states: tuple[str, ...]) -> Iterator[Found]:
        """Yield the matches in a batch of the log."""
        coverage = self.coverage
        coverage.batches += 1
        coverage.records += batch.possible_records
        self.remote.batch(file, batch)
        if batch.lacks or batch.replaced_under:
            reason = "records are not in the bundle" if batch.lacks else "keys and values are replaced in the bundle"
            coverage.add(file.path, reason, batch.position, batch.size)
            return
        if batch.crcValid and self.expression.batch(file, batch, self) == NO:
            return
        repaired = None if batch.crcValid else unflipped(batch)
        reading = Reading(batch)
        found = list(self._in_batch(file, reading if repaired is None else Reading(repaired)))
        is_damaged = not batch.crcValid or bool(reading.problems)
        is_whole = not is_damaged or repaired is not None
        if reading.problems and isinstance(batch, DefaultRecordBatch):
            every = without_problems(batch)
            every.header = batch.header._replace(recordCount=MANY)
            of_every = Reading(every)
            found = list(self._in_batch(file, of_every))
            is_whole = batch.crcValid and all(problem.code == RECORD_COUNT_MISMATCH for problem in of_every.problems)
        if not is_whole:
            reason = reading.problems[0].reason if reading.problems else "the checksum of the batch does not match"
            self._add_bytes(file, f"damaged batch: {reason}", batch.window, batch.position, batch.size)
        own = (*(state for state in states if state != LIVE), DAMAGED) if is_damaged else states
        for record, decoded in found:
            yield Found(file, record, decoded, own)
        if isinstance(batch, LegacyRecordBatch) and batch.is_compressed and batch.header.keySize > 0:
            position = batch.position + batch.header.headerSize
            self._add_bytes(
                file, "a wrapper's own key, which no consumer reads", batch.window, position, batch.header.keySize
            )
        if reading.ignored:
            yield from self._hidden(file, reading, states)

    def _in_batch(self, file: Target, reading: Reading[Any]) -> Iterator[tuple[Record, DecodedRecord | None]]:
        """Yield the records of a batch that match, with what is decoded of them."""
        batch = reading.batch
        if not isinstance(batch, DefaultRecordBatch):
            yield from self._matching(file, records(reading))
            return
        count = 0
        for columns, base in decode_columns(reading):
            there = len(columns)
            yield from self._in_columns(file, batch, columns, base, count)
            count += there

    def _in_columns(
        self, file: Target, batch: DefaultRecordBatch, columns: RecordColumns, base: int, index: int
    ) -> Iterator[tuple[Record, DecodedRecord | None]]:
        self._prefilter(file).keep(columns)
        yield from self._matching(file, rows_of(batch, columns, base, index))

    def _prefilter(self, file: Target) -> Prefilter:
        """Return what rules out records of a file; files with the same schemas have the same."""
        if file is not self._of_file:
            self._of_file = file
            decoder = self.decoding.decoder(file)
            source = schemas_of(decoder)
            known = None if source is None else source.known()
            mirrored = "" if known is None else known.mirrored_from(file.topic)
            key = (type(decoder) if source is None else id(source), mirrored)
            if key not in self._prefilters:
                self._prefilters[key] = Prefilter(self.expression, decoder, mirrored)
            self._chosen = self._prefilters[key]
        return self._chosen

    def _matching(self, file: Target, candidates: Iterable[Record]) -> Iterator[tuple[Record, DecodedRecord | None]]:
        for record in candidates:
            facts = RecordFacts(file, record, self)
            truth = self.expression.truth(facts)
            if truth == YES:
                yield record, self.decoding.read(file, record)
            elif truth == MAYBE:
                self.coverage.undecided(file, facts.undecoded)

    def _hidden(self, file: Target, reading: Reading[Batch], states: tuple[str, ...]) -> Iterator[Found]:
        """Yield the matches in what follows the compressed records of a batch: a consumer reads one LZ4 frame."""
        batch, left, is_searched = reading.batch, reading.ignored, False
        own = (*(state for state in states if state != LIVE), HIDDEN)
        for _ in range(MAX_FRAMES):
            if not left or not isinstance(batch, DefaultRecordBatch) or batch.compression != "lz4":
                break
            after: list[int] = []
            pieces = batch.chunks(batch.size - left, left)
            try:
                limit = batch.limits.max_decompressed_size
                data = b"".join(decompress("lz4", pieces, limit=limit, size=left, ignored=after.append))
            except DecodeError:
                break
            columns = RecordColumns(data)
            try:
                decode(columns, 0, len(data), MANY, True)
            except DecodeError as error:
                is_searched = error.position >= len(data)
            for record, decoded in self._in_columns(file, batch, columns, 0, 0):
                yield Found(file, record, decoded, own)
            left = after[0] if after else 0
        if left or not is_searched:
            reason = "bytes that no consumer reads, after the compressed records"
            self._add_bytes(file, reason, batch.window, batch.end - reading.ignored, reading.ignored)

    def _rest(self, file: Target, region: Region, reader: PartitionReader, states: tuple[str, ...]) -> Iterator[Found]:
        """Yield the matches in bytes that are no batch of the log: in the beginning of one, and in batches within."""
        window, header = reader.window, region.claimed
        assert window is not None
        left, searched = tuple(state for state in states if state != LIVE), 0
        try:
            if isinstance(header, BatchHeader) and not header.isControlBatch:
                torn = Reading(TornBatch(window, region.position, region.size, self.options.limits, header))
                found = list(self._in_batch(file, torn))
                if header.compression == "none":
                    searched = max(0, torn.decoded_to - region.position)
                for record, reading in found:
                    yield Found(file, record, reading, (*left, INCOMPLETE if region.kind == TORN else DAMAGED))
            inside = BatchSearch(window, replace(self.options, at=PLAIN_RUN.at), region.position, region.end)
            for carved in inside.batches():
                if carved.records_before is not None and carved.batch.position == region.position:
                    continue  # it was just read
                self.coverage.batches += carved.within is None
                for record, reading in list(self._in_batch(file, Reading(carved.batch))):
                    yield Found(file, record, reading, (*left, OUTSIDE))
                searched += carved.batch.size if carved.within is None else 0
        except SourceError as error:
            self.coverage.add(file.path, str(error), region.position, 0)
        reason = f"{region.kind}: {region.reason}" if region.reason else region.kind
        reason += self._where(window, region.position, region.size)
        self.coverage.add(file.path, reason, region.position, max(0, region.size - searched))
