"""What a file is made of: batches, messages, and the bytes that are neither. Regions tile the file in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kdump.format import batch as v2
from kdump.format import message as legacy
from kdump.format.batch import BatchHeader
from kdump.format.checksum import checksum
from kdump.format.columns import Columns
from kdump.format.errors import DecodeError
from kdump.format.message import MessageHeader
from kdump.format.runs import Run, checksum_holds
from kdump.format.varint import Bytes
from kdump.log.window import Held, Window

DEFAULT_MAX_DECOMPRESSED = 256 * 1024 * 1024

TORN, JUNK, PADDING = "torn", "junk", "padding"
CODES = {TORN: "batch-truncated", JUNK: "junk-bytes", PADDING: "zero-padding"}


@dataclass(frozen=True)
class Limits:
    """How far a length is believed. Bytes."""

    max_batch_size: int | None = None
    max_decompressed_size: int = DEFAULT_MAX_DECOMPRESSED


@dataclass(frozen=True)
class Problem:
    """Something wrong with a region, of the kind that `code` names (check.catalogue).

    `position` is a byte of the file, or, where `space` names a codec, of that batch's decompressed payload.
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

    @classmethod
    def of(cls, error: DecodeError, base: int = 0, space: str = "") -> Problem:
        return cls(error.code, error.struct, error.field, base + error.position, error.reason, space=space)


class Region:
    """Bytes position..position+size-1 of a file. `kind`: torn, junk or padding, and batch in a Batch.

    torn: a batch that runs past the end; its header as far as it goes in `header`. junk: bytes that no batch claims,
    up to where the stream makes sense again. padding: zeros, as preallocation or a crash leaves. `code`: the finding
    (check.catalogue) that a torn or junk region amounts to.
    """

    kind: str

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

    @property
    def end(self) -> int:
        """Position of the first byte behind it."""
        return self.position + self.size


class Batch(Region):
    """A v2 batch or a v0/v1 message (alone, or a wrapper), by the specification's names for a v2 batch; None where a
    format has nothing. Its bytes can be read until the next region is asked for."""

    baseOffset: int | None
    batchLength: int
    partitionLeaderEpoch: int | None
    magic: int
    crc: int
    attributes: int
    lastOffsetDelta: int | None
    baseTimestamp: int | None
    maxTimestamp: int | None
    producerId: int | None
    producerEpoch: int | None
    baseSequence: int | None
    recordCount: int | None
    lastOffset: int
    lastSequence: int | None
    compression: str
    timestampType: str
    isTransactional: bool | None
    isControlBatch: bool | None
    hasDeleteHorizonMs: bool | None
    deleteHorizonMs: int | None
    crc_start: int
    """Where the bytes that the checksum covers begin, counted from the start of the batch."""

    def __init__(self, window: Window, position: int, size: int, limits: Limits, problem: Problem | None) -> None:
        super().__init__("batch", position, size)
        self.window = window
        self.limits = limits
        self.problems: list[Problem] = [problem] if problem else []
        self._computed: int | None = None
        self.decoded_to = 0
        """Where the last record that was decoded ends, in the file or in the decompressed payload."""

    def note(self, problem: Problem) -> None:
        """Add a problem, once: a batch may be read through several times."""
        if problem not in self.problems:
            self.problems.append(problem)

    @property
    def computedCrc(self) -> int:
        """The checksum of the bytes as they are."""
        if self._computed is None:
            start = self.position + self.crc_start
            self._computed = checksum(self.magic, self.window.chunks(start, self.end - start))
        return self._computed

    @property
    def crcValid(self) -> bool:
        return self.computedCrc == self.crc

    @property
    def is_compressed(self) -> bool:
        return self.compression != "none"

    def chunks(self, start: int, size: int) -> Iterator[memoryview]:
        """Pieces of the batch's own bytes, from `start` bytes behind its first."""
        return self.window.chunks(self.position + start, min(size, self.size - start))


class BatchV2(Batch):
    """A record batch of message format v2."""

    crc_start = v2.CRC_START

    def __init__(
        self,
        window: Window,
        position: int,
        size: int,
        limits: Limits,
        header: BatchHeader,
        problem: Problem | None = None,
    ) -> None:
        super().__init__(window, position, size, limits, problem)
        self.header = header
        self.records_seen = 0

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


# The fields and what follows from them are declared once, on the header.
for _name in (name for name in dir(BatchHeader) if not name.startswith("_") and name not in ("size", "count", "index")):
    setattr(BatchV2, _name, property(attrgetter(f"header.{_name}")))


