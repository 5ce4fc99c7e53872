"""The one exception of the format layer."""

from __future__ import annotations


class DecodeError(Exception):
    """Bytes that cannot be decoded as `struct`.

    `position` counts bytes from the start of the buffer that was being decoded; who owns the buffer knows where in
    a file, or in a decompressed payload, that buffer begins. `code` is the finding that this error amounts to.
    """

    def __init__(self, struct: str, field: str, position: int, reason: str, code: str = "record-malformed") -> None:
        super().__init__(f"{struct}.{field} at {position}: {reason}")
        self.struct = struct
        self.field = field
        self.position = position
        self.reason = reason
        self.code = code

    def moved(self, by: int) -> DecodeError:
        """The same error, `by` bytes further on: for a buffer that was a part of a larger one."""
        return DecodeError(self.struct, self.field, self.position + by, self.reason, self.code)
