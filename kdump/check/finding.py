"""A finding: a problem in bytes that could be read. A value, never an exception."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, FILE_BYTE, OFFSET, Doc, PathText, answer
from kdump.check.catalogue import CATALOGUE
from kdump.log.paths import Target


@answer("finding")
class Finding(NamedTuple):
    """One finding with its evidence. `position` and `size` are in bytes and refer to `file`; topic and partition are
    None if the directory name does not contain them; `source` is the log directory, or the path that was given."""

    code: Annotated[str, Doc("code of the finding, as in findings.md")]
    severity: Annotated[str, Doc("error, warning or info")]
    topic: Annotated[str | None, Doc("from the name of the file's directory")]
    partition: Annotated[int | None, Doc("from the name of the file's directory")]
    file: Annotated[PathText, Doc("path as given, or found below a given directory")]
    position: Annotated[int, Doc("start of the affected bytes", FILE_BYTE)]
    size: Annotated[int, Doc("how many bytes are affected", BYTES)]
    offset: Annotated[int | None, Doc("first affected offset", OFFSET)]
    expected: Annotated[Any, Doc("expected value, if it is a single value")]
    actual: Annotated[Any, Doc("actual value")]
    message: Annotated[str, Doc("what is wrong")]
    consequence: Annotated[str, Doc("impact on brokers and consumers")]
    source: Annotated[PathText, Doc("the log directory, or the given path; it differs between copies of a disk")] = ""


def found(
    code: str,
    target: Target,
    message: str,
    *,
    position: int = 0,
    size: int = 0,
    offset: int | None = None,
    expected: Any = None,
    actual: Any = None,
    severity: str | None = None,
    consequence: str | None = None,
) -> Finding:
    """Build a finding for `target`; severity and consequence default to the catalogue entry of its code."""
    entry = CATALOGUE[code]
    return Finding(
        code,
        severity or entry.severity,
        target.topic,
        target.partition,
        target.path,
        position,
        size,
        offset,
        expected,
        actual,
        message,
        consequence or _at(entry.consequence, offset),
        target.source,
    )


def _at(consequence: str, offset: int | None) -> str:
    """Return the catalogue's consequence with the offset filled in or, if no offset is known, reworded without it."""
    if offset is not None:
        return consequence.format(offset=offset)
    for words, instead in PLACELESS:
        consequence = consequence.replace(words, instead)
    return consequence.format(offset="the first affected offset")


PLACELESS = (
    ("reaches offset {offset}", "reaches these bytes"),
    ("stop at offset {offset}", "stop there"),
    ("wait at offset {offset}", "wait there"),
    ("from offset {offset} on", "from there on"),
    ("from offset {offset} exits", "from there exits"),
    ("stays at {offset}", "stays there"),
)
"""Phrases of the catalogue that contain an offset, and their replacements if no offset is known."""
