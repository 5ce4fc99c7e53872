"""Text report of `kdump diff`: how the copies relate, where they diverge, what a broker would do with either as the
leader, and what to do next."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import tzinfo
from typing import Annotated, NamedTuple

from kdump.answer import PATH, Cell, PathText, Shown, of_fact
from kdump.format.count_text import count_text, plain_count
from kdump.io.source import RECORDS as PAYLOADS
from kdump.problems.problem import title_of
from kdump.questions.diff.answer import DiffSummary
from kdump.questions.diff.comparable_records import ComparableRecord
from kdump.questions.diff.copy_damage import UnreadableSpan
from kdump.questions.diff.copy_facts import CopyFacts
from kdump.questions.diff.differences import (
    CLEANED,
    DAMAGE,
    DAMAGED_ALIKE,
    DIVERGENT,
    EPOCHS,
    LEADER_EPOCH,
    MISSING,
    PREFIX,
    RECORDS,
    REWRITTEN,
    SAME,
    UNREAD,
    WITHHELD,
    DifferingRange,
    Sample,
)
from kdump.questions.diff.run import Diff, FollowerOutcome
from kdump.render.escape import bytes_text, path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import table_columns
from kdump.render.stdout import Output
from kdump.render.table import Table
from kdump.render.times import iso
from kdump.text import shell_word


def letter(number: int) -> str:
    """Return the letter that identifies a copy in the report: A, B, C …"""
    return chr(ord("A") + number) if number < 26 else f"#{number + 1}"


def next_steps(diff: Diff) -> Iterator[str]:
    """Yield what a broker would do, and what you should do."""
    choices = diff.choices
    if diff.relation == SAME:
        choices = [choice for choice in choices if choice.does.loses]
    if diff.majority:
        choices = [choice for choice in choices if choice.leader == diff.majority[0]]
    for choice in choices:
        yield _choice(diff, choice)
    damaged = [number for number, copy in enumerate(diff.copies) if copy.damaged]
    for number in damaged:
        yield title_of("replica-damaged", "copy", copy=letter(number), damaged=diff.copies[number].path)
    if diff.history is not None:
        where = ", on its broker" if PAYLOADS in diff.copies[0].lacks else ""
        yield title_of("replicas-diverge", "save", first=diff.history, where=where)


def save_commands(diff: Diff) -> Iterator[str]:
    """Yield the commands that save what the copies have from where they diverge."""
    if diff.history is None:
        return
    for number, copy in enumerate(diff.copies):
        if copy.logEndOffset is None or copy.logEndOffset > diff.history:
            path = shell_word(copy.path)
            yield f"kdump inspect {path} --records --offset {diff.history}.. --json > {letter(number)}.jsonl"


def _choice(diff: Diff, choice: FollowerOutcome) -> str:
    leader, follower, does = letter(choice.leader), letter(choice.follower), choice.does
    outcome = f"{leader} elected: {follower} "
    if does.by == "logStart":
        return (
            outcome + f"deletes all its records and restarts at offset {does.offset}, the log start offset of {leader}"
        )
    if does.offset is None:
        return outcome + "has no leader epochs and truncates to its high watermark, which is unknown here"
    pair = diff.pairs[(min(choice.leader, choice.follower), max(choice.leader, choice.follower))]
    stays = pair.first_in_records
    if does.loses:
        end = does.offset + does.loses
        is_same = stays is None and (diff.copies[choice.leader].logEndOffset or 0) >= end
        span = f"offsets {does.offset}..{end - 1}"
        again = f"fetches {span} again: their records are the same"
        outcome += f"truncates to offset {does.offset} and {again if is_same else f'loses its {span}'}"
    else:
        outcome += f"truncates nothing and fetches from offset {does.offset}"
    if does.by == "highWatermark":
        outcome += " (by its high watermark: it has no leader epochs)"
    if choice.mends is False and stays is not None:
        code = "replica-damaged" if stays.kind == DAMAGE else "replicas-diverge"
        outcome += "; " + title_of(code, "stays", first=stays.first)
    return outcome


STYLE = {SAME: "name", PREFIX: "torn", DIVERGENT: "bad", None: "torn"}
MAX_SHOWN = 3
"""Differences per pair that are printed unless --full is given, and damaged byte ranges per copy that are printed."""
SAMPLES = 3
"""Records that differ which are printed of a difference unless --full is given."""
CELL = 40
"""Bytes of a sample's key or value that are shown."""


