"""What to do about a finding: the action of its code, with what the finding states filled in."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

from kdump.check.advice import FOLLOW_METADATA, ONLY_REPLICA, RESTORE_TOPIC, SAVE_RECORDS, SKIP
from kdump.check.catalogue import CATALOGUE
from kdump.check.finding import Finding
from kdump.log.internal_topics import METADATA_TOPIC

PLACEHOLDER = re.compile(
    r"(?<![\w-])(?:TOPIC:PARTITION|TOPIC|PARTITION|DIR|SEGMENT|POSITION|NEXT-OFFSET|OFFSET|PRODUCER-ID)(?![\w-])"
)
"""The words of check/advice.py that stand for what a finding states."""
_NEXT_SENTENCE = re.compile(r"(?<=[A-Za-z)])\. (?=[A-Z])")
_, _FETCH, _KEEP = _NEXT_SENTENCE.split(RESTORE_TOPIC)
_OF_TOPICS = frozenset(
    sentence for text in (RESTORE_TOPIC, SAVE_RECORDS, SKIP) for sentence in _NEXT_SENTENCE.split(text)
)
"""Sentences that do not apply to the metadata log, which has an incident page of its own."""


def actions(finding: Finding) -> tuple[str, ...]:
    """Return the sentences of the action for a finding, in order: for the metadata log those about it, for other topics
    the others. Nothing can be fetched again if there is no other replica."""
    sentences = _NEXT_SENTENCE.split(CATALOGUE[finding.code].fix)
    if finding.topic == METADATA_TOPIC and FOLLOW_METADATA in sentences:
        sentences = [sentence for sentence in sentences if sentence not in _OF_TOPICS]
    elif finding.topic is not None:
        sentences = [sentence for sentence in sentences if METADATA_TOPIC not in sentence]
    if finding.is_only_replica:
        sentences = [ONLY_REPLICA if sentence == _FETCH else sentence for sentence in sentences if sentence != _KEEP]
    values = stated_values(finding)
    return tuple(fill(sentence, values) for sentence in sentences)


def action(finding: Finding) -> str:
    """Return the action for a finding."""
    return ". ".join(actions(finding))


def fill(template: str, values: Mapping[str, object]) -> str:
    """Return an action with the values of its placeholders, quoted for a shell. Those without a value stay."""
    return PLACEHOLDER.sub(lambda match: shlex.quote(str(values.get(match[0], match[0]))), template)


def stated_values(finding: Finding) -> dict[str, object]:
    """Return the values of the placeholders that a finding states."""
    values: dict[str, object] = {}
    if finding.topic is not None:
        values["TOPIC"] = finding.topic
        if finding.partition is not None:
            values["PARTITION"] = finding.partition
            values["TOPIC:PARTITION"] = f"{finding.topic}:{finding.partition}"
    if finding.file != "-":
        values |= {"DIR": os.path.dirname(finding.file) or ".", "SEGMENT": finding.file, "POSITION": finding.position}
    stated = {"OFFSET": finding.offset, "NEXT-OFFSET": finding.next_offset, "PRODUCER-ID": finding.producer_id}
    return values | {name: value for name, value in stated.items() if value is not None}
