"""What decoders return for a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from kdump.format.errors import DecodeError
from kdump.format.layout import Span
from kdump.log.paths import Target
from kdump.log.record import Record

MAX_DECODER_INPUT_BYTES = 8 * 1024 * 1024
"""Maximum size in bytes of a key or value passed to a decoder of user data: the decoded value may take many times as
much memory."""
MAX_FRAMED_BYTES = 1024 * 1024
"""The same for Avro and Protobuf, where one byte can become a value of about 200 bytes."""


class DecoderError(ValueError):
    """A decoder is missing or fails, or a schema is invalid. The message is shown to the user."""


class FormatError(ValueError):
    """The bytes are not valid in a format, from `position` on (None if unknown)."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.position = reason, position


WITHOUT_KEY = "its type is unknown, because the key does not decode"
"""The problem of a value that does not decode because its key does not."""


class RawBytes:
    """The type of RAW."""

    def __repr__(self) -> str:
        return "RAW"

    __reduce__ = __repr__
    """A copy in another process is RAW there, too."""


RAW = RawBytes()
"""Value of a key or value that was not decoded (None stands for JSON null)."""


class DecodedPart(NamedTuple):
    """A decoded key or value. `value`: a JSON value, or RAW; `title`: its kind, in one or two words; `message`: Kafka's
    name of the message; `problem`: why it does not decode, or only in part, starting with the position if known;
    `note`: something unusual but legal."""

    value: Any = RAW
    title: str = ""
    message: str = ""
    problem: str = ""
    note: str = ""
    stop: int | None = None
    """Position of the problem in the key or value, in bytes; None if unknown."""
    hides: bool = False
    """Whether secrets in it are hidden: what shows it next to the bytes hides these, too."""

    @property
    def is_decoded(self) -> bool:
        return self.value is not RAW


NOTHING = DecodedPart()


class DecodedRecord(NamedTuple):
    """A decoded record. `names`: names of the IDs in it, as far as they are known."""

    key: DecodedPart
    value: DecodedPart
    names: dict[str, str] = {}


Spans = tuple[list[Span], list[Span]]
"""Known fields of the key and of the value; positions are relative to the start of each."""


class Decoder(Protocol):
    """A decoder of whole records, except control records. `is_keyless`: all its keys are null. `is_wide`: its decoded
    keys and values are long."""

    name: str
    is_keyless: bool
    is_wide: bool

    def read(self, target: Target, record: Record) -> DecodedRecord:
        """Never raises."""

    def spans(self, record: Record) -> Spans:
        """Never raises."""


class RecordContext(NamedTuple):
    """Origin of the bytes passed to a decoder. `part` is "key" or "value"; `timestamp` is epoch ms; `headers` are those
    of the record, with raw keys and values. Unknown fields are None."""

    part: str
    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int | None
    headers: list[tuple[bytes, bytes | None]]


PartDecoder = Callable[[bytes, Callable[[], RecordContext]], DecodedPart]
"""Decodes the bytes of one key or value; the second argument returns where they come from. May raise FormatError."""


def context_of(part: str, target: Target, record: Record) -> RecordContext:
    """Return where the key or value of a record comes from."""
    return RecordContext(part, target.topic, target.partition, record.offset, record.timestamp, record.headers)


def problem_of(error: DecodeError) -> tuple[str, int]:
    """Return a DecodeError as the text of a problem, and its position."""
    field = f"{error.struct}.{error.field}" if error.field else error.struct
    return f"at byte {error.position}: {field}: {error.reason}", error.position


def decoder_fault(error: FormatError) -> DecodedPart:
    """Return a FormatError as DecodedPart."""
    where = "" if error.position is None else f"at byte {error.position}: "
    return DecodedPart(problem=where + error.reason, stop=error.position)
