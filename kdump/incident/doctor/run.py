"""`kdump doctor`: examines disks, question by question, and says at any time what it knows."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timezone, tzinfo
from typing import Any, NamedTuple

from kdump.check.options import Options
from kdump.cluster.broker_configuration import configure
from kdump.cluster.schema_registries import registries_in
from kdump.format.kafka_release import KafkaRelease
from kdump.incident.doctor.answer import (
    ACT,
    CONNECT,
    DAMAGE,
    DIVERGENCE,
    GROUPS,
    LOG,
    LOSES,
    NOTHING,
    QUESTIONS,
    REPLICAS,
    SCHEMAS,
    SPACE,
    STARTUP,
    STOPS,
    TRANSACTIONS,
    UNKNOWN,
    AffectedRange,
    ExaminedDisk,
    Item,
    LargestTopic,
    Page,
    Priority,
    Question,
    page_order,
)
from kdump.incident.doctor.causes import Causes, place_of
from kdump.incident.doctor.connectors import ConnectExamination, has_connect
from kdump.incident.doctor.damage import DamageExamination
from kdump.incident.doctor.disk_space import SpaceExamination
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.divergence import examine_divergence
from kdump.incident.doctor.examination import Examination, TimeLimit
from kdump.incident.doctor.group_offsets import examine_groups
from kdump.incident.doctor.log_messages import LogMessages
from kdump.incident.doctor.read_committed_stops import TransactionsExamination
from kdump.incident.doctor.replicas import examine_replicas
from kdump.incident.doctor.schema_ids import SchemasExamination
from kdump.incident.doctor.startup import StartupExamination
from kdump.io.errors import ReadingStopped, SourceError, is_gone
from kdump.io.run import PLAIN_RUN, Run, ignore
from kdump.query import OLD_TRANSACTION, OptionsQuery, many, now_option, offered, option, release_option, timeout_option
from kdump.questions.restart_plan import first_checks
from kdump.questions.restart_plan.course import MAY, NO

__all__ = ["DoctorResult", "doctor"]


@dataclass(frozen=True)
class DoctorQuery(OptionsQuery):
    """What to examine. `zone`: time zone of a log whose times have none."""

    paths_option = {"nargs": -1, "metavar": "[LOGDIR…]"}
    options: Run | None = None
    _: KW_ONLY
    budget: float = option(
        "--budget",
        type="seconds",
        default=60.0,
        metavar="TIME",
        help="Spend at most this long on each question; what was not examined is listed.  [60s]",
    )
    logs: Iterable[str | os.PathLike[str]] = many(
        "--log",
        metavar="FILE",
        help="Also explain this log of the broker (server.log, also compressed, or - for standard input), next to what "
        "is on the disks; repeatable. Times without a zone are in that of --tz.",
    )
    now: int | None = now_option()
    timeout: int = timeout_option(OLD_TRANSACTION)
    kafka_version: KafkaRelease | str | None = release_option("Predict the startup")
    zone: tzinfo = timezone.utc


class Doctor:
    """One examination. `emit` is called with each answer as soon as it is known; `run.begin` with the name of a
    question. Raises SourceError if there is nothing of Kafka's."""

    def __init__(self, query: DoctorQuery, emit: Callable[[Any], None], run: Run = PLAIN_RUN) -> None:
        self.query = query
        self.now = first_checks.current_time() if query.now is None else query.now
        options = replace(Options.given(query.run), now=self.now, transaction_timeout=query.timeout)
        self.disks = Disks(query.paths, replace(options, found=ignore))  # what its parts find is not its answer
        self.configurations, self.unused = configure(self.disks, self.disks.paths, options.server)
        """What is known of each node's server.properties, and why files are not used that may be one."""
        self._emit, self._run = emit, run
        self._began = time.monotonic()
        self.questions = [Question(name) for name in QUESTIONS if name != LOG or query.logs]
        self._loses = False
        """Whether an item is about what is lost at the next startup, or within an hour of it."""
        self.found: Counter[str] = Counter()
        """Number of items by severity."""
        self._startup: StartupExamination | None = None
        self._pending: list[Question] = list(self.questions)
        self._unread: list[str] = []
        self._causes = Causes()
        self._log = LogMessages([os.fspath(each) for each in query.logs], query.zone)
        self._reading = 0.0
        """Seconds that were spent on reading the logs."""

    def run(self) -> None:
        """Examine everything. A signal may end it at any time, and `page` then returns what is known."""
        disks = self.disks
        self._unread = disks.unread
        for disk in disks.disks():
            self._emit(disk)
        if len(disks.brokers) <= len(disks.clusters):  # no cluster has two brokers here
            self.questions = [each for each in self.questions if each.question != DIVERGENCE]
        if not registries_in(disks):
            self.questions = [each for each in self.questions if each.question != SCHEMAS]
        if not has_connect(disks):
            self.questions = [each for each in self.questions if each.question != CONNECT]
        self._pending = list(self.questions)
        if self.query.logs:
            self._read_logs(disks, self.questions[-1])
        parts: dict[str, Callable[[Disks, Examination], None]] = {
            STARTUP: self._examine_startup,
            REPLICAS: examine_replicas,
            TRANSACTIONS: lambda disks, on: TransactionsExamination(disks, on).run(),
            GROUPS: examine_groups,
            SCHEMAS: lambda disks, on: SchemasExamination(disks, on).run(),
            CONNECT: lambda disks, on: ConnectExamination(disks, on).run(),
            SPACE: lambda disks, on: SpaceExamination(disks, on).run(),
            DAMAGE: lambda disks, on: DamageExamination(disks, on).run(),
            DIVERGENCE: lambda disks, on: examine_divergence(disks, on, self._startup.ordered if self._startup else ()),
            LOG: lambda disks, on: self._log.report(disks, on),
        }
        for question in self.questions:
            self._run.begin(question.question)
            if question.question == REPLICAS:
                _ = disks.units, disks.places  # before its time begins: the following questions need them, too
            self._examine(question, parts[question.question])

    def _read_logs(self, disks: Disks, question: Question) -> None:
        """Read the logs first: what the other questions find may be what a message is about."""
        self._run.begin(LOG)
        began = time.monotonic()
        try:
            self._log.read(question, TimeLimit(self.query.budget), self._run)
        finally:
            self._reading = time.monotonic() - began
        self._log.several_brokers = len(disks.brokers) > 1

    def page(self, *, interrupted: bool = False) -> Page:
        """Return the end of the page. The questions that were not examined, or not to their end, come first."""
        for question in list(self._pending):
            if question.question == LOG and self._log.logs:  # what it says is known without the disks, too
                self._log.report(self.disks, self._on(question), looks=False)
                question.notExamined.append("not looked up on the disks: the run was ended")
            if not question.notExamined:
                was = "not examined to the end" if question.answer or question.items else "not examined"
                question.notExamined.append(f"{was}: the run was ended")
            question.isComplete = False
            self._end(question)
        unread = [*self._unread, *(text for each in self.questions for text in each.unread)]
        unread = list(dict.fromkeys(unread))
        certainty = self._startup.certainty if self._startup is not None else NO
        verdict = LOSES if self._loses else ACT if self.found else NOTHING
        if self._startup is not None:
            verdict = UNKNOWN if self._startup.is_unknown else verdict
            verdict = STOPS if self._startup.does_not_start else LOSES if certainty != NO else verdict
        is_unknown = bool(unread) or (self._startup is not None and self._startup.is_unknown)
        status = 3 if verdict == STOPS else 2 if is_unknown else int(bool(self.found))
        is_complete = all(each.isComplete for each in self.questions) and not unread
        seconds = round(time.monotonic() - self._began, 3)
        return Page(
            verdict,
            MAY if certainty == NO and self._loses else certainty,
            is_complete,
            interrupted,
            status,
            self.found["error"],
            self.found["warning"],
            unread,
            seconds,
        )

    def _examine(self, question: Question, part: Callable[[Disks, Examination], None]) -> None:
        began = time.monotonic() - (self._reading if question.question == LOG else 0.0)
        try:
            part(self.disks, self._on(question))
        except ReadingStopped:
            question.notExamined.append("the time was over")
        except SourceError as error:
            (question.notExamined if is_gone(error) else question.unread).append(str(error))
        finally:
            question.seconds = round(time.monotonic() - began, 3)
        self._end(question)

    def _on(self, question: Question) -> Examination:
        budget = self.query.budget - (self._reading if question.question == LOG else 0.0)
        limit = TimeLimit(max(0.0, budget))
        disks, timeout = self.disks, self.query.timeout
        return Examination(
            question,
            self._take,
            self._run,
            limit,
            self.now,
            timeout,
            disks.unread,
            disks.is_running,
            has_cause=self._has_cause,
        )

    def _end(self, question: Question) -> None:
        self._pending.remove(question)
        self._emit(question)

    def _take(self, answer: Any) -> None:
        if isinstance(answer, Item):
            has_cause = self._has_cause(answer.code, answer.question, *(answer.places or (place_of(answer),)))
            self._causes.add(answer, is_reported=not has_cause)
            if has_cause:
                return
            if answer.question != LOG:
                answer = self._log.joined(answer)
            self.found[answer.severity] += 1
            self._loses = self._loses or answer.priority == Priority.LOSES
        self._emit(answer)

    def _has_cause(self, code: str, question: str, *places: AffectedRange) -> bool:
        """Return True if an item that was reported explains a problem at all of its places."""
        if code == "disk-full" and self._startup is not None and self._startup.is_full(places[0].source):
            return True
        return self._causes.has(code, question, *places)

    def _examine_startup(self, disks: Disks, on: Examination) -> None:
        self._startup = StartupExamination(disks, on, self.query.release)
        self._startup.run()


