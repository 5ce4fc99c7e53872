"""What to do about damage: the action of the catalogue of findings, with what is known of one finding filled in."""

from __future__ import annotations

import re

from kdump.log.internal_topics import METADATA_TOPIC

_NEXT_SENTENCE = re.compile(r"(?<=[a-z)])\. (?=[A-Z])")


def damage_actions(fix: str, topic: str | None, partition: int | None) -> tuple[str, ...]:
    """Return the sentences of an action, in order. TOPIC and PARTITION are replaced; what is about the metadata log
    alone is left out for other topics."""
    sentences = _NEXT_SENTENCE.split(fix)
    if topic is None:
        return tuple(sentences)
    if topic != METADATA_TOPIC:
        sentences = [each for each in sentences if METADATA_TOPIC not in each]
    return tuple(
        re.sub(r"\bTOPIC\b", topic, each.replace("TOPIC:PARTITION", f"{topic}:{partition}")) for each in sentences
    )
