"""Segments that Aiven's plugin has written to remote storage: chunks that may be compressed and encrypted, at positions
that the manifest next to the object states, and all indexes in one object. They are opened as the files that they were
made of, under the names that LocalTieredStorage gives these.

Source: io.aiven.kafka.tieredstorage: SegmentManifestV1, FixedSizeChunkIndex, VariableSizeChunkIndex,
ChunkSizesBinaryCodec, KafkaRemoteStorageManager, AesEncryptionProvider, RsaEncryptionProvider.
"""

from __future__ import annotations

import json
import struct
from array import array
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import lru_cache
from hashlib import sha3_512
from itertools import accumulate
from typing import Any, NamedTuple

from kdump.extras import how_to_install
from kdump.format.codec import decompress
from kdump.format.errors import DecodeError
from kdump.io.errors import DamagedObject, SourceError, SourceNotFound
from kdump.io.partly_readable import PartlyReadable
from kdump.io.untrusted_json import integer, natural, text

LOG, INDEXES, MANIFEST = "log", "indexes", "rsm-manifest"
PARTS = {
    "index": "offset",
    "timeindex": "timestamp",
    "snapshot": "producerSnapshot",
    "leader_epoch_checkpoint": "leaderEpoch",
    "txnindex": "transaction",
}
"""Keys of segmentIndexes by the suffix of the file."""
LARGEST_MANIFEST = 16 << 20
LARGEST_CHUNK = 256 << 20
LARGEST_INDEX = 64 << 20
LARGEST_LIST = 10 << 20
"""TransformedChunksDeserializer.MAX_DECOMPRESSED_SIZE"""
MOST_CHUNKS = 1 << 20
SEGMENT_MAX = (1 << 31) - 1
IV, TAG = 12, 16
"""Bytes before and after the encrypted ones."""
KEPT = 2
"""Number of chunks that are kept."""

_key_files: tuple[str, ...] = ()


def use_keys(paths: Iterable[str]) -> None:
    """Unwrap data keys with the RSA private keys in these PEM files."""
    global _key_files
    _key_files = tuple(paths)
    _private_keys.cache_clear()


def key_files() -> tuple[str, ...]:
    """Return these files."""
    return _key_files


class Encryption(NamedTuple):
    """A segment's AES key as it is wrapped, and the data that is authenticated with each chunk."""

    wrapped: str
    aad: bytes


class Manifest(NamedTuple):
    """What a manifest states: bytes of the segment and of each chunk of it; `fixed`: bytes of each stored chunk but the
    last, or `ends`: where each ends; `last`: bytes of the last; `parts`: position and size of each index."""

    size: int
    chunk: int
    fixed: int
    last: int
    ends: array[int]
    is_compressed: bool
    encryption: Encryption | None
    parts: dict[str, tuple[int, int]]

    def place(self, number: int) -> tuple[int, int, int]:
        """Return where a chunk begins in the object, its size there, and its size in the segment."""
        original = min(self.chunk, self.size - number * self.chunk)
        if self.ends:
            start = self.ends[number - 1] if number else 0
            return start, self.ends[number] - start, original
        is_last = (number + 1) * self.chunk >= self.size
        return number * self.fixed, self.last if is_last else self.fixed, original


def opened(path: str, suffix: str, open_raw: Callable[[str], Any]) -> Any:
    """Return a Source of what an object was made of, or the bytes of an index; the object itself if there is no
    manifest, or nothing was changed. Raises SourceError, as DamagedObject if a manifest or an index is damaged."""
    stem = path[: -len(suffix)]
    if suffix not in (LOG, *PARTS):
        return open_raw(path)
    try:
        with closing(open_raw(stem + MANIFEST)) as source:
            data = source.read_at(0, LARGEST_MANIFEST + 1)
    except SourceNotFound:
        return open_raw(path)
    try:
        manifest = _manifest(data)
    except (ValueError, KeyError, TypeError, RecursionError, struct.error, DecodeError) as error:
        why = f"not a manifest that Aiven's plugin writes: {str(error)[:100]}"
        raise DamagedObject.at(stem + MANIFEST, why) from error
    if suffix == LOG:
        is_plain = not manifest.is_compressed and manifest.encryption is None
        return open_raw(path) if is_plain else ChunkedSource(open_raw(path), manifest)
    position, size = manifest.parts.get(PARTS[suffix], (0, 0))
    if suffix == "txnindex" and not size:
        raise SourceNotFound.at(path, "the manifest states no transaction index")
    with closing(open_raw(stem + INDEXES)) as source:
        stored = source.read_at(position, size)
    if len(stored) < size:
        raise DamagedObject.at(stem + INDEXES, f"it ends before {PARTS[suffix]}, {size} bytes at {position}")
    if size and manifest.encryption is not None:
        what = f"{stem}{INDEXES}: {PARTS[suffix]}"
        try:
            stored = _decrypted(stored, manifest.encryption, what)
        except DecodeError as error:
            raise DamagedObject(f"{what}: {error.reason}", stem + INDEXES) from error
    return stored


