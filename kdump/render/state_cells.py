"""Formats values of the state's JSON objects as table cells."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from kdump.answer import Key
from kdump.render.escape import printable
from kdump.render.times import iso

Object = dict[str, Any]


ARROW = "→"


def cell_text(key: Key, zone: tzinfo) -> Callable[[Any], str]:
    """Return what formats the values of a key, empty for None. The text contains nothing that could change how a
    terminal shows the rest."""
    if key.unit == "epoch ms":
        return lambda value: "" if value is None else iso(value, zone)
    special = _special(key.name)

    def text(value: Any) -> str:
        if isinstance(value, str):
            return printable(value)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int):
            return str(value)
        return "" if value is None else printable(special(value))

    return text


def plain_text(value: Any) -> str:
    if isinstance(value, list):
        return (",".join if all(isinstance(item, int) for item in value) else ", ".join)(map(plain_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={plain_text(item)}" for name, item in value.items())
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def _endpoint(value: Object) -> str:
    shown = f"{value['name']}://{value['host']}:{value['port']}"
    return shown if value["securityProtocol"] in ("", value["name"]) else f"{shown} ({value['securityProtocol']})"


def _assigned(value: list[Object]) -> str:
    return "; ".join(f"{assigned['topic']} {plain_text(assigned['partitions'])}".rstrip() for assigned in value)


def _features(value: list[Object]) -> str:
    return ", ".join(f"{each['name']} {each['minSupportedVersion']}..{each['maxSupportedVersion']}" for each in value)


def _pending(value: list[Object]) -> str:
    return ", ".join(f"{commit['offset']} by producer {commit['producerId']}" for commit in value)


def _entity(value: list[Object]) -> str:
    return ", ".join(f"{part['type']}={'<default>' if part['name'] is None else part['name']}" for part in value)


def _references(value: list[Object]) -> str:
    return ", ".join(f"{reference.get('subject')} {reference.get('version')}" for reference in value)


def _fields(value: list[Object]) -> str:
    """Changed fields, as in "offset 10 → 20, isr 1,2 → 1"; for something deleted, its last values."""
    if all(field["new"] is None for field in value):
        value = [{**field, "old": None, "new": field["old"]} for field in value]
    return ", ".join(f"{field['name']} {_pair(field['name'], field['old'], field['new'])}" for field in value)


def _pair(name: str, old: Any, new: Any) -> str:
    show = _special(name)
    before, after = (_quoted(side, show) for side in (old, new))
    if old is None:
        return after
    return f"{before} {ARROW} {after}"


def _quoted(value: Any, show: Callable[[Any], str]) -> str:
    if value is None:
        return "none"
    shown = show(value) if isinstance(value, (list, dict)) else plain_text(value)
    return "none" if value == [] else shown or '""'


SPECIAL: dict[str, Callable[[Any], str]] = {
    "endPoints": lambda value: ", ".join(map(_endpoint, value)),
    "endpoints": lambda value: ", ".join(map(_endpoint, value)),
    "assigned": _assigned,
    "revoking": _assigned,
    "target": _assigned,
    "standby": _assigned,
    "warmup": _assigned,
    "features": _features,
    "pending": _pending,
    "entity": _entity,
    "fields": _fields,
    "references": _references,
}
"""Formatters by key name, for values that are not a plain list or number."""


def _special(name: str) -> Callable[[Any], str]:
    """Return the formatter of a key. What Connect and a registry store may have any value under that name."""
    special = SPECIAL.get(name)
    if special is None:
        return plain_text

    def text(value: Any) -> str:
        try:
            return special(value)
        except (AttributeError, KeyError, TypeError):
            return plain_text(value)

    return text
