"""Regions of a file: batches, messages, and the bytes that are neither. Regions tile the file in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from kdump.answer import BYTES, EPOCH_MS, FILE_BYTE, OFFSET, Cell, Doc, Shown, columns
from kdump.core.batch_scan import ValidRun, checksum_holds
from kdump.core.record_columns import RecordColumns
from kdump.format import batch_header as v2
from kdump.format import legacy_message as legacy
from kdump.format.batch_formats import FORMATS, NEWEST, V2, BatchFormat, format_of
from kdump.format.batch_header import BatchHeader
from kdump.format.checksum import checksum
from kdump.format.codec_table import NAMES
from kdump.format.count_text import count_text, range_text
from kdump.format.errors import BATCH_LENGTH_INVALID, MAGIC_UNKNOWN, TRAILING_BYTES, DecodeError
from kdump.format.legacy_message import MessageHeader
from kdump.format.varint import Bytes
from kdump.io.hash_key import RecordHash
from kdump.io.run import Limits
from kdump.io.source import CHECKSUMS, RECORDS
from kdump.io.window import BufferWindow, Window

__all__ = ["Batch", "Region"]

TORN, JUNK, PADDING = "torn", "junk", "padding"
CODES = {TORN: "batch-truncated", JUNK: "junk-bytes", PADDING: "zero-padding"}


@dataclass(frozen=True)
class Defect:
    """A defect in a region; `code` is its kind (problems.catalogue).

    `position` is a byte of the file or, if `space` names a codec, of the batch's decompressed payload.
    """

    code: str
    struct: str
    field: str
    position: int
    reason: str
    expected: Any = None
    actual: Any = None
    space: str = ""
    size: int | None = None
    is_ours: bool = False
    """Whether the cause is a limit of kdump's or a missing library: Kafka may be able to decode the bytes."""

    @classmethod
    def of(cls, error: DecodeError, base: int = 0, space: str = "") -> Defect:
        where = base + error.position
        return cls(error.code, error.struct, error.field, where, error.reason, space=space, is_ours=error.is_ours)


class BrokerView(NamedTuple):
    """What a broker finds where junk begins, if it can be known without its bytes. `length`: the batch length there,
    MAX_LENGTH if it is more than the file has; `header`: all that it takes for a header, if only the magic is unknown;
    `crc`: the checksum of such a batch, or of one that it takes for a message of magic 0 or 1; `contents`: what it
    finds in such a message, if that is a wrapper."""

    length: int
    header: BatchHeader | None = None
    crc: int | None = None
    contents: WrapperContents | None = None


MAX_LENGTH = (1 << 31) - 1


def short_view(data: Bytes) -> BrokerView | None:
    """Return what a broker finds in the last bytes of a file, fewer than a header has; None if it does not read them
    (FileLogInputStream.nextBatch)."""
    if len(data) <= v2.MAGIC_POSITION + 1:
        return None
    # Of the rest, which may be of a record, nothing decides what it does.
    stated = bytes(8) + data[8:12] + bytes(4) + data[v2.MAGIC_POSITION : v2.MAGIC_POSITION + 1]
    header = v2.BATCH_HEADER.read(stated.ljust(v2.BATCH_HEADER.size, b"\0"))
    return BrokerView(header.batchLength, header)


class Region:
    """Bytes position..position+size-1 of a file. `kind` is torn, junk or padding, or in a subclass batch or run.

    torn: an incomplete batch at the end, with its header, if that is complete, in `claimed`. junk: bytes that belong to
    no batch, up to the next valid batch or the end; `claimed` is the header that they begin with, if any. padding:
    zeros, as from preallocation or a crash. `code`: the finding code (problems.catalogue) for the region.
    """

    kind: str
    position: Annotated[
        int,
        Doc("its start; in a compressed file, a position in the decompressed contents", FILE_BYTE),
        Shown(rank=8),
    ]
    size: Annotated[int, Doc("its size in the file", BYTES), Shown(rank=6, after="recordCount")]

    def __init__(
        self,
        kind: str,
        position: int,
        size: int,
        reason: str = "",
        header: BatchHeader | MessageHeader | None = None,
        code: str = "",
    ) -> None:
        self.kind = kind
        self.position = position
        self.size = size
        self.reason = reason
        self.claimed = header
        self.code = code or CODES.get(kind, "")
        self.known_crc: int | None = None
        """CRC-32C of its bytes, if it has been computed."""
        self.broker_view: BrokerView | None = None
        """Of junk, and of the beginning of a header at the end: what a broker makes of it, if that was determined where
        the bytes are."""

    @property
    def end(self) -> int:
        """Position of the first byte after it."""
        return self.position + self.size

    def with_reason(self, reason: str) -> Region:
        """Return the region with another reason."""
        made = Region(self.kind, self.position, self.size, reason, self.claimed, self.code)
        made.broker_view = self.broker_view
        return made


