"""Meanings of the fields of a batch, in words: the right-hand side of the annotated hexdump."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo
from typing import Any, NamedTuple

from kdump.decode.decoder_interface import DecodedPart
from kdump.format.batch_formats import FORMATS
from kdump.format.coordinator_record import KEY
from kdump.format.count_text import plain_count
from kdump.format.enum_names import enum_names, is_timestamp
from kdump.format.layout import Bits, Span
from kdump.format.metadata_record import API_KEY
from kdump.log.batch_validity import impossible_count
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, Defect, LegacyRecordBatch
from kdump.render.escape import bytes_text, printable
from kdump.render.times import iso

SHORT, LONGEST = 14, 256
"""Maximum number of characters of a text in the value column; and of a text that is shown at all."""


SHOWN = 256
"""Maximum number of bytes of a field that are shown as text."""


MAGICS = {0: "message, format v0", 1: "message, format v1", 2: "record batch, format v2"}
OF_RECORDS = ("Record", "RecordHeader")
"""Structures inside a batch."""


class FieldMeaning(NamedTuple):
    """A field in words: the value, its meaning and, if it is wrong, the reason."""

    value: str
    meaning: str = ""
    wrong: str = ""


def plain_value(span: Span) -> str:
    """Return the value alone, formatted for its unit."""
    value, unit = span.value, span.field.unit
    if isinstance(value, (bytes, memoryview)):
        return "1 byte" if len(value) == 1 else plain_count(len(value), "byte")
    if value is None:
        return "null"
    if isinstance(value, str):
        return printable(value)
    if unit == "crc":
        return f"0x{value:08x}"
    if unit == "hex":
        return f"0x{value & (1 << 8 * span.size) - 1:0{2 * span.size}x}"
    return str(value)


def general(span: Span, zone: tzinfo) -> FieldMeaning:
    """Return the words for a field that do not depend on its context."""
    value, field = span.value, span.field
    if isinstance(value, (bytes, memoryview)):
        return FieldMeaning(plain_value(span), bytes_text(bytes(value[: SHOWN + 1]), SHOWN))
    if field.bits:
        return FieldMeaning(plain_value(span), ", ".join(field.describe_bits(value)) or "none set")
    if field.unit == "epoch ms" and isinstance(value, int):
        return FieldMeaning(str(value), "no timestamp" if value == -1 else iso(value, zone))
    return FieldMeaning(plain_value(span), field.meaning)


def bit_words(bits: Bits, value: int) -> FieldMeaning:
    """Return the words for one bit field of `value`."""
    number = bits.of(value)
    named = bits.meanings.get(number, "")
    if not named and not number:
        return FieldMeaning(f"{number:0{bits.width}b}", f"{bits.name}: no")
    meaning = f"{bits.name}: {named or 'unknown'}"
    return FieldMeaning(f"{number:0{bits.width}b}", f"{meaning} ({bits.about})" if bits.about else meaning)


class BatchFieldMeanings:
    """Meanings of the header fields of one batch or message. `problems`: what is wrong with it; `wrong`: what else is
    wrong, by field."""

    def __init__(
        self, batch: Batch, zone: tzinfo, problems: Iterable[Defect], wrong: dict[str, str] | None = None
    ) -> None:
        self.batch, self.zone = batch, zone
        self.marked: set[str] = set()
        """Fields that were marked as wrong."""
        self.wrong = (wrong or {}) | {
            problem.field: problem.reason
            for problem in problems
            if not problem.space and problem.struct not in OF_RECORDS
        }
        self.of: dict[str, Callable[[Any], str]] = {
            "batchLength": lambda v: self._length(12 + v),
            "messageSize": lambda v: self._length(12 + v),
            "crc": lambda v: self._crc(),
            "offset": lambda v: "offset of the last message inside" if batch.is_compressed else "offset of the message",
            "magic": lambda v: MAGICS.get(v, ""),
            "partitionLeaderEpoch": lambda v: "none" if v == -1 else "epoch of the leader that appended the batch",
            "lastOffsetDelta": lambda v: f"last offset {batch.lastOffset}",
            "producerId": lambda v: "not an idempotent producer" if v == -1 else "idempotent producer",
            "producerEpoch": lambda v: "none" if v == -1 else "epoch of that producer",
            "baseSequence": lambda v: "no sequence numbers" if v == -1 else f"sequence {v} to {batch.lastSequence}",
            "recordCount": self._count,
            "keySize": lambda v: "null key" if v == -1 else "bytes of the key",
            "valueSize": lambda v: "null value" if v == -1 else "bytes of the value",
        }

    def __call__(self, span: Span) -> FieldMeaning:
        words = self._words(span)
        if words.wrong:
            self.marked.add(span.field.name)
        return words

    def _words(self, span: Span) -> FieldMeaning:
        name = span.field.name
        words = general(span, self.zone)
        if name in self.of:
            words = words._replace(meaning=self.of[name](span.value))
        elif name == "baseTimestamp" and self.batch.hasDeleteHorizonMs:
            words = words._replace(meaning=f"delete horizon (bit 6): {words.meaning}")
        elif name == "maxTimestamp" and self.batch.timestampType == "LogAppendTime":
            words = words._replace(meaning=f"{words.meaning}, when the broker appended it")
        impossible = impossible_count(self.batch) if name == "recordCount" else None
        if impossible is not None:
            wrong = "a count cannot be negative" if span.value < 0 else impossible.reason
            return words._replace(meaning="", wrong=wrong)
        if name == "crc" and not self.batch.crcValid:
            return words._replace(wrong=f"computed 0x{self.batch.computedCrc:08x}")
        wrong = self.wrong.get(name, "")
        if wrong and name == "magic":
            return words._replace(meaning="", wrong=wrong)
        return words._replace(wrong=wrong, meaning="" if wrong and name == "recordCount" else words.meaning)

    def _length(self, size: int) -> str:
        return f"the batch ends before {self.batch.position + size}"

    def _crc(self) -> str:
        start = self.batch.position + self.batch.crc_start
        matches = "matches" if self.batch.crcValid else "does not match"
        return f"{self.batch.format.crc_name} of bytes {start}..{self.batch.end - 1} {matches}"

    def _count(self, count: int) -> str:
        delta = self.batch.lastOffsetDelta
        if count == 0:
            return "no records are left: compaction keeps the empty batch"
        if delta is not None and count <= delta:
            return f"records for {plain_count(delta + 1, 'offset')}: compaction has removed some"
        return "records in the batch"


class RecordFieldMeanings:
    """Meanings of the fields of one record; those of an inner message also depend on its wrapper."""

    def __init__(self, record: Record, zone: tzinfo) -> None:
        self.record, self.zone = record, zone

    def __call__(self, span: Span) -> FieldMeaning:
        words = general(span, self.zone)
        return self._legacy(span, words) if FORMATS[self.record.magic].is_message else self._v2(span, words)

    def _v2(self, span: Span, words: FieldMeaning) -> FieldMeaning:
        record, name, value = self.record, span.field.name, span.value
        meaning = words.meaning
        if name == "timestampDelta":
            meaning = f"timestamp {iso(record.timestamp, self.zone)}"
            if record.timestampType == "LogAppendTime":
                meaning += " (of the batch: LogAppendTime; the delta is ignored)"
        elif name == "offsetDelta":
            meaning = f"offset {record.offset}"
        elif name == "attributes":
            meaning = "unused" if not value else "unused, but set"
        elif name in ("keySize", "valueSize", "headerValueSize") and value == -1:
            meaning = "null, a tombstone" if name == "valueSize" and not record.is_control else "null"
        elif name.endswith("Size"):
            meaning = meaning.partition(";")[0]
        return words._replace(meaning=meaning)

    def _legacy(self, span: Span, words: FieldMeaning) -> FieldMeaning:
        record, name, value = self.record, span.field.name, span.value
        if name == "crc":
            matches = record.crcValid
            wrong = "" if matches else "the computed checksum differs"
            return FieldMeaning(
                words.value, f"CRC-32 of the message {'matches' if matches else 'does not match'}", wrong
            )
        if name == "offset" and isinstance(record.batch, LegacyRecordBatch) and record.batch.is_compressed:
            if record.batch.format.has_timestamp:
                return words._replace(meaning=f"relative to the first message in the wrapper: offset {record.offset}")
            return words._replace(meaning="absolute, as in format v0")
        if name == "timestamp" and record.timestampType == "LogAppendTime" and value != record.timestamp:
            meaning = f"{words.meaning}; the wrapper's append time applies: {iso(record.timestamp, self.zone)}"
            return words._replace(meaning=meaning)
        if name in ("keySize", "valueSize"):
            return words._replace(meaning="null" if value == -1 else words.meaning.partition(";")[0])
        return words


NUMBERS = (KEY.field("type"), API_KEY)
"""Fields that state which message follows."""


class MessageFieldMeanings:
    """Meanings of the fields of one of Kafka's own messages, in a key or a value. The positions of the spans are
    relative to its start."""

    def __init__(self, decoded: DecodedPart, names: dict[str, str], zone: tzinfo) -> None:
        self.decoded, self.names, self.zone = decoded, names, zone

    def __call__(self, span: Span) -> FieldMeaning:
        stop = self.decoded.stop
        wrong = self.decoded.problem if stop is not None and span.position <= stop < span.position + span.size else ""
        return self._words(span)._replace(wrong=wrong)

    def _words(self, span: Span) -> FieldMeaning:
        name, value = span.field.name, span.value
        if isinstance(value, str):
            if value in self.names:
                return FieldMeaning(value, printable(self.names[value]))
            text = printable(value[:LONGEST]) + ("…" if len(value) > LONGEST else "")
            return (
                FieldMeaning(text) if len(text) <= SHORT else FieldMeaning(plain_count(len(value), "character"), text)
            )
        if isinstance(value, int) and not isinstance(value, bool):
            if span.field in NUMBERS:
                return FieldMeaning(str(value), self.decoded.message or "which message follows")
            if is_timestamp(name):
                return FieldMeaning(str(value), "no timestamp" if value == -1 else iso(value, self.zone))
            names = enum_names(self.decoded.message, name) or {}
            if value in names:
                return FieldMeaning(str(value), names[value])
        return general(span, self.zone)


def title(batch: Batch) -> str:
    """Return one line about a batch."""
    first = "?" if batch.baseOffset is None else batch.baseOffset
    offsets = f"offset {first}" if first == batch.lastOffset else f"offsets {first}..{batch.lastOffset}"
    kind = "record batch" if isinstance(batch, DefaultRecordBatch) else f"message (v{batch.magic})"
    if isinstance(batch, LegacyRecordBatch) and batch.is_compressed:
        kind = f"wrapper message (v{batch.magic})"
    words = [batch.compression if batch.is_compressed else "not compressed", batch.timestampType]
    words += ["transactional"] if batch.isTransactional else []
    words += ["control"] if batch.isControlBatch else []
    return (
        f"{kind} at {batch.position}..{batch.end - 1} ({plain_count(batch.size, 'byte')}"
        f"), {offsets}: {', '.join(words)}"
    )
