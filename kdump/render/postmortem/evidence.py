"""The findings for the page: those with one cause as one story, with the bytes that they are about, what a broker or a
consumer does, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdump.check.catalogue import CATALOGUE, INFO, SEVERITIES
from kdump.check.options import Options
from kdump.check.rule import LOST
from kdump.forensics.postmortem.facts import PartitionFacts, PostMortem
from kdump.render.postmortem.hexdumps import Line, hexdump
from kdump.render.postmortem.names import Names, clean, file_name
from kdump.render.report import Group, Story

DUMPED = 60
"""Stories with a hexdump."""
TOLD = 300
"""Stories on the page."""
OF_ONE_CODE = 10
"""Stories of one code that are told: in one partition, and of what is legal in all."""


@dataclass
class Told:
    """A story as it stands on the page. All of it has been escaped for a terminal; the page escapes it for itself."""

    id: str
    severity: str
    code: str
    place: str
    file: str
    position: int
    size: int
    offset: int | None
    message: str
    consequence: str
    meaning: str
    fix: str
    more: str
    lost: str
    dump: list[Line] = field(default_factory=list)


@dataclass
class Evidence:
    """What is told of the findings. `untold`: stories for which there is no room; `codes`: how many findings there are
    of each code, by severity."""

    told: list[Told]
    untold: int
    codes: list[tuple[str, str, int, str]]


def evidence(made: PostMortem, names: Names, options: Options) -> Evidence:
    """Errors first, then warnings, then what is legal and unusual; the first of them with their bytes."""
    stories: list[tuple[PartitionFacts, Story]] = []
    untold = 0
    infos: dict[str, int] = {}
    for facts in (*made.others, *made.partitions):
        group = Group(facts.name)
        counts: dict[str, int] = {}
        for finding in facts.findings:
            if finding.consequence != LOST or not group.explains(finding):
                group.add(finding)
        for story in group.stories:
            counted = infos if story.first.severity == INFO else counts
            counted[story.first.code] = counted.get(story.first.code, 0) + 1
            if counted[story.first.code] <= OF_ONE_CODE:
                stories.append((facts, story))
            else:
                untold += 1
    stories.sort(key=lambda each: SEVERITIES.index(each[1].first.severity))
    untold += max(0, len(stories) - TOLD)
    told = [_told(number, facts, story, names) for number, (facts, story) in enumerate(stories[:TOLD])]
    for each, (_, story) in zip(told[:DUMPED], stories):
        if each.severity != INFO or len(told) <= DUMPED // 2:
            each.dump = hexdump(story.first, options)
    codes: dict[tuple[str, str], int] = {}
    for facts in (*made.others, *made.partitions):
        for key, count in facts.codes.items():
            codes[key] = codes.get(key, 0) + count
    rows = sorted(codes.items(), key=lambda each: (SEVERITIES.index(each[0][0]), -each[1], each[0][1]))
    return Evidence(told, untold, [(*key, count, CATALOGUE[key[1]].meaning) for key, count in rows])


def _told(number: int, facts: PartitionFacts, story: Story, names: Names) -> Told:
    finding, entry = story.first, CATALOGUE[story.first.code]
    count = sum(story.codes.values())
    more = ""
    if count > 1:
        kinds = ", ".join(f"{times:,} {code}" for code, times in story.codes.most_common())
        reach = f" up to offset {story.last_offset:,}" if story.last_offset is not None else ""
        more = f"One of {count:,} findings here: {kinds}{reach}."
    return Told(
        id=f"finding-{number + 1}",
        severity=finding.severity,
        code=finding.code,
        place=names.of(facts),
        file=file_name(finding.file),
        position=finding.position,
        size=finding.size,
        offset=finding.offset,
        message=clean(finding.message),
        consequence=clean(finding.consequence),
        meaning=entry.meaning,
        fix=entry.fix,
        more=more,
        lost=clean(story.lost),
    )
