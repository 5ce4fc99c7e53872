"""Text report of `kdump salvage`: what was kept of each partition, what was lost, where and why, and what to do
next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from kdump.answer import NUMBER, TEXT, Shown
from kdump.decode.record_cut import UNTIL
from kdump.format.count_text import count_text
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.problems.problem import title_of
from kdump.questions.abort_command import abort_command
from kdump.questions.salvage.answer import Salvaged, SalvageSummary
from kdump.questions.salvage.byte_outcomes import (
    CUT_REASONS,
    FATES,
    LOST,
    RECOVERED,
    UNUSED,
    WRITTEN,
    ByteRange,
    MissingOffsetRange,
)
from kdump.questions.salvage.source.source_file import CORRECTED_BIT
from kdump.render.escape import printable
from kdump.render.sink import Sink
from kdump.render.state_tables import write_answers
from kdump.render.stdout import Output
from kdump.text import shell_word

MAX_SHOWN = 10
"""Maximum losses and offset gaps per partition that are printed unless --full is given; the ledger has all."""
FEW = 3
"""Maximum transactions per partition that are listed individually unless --full is given."""


class FateRow(NamedTuple):
    """What becomes of bytes, and of how many."""

    fate: Annotated[str, Shown(" ")]
    bytes: Annotated[int, Shown(), NUMBER]
    batches: Annotated[int, Shown(rank=5, blank=0), NUMBER]
    records: Annotated[int, Shown(rank=6, blank=0), NUMBER]
    meaning: Annotated[str, Shown(" ", 1, 20, cuts=TEXT)]


class SalvageReport(Sink[Salvaged | SalvageSummary]):
    """Writes the results of partitions, one after the other. `loads`: the output is meant for a broker."""

    def __init__(self, output: Output, *, full: bool = False, loads: bool = True) -> None:
        self.output = output
        self.full = full
        self.loads = loads
        self.written = self.detailed = False
        self._written: list[Salvaged] = []

    def add(self, answer: Salvaged | SalvageSummary) -> None:
        if isinstance(answer, SalvageSummary):
            self._summary(answer)
            return
        self.write(answer)
        if answer.is_written:
            self._written.append(answer)

    def write(self, made: Salvaged) -> None:
        """Write one line for a partition that was kept completely, and all details for any other."""
        quiet = made.is_whole and not (
            made.lostPlaces
            or made.openTransactions
            or made.abortedTransactions
            or made.odd
            or made.mended
            or made.notes
            or made.excluded
        )
        if (self.written and not quiet) or self.detailed:
            self.output.line("")
        self.written, self.detailed = True, not quiet
        self._head(made)
        if quiet:
            return
        if made.lostPlaces or made.excluded or not made.is_whole:
            self._table(made)
        lines = [*self._lost(made), *self._changed(made)]
        for line in lines:
            self.output.text("  " + line)
        self._open(made)
        self._doubtful(made)
        for note in made.notes:
            self.output.text(f"  note: {note}")

    def _head(self, made: Salvaged) -> None:
        kept = sum(made.records.get(fate, 0) for fate in WRITTEN)
        name = printable(made.name)
        if not made.is_written and made.excluded and made.is_whole:
            self.output.text(f"{name}: nothing is left{_excluded_text(made)}")
            return
        if not made.is_written:
            self._loud(f"{name}: NOTHING could be kept", "NOTHING")
            return
        counts = count_text(kept, "record")
        if made.logStartOffset is not None and made.logEndOffset is not None:
            counts += f", offsets {made.logStartOffset}..{made.logEndOffset - 1}"
        counts += _excluded_text(made)
        whole = "complete except for what was left out" if made.excluded else "complete"
        if made.onlyRemote is not None:
            whole = f"all that is on the disk, without {made.onlyRemote[0]}..{made.onlyRemote[1]}"
        if made.has_losses:
            self._loud(f"{name}: kept {counts}" + (f"; LOST {_lost_text(made)}" if made.lostPlaces else ""), "LOST")
        elif made.lostPlaces:
            places = count_text(made.lostPlaces, "byte range is", "byte ranges are")
            self.output.text(f"{name}: {whole}: {counts}; {places} damaged, but no offsets are missing because of that")
        else:
            self.output.text(f"{name}: {whole}: {counts}")

    def _table(self, made: Salvaged) -> None:
        is_exact = len(made.guesses) == made.batches.get(RECOVERED) and all(span.is_exact for span in made.guesses)
        meanings = FATES | ({RECOVERED: f"from a damaged batch: {CORRECTED_BIT}"} if is_exact else {})
        rows = [
            FateRow(fate, made.bytes[fate], made.batches.get(fate, 0), made.records.get(fate, 0), meaning)
            for fate, meaning in meanings.items()
            if fate in made.bytes
        ]
        style = {RECOVERED: "torn", **dict.fromkeys(LOST, "bad")}
        write_answers(self.output, rows, full=self.full, style=lambda row: style.get(row.fate, ""))

    def _lost(self, made: Salvaged) -> Iterator[str]:
        limit = len(made.losses) if self.full else MAX_SHOWN
        for span in made.losses[:limit]:
            yield span_text(span)
        if made.lostPlaces > limit:
            yield f"… and {made.lostPlaces - len(made.losses[:limit]):,} more byte ranges, in the ledger"
        guesses = made.guesses if self.full else made.guesses[:MAX_SHOWN]
        for span in guesses:
            kind = "exact repair" if span.is_exact else "best-effort recovery"
            yield f"{kind}, {span.reason}: {span_text(span)}"
        if made.batches.get(RECOVERED, 0) > len(guesses):
            yield f"… and {made.batches[RECOVERED] - len(guesses):,} more recovered batches, in the ledger"
        holes = [hole for hole in made.holes if not _is_reported(hole, made.losses[:limit])]
        for hole in holes[:limit]:
            yield f"no record of {hole_text(hole)}"
        if made.absentOffsets:
            where = f"{count_text(made.absentOffsets, 'offset')} in {count_text(made.absentHoles, 'gap')}"
            which = "no source" + (", or only in batches that compaction may have removed" if _has_unused(made) else "")
            yield f"{where} are in {which}: compaction, retention or a missing file"

    def _changed(self, made: Salvaged) -> Iterator[str]:
        for name, count in made.mended.items():
            yield f"{name} corrected in {count_text(count, 'batch', 'batches')}: no checksum covers it (see the ledger)"
        for code, count in made.odd.items():
            yield f"{code} in {count_text(count, 'batch', 'batches')} is unchanged; run kdump verify for its impact"

    def _open(self, made: Salvaged) -> None:
        if made.abortedTransactions:
            count = count_text(len(made.abortedTransactions), "transaction was", "transactions were")
            first = made.abortedTransactions[0]
            self.output.text(
                f"  {count} open at the end, and ABORT markers were written for them; the first is of producer "
                f"{first.producerId}, from offset {first.firstOffset}"
            )
        if not made.openTransactions:
            return
        offset = made.lastStableOffset
        lost = [transaction for transaction in made.openTransactions if transaction.lost]
        count = count_text(len(made.openTransactions), "transaction is", "transactions are")
        self.output.text("  " + title_of("salvage-left", count=count, offset=offset), style="bad")
        for transaction in made.openTransactions[: None if self.full else FEW]:
            why = "its marker may be lost" if transaction.lost else "nothing after it was lost: it was already open"
            if not transaction.lost and UNTIL in made.excluded:
                why = "it is open at --until; --abort-open ends it as aborted"
            who = f"producer {transaction.producerId}, epoch {transaction.producerEpoch}"
            who += f", from offset {transaction.firstOffset}"
            self.output.text(f"    {who}: {count_text(transaction.records, 'record', 'records')}; {why}")
        if lost:
            command = abort_command(made.topic, made.partition, lost[0].firstOffset)
            self.output.text("    " + title_of("salvage-use", "marker"))
            self.output.line(printable(f"      {command}"))  # on one line, so that you can copy it

    def _doubtful(self, made: Salvaged) -> None:
        transactions = made.doubtfulTransactions
        for transaction in transactions[: None if self.full else FEW]:
            first, last = transaction.firstOffset, transaction.markerOffset
            lost = title_of("salvage-left", "doubtful", first=first, last=last, marker=transaction.marker)
            who = f"  producer {transaction.producerId}, epoch {transaction.producerEpoch}"
            self.output.text(f"{who}: {lost}", style="torn")
        if len(transactions) > FEW and not self.full:
            more = count_text(len(transactions) - FEW, "more transaction", "more transactions")
            self.output.text(f"  … and {more} like this (--json)")

    def _loud(self, line_text: str, word: str) -> None:
        """Write a line in which one word is highlighted."""
        for line in self.output.wrapped(line_text, 2):
            self.output.line(line.replace(word, self.output.paint(word, "bad"), 1))

    def _summary(self, summary: SalvageSummary) -> None:
        """Write the totals, and how to use the output."""
        written, out, ledger = self._written, summary.out, summary.ledger
        self.output.line("")
        if summary.partitions > 1:
            partial = summary.partitions - summary.whole - summary.empty
            parts = [f"{summary.whole:,} complete"] if summary.whole else []
            parts += [f"{partial:,} partial"] if partial else []
            parts += [f"{summary.empty:,} of which nothing could be kept"] if summary.empty else []
            self.output.text(f"{count_text(summary.partitions, 'partition')}: {', '.join(parts)}")
        self.output.text(f"written to {out}; the outcome of every byte is in {ledger}")
        if not written or not self.loads:
            return
        self.output.line(self.output.paint("next steps", "head"))
        name = written[0].name if len(written) == 1 else "each directory"
        self.output.text(f"  check it: kdump verify {shell_word(out)}")
        is_metadata = all(each.topic == METADATA_TOPIC for each in written)
        self.output.text(f"  use it: {title_of('salvage-use', 'metadataLog' if is_metadata else '', name=name)}")
        if any(made.excluded for made in written):
            self.output.text("  " + title_of("salvage-use", "excluded"))
        self.output.text("  " + title_of("salvage-use", "metadataStart" if is_metadata else "start"))


def _excluded_text(made: Salvaged) -> str:
    """Return how many records were left out on request, and why."""
    if not made.excluded:
        return ""
    reasons = [f"{count:,} {CUT_REASONS[cause]}" for cause, count in made.excluded.items()]
    return f"; left out {count_text(sum(made.excluded.values()), 'record')}: {', '.join(reasons)}"


def span_text(span: ByteRange) -> str:
    """Describe what was lost, where and why."""
    offsets = "" if span.offset is None else f"offsets {span.offset}..{span.lastOffset}: "
    if span.offset is not None and span.offset == span.lastOffset:
        offsets = f"offset {span.offset}: "
    size = "the rest" if span.size is None else count_text(span.size, "byte", "bytes")
    code = f"{span.code}: " if span.code else f"{span.fate}: "
    where = f"{offsets}{size} at byte {span.position} of {span.file}"

    return f"{where}: {span.code}" if span.fate == RECOVERED else f"{where}: {code}{span.reason}"


def hole_text(hole: MissingOffsetRange) -> str:
    """Format an offset gap: offsets 5..9."""
    if hole.lastOffset is None:
        return f"offsets from {hole.offset} on, if there were any"
    return f"offset {hole.offset}" if hole.offset == hole.lastOffset else f"offsets {hole.offset}..{hole.lastOffset}"


def _is_reported(hole: MissingOffsetRange, losses: list[ByteRange]) -> bool:
    return any(span.offset == hole.offset and span.lastOffset == hole.lastOffset for span in losses)


def _has_unused(made: Salvaged) -> bool:
    """Return True if a replica has batches that were not needed."""
    return made.batches.get(UNUSED, 0) > 0


def _lost_text(made: Salvaged) -> str:
    size = sum(made.bytes.get(fate, 0) for fate in LOST)
    offsets = f"{count_text(made.lostOffsets, 'offset', 'offsets')}, " if made.lostOffsets else ""
    return f"{offsets}{count_text(size, 'byte')} in {count_text(made.lostPlaces, 'byte range')}"
