"""The only exception of the format layer."""

from __future__ import annotations


class DecodeError(Exception):
    """Raised for bytes that cannot be decoded as `struct`.

    `position` counts bytes from the start of the decoded buffer; the caller adds the buffer's position in a file or in
    a decompressed payload. `code` is the finding code for this error.
    """

    def __init__(self, struct: str, field: str, position: int, reason: str, code: str = "record-malformed") -> None:
        super().__init__(f"{struct}.{field} at byte {position}: {reason}")
        self.struct = struct
        self.field = field
        self.position = position
        self.reason = reason
        self.code = code

    def moved(self, by: int) -> DecodeError:
        """Return the same error `by` bytes further on, for a buffer that is part of a larger one."""
        return DecodeError(self.struct, self.field, self.position + by, self.reason, self.code)