class Stretch(Region):
    """Sound v2 batches that follow each other, as one: handed out only to who asks for it (log.reader). `checked`:
    their checksums have been taken, and hold; otherwise each is believed because its successor begins where it ends.

    Its `buffer` holds them all, from `start` on; the batches can be read as long as it is kept.
    """

    def __init__(self, limits: Limits, position: int, buffer: bytes, start: int, run: Run, checked: bool) -> None:
        super().__init__("stretch", position, run.stop - start)
        self.limits = limits
        self.buffer = buffer
        self.start = start
        self.stop = run.stop
        self.run = run
        self.checked = checked

    def batches(self) -> Iterator[BatchV2]:
        """The batches, one by one."""
        at = self.start
        while at < self.stop:
            batch = self.batch(at)
            yield batch
            at += batch.size

    def batch(self, at: int) -> BatchV2:
        """The batch that begins at buffer[at]."""
        shift = self.position - self.start
        header = v2.BATCH_HEADER.read(self.buffer, at)
        held: Any = Held(self.buffer, shift)  # of a window, reading a batch takes no more
        batch = BatchV2(held, at + shift, header.size, self.limits, header)
        if self.checked:
            batch._computed = header.crc
        return batch

    def holds(self, at: int, end: int) -> bool:
        """Whether the checksum of the batch at buffer[at:end] holds."""
        return self.checked or checksum_holds(self.buffer, at, end)


class BatchLegacy(Batch):
    """A message of format v0 or v1. baseOffset and recordCount of a wrapper are known once its inside was looked at:
    see kdump.log.legacy.look_inside."""

    crc_start = legacy.CRC_START
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
        problem: Problem | None = None,
    ) -> None:
        super().__init__(window, position, size, limits, problem)
        # Key and value have to fill the size that the message has, whatever it claims.
        self.header = header if size == header.size else header._replace(messageSize=size - v2.LOG_OVERHEAD)
        self.batchLength = header.messageSize
        self.magic, self.crc, self.attributes = header.magic, header.crc, header.attributes
        self.maxTimestamp = header.timestamp
        self.lastOffset = header.offset
        self.compression = header.compression
        self.timestampType = header.timestampType
        self.baseOffset = None if self.is_compressed else header.offset
        self.recordCount = None if self.is_compressed else 1
        self.looked_inside = False
        self.inner_base: int | None = None  # what relative inner offsets of a v1 wrapper add to
        self.inner_last: int | None = None  # the last inner offset of a v0 wrapper
        self.inner: Columns | None = None
        """The messages of a wrapper as format.message_set has them, once its inside was looked at, if they are
        ordinary."""


def make_batch(
    window: Window,
    position: int,
    size: int,
    limits: Limits,
    header: BatchHeader | MessageHeader,
    problem: Problem | None = None,
    crc: int | None = None,
) -> BatchV2 | BatchLegacy:
    """`crc`: the checksum of its bytes, if it has been computed."""
    kind: type[BatchV2] | type[BatchLegacy] = BatchV2 if isinstance(header, BatchHeader) else BatchLegacy
    batch = kind(window, position, size, limits, header, problem)  # type: ignore[arg-type]
    batch._computed = crc
    return batch


HEADER_SIZES = {0: legacy.MESSAGE_V0.size, 1: legacy.MESSAGE_V1.size, 2: v2.BATCH_HEADER.size}


def read_header(data: Bytes) -> BatchHeader | MessageHeader:
    """The header that starts `data`, by its magic. Raises DecodeError: too few bytes, or a magic that Kafka has not."""
    magic = data[v2.MAGIC_POSITION] if len(data) > v2.MAGIC_POSITION else 0
    if len(data) < HEADER_SIZES.get(magic, 0):
        reason = f"{len(data)} bytes are left, fewer than a header"
        raise DecodeError("RecordBatch", "baseOffset", 0, reason, "trailing-bytes")
    if magic == 2:
        return v2.BATCH_HEADER.read(data)
    if magic > 2:
        stored = magic - 256 if magic > 127 else magic
        raise DecodeError("RecordBatch", "magic", v2.MAGIC_POSITION, f"magic {stored} is unknown", "magic-unknown")
    return legacy.read_header(data)


def length_problem(header: BatchHeader | MessageHeader) -> DecodeError | None:
    """Why the length cannot be right for the format, None when it can."""
    if isinstance(header, MessageHeader):
        return legacy.size_problem(header, 0)
    if header.batchLength >= v2.MIN_BATCH_LENGTH:
        return None
    reason = f"batchLength {header.batchLength} is below the least, {v2.MIN_BATCH_LENGTH}"
    return DecodeError("RecordBatch", "batchLength", 8, reason, "batch-length-invalid")
