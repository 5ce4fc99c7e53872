"""Output of `kdump restart-plan` for people: first the verdict, then what is lost and what to copy, last the other
steps."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby

from kdump.format.count_text import count_text, plain_count
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.questions.restart_plan.answer import (
    CLEAN,
    DEGRADED,
    DELETED,
    HIDDEN,
    RECOVERY,
    STOPPED,
    TRUNCATED,
    UNKNOWN,
    USUAL,
    DirectoryPlan,
    PartitionPlan,
    RemovedBytes,
    RestartPlan,
    StartupFailure,
    Step,
    created_segments,
    totals,
)
from kdump.questions.restart_plan.course import FIRST_CHECKS, FIRST_MINUTES, StartupEvent
from kdump.questions.restart_plan.plan_text import (
    UNKNOWN_START,
    after_shutdown,
    loss_texts,
    metadata_text,
    no_loss_text,
    once_text,
    release_texts,
    saved_text,
    time_text,
    unknown_text,
)
from kdump.questions.restart_plan.recovery.recovery_time import RecoveryTime
from kdump.questions.restart_plan.recovery.report import short_line
from kdump.questions.restart_plan.replicas.replica_answer import ClusterSummary, PartitionReplicas
from kdump.questions.restart_plan.replicas.replicas_report import (
    MAX_PARTITIONS,
    order_lines,
    own_text,
    partition_lines,
    replicas_verdict,
)
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import write_answers
from kdump.render.stdout import Output
from kdump.state.other_replicas import who_has_it
from kdump.text import host_word

NAMED = 20
"""Maximum number of missing partitions that are shown; --full and JSON show all."""
MAX_SHOWN = 5
"""Maximum number of items of one kind that are shown of a partition; --full and JSON show all."""
MAX_STEPS = 20
"""Maximum number of steps that are shown of all partitions together; --full and JSON show all."""
STYLE = {CLEAN: "name", RECOVERY: "name", DEGRADED: "torn", STOPPED: "bad", UNKNOWN: "torn"}
GOES = {TRUNCATED: "truncated", DELETED: "deleted", HIDDEN: "left in the file after the log end"}


PlanAnswer = (
    PartitionPlan | DirectoryPlan | StartupEvent | RecoveryTime | RestartPlan | PartitionReplicas | ClusterSummary
)


class RestartReport(Sink[PlanAnswer]):
    """Writes the plans of all brokers at the end; of several, first what their replicas lose. `of_topics`: whether
    --topic excludes other partitions."""

    shows_unread = True

    def __init__(
        self, output: Output, *, full: bool = False, everything: bool = False, of_topics: bool = False
    ) -> None:
        self.output, self.full, self.everything, self.of_topics = output, full, everything, of_topics
        self.plans: list[tuple[RestartPlan, RecoveryTime | None]] = []
        self.recovery: RecoveryTime | None = None
        """That of the next plan."""
        self.replicas: list[PartitionReplicas] = []
        self.summary: ClusterSummary | None = None

    def add(self, answer: PlanAnswer) -> None:
        if isinstance(answer, RecoveryTime):
            self.recovery = answer
        elif isinstance(answer, RestartPlan):
            self.plans.append((answer, self.recovery))
            self.recovery = None
        elif isinstance(answer, PartitionReplicas):
            self.replicas.append(answer)
        elif isinstance(answer, ClusterSummary):
            self.summary = answer

    def end(self) -> None:
        if self.summary is not None:
            self._joined(self.summary)
        for number, (plan, recovery) in enumerate(self.plans):
            if number or self.summary is not None:
                self.output.line("")
            self.write(plan, recovery)

    def _joined(self, summary: ClusterSummary) -> None:
        """Write what the replicas of several brokers lose, the worst first."""
        head, details = replicas_verdict(summary)
        names = ", ".join(map(str, summary.nodes))
        style = "bad" if summary.loses else "torn" if summary.metadataOffset is None else "name"
        details += own_text(plan for plan, _ in self.plans)
        self.output.text(f"nodes {names} together: {head}{details}", head, style)
        self._texts(order_lines(summary, everything=self.full), "  ")
        ordered = sorted(self.replicas, key=lambda lost: lost.worst.cost if lost.worst else (0, 0, 0), reverse=True)
        shown = ordered if self.full else ordered[:MAX_PARTITIONS]
        for differing in shown:
            self.output.line("")
            self._texts(partition_lines(differing))
        if len(shown) < len(ordered):
            self.output.text(
                f"… and {count_text(len(ordered) - len(shown), 'more partition')} whose replicas differ (--full)"
            )
        self.output.title("assumed of the cluster")
        self._texts(summary.assumptions, "  ")

    def _texts(self, texts: Iterable[str], indent: str = "") -> None:
        for text in texts:
            self.output.text(f"{indent}{text}")

    def write(self, plan: RestartPlan, recovery: RecoveryTime | None = None) -> None:
        names = ", ".join(directory.path for directory in plan.directories)
        head, details = verdict(plan)
        copies = ((copy, directory.path) for directory in plan.directories for copy in directory.copies)
        details += "".join(f"; {copy} is a copy of {path} and was not examined" for copy, path in copies)
        if self.of_topics:
            details += "; other topics were not examined"
        style = "bad" if plan.loses or plan.course.losses else "torn" if plan.withoutMetadata else STYLE[plan.verdict]
        self.output.text(f"{names}: {head}{details}", head, style)
        self._texts(release_texts(plan))
        self._texts(quorum_lines(plan))
        of = f" (Kafka {plan.release.version})" if plan.release is not None and plan.verdict == UNKNOWN else ""
        for stop in plan.allStops:
            self._stop(stop, of)
        for warning in plan.warnings:
            self.output.text(f"warning: {warning}", "warning", "torn")
        if plan.verdictOfRules == STOPPED:
            self.output.line("")
            self.output.text("The rest of this plan applies after the problem above is fixed.")
        self._losses(plan)
        self._course(plan)
        self._table(plan)
        self._steps(plan)
        if recovery is not None and recovery.segments:
            self.output.title("how long it takes")
            self.output.text(f"  {short_line(recovery)}")
        for problem in plan.unread:
            self.output.text(f"not read: {problem}", "not read", "bad")
        self.output.title("assumed")
        self._texts(plan.assumptions, "  ")

    # --- parts ---

    def _stop(self, stop: StartupFailure, of: str) -> None:
        effect = ("the broker exits" if stop.kind == "exit" else "the log directory goes offline") + of
        self.output.line("")
        self.output.text(f"{effect}: {stop.message}", effect, "bad")
        where = stop.file if stop.position is None else f"{stop.file}, byte {stop.position}"
        self.output.text(f"  where: {where}" + (f", offset {stop.offset}" if stop.offset is not None else ""))
        self.output.text(f"  its log will show: {stop.exception}")
        self._texts(stop.actions, "  action: ")

    def _losses(self, plan: RestartPlan) -> None:
        if plan.missing:
            self.output.title("missing partitions", "bad")
        self._texts(missing(plan.missing, everything=self.full))
        losing = [log for log in plan.partitions if (log.loses or log.stray) and not log.missing]
        if losing:
            self.output.title("losses" if any(log.loses for log in losing) else "stray partitions", "bad")
        self._texts(strays([log for log in losing if log.stray], everything=self.full))
        for log in losing:
            self._texts(losses(log))
            self._texts([] if log.stray else cut_lines(log.cuts, apart=self.full), "    ")
        if plan.copyFirst:
            self.output.title("copy elsewhere first")
        for path in plan.copyFirst:
            # Not wrapped, so that it can be copied.
            self.output.line(printable(f"  cp -a --sparse=always {host_word(path)} /path/with/room/"))
        saved = [log for log in plan.partitions if log.salvage]
        if saved:
            self.output.title("save what the startup removes")
        for log in saved:
            self.output.line(printable(f"  {path_text(log.salvage)}"))
            self.output.text(f"    saves {saved_text(log)}")

    def _course(self, plan: RestartPlan) -> None:
        """Write what follows in the hour after the logs are loaded, what to do about each kind, and what is unknown."""
        events = [event for event in plan.course.in_order if event.phase in (FIRST_MINUTES, FIRST_CHECKS)]
        events = [event for event in events if event.code != "startup-missing"]
        unanswered = [step for step in plan.course.unanswered if step.step != "loading"]
        if events:
            self.output.title("the hour after it", "bad" if any(event.loss for event in events) else "")
        shown = events if self.full else events[:MAX_STEPS]
        for (_, actions), group in groupby(shown, key=lambda event: (event.code, event.problem.actions)):
            for event in group:
                when = f"{time_text(event.dueMs)}: " if event.dueMs is not None else ""
                where = "" if event.partition is None else f"{event.topic}-{event.partition}: "
                self.output.text(f"  {when}{where}{event.message}")
            self._texts(actions, "    ")
        if len(shown) < len(events):
            self.output.text(f"  … and {count_text(len(events) - len(shown), 'more event')} (--full)")
        if unanswered and (events or len(unanswered) > 1):
            self.output.title("not predicted")
            self._texts((step.reason for step in unanswered), "  ")

    def _table(self, plan: RestartPlan) -> None:
        """Write the partitions about which there is something to report, and the few that take longest to recover."""
        shown = plan.partitions
        if not self.everything:
            plain = [log for log in plan.logs if log.is_plain and log.recovered]
            longest = {id(log) for log in sorted(plain, key=lambda log: -log.bytesRead)[:MAX_SHOWN]}
            shown = [log for log in shown if not log.is_plain or id(log) in longest]
        if shown:
            self.output.line("")
            style = lambda log: "bad" if log.loses or log.stops else ""  # noqa: E731
            write_answers(self.output, shown, full=self.full, style=style)
        listed = {id(log) for log in shown}
        left = [log for log in plan.partitions if id(log) not in listed]
        others = [log for log in left if log.topic != METADATA_TOPIC]
        recovered = sum(1 for log in others if log.recovered)
        parts = [count_text(len(others), "more partition" if shown else "partition")] if others else []
        parts[0:] = [f"{parts[0]} ({recovered:,} recovered)"] if parts and recovered else parts
        if len(others) < len(left):
            parts.append("the metadata log")
        if parts:
            self.output.text(f"{' and '.join(parts)}: no losses (--all)")
        new = sum(directory.newPartitions for directory in plan.directories)
        if new:
            what = "that the metadata assigns to the broker, with no directory here, nor any record by its checkpoints"
            self.output.text(f"{count_text(new, 'partition')} {what}: created with empty logs")

    def _steps(self, plan: RestartPlan) -> None:
        listed = [step for directory in plan.directories for step in directory.steps if step.kind != "delete"]
        lines = [step_text(step) for step in listed]
        for partition in plan.partitions:
            steps = [
                step for step in partition.steps if not partition.missing and (self.full or is_notable(step, partition))
            ]
            shown = steps if self.full else steps[:MAX_SHOWN]
            lines += [step_text(step) for step in shown]
            if len(shown) < len(steps):
                lines.append(f"… and {count_text(len(steps) - len(shown), 'more step')} of {partition.name} (--full)")
            lines += [f"{partition.name}: {note}" for note in partition.notes]
        if lines:
            self.output.title("other steps")
        limit = len(lines) if self.full else MAX_STEPS
        for line in lines[:limit]:
            self.output.text(f"  {line}")
        if limit < len(lines):
            self.output.text(f"  … and {len(lines) - limit:,} more (--full)")


STATES = {
    "leader": "it is the only voter, and leads at once",
    "resigned": "it led in epoch {0.epoch}, and waits for an election",
    "candidate": "it asks for votes in epoch {0.epoch}",
    "follower": "it follows {0.leaderId} in epoch {0.epoch}",
    "unattached": "it does not know a leader",
}


def quorum_lines(plan: RestartPlan) -> Iterator[str]:
    """Yield a line on the controller quorum, if the node is a voter of several, or of a dynamic quorum."""
    quorum = plan.quorum
    if quorum is None or not quorum.isVoter or (len(quorum.voters) == 1 and not quorum.kraftVersion):
        return
    voters = ", ".join(str(voter.voterId) for voter in quorum.voters)
    several = f"voters {voters}, {quorum.majority} of which elect a leader" if len(quorum.voters) > 1 else "one voter"
    yield f"quorum: kraft.version {quorum.kraftVersion}, {several}; {STATES[quorum.state].format(quorum)}"


def verdict(plan: RestartPlan) -> tuple[str, str]:
    """Return the verdict, and the rest of its sentence."""
    if plan.verdict == UNKNOWN:
        return UNKNOWN_START, f": {unknown_text(plan)}"
    numbers = totals(plan.logs)
    read = size_text(numbers.bytesRead)
    work = f"recovers {count_text(numbers.recoveredPartitions, 'log')}, reading {read}"
    if plan.verdict == STOPPED:
        stops = [stop for stop in plan.allStops if stop.kind == "exit"] or list(plan.allStops)
        more = f"; {len(stops) - 1} more" if len(stops) > 1 else ""
        why = f": {stops[0].message}{more}" if stops else ""
        return "DOES NOT START", f"{why}{once_text(plan)}"
    parts = [*loss_texts(plan), *filter(None, [metadata_text(plan)])]
    tail = f"; {', '.join(parts)}" if parts else f"; {no_loss_text(plan)}; {unchecked(plan)}"
    if plan.unread:
        tail += ", as far as the files could be read; unreadable files may change this"
    if plan.verdict == DEGRADED:
        return "STARTS WITHOUT A LOG DIRECTORY", f": {', '.join(plan.offline)} goes offline{tail if parts else ''}"
    if plan.verdict == CLEAN:
        if numbers.recoveredPartitions:
            return "STARTS", f"{after_shutdown(plan)}; it still {work}{tail}"
        is_normal = not parts and not plan.warnings
        return "STARTS", f"{' normally' if is_normal else ''}{after_shutdown(plan)}{tail}"
    return "STARTS", f" after an unclean shutdown; it {work}{tail}"


def unchecked(plan: RestartPlan) -> str:
    """Return what a startup that loses nothing does not read: a broker reads no records and, after a clean shutdown, no
    batches either, so the prediction does not cover damage there."""
    left = sum(each.segments - each.recovered - len(created_segments(each)) for each in plan.partitions)
    subject = f"{count_text(left, 'segment is', 'segments are')} not re-read" if left > 0 else "records are not read"
    return f"{subject}, so damage there stays; run kdump verify"


def is_notable(step: Step, log: PartitionPlan) -> bool:
    """Return True if a step is not part of every startup, and not reported elsewhere."""
    if step.kind in USUAL or step.kind == "truncate":
        # Every startup writes the epochs up to the log end; only other changes are worth a line.
        epochs = step.kind == "write" and os.path.basename(step.file) == "leader-epoch-checkpoint"
        return epochs and not log.state and epochs_change(log)
    return not (step.kind == "delete" and step.file.endswith(".log") and log.cuts)


def epochs_change(log: PartitionPlan) -> bool:
    """Return True if epochs change below the log end. An epoch that began without a record is always removed."""
    before, after, end = log.epochsBefore or (), log.epochsAfter or (), log.logEndOffset or 0
    return [entry for entry in before if entry.startOffset < end] != list(after) or bool(log.cuts)


def strays(plans: list[PartitionPlan], *, everything: bool) -> Iterator[str]:
    """Yield lines on stray directories: one entry for all partitions with the same reason."""
    for (stray, actions), group in groupby(plans, key=lambda plan: (plan.stray, plan.actions)):
        names = [log.name for log in group]
        shown = names if everything else names[:MAX_SHOWN]
        listed = ", ".join(shown) + (
            f" and {len(names) - len(shown):,} more (--full)" if len(shown) < len(names) else ""
        )
        subject = "its directory is" if len(names) == 1 else "their directories are"
        is_deleted = any(plan.strayDeleted for plan in plans)
        effect = "deleted, a minute after startup" if is_deleted else "renamed to -stray and no longer served"
        yield f"  {listed}: {subject} {effect}: {stray}"
        yield from (f"    {action}" for action in actions)


def missing(plans: list[PartitionPlan], *, everything: bool) -> Iterator[str]:
    """Yield lines on partitions without a directory, and what to do."""
    for log in plans if everything else plans[:NAMED]:
        effect = f"the broker creates {log.steps[0].reason}" if log.steps else "the broker does not create it"
        if log.acknowledged:
            offsets = f"the offsets below the high watermark {log.highWatermark}"
            effect += f"; {offsets} are no longer on this disk: consumers may have read them"
        yield f"  {log.name}: its directory is missing; {effect}"
    if len(plans) > NAMED and not everything:
        yield f"  … and {len(plans) - NAMED:,} more (--full)"
    for action in dict.fromkeys(action for plan in plans for action in plan.actions):
        yield f"    {action}"


def losses(log: PartitionPlan) -> Iterator[str]:
    """Yield lines on what is lost, and how much of it is valid."""
    if log.stray:
        return
    checked = [cut for cut in log.cuts if cut.kind != DELETED]
    unchecked = [cut for cut in log.cuts if cut.kind == DELETED and cut.batches]
    valid = sum(cut.batches for cut in checked)
    damaged = sum(cut.damagedBatches for cut in log.cuts)
    first = min((cut.offset for cut in log.cuts if cut.offset is not None), default=None)
    last = max((cut.lastOffset for cut in log.cuts if cut.lastOffset is not None), default=None)
    end = first if log.logEndOffset is None else log.logEndOffset
    covered, lost = log.coveredTo, f"  {log.name}: {size_text(log.bytesCut)}; the log"
    if first is None or last is None:
        yield f"{lost} ends at offset {end}"
    elif covered is None:
        yield f"{lost} ends at offset {end} and loses offsets {first}..{last}"
    else:
        yield f"{lost} is emptied and starts at offset {covered}"
        if first < covered:
            yield f"    offsets {first}..{min(last, covered - 1)} are covered by the metadata snapshot up to {covered}"
        if last >= covered:
            yield f"    offsets {max(first, covered)}..{last} are lost on this node; the controllers may have them"
    if valid:
        batches = f"{count_text(valid, 'VALID batch', 'VALID batches')} ({_records(checked)})"
        verb, them = ("are", "them") if valid > 1 else ("is", "it")
        yield f"    {batches} {verb} lost because of the damage before {them}; save {them} first"
    if unchecked:
        unreachable = sum(cut.batches for cut in unchecked)
        batches = f"{count_text(unreachable, 'batch', 'batches')} ({_records(unchecked)}, from headers alone)"
        verb, them = ("are", "them") if unreachable > 1 else ("is", "it")
        yield f"    {batches} {verb} lost with deleted segments; save {them} first"
    if damaged:
        yield f"    {count_text(damaged, 'damaged batch', 'damaged batches')}"
    if any(cut.kind == HIDDEN for cut in log.cuts):
        yield "    new records are appended after these bytes, where no consumer can read them"
        if log.logEndIfRecovered is not None:
            instead = f"ends at offset {log.logEndIfRecovered}, with nothing after it"
            yield f"    without .kafka_cleanshutdown, the broker recovers its logs, and this one then {instead}"
    if log.acknowledged:
        offsets = count_text(log.acknowledged, "of these offsets is", "of these offsets are")
        below = f"{offsets} below the high watermark {log.highWatermark}"

        yield f"    {below}: consumers may have read them; {who_has_it(log.replicas)}"


def _records(cuts: list[RemovedBytes]) -> str:
    counts = [cut.records for cut in cuts]
    count = sum(count for count in counts if count is not None)
    return f"{count_text(count, 'record')}{' and more' if None in counts else ''}"


def cut_lines(cuts: list[RemovedBytes], *, apart: bool) -> Iterator[str]:
    """Yield a line for each byte range if `apart`; otherwise one for consecutive ones with the same reason."""
    for (kind, reason), group in groupby(cuts, key=lambda cut: (cut.kind, cut.reason)):
        alike = list(group)
        for some in [[cut] for cut in alike] if apart else [alike]:
            first, last = (os.path.basename(cut.file) for cut in (some[0], some[-1]))
            size = size_text(sum(cut.size for cut in some))
            where = (
                f"{plain_count(len(some), 'file')}, {first} to {last}"
                if len(some) > 1
                else f"{first} at byte {some[0].position}"
            )

            yield f"{GOES[kind]}: {size}, {where}: {reason}"


def step_text(step: Step) -> str:
    where = "/".join(step.file.rstrip("/").split("/")[-2:])
    position = f" at byte {step.position}" if step.position is not None else ""
    return f"{step.kind} {where}{position}" + (f": {step.reason}" if step.reason else "")
