"""Third-party decoders, installed under the entry point group kdump.decoders. See docs/decoders.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdump.decode.decoder_interface import (
    MAX_DECODER_INPUT_BYTES,
    DecodedPart,
    DecoderError,
    FormatError,
    PartDecoder,
    RecordContext,
)
from kdump.decode.jsonable import to_json

GROUP = "kdump.decoders"
MAX_ERROR_CHARACTERS = 300
"""Maximum number of characters of an error's text that are shown."""


def plugin_names() -> list[str]:
    """Return the names of the installed decoders."""
    # Imported here: it is slow to import, and most runs use no such decoder.
    from importlib.metadata import entry_points

    return sorted({point.name for point in entry_points(group=GROUP)})


def plugin(name: str) -> PartDecoder | None:
    """Return the installed decoder of that name; None if there is none. Raises DecoderError if it does not load."""
    from importlib.metadata import entry_points

    entries = list(entry_points(group=GROUP, name=name))
    if not entries:
        return None
    try:
        decode: Any = entries[0].load()
        if isinstance(decode, type):
            decode = decode()
    except (Exception, SystemExit) as error:  # third-party code may raise anything
        raise DecoderError(f"decoder {name} ({entries[0].value}) cannot be loaded: {_words(error)}") from None
    if not callable(decode):
        raise DecoderError(f"decoder {name} ({entries[0].value}) is not callable")

    def decode_part(data: bytes, about: Callable[[], RecordContext]) -> DecodedPart:
        if len(data) > MAX_DECODER_INPUT_BYTES:
            raise FormatError(f"too large to decode: {len(data)} bytes, at most {MAX_DECODER_INPUT_BYTES}")
        try:
            return DecodedPart(to_json(decode(data, about())))
        except FormatError as error:
            raise FormatError(f"decoder {name}: {error.reason}") from None
        except (Exception, SystemExit) as error:  # third-party code may raise anything
            raise FormatError(f"decoder {name}: {_words(error)}") from None

    return decode_part


def _words(error: BaseException) -> str:
    try:
        words = str(error)
    except Exception:  # third-party code may raise anything
        words = ""
    kind = type(error).__name__
    return f"{kind}: {words}"[:MAX_ERROR_CHARACTERS] if words else kind