class CopyRow(NamedTuple):
    """A copy in the table."""

    letter: Annotated[str, Shown(" ")]
    path: Annotated[PathText, Shown("copy", least=16, cuts=PATH)]
    logStartOffset: Annotated[int, Shown("logStart", 6)]
    logEndOffset: Annotated[int | None, Shown("logEnd"), Cell(none="unknown")]
    highWatermark: Annotated[int | None, Shown(rank=3)]
    segments: Annotated[int, Shown(rank=1)]
    epochs: Annotated[str, Shown("epochs@offsets", 8, 14)]
    damage: Annotated[str, Shown(rank=7)]
    behind: Annotated[str, Shown(rank=5)]


class DiffReport(Sink["Diff | DiffSummary"]):
    """Writes the reports of partitions, one after the other. Those that are the same get one line if `everything` is
    asked for, and a report only if the user has `named` them."""

    def __init__(
        self, output: Output, zone: tzinfo, *, full: bool = False, everything: bool = False, named: tuple[str, ...] = ()
    ) -> None:
        self.everything, self.named, self.output, self.zone, self.full = everything, named, output, zone, full
        self.written = False

    def add(self, answer: Diff | DiffSummary) -> None:
        if isinstance(answer, DiffSummary):
            self._summary(answer)
        elif answer.relation == SAME and answer.copies[0].path not in self.named and not answer.has_remarks:
            if self.everything:
                self.short(answer)
        elif answer.topic is not None or not all(copy.unread for copy in answer.copies):  # else no logs
            self.write(answer)

    def _summary(self, summary: DiffSummary) -> None:
        total = summary.partitions
        if total > 1 or (summary.same and not self.written):
            names = ("same", "prefix", "divergent", "unknown")
            parts = [f"{getattr(summary, name):,} {name}" for name in names if getattr(summary, name)]
            if self.written:
                self.output.line("")
            self.output.line(printable(f"{total:,} partition{'s' * (total > 1)} compared: {', '.join(parts)}"))

    def write(self, diff: Diff) -> None:
        """Write the complete report of one partition."""
        if self.written:
            self.output.line("")
        self.written = True
        word, details = verdict(diff)
        self.output.line(f"{name_of(diff)}: {self.output.paint(word, STYLE[diff.relation])}{details}")
        self.output.line("")
        self._copies(diff)
        lines = [*self._epochs(diff), *self._votes(diff)]
        for pair in diff.pairs:
            lines += list(self._pair(diff, pair))
        for number, copy in enumerate(diff.copies):
            lines += list(_copy_remarks(number, copy))
        lines += [f"note: {note}" for note in diff.notes]
        if lines:
            self.output.line("")
        for line in lines:
            self.output.text(line)
        following = list(next_steps(diff))
        if following:
            self.output.line("")
            self.output.line(self.output.paint("next steps", "head"))
            for line in following:
                self.output.text("  " + line)
            for line in save_commands(diff):
                self.output.line(printable(path_text("    " + line)))  # on one line, so that it can be copied

    def short(self, diff: Diff) -> None:
        """Write one line."""
        word, details = verdict(diff)
        self.output.text(f"{name_of(diff)}: {word}{details}")

    def _copies(self, diff: Diff) -> None:
        columns = table_columns(CopyRow)
        columns[-1] = columns[-1]._replace(label=f"from {diff.history} on")
        table = Table(columns, self.output, full=self.full)
        for number, copy in enumerate(diff.copies):
            tail = diff.tail(number)
            behind = "" if tail is None else count_text(tail.records, "record")
            damage = count_text(copy.damaged, "byte range") if copy.damaged else ""
            table.add(of_fact(CopyRow, copy, letter=letter(number), epochs=_epochs(copy), damage=damage, behind=behind))
        table.flush()

    def _epochs(self, diff: Diff) -> Iterator[str]:
        """Yield the leader epochs at the first divergent offset."""
        offset = diff.firstDivergentOffset
        if offset is None:
            return
        numbers = range(len(diff.copies))
        own = [(letter(n), diff.epoch_at(n)) for n in numbers]
        checkpointed = [(letter(n), diff.copies[n].checkpoint_epoch(offset)) for n in numbers]
        parts = [f"{epoch} in {name}" for name, epoch in own if epoch is not None]
        text = f"at offset {offset}: leader epoch {', '.join(parts)}" if parts else ""
        parts = [f"{epoch} in {name}" for name, epoch in checkpointed if epoch is not None]
        if text and own == checkpointed:
            text += "; leader-epoch-checkpoint agrees"
        elif parts:
            text = (text or f"at offset {offset}") + f"; leader-epoch-checkpoint has {', '.join(parts)}"
        if text:
            yield text
        yield from _epoch_start_text(diff, offset)
        yield from _later_leader(diff)
        marks = [(letter(n), diff.copies[n].highWatermark) for n in numbers]
        above = [f"{mark} of {name}" for name, mark in marks if mark is not None and mark > offset]
        if diff.cause not in (DAMAGE, EPOCHS) and above:
            yield f"that is below the high watermark {' and '.join(above)}: consumers may have read those records"

    def _votes(self, diff: Diff) -> Iterator[str]:
        if len(diff.copies) < 3 or not diff.votes:
            return
        groups = [" and ".join(map(letter, group)) for group in diff.votes]
        if diff.majority:
            count = f"{len(diff.majority)} of {sum(map(len, diff.votes))}"
            yield f"{count} agree at that offset: {groups[0]}, against {', '.join(groups[1:])}"
        else:
            yield f"no majority at that offset: {', '.join(groups)}"

    def _pair(self, diff: Diff, pair: tuple[int, int]) -> Iterator[str]:
        comparison = diff.pairs[pair]
        one, other = map(letter, pair)
        if len(diff.copies) > 2:
            first = comparison.first
            relation = comparison.relation or "relation unknown"
            yield f"{one} and {other}: {relation}" + (f" from offset {first.first} on" if first else "")
            heads = [group[0] for group in diff.votes]
            if heads and not self.full and not (heads[0] in pair and set(pair) <= set(heads)):
                return
        reported = 0
        for difference in comparison.differences:
            reported += difference.parts
            if difference.parts and reported > MAX_SHOWN and not self.full:
                continue
            yield from self._difference(difference, pair)
        left = comparison.more + (max(0, reported - MAX_SHOWN) if not self.full else 0)
        if left:
            yield f"  and {left} more differences (--full and --json show {'them' if not comparison.more else 'more'})"

    def _difference(self, difference: DifferingRange, pair: tuple[int, int]) -> Iterator[str]:
        one, other = map(letter, pair)
        lacks = letter(pair[difference.lacking]) if difference.lacking is not None else ""
        where = (
            f"offset {difference.first}"
            if difference.first == difference.last
            else f"offsets {difference.first}..{difference.last}"
        )
        count = count_text(difference.records, "record")
        names = ", ".join(difference.fields)
        texts = {
            RECORDS: f"  {where}: {count} of {one} and {other} differ" + (f", in {names}" if names else ""),
            MISSING: f"  {where}: {lacks} is missing {count}: {difference.reason or 'there is no sign of compaction'}",
            DAMAGE: f"  {where}: {count} cannot be read from {lacks}, which is damaged there: {difference.reason}",
            EPOCHS: f"  {where}: {title_of('diff-follower', one=one, other=other)}",
            CLEANED: f"  legal: the cleaner removed {count} from {lacks} within {where}: {difference.reason}",
            REWRITTEN: f"  legal: {count} within {where} are the same, in batches that differ in {names}",
            LEADER_EPOCH: f"  legal: {count_text(difference.batches, 'batch', 'batches')}"
            f" within {where} {'differs' if difference.batches == 1 else 'differ'} only in leader epoch",
            DAMAGED_ALIKE: f"  {where}: both are damaged there, byte for byte the same",
            UNREAD: f"  {where}: {count} cannot be compared with {lacks}, where a file could not be read",
            WITHHELD: f"  {where}: batches differ; whether {count} in them differ is not in the bundle",
        }
        line = texts.get(
            difference.kind, f"  {where}: both are damaged there in different ways: no comparison is possible"
        )
        if difference.kind == WITHHELD and lacks:
            line = f"  {where}: {lacks} is missing {count}; whether later ones have their keys is not in the bundle"
        if difference.kind == DAMAGE and not difference.records:
            line = f"  {where}: consumers cannot read the batch of {lacks}, which is damaged: {difference.reason}"
        if difference.kind == DAMAGE and not lacks:
            line = f"  {where}: both are damaged there in different ways: {difference.reason}"
        yield line
        if difference.kind in (RECORDS, MISSING, DAMAGE):
            for number, place in zip(pair, (difference.left, difference.right)):
                if place is not None and (difference.kind != MISSING or pair[1 - (difference.lacking or 0)] == number):
                    yield (
                        f"    {letter(number)}  batch at byte {place.position}, {plain_count(place.size, 'byte')}"
                        f", of {place.file}"
                    )
        shown = difference.samples[: None if self.full else SAMPLES]
        for sample in shown:
            yield from self._sample(sample, pair)
        if shown and len(shown) < difference.records:
            more = count_text(difference.records - len(shown), "more record")
            yield f"    … and {more}, which kdump inspect --records shows"

    def _sample(self, sample: Sample, pair: tuple[int, int]) -> Iterator[str]:
        yield f"    record {sample.offset}"
        for number, row, sizes in zip(pair, (sample.left, sample.right), sample.sizes):
            parts = [self._field(row, name, sizes) for name in sample.fields]
            yield f"      {letter(number)}  " + ", ".join(parts)

    def _field(self, row: ComparableRecord, name: str, sizes: tuple[int, int]) -> str:
        limit = None if self.full else CELL
        if name == "timestamp":
            return f"timestamp {iso(row.timestamp, self.zone)}"
        if name in ("key", "value"):
            size = sizes[name == "value"]
            value = bytes_text(getattr(row, name), limit)
            return f"{name} {value}" + (f" ({plain_count(size, 'byte')})" if size > CELL else "")
        if name == "headers":
            return f"{plain_count(row.headers[0], 'header')}, {bytes_text(row.headers[1], limit)}"
        return f"{name} {getattr(row, name)}"


