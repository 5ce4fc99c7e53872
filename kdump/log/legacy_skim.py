"""Reads a large message of format v0 or v1 inside a wrapper without its value, as log.skim reads a record of format
v2."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from kdump.format.count_text import plain_count
from kdump.format.errors import DecodeError
from kdump.format.legacy_message import (
    CRC_START,
    VALUE_SIZE,
    Body,
    MessageHeader,
    body_of,
    key_problem,
    read_header,
    size_problem,
)
from kdump.log.skim import HEAD, hasher


class Skimmed(bytearray):
    """The first bytes of a message, up to its key or the end of its key, without the value. `crc`: the checksum of the
    whole message; `digest`: of its key, if only the first HEAD bytes of that are kept."""

    crc: int = 0
    digest: bytes = b""


def skim(head: bytes, pieces: Iterator[bytes], size: int, keys: bool) -> tuple[MessageHeader, Body, Skimmed, bytes]:
    """Read a message of `size` bytes: `head` has the first ones, including its fixed fields, and `pieces` the following
    ones. With `keys`, its key is kept. The last item returned has the bytes after the message. Raises DecodeError,
    after reading the message."""
    skimmed = Skimmed()
    size_at, kept = size, 0
    value_size = bytearray()
    problem: DecodeError | None = None
    digest = None
    key_at = 0
    try:
        header = read_header(head)
        problem = size_problem(header, 0) or key_problem(header, 0)
        size_at = header.headerSize + max(0, header.keySize)
        kept = key_at = header.headerSize
        if keys and not problem:
            kept = min(size_at, key_at + HEAD)
            digest = hasher(b"") if kept < size_at else None
    except DecodeError as error:
        problem = error
    position = 0
    piece = head
    while True:
        part = piece[: size - position]
        skimmed += part[: max(0, kept - position)]
        if digest is not None:
            digest.update(part[max(0, key_at - position) : max(0, size_at - position)])
        value_size += part[max(0, size_at - position) : max(0, size_at + VALUE_SIZE.size - position)]
        skimmed.crc = zlib.crc32(part[max(0, CRC_START - position) :], skimmed.crc)
        position += len(part)
        if position == size:
            break
        piece = next(pieces, b"")
        if not piece:
            raise cut(position)
    if problem:
        raise problem
    if digest is not None:
        skimmed.digest = digest.digest()
    return header, body_of(header, value_size), skimmed, piece[len(part) :]


def cut(count: int) -> DecodeError:
    """Return the error for a payload that ends with `count` bytes of a message."""
    # Java's reader treats a message truncated at the end as the end of the set; a broker that validates does not.
    return DecodeError("Message", "offset", 0, f"{plain_count(count, 'byte')} after the last inner message")
