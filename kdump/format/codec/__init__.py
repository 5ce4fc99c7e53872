"""The codecs as streams: pieces of a compressed payload in, pieces of bounded size out.

They accept what Kafka's Java client accepts (org.apache.kafka.common.compress and the libraries below it), and ignore
the same bytes after the end of a stream, so that an error here is one that a consumer would get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

from kdump.format.codec.source import CompressedInput, PieceOptions, failed, over_limit
from kdump.format.codec_table import BY_NAME
from kdump.format.varint import Bytes


def decompress(
    codec: str,
    chunks: Iterable[Bytes],
    *,
    limit: int,
    size: int,
    ignore_header_checksum: bool = False,
    chunk_size: int = 1 << 20,
    ignored: Callable[[int], None] | None = None,
) -> Iterator[bytes]:
    """Yield the decompressed payload in pieces of at most about `chunk_size` bytes, none empty (an LZ4 block is one).

    `chunks` are the pieces of the compressed payload in order, split anywhere, `size` bytes in total. A view among
    them only has to stay valid until the next one is requested. Bytes after the end of the stream may be left unread.
    `ignore_header_checksum` is for magic 0, whose LZ4 writers computed that checksum incorrectly. `ignored` is called
    at the end with the number of bytes that no reader looks into: after the end of the stream, or in optional fields.

    Raises DecodeError, with a position in the compressed payload, after yielding everything before the damage. If
    there are more than `limit` bytes, raises it after yielding the first `limit` (but nothing of a Snappy block that
    would exceed the limit). The limit does not apply to codec none, which cannot expand. An empty payload is an error
    for every other codec, so do not call this for a batch without records."""
    chunk_size = max(1, chunk_size)
    source = CompressedInput(chunks, size)
    if codec == "none":
        while piece := source.peek(chunk_size):
            source.skip(len(piece))
            yield piece
        return
    left = limit
    if codec not in BY_NAME:
        raise failed("Payload", "compression", 0, f"codec {codec}")
    # A codec and its library are imported only when a payload needs them.
    stream = import_module(f"{__name__}.{codec}")
    for piece in stream.pieces(source, PieceOptions(limit, chunk_size, ignore_header_checksum)):
        if len(piece) > left:
            if left > 0:
                yield piece[:left]
            raise over_limit(stream.STRUCT, source.position, limit)
        left -= len(piece)
        if piece:
            yield piece
    if ignored is not None:
        ignored(source.ignored + max(0, size - source.position))
