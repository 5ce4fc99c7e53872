"""The key of the hashes in a bundle, from a file of the user's."""

from __future__ import annotations

from kdump.log.errors import SourceError

MIN_KEY, MAX_KEY = 16, 1 << 20
"""Bytes that a key may have."""


def read_hash_key(path: str) -> bytes:
    """Return the contents of the file: the key. Raises SourceError if it cannot be read, or is too short."""
    try:
        with open(path, "rb") as file:
            key = file.read(MAX_KEY + 1)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from error
    if not MIN_KEY <= len(key) <= MAX_KEY:
        raise SourceError(f"{path}: a key has at least {MIN_KEY} bytes and at most {MAX_KEY}")
    return key
