"""What a start does with records of the metadata log that it cannot apply: a node with the controller role halts; a
broker alone logs a fault, leaves the record out, and takes no more metadata snapshots. No node starts with a log that
it cannot read.

Source: SharedServer.metadataLoaderFaultHandler and fatalQuorumControllerFaultHandler, KafkaRaftClient.initialize."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdump.cluster.metadata_refusals import activation_refusal, refusals, refused_text
from kdump.format.count_text import count_text
from kdump.format.kafka_release import KRAFT, KafkaRelease
from kdump.kafka.config_def import config_exception
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import EXIT, Quorum, StartupFailure, failure
from kdump.state.metadata_image import MetadataImage, QuorumImage

UNCOMMITTED = "; unless it was never committed, so that another voter takes it back"


@dataclass
class RefusedMetadata:
    """What a node does with what it cannot apply of its metadata log, in the directory `folder`. `quorum`: None if it
    is unknown; `refusedAt` and `doubts` are those of the plan."""

    folder: str
    quorum: Quorum | None
    stops: list[StartupFailure] = field(default_factory=list)
    refusedAt: list[int | None] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_one_of_several(self) -> bool:
        return self.quorum is not None and len(self.quorum.voters) > 1

    def uncommitted(self, metadata: QuorumImage, offset: int | None) -> str:
        """Return under which condition a node does not apply a record of its log: one voter of several commits nothing.
        A snapshot, without an `offset`, is committed."""
        may = offset is not None and offset >= metadata.committed and self.is_one_of_several
        return UNCOMMITTED if may else ""

    def add_records(
        self, metadata: QuorumImage, release: KafkaRelease, *, is_controller: bool | None, with_levels: bool
    ) -> None:
        """Add what happens at the first record that a node of this release cannot apply. `is_controller`: whether it
        has the controller role, None if unknown; `with_levels`: whether levels, types and versions that the release
        does not know count."""
        refused = refusals(metadata, release)
        if not with_levels:
            refused = [refusal for refusal in refused if refusal in metadata.refusals]
        activation = activation_refusal(metadata, release) if is_controller else None
        if activation is not None:
            refused.append(activation)
        first = next((refusal for refusal in refused if refusal.exception), None)
        if first is None and metadata.is_too_large:
            self.doubts.append("the metadata is too large for kdump: whether the node can apply each record is unknown")
        if first is None:
            return
        what = refused_text(first, metadata)
        if first.stops_broker(release.line) or is_controller:
            why = ""
            if not first.stops_broker(release.line):
                why = self.uncommitted(metadata, first.offset)
                self.refusedAt.append(first.offset)
            more = f", nor {count_text(len(refused) - 1, 'later record')}" if len(refused) > 1 else ""
            verb = "read" if first.reader else "abort" if first is activation else "apply"
            values = {"record": what, "verb": verb, "more": more, "uncommitted": why, "folder": self.folder}
            facts = {} if self.quorum is None else self.quorum.facts
            self.stops.append(
                failure(
                    EXIT,
                    "startup-record-refused",
                    first.file or self.folder,
                    first.exception,
                    first.position if first.file else None,
                    first.offset,
                    facts=facts | {"everyRelease": first.by_every_release},
                    values=values,
                )._replace(either=first.exceptions)
            )
            return
        case = "" if any(refusal.loader for refusal in refused) else "applied"
        values = {"record": what, "exception": first.exception, "file": first.file or self.folder}
        problem = Problem("startup-record-left-out", values, {"everyRelease": first.by_every_release}, case)
        if is_controller is None:
            self.doubts.append(f"{problem.title} (--properties FILE states the roles)")
        else:
            self.problems.append(problem)


def invalid_config(metadata: MetadataImage, release: KafkaRelease, folder: str) -> StartupFailure | None:
    """Return the stop for the first topic config that LogManager refuses when it starts: one of any topic, whether or
    not the broker has a replica (LogConfig.fromProps). Limits that depend on another config (local.retention.bytes and
    local.retention.ms up to 3.5) are not checked. `folder`: that of the metadata log."""
    for topic in metadata.topics.values() if release.mode == KRAFT else ():
        for name, value in topic.configs.items():
            exception = config_exception(name, value, release)
            if exception:
                values = {"config": name, "value": value, "topic": topic.name}
                return failure(EXIT, "startup-config-invalid", folder, exception, values=values)
    return None
