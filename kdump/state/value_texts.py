"""How nested values of the state's JSON objects are written in a line, as in a cell of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdump.answer import Object
from kdump.text import plain_text

ARROW = "→"
Text = Callable[[Any], str]


def endpoints_text(value: list[Object]) -> str:
    return ", ".join(map(_endpoint, value))


def _endpoint(value: Object) -> str:
    shown = f"{value['name']}://{value['host']}:{value['port']}"
    return shown if value["securityProtocol"] in ("", value["name"]) else f"{shown} ({value['securityProtocol']})"


def assigned_text(value: list[Object]) -> str:
    return "; ".join(f"{assigned['topic']} {plain_text(assigned['partitions'])}".rstrip() for assigned in value)


def features_text(value: list[Object]) -> str:
    return ", ".join(f"{each['name']} {each['minSupportedVersion']}..{each['maxSupportedVersion']}" for each in value)


def pending_text(value: list[Object]) -> str:
    return ", ".join(f"{commit['offset']} by producer {commit['producerId']}" for commit in value)


def entity_text(value: list[Object]) -> str:
    return ", ".join(f"{part['type']}={'<default>' if part['name'] is None else part['name']}" for part in value)


def references_text(value: list[Object]) -> str:
    return ", ".join(f"{reference.get('subject')} {reference.get('version')}" for reference in value)


CHANGED: dict[str, Text] = {
    **dict.fromkeys(("endPoints", "endpoints"), endpoints_text),
    **dict.fromkeys(("assigned", "revoking", "target", "standby", "warmup"), assigned_text),
    "features": features_text,
    "pending": pending_text,
    "entity": entity_text,
    "references": references_text,
}
"""How a changed field of that name is written, if it is not a plain list or number."""


def changes_text(value: list[Object]) -> str:
    """Changed fields, as in "offset 10 → 20, isr 1,2 → 1"; for something deleted, its last values."""
    if all(field["new"] is None for field in value):
        value = [{**field, "old": None, "new": field["old"]} for field in value]
    return ", ".join(f"{field['name']} {_pair(field['name'], field['old'], field['new'])}" for field in value)


def _pair(name: str, old: Any, new: Any) -> str:
    show = or_plain(CHANGED.get(name, plain_text))
    before, after = (_quoted(side, show) for side in (old, new))
    if old is None:
        return after
    return f"{before} {ARROW} {after}"


def _quoted(value: Any, show: Text) -> str:
    if value is None:
        return "none"
    shown = show(value) if isinstance(value, (list, dict)) else plain_text(value)
    return "none" if value == [] else shown or '""'


def or_plain(show: Text) -> Text:
    """Return what writes a value as `show` does, or plainly: what Connect and a registry store may be any value."""

    def text(value: Any) -> str:
        try:
            return show(value)
        except (AttributeError, KeyError, TypeError):
            return plain_text(value)

    return text


def moved_back(change: Any) -> str:
    """Return a remark on a committed offset that went back, which is what one looks for in a history."""
    if change.entity != "offset" or change.action != "changed":
        return ""
    offsets = ((each.old, each.new) for each in change.fields if each.name == "offset")
    old, new = next(offsets, (None, None))
    return f"BACK by {old - new}: " if isinstance(old, int) and isinstance(new, int) and new < old else ""
