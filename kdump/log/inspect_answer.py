"""What `kdump inspect` answers: batches, records, bytes that are neither, and entries of the files next to segments.

The compiled core writes most lines of batches and records, with the keys and in the order of these classes
(kdump.render.line_parts)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, FILE_BYTE, INLINE, MS, OFFSET, Cell, Doc, Object, PathText, Shown, answer
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TxnIndexEntry
from kdump.format.producer_snapshot import ProducerEntry
from kdump.log.region import BITS, Batch
from kdump.log.remote_files import BOTH, LOCAL, REMOTE

NOT_IN_MESSAGES = ("offsetDelta", "timestampDelta", "sequence")
"""Keys of a record that are null in messages of magic 0 and 1."""
FilePath = Annotated[PathText, Doc("path as given, or found below a given directory")]
FileTopic = Annotated[
    str | None, Doc("from the name of the file's directory; the topic's ID if remote storage states only that")
]
FilePartition = Annotated[int | None, Doc("from the name of the file's directory")]
FileTier = Annotated[
    str | None,
    Doc(
        f"with --remote, where it is: {LOCAL}, {REMOTE}, or {BOTH} (local, and objects have all offsets of its file)",
        optional=True,
    ),
]


@answer("batch")
class InspectedBatch(NamedTuple):
    """A record batch, or a message of magic 0 and 1."""

    file: FilePath
    topic: FileTopic
    partition: FilePartition
    tier: FileTier
    batch: Annotated[Batch, INLINE]


@answer("record")
class InspectedRecord(NamedTuple):
    """A record. A declaration only: kdump.render.inspect_json.record_object writes it, in parts if it is large."""

    file: FilePath
    topic: FileTopic
    partition: FilePartition
    tier: FileTier
    position: Annotated[int, Doc("start of its batch", FILE_BYTE), Shown("batch at", 1, after="sequence")]
    offset: Annotated[int | None, Doc("offset of the record; null if a v1 wrapper is damaged", OFFSET), Shown()]
    timestamp: Annotated[int | None, Doc("null in magic 0", EPOCH_MS), Shown(rank=7)]
    timestampType: Annotated[str, Doc("CreateTime, LogAppendTime, or NoTimestampType (magic 0)")]
    attributes: Annotated[int, Doc("of the record; of the message itself in magic 0 and 1", "bits"), BITS]
    offsetDelta: Annotated[int | None, Doc("offset minus the batch's baseOffset; null in magic 0 and 1")]
    timestampDelta: Annotated[int | None, Doc("stored timestamp minus baseTimestamp; null in magic 0 and 1", MS)]
    sequence: Annotated[
        int | None,
        Doc("sequence number; -1: none; null in magic 0 and 1"),
        Shown(rank=2, blank=-1, after="timestamp"),
        Cell(none=""),
    ]
    keySize: Annotated[int, Doc("-1 for a null key", BYTES), Shown(rank=1, after="position")]
    valueSize: Annotated[int, Doc("-1 for a null value (a tombstone)", BYTES), Shown(rank=1, after="keySize")]
    key: Annotated[str | None, Doc("text if it is valid UTF-8, else base64"), Shown(rank=8, least=8, after="valueSize")]
    keyEncoding: Annotated[str | None, Doc('"base64" if key is base64', optional=True)]
    value: Annotated[str | None, Doc("text if it is valid UTF-8, else base64"), Shown(least=28, after="headers")]
    valueEncoding: Annotated[str | None, Doc('"base64" if value is base64', optional=True)]
    headers: Annotated[
        list[Object],
        Doc("of {key, value}, in order; each with keyEncoding and valueEncoding as above, or valueSize with --redact"),
        Shown(rank=3, least=10, after="key"),
    ]
    crc: Annotated[
        int | None,
        Doc("checksum stored in the message: magic 0 and 1 only", "CRC-32", optional=True),
        Cell("0x{:08x}".format),
    ]
    crcValid: Annotated[bool | None, Doc("whether that checksum matches: magic 0 and 1 only", optional=True)]
    control: Annotated[
        Object | None,
        Doc(
            "of a control record: type (COMMIT, ABORT, LEADER_CHANGE …), version, coordinatorEpoch or the decoded "
            "value",
            optional=True,
        ),
    ]
    keyDecoded: Annotated[Any, Doc("the key as decoded; see decoders.md", optional=True)]
    keyProblem: Annotated[
        str | None, Doc("why the key was not decoded, or only in part, and at which of its bytes", optional=True)
    ]
    keyNote: Annotated[
        str | None, Doc("what is unusual but legal about the key, such as a newer version", optional=True)
    ]
    valueDecoded: Annotated[Any, Doc("the value as decoded; see decoders.md", optional=True)]
    valueProblem: Annotated[
        str | None, Doc("why the value was not decoded, or only in part, and at which of its bytes", optional=True)
    ]
    valueNote: Annotated[
        str | None, Doc("what is unusual but legal about the value, such as a newer version", optional=True)
    ]
    names: Annotated[
        Object | None,
        Doc("IDs in keyDecoded and valueDecoded, with the topic or user that each identifies", optional=True),
    ]
    damaged: Annotated[
        bool | None,
        Doc("true if the checksum of its batch (as of a torn one), or its own, does not match", optional=True),
    ]


@answer("region")
class InspectedRegion(NamedTuple):
    """Bytes that belong to no batch."""

    kind: Annotated[str, Doc("torn, junk or padding")]
    file: FilePath
    topic: FileTopic
    partition: FilePartition
    tier: FileTier
    position: Annotated[int, Doc("its start; in a compressed file, a position in the decompressed contents", FILE_BYTE)]
    size: Annotated[int, Doc("its size in the file", BYTES)]
    reason: Annotated[str, Doc("why these bytes are not a batch")]
    baseOffset: Annotated[int | None, Doc("from the header of a torn batch", OFFSET)]
    batchLength: Annotated[int | None, Doc("from the header of a torn batch", BYTES)]


EntryOffset = Annotated[int, Doc("relative offset as stored, plus the base offset in the file's name", OFFSET)]


@answer("indexEntry")
class InspectedIndexEntry(NamedTuple):
    """An entry of an .index. kdump.log.entries makes its values, and those of the classes below."""

    file: FilePath
    topic: FileTopic
    partition: FilePartition
    offset: EntryOffset
    position: Annotated[int, Doc(INDEX_ENTRY.field("position").meaning, "byte of the .log")]


@answer("timeIndexEntry")
class InspectedTimeIndexEntry(NamedTuple):
    """An entry of a .timeindex."""

    file: FilePath
    topic: FileTopic
    partition: FilePartition
    timestamp: Annotated[int, TIME_INDEX_ENTRY.field("timestamp")]
    offset: EntryOffset


@answer("txnIndexEntry")
class InspectedTxnIndexEntry(NamedTuple):
    """An entry of a .txnindex."""

    file: FilePath
    topic: FileTopic
    partition: FilePartition
    entry: Annotated[TxnIndexEntry, INLINE]


@answer("producerState")
class InspectedProducer(NamedTuple):
    """A producer in a .snapshot."""

    file: FilePath
    topic: FileTopic
    partition: FilePartition
    entry: Annotated[ProducerEntry, INLINE]


@answer("checkpointEntry")
class InspectedCheckpointEntry(NamedTuple):
    """A line of a checkpoint file."""

    file: FilePath
    topic: Annotated[str | None, Doc("of an offset checkpoint's line; else from the name of the file's directory")]
    partition: Annotated[int | None, Doc("like topic")]
    offset: Annotated[int | None, Doc("of an offset checkpoint", OFFSET, optional=True)]
    epoch: Annotated[int | None, Doc("of a leader epoch checkpoint", optional=True)]
    startOffset: Annotated[
        int | None, Doc("of a leader epoch checkpoint: first offset of the epoch", OFFSET, optional=True)
    ]


@answer("property")
class InspectedProperty(NamedTuple):
    """A name and its value in a text file such as meta.properties or quorum-state."""

    file: FilePath
    topic: FileTopic
    partition: FilePartition
    name: Annotated[str, Doc("as in the file")]
    value: Annotated[str, Doc("as in the file; JSON text if it is not a string there")]


ENTRIES = (
    *(InspectedIndexEntry, InspectedTimeIndexEntry, InspectedTxnIndexEntry, InspectedProducer),
    *(InspectedCheckpointEntry, InspectedProperty),
)
"""Classes of the entries of files without batches."""