class ZeroEntries(Region):
    """Padding before another entry of an index: a broker reads the zeros as entries."""


_header = FORMATS[NEWEST].header.field
BITS = Cell(lambda bits: f"0x{bits & 0xFFFF:04x}")
_V2_SIZE = v2.BATCH_HEADER.size


def _offsets(batch: Batch) -> str:
    return range_text(batch.baseOffset, batch.lastOffset) or f"?..{batch.lastOffset}"


def _producer(batch: Batch) -> str:
    none = batch.producerId is None or (batch.producerId == -1 and batch.producerEpoch == -1)
    return "" if none else f"{batch.producerId}/{batch.producerEpoch}"


def _sequences(batch: Batch) -> str:
    return range_text(None if batch.baseSequence == -1 else batch.baseSequence, batch.lastSequence)


@columns(
    offsets=Shown(right=True, cell=_offsets, after="position"),
    flags=Shown(rank=8, after="compression"),
    producer=Shown(rank=4, cell=_producer, after="maxTimestamp"),
    sequences=Shown(rank=3, right=True, cell=_sequences, after="producer"),
)
class Batch(Region):
    """A v2 batch or a v0/v1 message (alone, or a wrapper), with the specification's names for a v2 batch; None for
    fields that a format does not have. Its bytes can be read until the next region is requested."""

    baseOffset: Annotated[int | None, _header("baseOffset")]
    batchLength: Annotated[int, _header("batchLength")]
    partitionLeaderEpoch: Annotated[
        int | None, _header("partitionLeaderEpoch"), Shown("leaderEpoch", 2, after="sequences"), Cell(none="")
    ]
    magic: Annotated[int, _header("magic"), Shown(rank=1, after="partitionLeaderEpoch")]
    crc: Annotated[int, _header("crc"), Cell("0x{:08x}".format)]
    attributes: Annotated[int, _header("attributes"), BITS]
    lastOffsetDelta: Annotated[int | None, _header("lastOffsetDelta")]
    baseTimestamp: Annotated[int | None, _header("baseTimestamp")]
    maxTimestamp: Annotated[int | None, _header("maxTimestamp"), Shown(rank=6, after="flags")]
    producerId: Annotated[int | None, _header("producerId")]
    producerEpoch: Annotated[int | None, _header("producerEpoch")]
    baseSequence: Annotated[int | None, _header("baseSequence")]
    recordCount: Annotated[int | None, _header("recordCount"), Shown("records", 7, after="offsets")]
    compression: Annotated[str, Doc(f"{NAMES}, or unknown(N) for an unknown codec ID"), Shown("codec", 5, after="size")]
    timestampType: Annotated[str, Doc("CreateTime, LogAppendTime, or NoTimestampType (magic 0)")]
    isTransactional: Annotated[bool | None, Doc("attribute bit 4")]
    isControlBatch: Annotated[bool | None, Doc("attribute bit 5")]
    hasDeleteHorizonMs: Annotated[bool | None, Doc("attribute bit 6: baseTimestamp is the delete horizon")]
    deleteHorizonMs: Annotated[
        int | None, Doc("when the log cleaner may remove the tombstones and markers in it", EPOCH_MS)
    ]
    lastOffset: Annotated[int, Doc("baseOffset + lastOffsetDelta; the stored offset of a v0 or v1 message", OFFSET)]
    lastSequence: Annotated[int | None, Doc("sequence number of the last record; -1: none")]
    format: BatchFormat
    replaced_under = ""
    """Name of the key under which names in its records were replaced, empty if none were."""

    def __init__(
        self,
        window: Window,
        position: int,
        size: int,
        limits: Limits,
        header: Any,
        problem: Defect | None = None,
    ) -> None:
        super().__init__("batch", position, size)
        self.header = header
        self.format = FORMATS.get(header.magic) or format_of(header.magic)
        self.window = window
        self.limits = limits
        self.header_problems: tuple[Defect, ...] = (problem,) if problem else ()
        self._computed: int | None = None
        self.known = NOTHING_KNOWN
        """What its source knows of it without its bytes."""
        self.is_torn = False
        """Whether it is only the beginning of a batch (log.torn_batch): its region states the damage."""

    unread_key = 0
    """Size of a wrapper's own key, which no reader looks into."""

    @property
    def problems(self) -> tuple[Defect, ...]:
        """What is wrong with the header and, once read, inside a wrapper."""  # the rest is in a Reading
        return self.header_problems

    @property
    def crc_start(self) -> int:
        """Position, relative to the batch, of the first byte that the checksum covers."""
        return self.format.crc_start

    @property
    def computedCrc(self) -> int:
        """Checksum of the batch's actual bytes, computed on first use."""
        if self._computed is None:
            start = self.position + self.crc_start
            self._computed = checksum(self.magic, self.window.chunks(start, self.end - start))
        return self._computed

    @property
    def crcValid(
        self,
    ) -> Annotated[
        bool,
        Doc("whether the stored checksum matches the bytes", after="recordCount"),
        Shown("crc", 1, after="magic"),
        Cell(lambda valid: "ok" if valid else "BAD"),
    ]:
        return self.computedCrc == self.crc

    @property
    def is_compressed(self) -> bool:
        return self.compression != "none"

    @property
    def lacks(self) -> frozenset[str]:
        """What of the batch its source does not have: RECORDS; CHECKSUMS, too, if its own is hidden, because names
        could be guessed from it."""
        lacks = self.window.lacks
        return lacks | {CHECKSUMS} if lacks and self.crc == 0 else lacks

    @property
    def known_hashes(self) -> list[tuple[int, RecordHash]] | None:
        """Offset delta and hash of each record, if its source has these in place of the records. Raises SourceError."""
        return self.window.hashes(self.position) if RECORDS in self.window.lacks else None

    @property
    def possible_records(self) -> int:
        """recordCount as a part of a sum: 0 if it is unknown, negative, or more than the batch has room for."""
        return max(0, self.recordCount or 0)

    def chunks(self, start: int, size: int) -> Iterator[memoryview]:
        """Yield `size` of the batch's bytes in pieces, from `start` bytes after its first."""
        return self.window.chunks(self.position + start, min(size, self.size - start))

    def alone(self: BatchT) -> BatchT:
        """Return its fields alone, to be kept or sent to another process: its bytes cannot be read."""
        made = object.__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_computed": self.computedCrc, "window": None, "format": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, format=format_of(state["header"].magic))