def _manifest(data: bytes) -> Manifest:
    """Return what a manifest states. Raises ValueError, KeyError, TypeError, DecodeError and struct.error for one that
    the plugin does not write."""
    if len(data) > LARGEST_MANIFEST:
        raise ValueError(f"more than {LARGEST_MANIFEST} bytes")
    stated: dict[str, Any] = json.loads(data)
    if stated["version"] != "1":
        raise ValueError(f"version {stated['version']!r}")
    chunks: dict[str, Any] = stated["chunkIndex"]
    size = integer(chunks["originalFileSize"], 0, SEGMENT_MAX)
    chunk = integer(chunks["originalChunkSize"], 1, SEGMENT_MAX)
    if min(chunk, size) > LARGEST_CHUNK:
        raise ValueError(f"chunks of {chunk} bytes are larger than {LARGEST_CHUNK}")
    count = -(-size // chunk)
    if count > MOST_CHUNKS:
        raise ValueError(f"{count} chunks are more than {MOST_CHUNKS}")
    fixed = last = 0
    ends = array("q")
    if chunks["type"] == "fixed":
        fixed = integer(chunks["transformedChunkSize"], 0, LARGEST_CHUNK + IV + TAG)
        last = integer(chunks["finalTransformedChunkSize"], 0, LARGEST_CHUNK + IV + TAG)
    else:
        ends.extend(accumulate(_sizes(b64decode(chunks["transformedChunks"], validate=True), count)))
    parts = {
        name: (natural(part["position"]), integer(part["size"], 0, LARGEST_INDEX))
        for name in PARTS.values()
        if (part := stated["segmentIndexes"][name]) is not None
    }
    encryption = stated.get("encryption")
    if encryption is not None:
        encryption = Encryption(text(encryption["dataKey"]), b64decode(encryption["aad"], validate=True))
    return Manifest(size, chunk, fixed, last, ends, stated["compression"] is True, encryption, parts)


def _sizes(compressed: bytes, count: int) -> Iterator[int]:
    """Yield the sizes of `count` chunks. Stored are: their number, the smallest, how many bytes each difference to it
    has, these differences, and the size of the last chunk; of a single one, only its size."""
    data = b"".join(decompress("zstd", [compressed], limit=LARGEST_LIST, size=len(compressed)))
    (stated,) = struct.unpack_from(">i", data)
    base, width = struct.unpack_from(">iB", data, 4) if stated > 1 else (0, 0)
    most = max(0, count - 1)
    if stated != count or width > 4 or len(data) != 4 + (5 + most * width if most else 0) + 4 * bool(count):
        raise ValueError(f"{len(data)} bytes for {stated} sizes of chunks, of which there are {count}")
    for number in range(count):
        start = 9 + number * width
        if number == most:
            (size,) = struct.unpack_from(">i", data, len(data) - 4)
        else:
            size = base + int.from_bytes(data[start : start + width], "big")
        if not 0 <= size <= 2 * LARGEST_CHUNK:
            raise ValueError(f"a chunk of {size} bytes is not possible")
        yield size


@lru_cache(1)
def _private_keys() -> list[Any]:
    try:
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise SourceError(f"encrypted segments need the package cryptography: {how_to_install('sign')}") from None
    keys = []
    for path in _key_files:
        try:
            with open(path, "rb") as file:
                key = load_pem_private_key(file.read(1 << 20), None)
            if not isinstance(key, RSAPrivateKey):
                raise TypeError
            keys.append(key)
        except (OSError, ValueError, TypeError) as error:
            reason = (
                error.strerror if isinstance(error, OSError) else "not an RSA private key in PEM without a password"
            )
            raise SourceError.at(path, reason or "") from error
    return keys


@lru_cache(64)
def _data_key(wrapped: str, _files: tuple[str, ...]) -> bytes:
    """Return a data key. Raises SourceError if none of the key files unwraps it."""
    name, _, data = wrapped.partition(":")
    keys = _private_keys()
    if not keys:
        raise SourceError(f"encrypted for the key pair {name[:40]!r}; give its private key by --remote-key FILE")
    for key in keys:
        unwrapped = _unwrapped(b64decode(data), key)
        if unwrapped is not None:
            return unwrapped
    raise SourceError(f"encrypted for the key pair {name[:40]!r}, and no key of --remote-key unwraps its data key")


def _unwrapped(data: bytes, key: Any) -> bytes | None:
    """Return what was encrypted with RSA, OAEP with SHA3-512 (RFC 8017, 7.1.2), which cryptography does not have; None
    if it was encrypted with another key."""
    numbers = key.private_numbers()
    modulus: int = numbers.public_numbers.n
    size, digest = (modulus.bit_length() + 7) // 8, sha3_512().digest_size
    if len(data) != size or size < 2 * digest + 2:
        return None
    block = pow(int.from_bytes(data, "big"), numbers.d, modulus).to_bytes(size, "big")
    masked_seed, masked = block[1 : 1 + digest], block[1 + digest :]
    seed = _xor(masked_seed, _mask(masked, digest))
    plain = _xor(masked, _mask(seed, len(masked)))
    start = plain.find(b"\1", digest)
    if block[0] or plain[:digest] != sha3_512().digest() or start < 0 or any(plain[digest:start]):
        return None
    return plain[start + 1 :]


def _mask(seed: bytes, size: int) -> bytes:
    """MGF1 with SHA3-512."""
    made = b"".join(sha3_512(seed + struct.pack(">I", count)).digest() for count in range(-(-size // 64)))
    return made[:size]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other))


def _decrypted(data: bytes, encryption: Encryption, what: str) -> bytes:
    try:
        key = _data_key(encryption.wrapped, _key_files)
    except SourceError as error:
        raise SourceError(f"{what}: {error}") from error
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return bytes(AESGCM(key).decrypt(data[:IV], data[IV:], encryption.aad))
    except (InvalidTag, ValueError) as error:
        raise DecodeError("Chunk", "data", 0, "its bytes do not match their authentication tag") from error


class ChunkedSource(PartlyReadable):
    """A Source of a segment in chunks. A chunk that cannot be read is in `unreadable`, and zeros in its place."""

    lacks: frozenset[str] = frozenset()

    def __init__(self, stored: Any, manifest: Manifest) -> None:
        super().__init__()
        self.name = stored.name
        self.size: int | None = manifest.size
        self.error: str | None = None
        self.keep = True
        self._stored, self._manifest = stored, manifest
        self._chunk = lru_cache(KEPT)(self._read)
        if manifest.encryption is not None:
            try:
                _data_key(manifest.encryption.wrapped, _key_files)
            except SourceError as error:
                raise SourceError.at(self.name, str(error)) from error

    def read_at(self, position: int, count: int) -> bytes:
        size, parts = self._manifest.chunk, []
        stop = min(position + count, self._manifest.size)
        while position < stop:
            number, inside = divmod(position, size)
            part = self._chunk(number)[inside : inside + stop - position]
            parts.append(part)
            position += len(part)
        return b"".join(parts)

    def _read(self, number: int) -> bytes:
        start, stored, size = self._manifest.place(number)
        try:
            data: bytes = self._stored.read_at(start, stored)
            if len(data) < stored:
                raise DecodeError("Chunk", "data", len(data), f"the object ends after {len(data)} of {stored} bytes")
            if self._manifest.encryption is not None:
                data = _decrypted(data, self._manifest.encryption, self.name)
            if self._manifest.is_compressed:
                data = b"".join(decompress("zstd", [data], limit=size, size=len(data)))
            if len(data) != size:
                raise DecodeError("Chunk", "data", 0, f"it has {len(data)} bytes, and should have {size}")
        except DecodeError as error:
            self.fault = f"chunk {number} of Aiven's plugin: {error.reason}"
            at = number * self._manifest.chunk
            self.add_unreadable(at, at + size)
            return bytes(size)
        return data

    def next_data(self, position: int) -> int:
        return position

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        self.note_unreadable()
        self._stored.close()
