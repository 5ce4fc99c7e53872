"""Structures of Kafka Streams around the keys and values of its changelogs and repartition topics.

Source: org.apache.kafka.streams.state.internals: WindowKeySchema, SessionKeySchema,
TimestampedKeyAndJoinSideSerializer, InMemoryTimeOrderedKeyValueChangeBuffer;
org.apache.kafka.streams.kstream.internals: ChangedDeserializer (KIP-904). Timestamped, versioned and header stores log
plain keys and values: timestamps and headers are those of the records."""

from __future__ import annotations

import struct
from typing import Annotated, Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.layout import INT32, INT64, Field, Layout, layout
from kdump.format.varint import read_varint

TIMES = range(946_684_800_000, 4_102_444_800_000)
"""Timestamps from 2000 to 2099, in epoch ms: bytes with another number are not taken for a window."""


class WindowedKey(NamedTuple):
    """The end of a key that TimeWindowedSerializer wrote. The size of the window is not in it."""

    startMs: Annotated[int, Field(INT64, "start of the window", "epoch ms")]


class WindowStoreKey(NamedTuple):
    """The end of a key in the changelog of a window store. The size of the window is not in it."""

    startMs: Annotated[int, Field(INT64, "start of the window", "epoch ms")]
    seqnum: Annotated[int, Field(INT32, "tells apart several values of a key in a window of a join; otherwise 0")]


class SessionKey(NamedTuple):
    """The end of a key in the changelog of a session store, or that SessionWindowedSerializer wrote."""

    endMs: Annotated[int, Field(INT64, "end of the session", "epoch ms")]
    startMs: Annotated[int, Field(INT64, "start of the session", "epoch ms")]


WINDOWED = layout(WindowedKey, "WindowKeySchema.toBinary")
WINDOW_STORE = layout(WindowStoreKey, "WindowKeySchema.toStoreKeyBinary")
SESSION = layout(SessionKey, "SessionKeySchema")
KEYS: dict[str, Layout[Any]] = {
    "streams-windowed": WINDOWED,
    "streams-window-store": WINDOW_STORE,
    "streams-session": SESSION,
}
"""Layouts of the ends of keys, by the name of their decoder."""
JOIN_SIDE = struct.Struct(">qB")


class Change(NamedTuple):
    """A value in a repartition topic of a table: new and old value, each None if there is none."""

    newValue: bytes | None
    oldValue: bytes | None
    isLatest: bool


def key_structure(key: bytes) -> str:
    """Return the name of the structure (of KEYS) that a key ends with, as far as its timestamps show; empty if none."""
    if len(key) >= SESSION.size:
        end, start = SESSION.read(key, len(key) - SESSION.size)
        if end in TIMES and start in TIMES and start <= end:
            return "streams-session"
    if len(key) > WINDOWED.size and WINDOWED.read(key, len(key) - WINDOWED.size).startMs in TIMES:
        return "streams-windowed"
    if len(key) >= WINDOW_STORE.size:
        start, seqnum = WINDOW_STORE.read(key, len(key) - WINDOW_STORE.size)
        if start in TIMES and seqnum >= 0:
            return "streams-window-store"
    return ""


def is_join_key(key: bytes) -> bool:
    """Return True if a key looks like that of a store that both sides of an outer join share: a timestamp, the side,
    and the record's key."""
    if len(key) < JOIN_SIDE.size:
        return False
    timestamp, side = JOIN_SIDE.unpack_from(key)
    return timestamp in TIMES and side in (0, 1)


def read_change(data: bytes) -> Change:
    """Read a Change. Raises DecodeError."""
    flag = data[-1] if data else -1
    if not 0 <= flag <= 5:
        raise DecodeError("Change", "encodingFlag", max(0, len(data) - 1), f"{flag} is not a flag from 0 to 5")
    end, is_latest = len(data) - 1, True
    if flag >= 3:
        end -= 1
        if end < 0 or data[end] > 1:
            raise DecodeError("Change", "isLatest", max(0, end), "0 or 1 needed")
        is_latest = data[end] == 1
    if flag in (0, 3):
        return Change(None, data[:end], is_latest)
    if flag in (1, 4):
        return Change(data[:end], None, is_latest)
    size, position = read_varint(data, 0, end, "Change", "newDataLength")
    if not 0 <= size <= end - position:
        raise DecodeError("Change", "newDataLength", 0, f"length {size}, {end - position} bytes left")
    return Change(data[position : position + size], data[position + size : end], is_latest)
