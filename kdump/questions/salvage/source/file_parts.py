"""The parts of a source file: batches that can be written, and bytes from which none is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.log.paths import Target


class Disordered(Exception):
    """Raised for a valid batch that is out of order: its partition is then read again, after a survey of its files
    (survey.py). `path` is the file."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: batches are out of order")
        self.path = path


class LostBytes(NamedTuple):
    """Bytes of a file from which no batch is written: damage, padding, or a batch whose offsets do not fit. `size` is
    None if unknown. offset, lastOffset and records: as in a header, None and 0 if it is not credible. `is_possible`:
    whether the batch can have had these offsets; a header with a valid checksum is quoted in any case."""

    fate: str
    position: int
    size: int | None
    code: str
    reason: str
    offset: int | None = None
    lastOffset: int | None = None
    records: int = 0
    is_possible: bool = True


@dataclass
class InputFile:
    """A file and its place among the others. `copy`: the number of its copy, 0 for the reference copy; `spare`: it is
    a .deleted, .swap or .cleaned file that a startup deletes; `is_replaced`: a segment in whose place it installs
    a .swap file; `misnamed`: its name is not that of a segment. `names`: the base offsets in the names of that copy's
    live segments, in ascending order; `beyond`: the next of them after this file's."""

    target: Target
    copy: int = 0
    spare: bool = False
    beyond: int | None = None
    order: int = 0
    names: tuple[int, ...] = ()
    misnamed: bool = False
    is_replaced: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each file, by path, when it was first opened."""

    @property
    def name(self) -> int:
        """The base offset in the file's name, -1 without one."""
        return -1 if self.target.name_offset is None else self.target.name_offset