def name_of(diff: Diff) -> str:
    """Return topic-partition, or the name of the first path."""
    if diff.topic is not None:
        return f"{printable(diff.topic)}-{diff.partition}"
    return printable(path_text(os.path.basename(os.path.abspath(diff.copies[0].path))))


def verdict(diff: Diff) -> tuple[str, str]:
    """Return how the copies relate: the verdict, and the rest of the sentence."""
    offset, first = diff.firstDivergentOffset, diff.first
    if first is not None:
        (left, right), difference = first
        if difference.kind == RECORDS:
            return "DIVERGENT", f" from offset {offset} on"
        lacks = letter((left, right)[difference.lacking]) if difference.lacking is not None else ""
        if difference.kind == MISSING:
            return "DIVERGENT", f" at offset {offset}: {lacks} has no record there"
        if difference.kind == EPOCHS:
            return "DIVERGENT", f" from offset {offset} on: {title_of('diff-follower', 'first')}"
        return "DIVERGENT", f" at offset {offset}: {lacks + ' is' if lacks else 'they are'} damaged there"
    if diff.relation == SAME:
        copy = diff.copies[0]
        records = max(pair.alike for pair in diff.pairs.values())
        last = (copy.logEndOffset or 0) - 1  # known: everything was read
        offsets = f"offsets {copy.logStartOffset}..{last}, " if records else ""
        return "the same", f": {offsets}{count_text(records, 'record')}{''.join(_but(diff))}"
    if diff.relation == PREFIX:
        parts = []
        for (left, right), pair in diff.pairs.items():
            if pair.shorter is not None:
                short, long = ((left, right), (right, left))[pair.shorter]
                end, beyond = diff.copies[short].logEndOffset or 0, diff.copies[long].logEndOffset or 0
                rest = count_text(beyond - end, "more offset") if beyond > end else "more bytes, which are damaged"
                parts.append(f"{letter(short)} ends at offset {end}, {letter(long)} has {rest}")
        return "prefix", ": " + "; ".join(parts)
    if any(copy.unread for copy in diff.copies):
        return "relation unknown", ": something could not be read"
    if any(each.kind == WITHHELD for pair in diff.pairs.values() for each in pair.differences):
        return "relation unknown", ": some batches differ, and their records are not in the bundle"
    return "relation unknown", ": the copies have no common offset to compare"


