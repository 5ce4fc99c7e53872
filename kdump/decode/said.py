"""What a decoder says of a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from kdump.format.errors import DecodeError
from kdump.format.layout import Span
from kdump.log.paths import Target
from kdump.log.record import Record

MOST_BYTES = 8 * 1024 * 1024
"""Bytes of a key or value that a decoder of user data is given: what it makes of them takes many times as much."""
MOST_FRAMED = 1024 * 1024
"""The same for Avro and Protobuf, where a byte can make a value of some 200."""


class DecoderError(ValueError):
    """A decoder that is not there or does not work, or a schema that is none; the message is for the user."""


class FormatError(ValueError):
    """Bytes that a format does not fit, from `position` on (None where that is not known)."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


WITHOUT_KEY = "what it is cannot be known without the key"
"""The problem of a value whose key is the problem."""


class Raw:
    """The type of RAW."""

    def __repr__(self) -> str:
        return "RAW"


RAW = Raw()
"""What stays raw has this for a value, for None is JSON's null."""


class Said(NamedTuple):
    """What a key or a value says. `value` is JSON, or RAW. `title`: what it is, in a word or two; `message`: Kafka's
    name of it. `problem` says why it does not decode, or no further; it begins with the position. `note`: what is
    unusual and legal."""

    value: Any = RAW
    title: str = ""
    message: str = ""
    problem: str = ""
    note: str = ""
    stop: int | None = None
    """The byte of the key or value at which the problem is, where that is known."""


NOTHING = Said()


class Reading(NamedTuple):
    """What a record says. `names`: what ids in it stand for, as far as that is known."""

    key: Said
    value: Said
    names: dict[str, str] = {}


Spans = tuple[list[Span], list[Span]]
"""Of the known fields of the key, and of the value, each counted from its own start."""


class Decoder(Protocol):
    """A decoder of whole records that are no control records. `is_keyless`: all its keys are null. `is_wide`: it says
    much of keys and values."""

    name: str
    is_keyless: bool
    is_wide: bool

    def read(self, target: Target, record: Record) -> Reading:
        """Never raises."""

    def spans(self, record: Record) -> Spans:
        """Never raises."""


class About(NamedTuple):
    """Where the bytes that a decoder is given come from. `part` is "key" or "value"; `timestamp` is epoch ms;
    `headers` are the record's, keys and values as they stand. What is not known is None."""

    part: str
    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int | None
    headers: list[tuple[bytes, bytes | None]]


PartDecoder = Callable[[bytes, Callable[[], About]], Said]
"""Decodes the bytes of one key or value; the second argument gives what is known about them. May raise FormatError."""


def problem_of(error: DecodeError) -> tuple[str, int]:
    """A DecodeError as a problem, and its position."""
    field = f"{error.struct}.{error.field}" if error.field else error.struct
    return f"at byte {error.position}: {field}: {error.reason}", error.position


def said_wrong(error: FormatError) -> Said:
    """A FormatError as what is said."""
    where = "" if error.position is None else f"at byte {error.position}: "
    return Said(problem=where + error.reason, stop=error.position)
