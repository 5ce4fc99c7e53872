"""Replaces what is in records, and on request names, before it is shown: --redact and --redact-names."""

from __future__ import annotations

import hmac

from kdump.answer import Object, put_bytes
from kdump.log.paths import Target
from kdump.log.pseudonyms import Pseudonyms
from kdump.log.record import Record
from kdump.render.escape import path_text
from kdump.render.inspect_json import before_key, control_object

DIGITS = 16
"""Hexadecimal digits of a hash: 64 bits, as in `kdump bundle --hash-key`."""


class Redaction:
    """Replacements under a key: whoever has it can test guesses. `has_names`: names are replaced, too, by the same
    pseudonyms as in `kdump bundle --redact` with that key."""

    def __init__(self, key: bytes, *, has_names: bool = False) -> None:
        self._key = key
        self.names = Pseudonyms(key) if has_names else None

    def payload(self, data: bytes | None) -> str | None:
        """Return the hash that replaces a key or a value; the same one for the same bytes. None stays None."""
        if data is None:
            return None
        return f"hmac-{hmac.digest(self._key, data, 'sha256').hex()[:DIGITS]}"

    def path(self, path: str) -> str:
        """Return the path, its names replaced if names are."""
        return path_text(self.names.path(path) if self.names is not None else path)

    def property(self, name: str, value: str) -> tuple[str, str]:
        return self.names.property(name, value) if self.names is not None else (name, value)

    def topic(self, name: str) -> str:
        return self.names.topic(name) if self.names is not None else name


def redacted_record(redaction: Redaction, target: Target, record: Record) -> Object:
    """Return the JSON object of a record without its payload: sizes stay, decoded keys and values are left out, and so
    is the checksum of a message of magic 0 or 1, with which guesses could be tested."""
    out = before_key(target, record) | {"file": redaction.path(target.path)}
    if target.topic is not None:
        out["topic"] = redaction.topic(target.topic)
    out["key"], out["value"] = redaction.payload(record.key), redaction.payload(record.value)
    headers = []
    for key, value in record.headers:
        header: Object = {}
        put_bytes(header, "key", key)
        headers.append(header | {"value": redaction.payload(value), "valueSize": -1 if value is None else len(value)})
    out["headers"] = headers
    if record.crc is not None:
        out["crcValid"] = record.crcValid
    if record.is_control:
        out["control"] = {name: member for name, member in control_object(record).items() if name != "value"}
    if record.is_damaged:
        out["damaged"] = True
    return out
