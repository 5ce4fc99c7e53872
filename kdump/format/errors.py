"""The exceptions of the format layer: DecodeError, and subclasses for what a caller tells apart."""

from __future__ import annotations

import copy
from typing import Any

BATCH_LENGTH_INVALID = "batch-length-invalid"
CHECKPOINT_INVALID = "checkpoint-invalid"
CRC_MISMATCH = "crc-mismatch"
DECOMPRESSION_FAILED = "decompression-failed"
HEADER_KEY_INVALID = "header-key-invalid"
LZ4_FRAME_UNSUPPORTED = "lz4-frame-unsupported"
MAGIC_UNKNOWN = "magic-unknown"
MESSAGE_SET_INVALID = "message-set-invalid"
NEWER_RELEASE = "newer-release"
OFFSET_INVALID = "offset-invalid"
RECORD_COUNT_MISMATCH = "record-count-mismatch"
RECORD_MALFORMED = "record-malformed"
SNAPSHOT_INVALID = "snapshot-invalid"
TRAILING_BYTES = "trailing-bytes"
"""Codes of what is noted where bytes are read, as the rules declare them (kdump/check/rules)."""
IN_CODEC = (DECOMPRESSION_FAILED, LZ4_FRAME_UNSUPPORTED)


class DecodeError(Exception):
    """Raised for bytes that cannot be decoded as `struct`.

    `position` counts bytes from the start of the decoded buffer; the caller adds the buffer's position in a file or in
    a decompressed payload. `code` is the finding code for this error."""

    is_ours = False
    """Whether the cause is a limit of kdump's or a missing library: Kafka may be able to decode the bytes."""

    def __init__(self, struct: str, field: str, position: int, reason: str, code: str = RECORD_MALFORMED) -> None:
        self.struct, self.field, self.position, self.reason, self.code = struct, field, position, reason, code

    def __str__(self) -> str:
        return f"{self.struct}.{self.field} at byte {self.position}: {self.reason}"

    def changed(self, **attributes: Any) -> DecodeError:
        """Return the same error with other values for some of its attributes."""
        error = copy.copy(self)  # constructs it with the arguments that it was constructed with, then sets attributes
        error.__dict__.update(attributes)
        return error

    def moved(self, by: int) -> DecodeError:
        """Return the same error `by` bytes further on, for a buffer that is part of a larger one."""
        return self.changed(position=self.position + by)


class OurLimitError(DecodeError):
    """A limit of kdump's, or a library that is not installed."""

    is_ours = True


class NullError(DecodeError):
    """Null, or a length below -1, in a field that is not nullable."""


class TooLargeError(DecodeError):
    """A number that does not fit into the type of its field."""


class LeftOverError(DecodeError):
    """Bytes after the end of a message."""


class FrameVersionError(DecodeError):
    """A metadata record in a frame of an unknown version."""

    def __init__(self, struct: str, field: str, position: int, number: int, expected: int) -> None:
        super().__init__(struct, field, position, f"version {number} of the frame is unknown, expected {expected}")
        self.number = number


class LengthError(DecodeError):
    """A field longer than the bytes that are left."""

    def __init__(self, struct: str, field: str, position: int, length: int, left: int) -> None:
        super().__init__(struct, field, position, f"length {length}, {left} bytes left")
        self.length, self.left = length, left


class ElementsError(DecodeError):
    """An array of more elements than the bytes that are left can hold."""

    def __init__(self, struct: str, field: str, position: int, count: int, smallest: int, left: int) -> None:
        reason = f"{count} elements of at least {smallest} bytes, {left} bytes left"
        super().__init__(struct, field, position, reason)
        self.count, self.left = count, left
