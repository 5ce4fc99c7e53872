"""The codecs that Kafka defines: what is known of each, by the ID in the attributes of a batch (CompressionType).

A new one is a line here, and its module in kdump/format/codec, which has its name."""

from typing import NamedTuple


class Codec(NamedTuple):
    """`expansion`: how many bytes it can decompress from one, at most; `mark`: bytes with which its stream begins,
    empty if it may begin with others; `in_messages`: whether messages of v0 and v1 may use it."""

    name: str
    expansion: int
    mark: bytes = b""
    in_messages: bool = True


BY_ID = (
    Codec("none", 1),
    Codec("gzip", 1032, b"\x1f\x8b"),  # deflate: 258 bytes from 2 bits
    Codec("snappy", 22),  # 64 bytes from 3
    Codec("lz4", 255, b"\x04\x22\x4d\x18"),  # 255 from each byte of a match length
    Codec("zstd", 32768, b"\x28\xb5\x2f\xfd", in_messages=False),  # a block of 128 KiB from 4 bytes
)
BY_NAME = {codec.name: codec for codec in BY_ID}
CODECS = dict(enumerate(BY_NAME))
"""Their names."""
MAX_EXPANSION = tuple(codec.expansion for codec in BY_ID)
NAMES = ", ".join(BY_NAME)


def codec_name(codec: int) -> str:
    """Return none, gzip, snappy, lz4 or zstd, or unknown(5) for an ID that Kafka does not define."""
    return CODECS.get(codec, f"unknown({codec})")


ALL_NAMES = tuple(map(codec_name, range(8)))
"""Names of all IDs for which the three bits of the attributes have room."""
