"""Hides the secrets in batches of the cluster's metadata: a bundle never contains them.

Source: the records of org.apache.kafka.common.metadata that carry credentials (UserScramCredentialRecord,
DelegationTokenRecord, RemoveDelegationTokenRecord, ConfigRecord), and KIP-900 for SCRAM in bootstrap.checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from kdump.core.column_numbers import MARKER_SIZE
from kdump.format.control_record import KEY, decode_control
from kdump.format.layout import Span
from kdump.format.metadata_record import MetadataRecord, decode_metadata_record, read_frame
from kdump.log.batch_records import records
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.state.effective_config import is_public
from kdump.state.secrets import SECRET_FIELDS

CONFIG = "ConfigRecord"
MASK = b"*"


def without_secrets(batch: DefaultRecordBatch) -> bytes | None:
    """Return the bytes of a batch with its secrets replaced by as many other characters; None if they cannot be
    distinguished from the rest: the batch is compressed and has some, or a record cannot be decoded. Of a newer release
    than the newest known one, records of new types are kept, and those that may have secrets have zeros."""
    if batch.isControlBatch:
        return control_bytes(batch)
    if not batch.crcValid:
        return None  # in a bundle made from headers alone: damage can make one type of record look like another
    data = bytearray(b"".join(batch.chunks(0, batch.size)))
    noted = len(batch.problems)  # what is wrong only with the length or the magic
    for record in records(batch):
        if record.key is not None or record.header_count:
            return None
        hidden = _hidden(record)
        if hidden is None:
            return None
        for start, mask in hidden:
            if batch.is_compressed:
                return None
            at = record.space_position - batch.position + (record.value_start - record.start) + start
            data[at : at + len(mask)] = mask
    return None if len(batch.problems) > noted else bytes(data)


def control_bytes(batch: Batch) -> bytes | None:
    """Return the bytes of a control batch; None if it has anything but control records, such as after damage to the
    attributes of another batch."""
    if not batch.isControlBatch or not batch.crcValid:
        return None
    noted = len(batch.problems)
    if batch.size != MARKER_SIZE:  # a marker leaves no room for anything else
        for record in records(batch):
            control = decode_control(record.key, record.value)
            if control.rest or control.problem or record.keySize != KEY.size or record.header_count:
                return None
    return None if len(batch.problems) > noted else b"".join(batch.chunks(0, batch.size))


def looks_like_metadata(batch: Batch) -> bool:
    """Return True if the first record of a batch is one of the cluster's metadata: a copy of that log under another
    name. (The log itself is never compressed.)"""
    if batch.is_compressed or batch.format.is_message:
        return False
    first = next(records(batch), None)
    return first is not None and first.key is None and decode_metadata_record(first.value).values is not None


def _hidden(record: Record) -> list[tuple[int, bytes]] | None:
    """Return what to write over which positions of a record's value; None if that is unknown."""
    value = record.value
    if value is None:
        return None
    spans: list[Span] = []
    decoded = decode_metadata_record(bytes(value), spans=spans)
    if decoded.newer:
        return _hidden_of_newer(decoded, bytes(value))
    if decoded.values is None or decoded.problem is not None or decoded.note:
        return None
    names: tuple[str, ...] = SECRET_FIELDS.get(decoded.name, ())
    if decoded.name == CONFIG and not is_public(decoded.values):
        names = ("value",)
    return [each for name in names for each in _masks(name, spans)]


def _hidden_of_newer(record: MetadataRecord, value: bytes) -> list[tuple[int, bytes]]:
    """Return the same for a record of a newer release than the newest known one."""
    start = 1
    if record.apiKey is not None:
        if record.name not in SECRET_FIELDS and record.name != CONFIG:
            return []
        start = read_frame(value).position
    return [(start, bytes(len(value) - start))]


def _masks(name: str, spans: list[Span]) -> Iterator[tuple[int, bytes]]:
    for span in spans:
        if span.field.name != name or span.depth or span.value is None:
            continue
        stored = span.value if isinstance(span.value, bytes) else str(span.value).encode()
        start = span.position + span.size - len(stored)
        # An ID stays different from other IDs, and random ones cannot be guessed from their hashes.
        digest = sha256(stored).hexdigest().encode()
        mask = digest * (len(stored) // len(digest) + 1) if name == "tokenId" else MASK * len(stored)
        yield start, mask[: len(stored)]
