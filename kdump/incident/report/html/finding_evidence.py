"""Findings for the page: grouped by cause, with the bytes concerned, the consequence for brokers and consumers, and the
fix."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kdump.check.finding import ERROR, INFO, SEVERITIES, Finding
from kdump.check.options import Options
from kdump.format.count_text import count_text
from kdump.incident.report.facts import PartitionFacts, PostMortem
from kdump.incident.report.html.excerpts import hexdump
from kdump.incident.report.html.labels import PageLabels
from kdump.problems.catalogue import declaration
from kdump.render.findings_report import EVERYWHERE, FindingGroup, PartitionFindings
from kdump.render.style_marks import Parts

DUMPED = 60
"""Maximum groups of findings with a hexdump."""
MAX_EXPLAINED = 300
"""Maximum groups of findings on the page."""
OF_ONE_CODE = 10
"""Maximum groups of findings of one code in one partition."""
Chosen = tuple[PartitionFacts, FindingGroup, list[PartitionFacts]]


@dataclass
class ExplainedFindings:
    """A group of findings as shown on the page. All text has been escaped for a terminal; the page also escapes it for
    HTML."""

    id: str
    finding: Finding
    """The first one. Its texts are not escaped."""
    place: str
    file: str
    message: str
    consequence: str
    fix: str
    more: str
    lost: str
    same: str = ""
    """ID of the finding above whose dump shows the same bytes; empty if there is none."""
    dump: list[Parts] = field(default_factory=list)


@dataclass
class FindingsSection:
    """The findings section of the page. `omitted`: the number of groups for which there was no room; `codes`: severity,
    code, number of findings and meaning."""

    explained: list[ExplainedFindings]
    omitted: int
    codes: list[tuple[str, str, int, str]]


def evidence(made: PostMortem, names: PageLabels, options: Options) -> FindingsSection:
    """Return errors first, then warnings, then informational findings; the first groups have a hexdump of their
    bytes."""
    groups = [(facts, story) for facts in (*made.others, *made.partitions) for story in _stories(facts)]
    stories, omitted = _folded(groups)
    stories.sort(key=lambda each: SEVERITIES.index(each[1].first.severity))
    omitted += max(0, len(stories) - MAX_EXPLAINED)
    explained = [_explain(number, *each, names) for number, each in enumerate(stories[:MAX_EXPLAINED])]
    _dump(explained, options, names)
    codes: dict[tuple[str, str], int] = {}
    for facts in (*made.others, *made.partitions):
        for key, count in facts.codes.items():
            codes[key] = codes.get(key, 0) + count
    rows = sorted(codes.items(), key=lambda each: (SEVERITIES.index(each[0][0]), -each[1], each[0][1]))
    return FindingsSection(explained, omitted, [(*key, count, declaration(key[1]).meaning) for key, count in rows])


def _dump(explained: list[ExplainedFindings], options: Options, names: PageLabels) -> None:
    """Dump the bytes of the first groups of findings. Those of one batch are shown once, at the first of the groups,
    with the records of all."""
    chosen: dict[tuple[str, int], list[ExplainedFindings]] = {}
    for each in explained[:DUMPED]:
        if each.finding.severity != INFO or len(explained) <= DUMPED // 2:
            chosen.setdefault((each.finding.file, each.finding.position), []).append(each)
    for first, *others in chosen.values():
        offsets = {each.finding.offset for each in (first, *others) if each.finding.offset is not None}
        first.dump = hexdump(first.finding, options, offsets, zone=names.zone, has_payload=names.redaction is None)
        for each in others if first.dump else ():
            each.same = first.id


def _stories(facts: PartitionFacts) -> list[FindingGroup]:
    group = PartitionFindings(facts.name)
    for finding in facts.findings:
        if finding.case != "damage" or not group.explains(finding):
            group.add(finding)
    return group.stories


def _folded(groups: list[tuple[PartitionFacts, FindingGroup]]) -> tuple[list[Chosen], int]:
    """Return the groups of findings to show, each with its partitions, and the number of groups left out. Groups that
    are not errors and occur in more than EVERYWHERE partitions are merged by code. Of one code in one partition, at
    most OF_ONE_CODE groups are shown."""
    places: dict[str, dict[int, PartitionFacts]] = {}
    for facts, story in groups:
        if story.first.severity != ERROR:
            places.setdefault(story.first.code, {})[id(facts)] = facts
    folded = {code: list(of.values()) for code, of in places.items() if len(of) > EVERYWHERE}
    counts: Counter[tuple[str, int]] = Counter()
    chosen: list[Chosen] = []
    omitted = 0
    for facts, story in groups:
        code = story.first.code
        is_folded = code in folded and story.first.severity != ERROR
        key = (code, 0 if is_folded else id(facts))
        counts[key] += 1
        if is_folded:
            if counts[key] == 1:
                chosen.append((facts, story, folded[code]))
        elif counts[key] <= OF_ONE_CODE:
            chosen.append((facts, story, [facts]))
        else:
            omitted += 1
    return chosen, omitted


def _explain(
    number: int, facts: PartitionFacts, story: FindingGroup, places: list[PartitionFacts], names: PageLabels
) -> ExplainedFindings:
    finding = story.first
    count = sum(story.codes.values())
    more = ""
    if len(places) > 1:
        first = ", ".join(names.of(place) for place in places[:EVERYWHERE])
        total = sum(place.codes[finding.severity, finding.code] for place in places)
        more = f"{count_text(total, 'finding')}, in {first} and others. The first is in {names.of(facts)}:"
    elif count > 1:
        kinds = ", ".join(f"{times:,} {code}" for code, times in story.codes.most_common())
        reach = f" up to offset {story.last_offset:,}" if story.last_offset is not None else ""
        more = f"First of {count_text(count, 'finding')} here: {kinds}{reach}."
    return ExplainedFindings(
        id=f"finding-{number + 1}",
        finding=finding,
        place=names.of(facts) if len(places) == 1 else count_text(len(places), "partition"),
        file=names.file_name(finding.file),
        message=names.clean(finding.message),
        consequence=names.clean(finding.consequence),
        fix=names.clean(". ".join(finding.actions)) if names.redaction is None else declaration(finding.code).fix,
        more=more,
        lost=names.clean(story.lost),
    )
