"""Values in the topics of Kafka Connect, as its JsonConverter writes them, without secrets.

Source: org.apache.kafka.connect.json.JsonConverter (with schemas, as workers before 2.0 may have written: an object of
schema and payload); KafkaConfigBackingStore for the keys."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from kdump.state.secrets import HIDDEN, PASSWORD, is_secret

MAX_RECORD_BYTES = 1024 * 1024
"""Maximum size in bytes of a key or value that is decoded; that of a batch, by default."""
MAX_DEPTH = 50
SESSION_KEY = "session-key"
PREFIXES = {
    "connect-configs": re.compile(
        r"(connector|task|commit|target-state|tasks-fencing|restart-connector|logger-cluster)-(?=.)|session-key$",
        re.DOTALL,
    ),
    "connect-status": re.compile(r"(status-connector|status-task|status-topic)-(?=.)", re.DOTALL),
}
"""What keys begin with, by the decoder of their topic."""
EMBEDDED = re.compile(
    rf"{PASSWORD.pattern}|(?:passw|pwd|secret|token|credential|api_?key|access_?key)[\w.\-]*[\"']?\s*[=:]",
    re.IGNORECASE,
)
"""In a value: a password in a URL, or a setting that sounds like a secret."""
REFERENCE = re.compile(r"\$\{[^{}]*\}")
"""A value that a config provider has elsewhere."""


class BadRecord(ValueError):
    """A record that Connect skips. The message says why."""


def connect_value(data: bytes) -> Any:
    """Return a value of JsonConverter. Raises BadRecord."""
    if len(data) > MAX_RECORD_BYTES:
        raise BadRecord(f"too large: {len(data)} bytes")
    try:
        value = json.loads(data.decode(), parse_constant=_no_constant)
        value = value["payload"] if isinstance(value, dict) and value.keys() == {"schema", "payload"} else value
        _check_depth(value, 0)
    except RecursionError:
        raise BadRecord("JSON nested too deeply") from None
    except UnicodeDecodeError:
        raise BadRecord("not JSON: not UTF-8") from None
    except BadRecord:
        raise
    except ValueError as error:
        raise BadRecord(f"not JSON: {error}"[:200]) from None
    return value


def _no_constant(name: str) -> NoReturn:
    raise BadRecord(f"not JSON: {name} is not a JSON number")


def _check_depth(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise BadRecord(f"JSON nested deeper than {MAX_DEPTH} levels")
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(member, depth + 1)


def without_secrets(value: Any, key: str = "") -> Any:
    """Return a value with [hidden] in place of its secrets; `key` is that of its record."""
    if isinstance(value, dict):
        return {
            name: HIDDEN if hides(name, member, key) else without_secrets(member, key) for name, member in value.items()
        }
    return [without_secrets(member, key) for member in value] if isinstance(value, list) else value


def hides(name: str, value: Any, key: str = "") -> bool:
    """Return True if the value of this name, in a record with this key, must not be shown."""
    if value in (None, "", True, False) or isinstance(value, (dict, list)) or REFERENCE.fullmatch(str(value)):
        return False
    return is_secret(name) or (key == SESSION_KEY and name == "key") or bool(EMBEDDED.search(str(value)))


def text_key(key: bytes | None, decoder: str) -> tuple[str, str]:
    """Return the prefix and the rest of a key of the configs or the statuses; its prefix is whole if there is no rest.
    Raises BadRecord."""
    if key is None:
        raise BadRecord("no key")
    if len(key) > MAX_RECORD_BYTES:
        raise BadRecord(f"key too large: {len(key)} bytes")
    try:
        text = key.decode()
    except UnicodeDecodeError:
        raise BadRecord("its key is not UTF-8") from None
    match = PREFIXES[decoder].match(text)
    if match is None:
        raise BadRecord(f"invalid key {text[:80]!r}")
    return (match[1] or text, text[match.end() :])


def offset_key(key: bytes | None) -> tuple[str, dict[str, Any] | None]:
    """Return connector and partition of a record of the offsets. Source: OffsetUtils.processPartitionKey. Raises
    BadRecord."""
    if key is None:
        raise BadRecord("no key")
    value = connect_value(key)
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        raise BadRecord("its key is not a list of a connector and a partition")
    if value[1] is not None and not isinstance(value[1], dict):
        raise BadRecord("the partition in its key is not an object")
    return value[0], value[1]
