"""A finding, its code, its severity and its family.

A finding is a problem in bytes that could be read: a value, never an exception. A code declares a kind of finding, in
the module of its family (check/rules/), next to the rule that makes findings from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, FILE_BYTE, OFFSET, Doc, PathText, answer
from kdump.log.paths import Target

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)

FAMILIES: dict[str, tuple[str, ...]] = {
    "bytes": (),
    "records": (),
    "log": ("offsets", "epochs", "timestamps", "producers", "transactions"),
    "files": ("indexes", "snapshots", "checkpoints"),
}
"""The families that `verify --only` accepts, each with the families inside it."""


def families(name: str) -> tuple[str, ...]:
    """Return the family with that name and those inside it. Raises KeyError for an unknown name."""
    if name in FAMILIES:
        return (name, *FAMILIES[name])
    if any(name in inner for inner in FAMILIES.values()):
        return (name,)
    raise KeyError(name)


def family_names() -> list[str]:
    """Return the names that --only accepts."""
    return [name for family, inner in FAMILIES.items() for name in (family, *inner)]


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
    next_offset: int | None = None
    """The first offset after the batch, if it is certain."""
    producer_id: int | None = None
    is_only_replica: bool = False
    """Whether no other broker has a replica of the partition, by the metadata on the disk."""


@answer("code")
@dataclass(frozen=True, kw_only=True)
class Code:
    """One code. `severity` is the usual one, `unless` states when another one applies; `consequence` is a sentence in
    which {offset} stands for the first offset affected; `fix` starts with a verb; `source` names the Kafka classes that
    contain the rule."""

    code: Annotated[str, Doc("code of the finding")]
    family: Annotated[str, Doc("its family, as selected with --only")]
    severity: Annotated[str, Doc("usual severity: error, warning or info; see unless")]
    meaning: Annotated[str, Doc("condition under which it is reported")]
    consequence: Annotated[str, Doc("impact on brokers and consumers")]
    fix: Annotated[str, Doc("action to take")]
    source: Annotated[str, Doc("Kafka's classes that contain the rule", name="kafka")]
    unless: Annotated[str, Doc("when another severity applies; empty if never", after="severity")] = ""
    always_checked: bool = False
    """Whether it is reported whatever families are selected. Then a number that kdump reports would be wrong without
    the finding."""
    needs_log_dir: bool = False
    """Whether a finding also follows from files of the log directory: its checkpoints, the cluster's metadata or a
    coordinator's log (check/log_dir_context.py)."""

    def finding(
        self,
        target: Target,
        *,
        message: str,
        position: int = 0,
        size: int = 0,
        offset: int | None = None,
        expected: Any = None,
        actual: Any = None,
        severity: str | None = None,
        consequence: str | None = None,
        next_offset: int | None = None,
        producer_id: int | None = None,
    ) -> Finding:
        """Return a finding of this code about `target`; severity and consequence default to those of the code."""
        return Finding(
            code=self.code,
            severity=severity or self.severity,
            topic=target.topic,
            partition=target.partition,
            file=target.path,
            position=position,
            size=size,
            offset=offset,
            expected=expected,
            actual=actual,
            message=message,
            consequence=consequence or _at(self.consequence, offset),
            source=target.source,
            next_offset=next_offset,
            producer_id=producer_id,
        )


def codes_in(module: Mapping[str, object]) -> dict[str, Code]:
    """Return the codes among the names of a module (its `globals()`), in the order in which it declares them."""
    return {code.code: code for code in module.values() if isinstance(code, Code)}


def _at(consequence: str, offset: int | None) -> str:
    """Return a code's consequence with the offset filled in or, if no offset is known, reworded without it."""
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
"""Phrases of consequences that contain an offset, and their replacements if no offset is known."""
