"""The records that are left out of a state that will be written again: those that a node cannot apply, and others on
request; and the later records of the same topic, broker or setting, to which each matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kdump.format.metadata_record import decode_metadata_record
from kdump.format.numbers import LONG_MAX
from kdump.state.metadata_refusal import Line, Refusal, Rule

MAX_LEFT_OUT = 100_000
"""Maximum number of entries of LeftOut; consecutive records of one kind that depend on the same one are one entry."""
RuleOf = Callable[[str, bytes], Rule | None]
"""Returns why a record with this name and value is to be left out; of those of partitions, the first three bytes of the
value decide."""


@dataclass
class LeftOut:
    """Records at the offsets from that of `refusal` to `last` that are left out. `what`: what they are about;
    `because`: the offset of an earlier one, without which they cannot be applied; `dependents`: number of later records
    that are left out because of this one; `later`: number of later ones about the same that are applied without it."""

    refusal: Refusal
    last: int | None
    what: str
    because: int | None = None
    is_dependent: bool = False
    dependents: int = 0
    later: int = 0


@dataclass
class RecordChoice:
    """What a replay leaves out; is filled in by the replay.

    `line`: the release whose nodes are to load the state: a record that only earlier ones refuse, and later ones
    ignore, does not count. `asked`: the offsets of records that are left out on request. `uncommitted`: first and last
    offsets of the metadata transactions that were aborted or never ended."""

    rule: RuleOf
    line: Line | None = None
    asked: frozenset[int] = frozenset()
    left_out: list[LeftOut] = field(default_factory=list)
    uncommitted: list[tuple[int, int]] = field(default_factory=list)
    is_full: bool = False
    topics: set[str] = field(default_factory=set)
    """IDs of the topics of partitions of which a record is left out: the later ones are counted."""
    _about: dict[str, LeftOut] = field(default_factory=dict)

    def start_over(self) -> None:
        """Forget everything, because the replay starts from another file."""
        self.left_out.clear()
        self.uncommitted.clear()
        self._about.clear()
        self.topics.clear()

    def reason(self, offset: int | None, name: str, value: bytes) -> Rule | None:
        """Return why a record is left out whatever the state is. `offset`: None in a snapshot."""
        return Rule() if offset is not None and offset in self.asked else self.rule(name, value)

    def last_before(self, offset: int) -> int:
        """Return the offset before the next record, from `offset` on, that is left out on request."""
        return min([asked for asked in self.asked if asked >= offset], default=LONG_MAX + 1) - 1

    def refused(self, refusal: Refusal, value: bytes | None) -> None:
        """Note that a record is left out."""
        if self._is_last(refusal.offset) or (self.line is not None and self.line > refusal.until):
            return
        values = decode_metadata_record(value).values or {}
        subjects = about(refusal.record, values)
        cause = next((self._about[subject] for subject in subjects if subject in self._about), None)
        if cause is not None:
            cause.dependents += 1
        last = self.left_out[-1] if self.left_out else None
        because = None if cause is None else cause.refusal.offset
        if (
            last is not None
            and cause is not None
            and last is not cause
            and (last.because, last.refusal.record) == (because, refusal.record)
            and last.last is not None
            and refusal.offset == last.last + 1
        ):
            last.last = refusal.offset
            return
        if len(self.left_out) == MAX_LEFT_OUT:
            self.is_full = True
            return
        what = subjects[0] if subjects else ""
        entry = LeftOut(refusal, refusal.offset, what, because, cause is not None)
        self.left_out.append(entry)
        if what:
            self._about.setdefault(what, entry)
        if len(subjects) == 2:
            self.topics.add(values["topicId"])

    def applied(self, offset: int | None, name: str, values: dict[str, Any]) -> None:
        """Note that the replay has passed a record to its handler, which may have refused it."""
        if not self._about or self._is_last(offset):
            return
        for subject in about(name, values)[:1]:
            if subject in self._about:
                self._about[subject].later += 1

    def _is_last(self, offset: int | None) -> bool:
        return bool(self.left_out) and offset is not None and self.left_out[-1].last == offset


def about(record: str, values: dict[str, Any]) -> list[str]:
    """Return what a record is about, and what that is part of; of one that ends too early, as far as that is read."""
    if "topicId" in values:
        topic = f"topic {values['topicId']}"
        return [f"partition {values['partitionId']} of {topic}", topic] if "partitionId" in values else [topic]
    if "topicName" in values:
        return [f"topic {values['topicName']}"]
    if "controllerId" in values:
        return [f"controller {values['controllerId']}"]
    if "nextProducerId" in values:
        return ["producer IDs"]
    if "brokerId" in values:
        return [f"broker {values['brokerId']}"]
    if record in ("FenceBrokerRecord", "UnfenceBrokerRecord") and "id" in values:
        return [f"broker {values['id']}"]
    if "featureLevel" in values:
        return [f"feature {values['name']}"]
    if "resourceName" in values and "value" in values:
        return [f"config {values['name']} of {values['resourceName'] or 'all brokers'}"]
    if "mechanism" in values:
        return [f"credential of {values['name']}"]
    if "tokenId" in values:
        return [f"token {values['tokenId']}"]
    if "entity" in values and "key" in values:
        names = ", ".join(f"{each['entityType']}={each['entityName'] or '<default>'}" for each in values["entity"])
        return [f"quota {values['key']} of {names}"]
    return [f"ACL {values['id']}"] if "id" in values else []
