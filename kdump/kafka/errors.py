"""Exceptions that Kafka's classes throw for the bytes of a file. What to do about one is up to the caller."""

from __future__ import annotations


class KafkaError(Exception):
    """An exception of Kafka's, for byte `position` of `file`. `exception`: as the broker's log shows it; `offset`: that
    of the batch."""

    def __init__(
        self, message: str, exception: str, position: int | None = None, offset: int | None = None, file: str = ""
    ) -> None:
        super().__init__(message)
        self.exception, self.position, self.offset, self.file = exception, position, offset, file


class CorruptRecord(KafkaError):
    """CorruptRecordException or InvalidRecordException: recovery truncates there, everything else fails. `thrown`: the
    exception outside recovery, if it is another one."""

    position: int

    def __init__(self, position: int, message: str, invalid: bool = False, thrown: str = "") -> None:
        exception = f"{'InvalidRecord' if invalid else 'CorruptRecord'}Exception: {message}"
        super().__init__(message, thrown or exception, position)


class UnreadableMessage(KafkaError):
    """A message of magic 0 or 1 that has to be decompressed for its offset, and cannot be."""


class RejectedBatch(KafkaError):
    """A batch that contradicts the state of its producer, which neither recovery nor loading survives."""


class InvalidOffset(KafkaError):
    """InvalidOffsetException: offsets are not in ascending order where an index entry is due. Recovery of unflushed
    segments then empties the whole segment; if it happens while segments are opened, the broker exits."""


class FullIndex(KafkaError):
    """An entry for which an index has no room, or that it does not take."""


class Overflow(KafkaError):
    """LogSegmentOffsetOverflowException: an offset is below the segment's base offset, or too far above it. The segment
    is split. `last_offset`: that of the batch."""

    position: int

    def __init__(self, position: int, offset: int, last_offset: int, base: int) -> None:
        message = f"offset {last_offset} in segment {base}"
        super().__init__(message, "LogSegmentOffsetOverflowException", position, offset)
        self.last_offset = last_offset