BatchT = TypeVar("BatchT", bound=Batch)


class KnownBatch(NamedTuple):
    """What a source that lacks bytes of a batch knows of it (log.withheld_segment), None if it is not known. `records`:
    what decoding them showed (a RecordVerdict of log.stored_verdicts); `diagnosis`: what the damage looks like
    (check.diagnosis.diagnose); `repair`: the batch with one flipped bit corrected (check.engine.unflipped); `contents`:
    of a wrapper."""

    records: Any = None
    diagnosis: tuple[str, str, int | None, int] | None = None
    repair: Batch | None = None
    contents: WrapperContents | None = None


NOTHING_KNOWN = KnownBatch()


class DefaultRecordBatch(Batch):
    """A record batch of message format v2."""

    header: BatchHeader

    @property
    def payload_size(self) -> int:
        """Number of bytes of its records, as they can be read."""
        return self.size - _V2_SIZE

    @property
    def is_compressed(self) -> bool:
        return self.header.codec != 0

    @property
    def stored_header(self) -> BatchHeader:
        """The header with the magic that is stored: `header` has 2, whatever that is (see magic_problem)."""
        stored = next((problem.actual for problem in self.problems if problem.code == MAGIC_UNKNOWN), None)
        return self.header if stored is None else self.header._replace(magic=stored)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