def _but(diff: Diff) -> Iterator[str]:
    """Yield what the first line states about copies with the same records and leader epochs: the lines below it may not
    contradict it."""
    damaged = [letter(number) for number, copy in enumerate(diff.copies) if copy.damaged]
    if damaged:
        yield f"; {' and '.join(damaged)} {'are' if len(damaged) > 1 else 'is'} damaged"
    if any(choice.does.loses and choice.does.by == "highWatermark" for choice in diff.choices):
        yield "; a follower without leader epochs truncates to its high watermark"


def _epoch_start_text(diff: Diff, offset: int) -> Iterator[str]:
    """Report a leader epoch that starts at the divergent offset and is missing from some copies: it explains the
    divergence."""
    starts = [dict(copy.history) for copy in diff.copies]
    for epoch, start in sorted({entry for epochs in starts for entry in epochs.items()}, key=lambda entry: entry[1]):
        if start > offset:
            return
        have = [n for n, epochs in enumerate(starts) if epochs.get(epoch) == start]
        lack = [n for n, copy in enumerate(diff.copies) if epoch not in starts[n] and (copy.logEndOffset or 0) > start]
        lack = [n for n in lack if diff.copies[n].logStartOffset <= start]
        if lack and start == offset:
            names = " and ".join(map(letter, have))
            others = " and ".join(map(letter, lack))
            missing = f"{others} never had it: a different leader continued the log"
            yield f"leader epoch {epoch} starts there in {names}; {missing}"

            return


