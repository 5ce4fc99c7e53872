"""What `kdump salvage` did, as JSON objects."""

from __future__ import annotations

from typing import Any

from kdump.forensics.salvage.fates import Span
from kdump.forensics.salvage.result import Salvaged
from kdump.render.escape import path_text
from kdump.render.salvage_keys import SALVAGE_KEYS

Object = dict[str, Any]


def salvage_object(made: Salvaged) -> Object:
    """A partition."""
    values = vars(made) | {
        "sources": [path_text(path) for path in made.sources],
        "whole": made.is_whole,
        "losses": _spans(made.losses),
        "guesses": _spans(made.guesses),
        "holes": [each._asdict() for each in made.holes],
        "openTransactions": [each._asdict() for each in made.openTransactions],
        "doubtfulTransactions": [each._asdict() for each in made.doubtfulTransactions],
        "notes": [path_text(note) for note in made.notes],
    }
    return {"type": "salvage", **{key.name: values[key.name] for key in SALVAGE_KEYS}}


def _spans(spans: list[Span]) -> list[Object]:
    return [{**each._asdict(), "file": path_text(each.file)} for each in spans]