# The fields, and properties derived from them, are declared once, on the header.
for _name in (name for name in dir(BatchHeader) if not name.startswith("_") and name not in ("size", "count", "index")):
    setattr(DefaultRecordBatch, _name, property(attrgetter(f"header.{_name}")))


class BatchRun(Region):
    """A batch run: consecutive valid v2 batches as one region, yielded only on request (log.region_reader). `checked`:
    their checksums match; otherwise each is accepted because the next one begins where it ends.

    `buffer` contains all of them, from index `start` on; the batches can be read as long as it is kept. `headers` has
    their headers.
    """

    lacks_checksum = False
    """Whether neither the records nor the checksum of one of its batches are known."""
    suspects: list[int] | None = None
    """Numbers of the batches whose records may have a problem; None if they were not checked."""

    def __init__(self, limits: Limits, position: int, start: int, run: ValidRun, checked: bool) -> None:
        super().__init__("run", position, run.stop - start)
        self.limits = limits
        self.start = start
        self.stop = run.stop
        self.run = run
        self.headers = run.headers
        self.headers.shift = position - start
        self.checked = checked
        self._window: Any = BufferWindow(self.headers.data, position - start)
        """Has all of a Window that reading a batch needs."""

    @property
    def buffer(self) -> bytes:
        return self.headers.data

    def batches(self) -> Iterator[DefaultRecordBatch]:
        """Yield the batches, one by one."""
        start = self.start
        while start < self.stop:
            batch = self.batch(start)
            yield batch
            start += batch.size

    def batch(self, at: int) -> DefaultRecordBatch:
        """Return the batch that begins at buffer[at]."""
        header = v2.BATCH_HEADER.read(self.buffer, at)
        batch = DefaultRecordBatch(self._window, at + self.headers.shift, header.size, self.limits, header)
        if self.checked:
            batch._computed = header.crc
        return batch

    def checksum_matches(self, at: int, end: int) -> bool:
        """Return True if the checksum of the batch at buffer[at:end] matches."""
        return self.checked or checksum_holds(self.buffer, at, end)


class WrapperContents(NamedTuple):
    """What reading a wrapper shows: attributes of LegacyRecordBatch, and the problems in it."""

    baseOffset: int | None
    recordCount: int | None
    inner_base: int | None
    inner_last: int | None
    problems: tuple[Defect, ...]


class LegacyRecordBatch(Batch):
    """A message of format v0 or v1. What a wrapper contains is None until kdump.log.legacy_records.read_wrapper sets
    it."""

    partitionLeaderEpoch = lastOffsetDelta = baseTimestamp = None
    producerId = producerEpoch = baseSequence = lastSequence = None
    isTransactional = isControlBatch = hasDeleteHorizonMs = deleteHorizonMs = None

    def __init__(
        self,
        window: Window,
        position: int,
        size: int,
        limits: Limits,
        header: MessageHeader,
        problem: Defect | None = None,
    ) -> None:
        # Key and value must fill the actual size of the message, whatever its header states.
        actual = header if size == header.size else header._replace(messageSize=size - v2.LOG_OVERHEAD)
        super().__init__(window, position, size, limits, actual, problem)
        self.batchLength = header.messageSize
        self.magic, self.crc, self.attributes = header.magic, header.crc, header.attributes
        self.maxTimestamp = header.timestamp
        self.lastOffset = header.offset
        self.compression = header.compression
        self.timestampType = header.timestampType
        self.baseOffset = None if self.is_compressed else header.offset
        self.recordCount = None if self.is_compressed else 1
        self.inner_base: int | None = None  # base of the relative inner offsets of a v1 wrapper
        self.inner_last: int | None = None  # the last inner offset of a v0 wrapper
        self.inner: RecordColumns | None = None
        """The messages of a wrapper, or itself, as core.message_set returns them, if none is unusual."""
        self.contents: WrapperContents | None = None
        """What it contains, once it has been read."""
        self.ignored = self.unread_key = min(max(0, self.header.keySize), self.size) if self.is_compressed else 0
        """Number of bytes that no reader looks into, once it has been read."""

    @property
    def problems(self) -> tuple[Defect, ...]:
        return self.header_problems + (() if self.contents is None else self.contents.problems)


