"""What a scrub remembers of a partition, in JSON."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from kdump.check.engine.second_look import FindingKey, key
from kdump.check.finding import INFO, Finding
from kdump.check.resume_state import MAX_ENTITIES

MAX_FINDINGS = 10_000
"""Maximum number of findings of a partition that are remembered: errors and warnings before informational ones."""
MAX_RECORD_BYTES = 1000 * MAX_ENTITIES
"""Maximum size of a record in JSON."""
TaggedFinding = tuple[str, Finding]
"""A finding, and the segment with which it stays and goes; empty for one that every check of the partition decides."""


def segment_of(finding: Finding) -> str:
    """Return the name, without an ending, of the file that a finding is about: that of its segment, if it is of one."""
    return os.path.basename(finding.file).partition(".")[0]


def same(finding: Finding) -> FindingKey:
    """Return what identifies a finding of a partition, however the path of its directory is written."""
    return key(finding._replace(file=os.path.basename(finding.file)))


class RecordError(Exception):
    """Bytes are not a record."""


@dataclass
class SegmentNote:
    """What is remembered of a segment. `stamps`: of its files when it was read (kdump.check.unchanged), by the ending
    of their names; `headers`: checksum of its first and of its last batch header, which is at byte `last`; `end`: the
    byte up to which it was read; `offset`: that of the next batch there. Times in epoch ms; `seen`: when it was first
    listed; `checked`: when the oldest check of a byte of it was, None if there are bytes that were not checked."""

    stamps: dict[str, list[Any]]
    seen: int
    checked: int | None = None
    headers: int = 0
    last: int = 0
    end: int = 0
    offset: int = 0

    @property
    def size(self) -> int:
        """Bytes of the segment."""
        return max(0, int(self.stamps.get("log", [0])[0]))

    @property
    def unchecked(self) -> int:
        """Bytes that no check has read."""
        return max(0, self.size - self.end) if self.checked is None else 0


@dataclass
class UnitRecord:
    """What is remembered of a partition, or of a file. `print_`: fingerprint of all that its findings depend on;
    `tail`: the newest segment that was read; `before` and `state`: state of the check before and after it; `next_`: the
    segment at which a check stopped, whose state is `before`; `open_since`: timestamp of the oldest open transaction in
    epoch ms."""

    print_: str = ""
    segments: dict[str, SegmentNote] = field(default_factory=dict)
    findings: list[TaggedFinding] = field(default_factory=list)
    tail: str = ""
    before: str | None = None
    state: str | None = None
    next_: str | None = None
    unread: bool = False
    lag: int | None = None
    open_since: int | None = None

    def begin_again(self) -> None:
        """Forget what was read, so that the log is read from its beginning; what was found stays until then."""
        self.segments = {name: replace(note, checked=None) for name, note in self.segments.items()}
        self.print_, self.tail, self.before, self.state, self.next_ = "", "", None, None, None

    def keep(self, findings: Iterable[TaggedFinding]) -> None:
        """Remember these findings, each once: what the end of the log repeats stays with its segment."""
        distinct: dict[FindingKey, TaggedFinding] = {}
        for tag, finding in findings:
            if tag or same(finding) not in distinct:
                distinct[same(finding)] = (tag, finding)
        ordered = sorted(distinct.values(), key=lambda tagged: tagged[1].severity == INFO)
        self.findings = ordered[:MAX_FINDINGS]

    def pack(self) -> bytes:
        """Return the record as bytes that have a checksum."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        data["segments"] = {name: asdict(note) for name, note in self.segments.items()}
        data["findings"] = [
            [tag, *finding._replace(facts=dict(finding.facts), fields=dict(finding.fields))]
            for tag, finding in self.findings
        ]
        return zlib.compress(json.dumps(data, default=str, separators=(",", ":")).encode("utf-8", "surrogatepass"), 1)


def unpack_record(packed: bytes) -> UnitRecord:
    """Return a record. Raises RecordError."""
    try:
        inflated = zlib.decompressobj()
        text = inflated.decompress(packed, MAX_RECORD_BYTES)
        if not inflated.eof:
            raise RecordError("it is incomplete")
        data = json.loads(text.decode("utf-8", "surrogatepass"))
        segments = {name: SegmentNote(**note) for name, note in data["segments"].items()}
        findings = [(tag, Finding(*rest)) for tag, *rest in data["findings"]]
        return UnitRecord(**(data | {"segments": segments, "findings": findings}))
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RecordError(str(error)) from None
