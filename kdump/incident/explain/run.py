"""Explains logs and messages: reads them as a stream, groups what they contain, and looks it up on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timezone, tzinfo

from kdump.check.options import Options
from kdump.format.iso_time import iso
from kdump.incident.explain.answer import Explanation, ExplanationSummary, FindingExplanation
from kdump.incident.explain.catalogue import by_name, find, messages
from kdump.incident.explain.commands import LOG_TIME, fill, fill_action
from kdump.incident.explain.disk_evidence import DiskEvidence
from kdump.incident.explain.facts import of_message
from kdump.incident.explain.grouping import Groups
from kdump.incident.explain.log_entries import Entry, LogReader, is_frame, parse_head, split_trace, without_prefix
from kdump.io.fault_tolerant import careful_source
from kdump.io.mounted_paths import mount_paths
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.source import Source
from kdump.problems.advice import chosen_texts
from kdump.problems.catalogue import Action, findings

__all__ = ["explain"]

BLOCK = 1 << 20
"""Bytes read at a time."""
SHORTEST_LITERAL = 12
MAX_BARE = 1 << 16
"""Bytes of a log without a level in any line that are read as messages, one on each line."""


def explain(
    log: str | os.PathLike[str], *, disk: str | Iterable[str] = (), options: Options | None = None
) -> Iterator[Explanation | ExplanationSummary]:
    """Yield an Explanation for all messages of a log that mean the same and are about the same partition, file or
    group, in the order in which to look at them, and then the ExplanationSummary.

    `log`: the path of a broker's or client's log, also compressed with gzip or zstd, or - for standard input. `disk`:
    log directories of one broker, or bundles of them, in which to look up what the messages are about; they are read as
    `options` state. Times without a time zone are taken for UTC. Memory is bounded. Raises SourceError for a log or a
    directory that cannot be read."""
    paths = (disk,) if isinstance(disk, str) else tuple(disk)
    mount_paths(paths)
    return explain_log(os.fspath(log), DiskEvidence(paths, options) if paths else None)


class ReadLog:
    """What the log at `path` contains, as far as `read` has got. `error`: why it could not be read to its end."""

    def __init__(self, path: str, zone: tzinfo = timezone.utc) -> None:
        self.path = path
        self.groups = Groups()
        self.error: str | None = None
        self._reader = LogReader(literals(), zone)

    @property
    def lines(self) -> int:
        return self._reader.lines

    def read(self, run: Run = PLAIN_RUN, *, takes_messages: bool = False) -> None:
        """Read the log; with `takes_messages`, each line is a message if none has a level. Raises SourceError if it
        cannot be opened, and what `run.more` raises."""
        source = careful_source(self.path)
        kept = bytearray()
        try:
            source.keep = False
            for entry in self._reader.entries(_keep(_blocks(source, run), kept)):
                self.groups.add(entry)
            if takes_messages:
                self._read_messages(bytes(kept))
        finally:
            self.error = source.error
            source.close()

    def _read_messages(self, data: bytes) -> None:
        """Explain messages that someone has chosen: without time and level, as grep -o or jq prints them, or lines of
        which each is a message. A log with other lines is not read so: those of level INFO are not unknown."""
        is_text = len(data) <= MAX_BARE and b"\0" not in data
        lines = data.decode("utf-8", "surrogateescape").split("\n") if is_text else []
        heads = sum(parse_head(line, self._reader.zone) is not None for line in lines)
        self.groups.is_pasted = is_text and heads == self.groups.known + self.groups.unknown
        for number, line in enumerate(() if heads or self.groups.known or self.groups.unknown else lines, 1):
            if line.strip() and not is_frame(line):
                self.groups.add(_bare(line, number), anywhere=True)


def _bare(line: str, number: int = 1) -> Entry:
    """Return the entry of a line without time and level."""
    text, *causes = split_trace(without_prefix(line).strip())
    return Entry(text, number=number, causes=causes)


def _keep(blocks: Iterable[bytes], kept: bytearray) -> Iterator[bytes]:
    """Yield the blocks, and add them to `kept` until it is longer than MAX_BARE."""
    for block in blocks:
        if len(kept) <= MAX_BARE:
            kept += block[: MAX_BARE + 1 - len(kept)]
        yield block


def explain_log(
    path: str, disk: DiskEvidence | None = None, *, zone: tzinfo = timezone.utc, run: Run = PLAIN_RUN
) -> Iterator[Explanation | ExplanationSummary]:
    """Yield the explanations of a log: a file, also compressed with gzip or zstd, or - for standard input; then the
    summary. Reads it once, with memory for the explanations alone (at most MAX_GROUPS and MAX_UNKNOWN of them).

    `disk`: looks up what the messages are about; `zone`: time zone of the log, if its times have none. Raises
    SourceError if the log cannot be opened; if it cannot be read to its end, the summary contains the error."""
    log = ReadLog(path, zone)
    log.read(run, takes_messages=True)
    yield from _answers(log.groups, log.lines, path, disk, log.error)


def explain_text(
    text: str, disk: DiskEvidence | None = None, *, zone: tzinfo = timezone.utc
) -> Iterator[Explanation | ExplanationSummary]:
    """Yield the explanations of text that was pasted: a message, or several lines of a log; then the summary."""
    groups = Groups(is_pasted=True)
    lines = text.splitlines()
    reader = LogReader(literals(), zone)
    entries = list(reader.entries([text.encode("utf-8", "surrogateescape")]))
    if len(lines) == 1 or not entries:
        first, *rest = lines or [""]
        entry = parse_head(first, zone) or _bare(first)
        entry.causes += [line.strip() for line in rest if line.strip() and not line.lstrip().startswith("at ")]
        groups.add(entry, anywhere=True)
    for entry in entries if len(lines) > 1 else ():
        groups.add(entry)
    yield from _answers(groups, len(lines), "", disk, None)


def explain_name(name: str, disk: DiskEvidence | None = None) -> Explanation | FindingExplanation | None:
    """Return what a name means, without a log: the code of a finding, the name of a message, an exception class, or an
    error code. None if it is not known."""
    path = None if disk is None else disk.places.paths[0]
    code = findings().get(name)
    if code is not None:
        related = [message for message in messages() if name in message.codes]
        evidence = [] if disk is None else list(disk.findings(code))
        if disk is not None and disk.found is not None:  # what to do about it here
            actions = disk.found.actions
            code = replace(code, actions=tuple(map(Action, actions)), fix=". ".join(actions))
        return FindingExplanation(
            code=code,
            evidence=evidence,
            commands=fill(("kdump verify {disk} --only " + code.family,), {}, path, {}),
            messages=tuple(message.name for message in related),
            incidents=tuple(dict.fromkeys(message.incident for message in related if message.incident)),
        )
    message = find(name)
    if message is None:
        return None
    groups = Groups()
    groups.add_message(message)
    explanation = groups.explanations()[0]
    explanation.commands = fill(message.commands, {}, path, {}, topics=() if disk is None else disk.places.topics)
    if disk is not None:
        explanation.evidence = disk.look(explanation, message)[0]
    return explanation


def known_names() -> list[str]:
    """Return all names that `explain_name` takes."""
    exceptions = (name for message in messages() for name in message.exceptions)
    return [*findings(), *(message.name for message in messages()), *exceptions]


def literals() -> tuple[bytes, ...]:
    """Return texts that every entry contains that Kafka logs at level INFO and that has a message."""
    needles = {pattern.needle for message in messages() if message.at_info for pattern in message.patterns}
    long = sorted((needle for needle in needles if len(needle) >= SHORTEST_LITERAL), key=len)
    shortest = [needle for number, needle in enumerate(long) if not any(shorter in needle for shorter in long[:number])]
    return tuple(needle.encode() for needle in shortest)


def _blocks(source: Source, run: Run) -> Iterator[bytes]:
    position = 0
    while True:
        data = source.read_at(position, BLOCK)
        if not data:
            return
        position += len(data)
        source.release(position)
        run.more(len(data))
        yield data


def look_up(explanation: Explanation, disk: DiskEvidence | None) -> dict[str, str]:
    """Fill in the evidence on the disk and the commands. Returns the paths there of what it is about: path (of the
    partition), file, otherFile."""
    message = by_name().get(explanation.message or "")
    on_disk: dict[str, str] = {}
    if disk is not None:
        explanation.evidence, on_disk = disk.look(explanation, message)
    if message is not None:
        directory = None if disk is None else disk.directory_of(explanation)
        disks = [] if disk is None else [log_directory.path for log_directory in disk.places.directories]
        time = int(explanation.about.get("timestamp", -1)) if explanation.first is None else explanation.first
        parts = {**explanation.about, **({} if time < 0 else {LOG_TIME: iso(time)})}
        topics = () if disk is None else disk.places.topics
        explanation.commands = fill(message.commands, parts, directory, on_disk, disks, topics)
        facts = of_message(explanation.about) | ({} if disk is None else disk.facts(explanation, message))
        action = ". ".join(chosen_texts(message.actions, facts))
        remedy = "" if disk is None else disk.remedy
        explanation.action = remedy or fill_action(action, explanation.about, directory, on_disk)
    return on_disk


def _answers(
    groups: Groups, lines: int, path: str, disk: DiskEvidence | None, error: str | None
) -> Iterator[Explanation | ExplanationSummary]:
    explanations = groups.explanations()
    if disk is not None:
        disk.expect(explanations)
    for explanation in explanations:
        look_up(explanation, disk)
        yield explanation
    yield ExplanationSummary(
        path, lines, groups.known, groups.unknown, groups.unknown_more, groups.first, groups.last, error
    )