def last_record_offset(batch: Batch) -> int:
    """Return the last offset of a batch as its readers see it: for a wrapper of magic 0 they use the inner messages and
    ignore its own offset, which no checksum covers. Call kdump.log.legacy_records.read_wrapper before."""
    inner = batch.inner_last if isinstance(batch, LegacyRecordBatch) else None
    return batch.lastOffset if inner is None else inner


def make_batch(
    window: Window,
    position: int,
    size: int,
    limits: Limits,
    header: BatchHeader | MessageHeader,
    problem: Defect | None = None,
    crc: int | None = None,
) -> DefaultRecordBatch | LegacyRecordBatch:
    """Return the batch or message; `crc` is the checksum of its bytes, if it has been computed."""
    kind: type[DefaultRecordBatch] | type[LegacyRecordBatch] = (
        DefaultRecordBatch if isinstance(header, BatchHeader) else LegacyRecordBatch
    )
    batch = kind(window, position, size, limits, header, problem)  # type: ignore[arg-type]
    batch._computed = crc
    return batch


def without_problems(batch: BatchT) -> BatchT:
    """Return the batch without what is wrong with its header."""
    made = object.__new__(type(batch))
    made.__dict__.update(batch.__dict__, header_problems=())
    return made


def read_header(data: Bytes) -> BatchHeader | MessageHeader:
    """Read the header at the start of `data`, by its magic. Raises DecodeError: too few bytes, or an unknown magic."""
    magic = data[v2.MAGIC_POSITION] if len(data) > v2.MAGIC_POSITION else 0
    batch_format = FORMATS.get(magic)
    if batch_format is not None and len(data) < batch_format.header.size:
        reason = f"{count_text(len(data), 'byte')} left, less than a header"
        raise DecodeError("RecordBatch", "baseOffset", 0, reason, TRAILING_BYTES)
    if batch_format is None:
        stored = magic - 256 if magic > 127 else magic
        raise DecodeError("RecordBatch", "magic", v2.MAGIC_POSITION, f"magic {stored} is unknown", MAGIC_UNKNOWN)
    return legacy.read_header(data) if batch_format.is_message else batch_format.header.read(data)


ATTRIBUTES_AT = v2.BATCH_HEADER.positions["attributes"]


def as_magic_2(data: Bytes) -> BatchHeader | None:
    """Return the header at the start of `data` as one of magic 2; None if it has that magic, or if no v2 batch that
    Kafka writes can have such a header. A checksum decides (see magic_problem)."""
    if len(data) < _V2_SIZE or data[ATTRIBUTES_AT] or data[v2.MAGIC_POSITION] == V2:
        return None
    header = v2.BATCH_HEADER.read(data)._replace(magic=V2)
    is_possible = 0 <= header.recordCount <= header.lastOffsetDelta + 1 and length_problem(header) is None
    return header if is_possible else None


def magic_problem(position: int, stored: int) -> Defect:
    """Return the problem of a batch at byte `position` whose checksum, which does not cover the magic, is that of a
    batch of magic 2."""
    magic_at, stored = position + v2.MAGIC_POSITION, stored - 256 if stored > 127 else stored
    reason = f"magic is {stored}, but the checksum matches a batch of magic 2"
    return Defect(MAGIC_UNKNOWN, "RecordBatch", "magic", magic_at, reason, 2, stored, size=1)


def length_problem(header: BatchHeader | MessageHeader) -> DecodeError | None:
    """Return why the length is invalid for the format, None if it is not."""
    if isinstance(header, MessageHeader):
        return legacy.size_problem(header, 0)
    least = header.headerSize - v2.LOG_OVERHEAD
    if header.batchLength >= least:
        return None
    reason = f"batchLength {header.batchLength} is below the minimum, {least}"
    return DecodeError("RecordBatch", "batchLength", 8, reason, BATCH_LENGTH_INVALID)


def batches_of(region: Region) -> Iterator[Batch]:
    """Yield the batches in a region, if it has any."""
    if isinstance(region, BatchRun):
        yield from region.batches()
    elif isinstance(region, Batch):
        yield region
