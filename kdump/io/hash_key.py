"""The key of a fleet under which bundles have hashes of records: who does not have it cannot test guesses."""

from __future__ import annotations

from typing import Any, NamedTuple

from kdump.io.errors import SourceError

MIN_KEY, MAX_KEY = 16, 1 << 16
"""Bytes of a key."""
HASH_SIZE = 8
"""Bytes of a hash: with 10^6 records at the same offset of two copies, one in 10^13 is taken for the same."""


def _hash(key: bytes, data: bytes) -> bytes:
    import hmac  # not at the top: most runs have no key

    return hmac.digest(key, data, "sha256")[:HASH_SIZE]


class HashKey(NamedTuple):
    """A key. `name` identifies it without giving it away."""

    key: bytes
    name: str

    def __repr__(self) -> str:
        return f"HashKey({self.name})"

    def hash(self, data: bytes) -> bytes:
        """Return HASH_SIZE bytes of the HMAC-SHA-256 of the data."""
        return _hash(self.key, data)


class RecordHash(NamedTuple):
    """The hash of all of a record under the key of that name."""

    key: str
    digest: bytes


def read_hash_key(path: str) -> HashKey:
    """Read a key: all bytes of a file. Raises SourceError."""
    try:
        with open(path, "rb") as file:
            key = file.read(MAX_KEY + 1)
    except OSError as error:
        raise SourceError.at(path, str(error.strerror)) from error
    if not MIN_KEY <= len(key) <= MAX_KEY:
        raise SourceError.at(
            path, f"a key has {MIN_KEY} to {MAX_KEY} bytes; make one with: head -c 32 /dev/urandom > {path}"
        )
    return HashKey(key, _hash(key, b"kdump bundle").hex())


def hash_of(key: HashKey, fields: tuple[Any, ...]) -> RecordHash:
    """Return the hash of a record's fields: numbers, bytes and None."""
    data = bytearray()
    for field in fields:  # with their lengths, so that no two records give the same bytes
        data += b"%d:%s" % (len(field), field) if isinstance(field, bytes) else b"%s;" % repr(field).encode()
    return RecordHash(key.name, key.hash(bytes(data)))