def _later_leader(diff: Diff) -> Iterator[str]:
    """Say which copy has the later leader's log. Whether the other's records were acknowledged, only a high watermark
    shows."""
    leader = diff.later_leader
    if leader is None or diff.cause == EPOCHS:
        return  # all copies have the records
    latest, later, earlier = leader.epoch, [letter(number) for number in leader.copies], leader.earlier
    names = " and ".join(later)
    yield f"from there on, {names} {'have' if len(later) > 1 else 'has'} the log of the later leader (epoch {latest})"
    unknown = [letter(number) for number in earlier if diff.copies[number].highWatermark is None]
    if unknown:
        whose = " and ".join(unknown)
        yield f"whether the records of {whose} were committed is unknown: there is no high watermark of {whose} here"


def _epochs(copy: CopyFacts) -> str:
    if copy.epochs is not None:
        return ", ".join(f"{each.epoch}@{each.startOffset}" for each in copy.epochs)
    text = ", ".join(f"{each.epoch}@{each.offset}" for each in copy.batchEpochs)
    return f"{text} (batches)" if text else ""


def _copy_remarks(number: int, copy: CopyFacts) -> Iterator[str]:
    """Yield the remaining facts about a copy: damage, read errors, notes."""
    for damage in copy.damages[:MAX_SHOWN]:
        yield f"{letter(number)} is damaged: {_bytes(damage)}: {damage.reason}"
    if copy.damaged > MAX_SHOWN:
        more = count_text(copy.damaged - MAX_SHOWN, "more byte range")
        yield f"{letter(number)} is damaged in {more}; run kdump verify to list all"
    if copy.tail is not None:
        ending = f"{letter(number)} ends with {_bytes(copy.tail)}, {_tail(copy.tail)}"
        yield title_of("diff-follower", "tail", ending=ending)
    yield from (f"{letter(number)} could not be read: {remark}" for remark in copy.unread)
    yield from (f"note: {remark}" for remark in copy.notes)


def _bytes(damage: UnreadableSpan) -> str:
    return (
        f"{count_text(damage.place.size, 'byte')}"
        f" at byte {damage.place.position} of {os.path.basename(damage.place.file)}"
    )


def _tail(damage: UnreadableSpan) -> str:
    return "zeros" if damage.kind == "padding" else "an incomplete batch"