class DoctorResult(NamedTuple):
    """What an examination found: the log directories, what to do in the order of the page, the questions with what was
    not examined, the largest topics, and the end of the page."""

    disks: list[ExaminedDisk]
    items: list[Item]
    questions: list[Question]
    largest: list[LargestTopic]
    page: Page


def answers(query: DoctorQuery) -> DoctorResult:
    """Examine log directories, of one broker or of several: what `kdump doctor` says.

    `budget`: seconds for each question; `timeout`: ms after which an open transaction is old; `logs`: files that the
    broker logged to, also compressed. `run.found` is called with each answer as soon as it is known. Raises SourceError
    if there is nothing of Kafka's, and ValueError for a release that is not known; what cannot be read is in the page's
    `unread`."""
    answers: dict[type, list[Any]] = {ExaminedDisk: [], Item: [], Question: [], LargestTopic: []}

    def take(answer: Any) -> None:
        answers[type(answer)].append(answer)
        query.run.found(answer)

    examination = Doctor(query, take)
    examination.run()
    page = examination.page()
    items = sorted(answers[Item], key=lambda each: page_order(each.priority, each.severity))
    return DoctorResult(answers[ExaminedDisk], items, answers[Question], answers[LargestTopic], page)


doctor = offered("doctor", DoctorQuery, answers)
