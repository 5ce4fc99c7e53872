"""Clusters as the copies of their metadata on disks have them: the answers of `kdump cluster` and
`kdump.cluster_metadata`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kdump.answer import Note, row_style
from kdump.cluster.find_state_logs import metadata_in
from kdump.cluster.metadata_files import MetadataFiles
from kdump.cluster.metadata_log import replay_metadata
from kdump.cluster.metadata_refusals import problem_texts
from kdump.cluster.node_ids import node_ids
from kdump.format.kafka_release import NEWEST
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.kafka.quorum_state import complete_quorum
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.query import Names, Query, as_of_option, flag, history_option, offered, option, topic_option
from kdump.questions.cluster.answer import (
    PARTS,
    Cluster,
    ClusterBroker,
    ClusterConfig,
    ClusterFeature,
    ClusterPartition,
    ClusterQuota,
    ClusterTopic,
    ClusterVoter,
    configs,
    summary_of,
)
from kdump.state.as_of import AskedAsOf, AsOf, Change
from kdump.state.internal_records import ROOM_ALONE
from kdump.state.metadata_image import (
    ControllerRegistration,
    DelegationToken,
    MetadataImage,
    ScramCredential,
    StandardAcl,
)
from kdump.state.recorded_change import RecordedChange, change_answer
from kdump.text import path_text

__all__ = ["cluster_metadata"]

ALL, SUMMARY = "all", "summary"
FOR_PROBLEMS = ("partitions",)
FOR_TOPIC = ("topics", "partitions", "configs")
ClusterRow = (
    Cluster
    | ClusterVoter
    | ControllerRegistration
    | ClusterBroker
    | ClusterFeature
    | ClusterTopic
    | ClusterPartition
    | ClusterConfig
    | ClusterQuota
    | StandardAcl
    | ScramCredential
    | DelegationToken
)
ClusterAnswer = ClusterRow | RecordedChange | Note


def _parts() -> Iterator[tuple[str, str]]:
    return ((name, "") for name in (ALL, SUMMARY, *PARTS))


@dataclass(frozen=True, kw_only=True)
class ClusterQuery(Query, AskedAsOf):
    """What to yield of a cluster, and as of when."""

    show: Iterable[str] = option(
        "--show",
        metavar="PART,…",
        type=Names(_parts, "part"),
        otherwise=(),
        help=f"Show these parts: all, {SUMMARY}, {', '.join(PARTS)}.",
    )
    topics: Iterable[str] = topic_option("Show only these topics, in detail")
    problems: bool = flag("--problems", help="Show only topics and partitions with a problem.")
    show_secrets: bool = flag("--show-secrets", help="Also show the values of configs that contain passwords.")
    as_of: int | AsOf | None = as_of_option()
    history: bool = history_option()

    @property
    def asked(self) -> tuple[str, ...]:
        """The parts that are asked for by name."""
        return (SUMMARY, *PARTS) if ALL in self.show else tuple(self.show)

    @property
    def parts(self) -> tuple[str, ...]:
        usual = FOR_PROBLEMS if self.problems else FOR_TOPIC if self.topics else (SUMMARY, *PARTS)
        return self.asked or usual

    def wants(self, change: Change) -> bool:
        if not self.topics or change.entity == "topic":
            return self.of_topic(change.name)
        if change.entity == "partition":
            return self.of_topic(change.name.rpartition("-")[0])
        return change.entity == "config" and change.name.startswith("TOPIC ") and self.of_topic(change.name[6:])


class ReadCopy(NamedTuple):
    """A copy of the metadata that was read; `changes`: how many its log has."""

    metadata: MetadataImage
    changes: int


def answers(
    query: ClusterQuery, *, changed: Callable[[RecordedChange], object] | None = None
) -> Iterator[ClusterAnswer]:
    """Yield what each copy of the metadata has: the parts to `show`, by default those of kdump cluster --json, and a
    Note for what could not be read; with `history`, a RecordedChange for each change, all of a copy at once. Raises
    SourceError for a path without metadata, and if it does not reach back to `as_of`."""
    # `changed` is called with each change as soon as it is read, in place of yielding it.
    copies: list[tuple[MetadataFiles, LogDirectory | None]] = []
    for path in query.paths:
        errors: list[SourceError] = []
        try:
            copies.extend(metadata_in(path, Run(unreadable=errors.append)))
        except SourceError as error:
            errors = errors or [error]  # the first gives the reason
        for each in errors:
            query.run.unreadable(each)
    for files, log_directory in copies:
        if len(copies) > 1:
            query.run.begin(files.path)
        try:
            yield from _copy(query, files, log_directory, changed)
        except SourceError as error:
            query.run.unreadable(error)


cluster_metadata = offered("cluster_metadata", ClusterQuery, answers)  # kdump.cluster is a package


def _copy(
    query: ClusterQuery,
    files: MetadataFiles,
    log_directory: LogDirectory | None,
    changed: Callable[[RecordedChange], object] | None,
) -> Iterator[Any]:
    source = path_text(files.path)
    changes: list[RecordedChange] = []
    tell, count = changed or changes.append, 0

    def on_change(change: Change) -> None:
        nonlocal count
        count += 1
        if query.wants(change):
            tell(change_answer(source, change, show_secrets=query.show_secrets))

    run = Run(query.run.limits, at=query.run.at)
    listener = on_change if query.history else None
    metadata = replay_metadata(files, query.moment, on_change=listener, room=ROOM_ALONE, run=run)
    if metadata.problems and metadata.is_empty and METADATA_TOPIC not in files.path:
        raise SourceError.at(files.path, f"no cluster metadata could be read: {metadata.problems[0].text}")
    if query.moment == AsOf():
        complete_quorum(metadata, files.path)
    for topic in metadata.topics.values():
        query.of_topic(topic.name)
    query.run.found(ReadCopy(metadata, count))
    yield from changes
    if not query.history and not getattr(query.of_topic, "is_unmatched", False):
        for part in query.parts:
            yield from _values(query, part, metadata, files, log_directory)
    yield from (Note(files.path, problem) for problem in problem_texts(metadata, NEWEST))
    if query.history and metadata.snapshot:
        yield Note(files.path, f"no history before offset {metadata.snapshot}: it is only in a snapshot")
    if query.moment.offset is not None and metadata.end_offset <= query.moment.offset:
        yield Note(files.path, f"ends at offset {metadata.end_offset}; this is the state at its end")


def _values(
    query: ClusterQuery, part: str, metadata: MetadataImage, files: MetadataFiles, log_directory: LogDirectory | None
) -> Iterable[Any]:
    if part == SUMMARY:
        identity = node_ids(log_directory) if log_directory else {}
        committed = max(files.committed or 0, metadata.committed) or None
        return [summary_of(metadata, path_text(files.path), identity, committed)]
    values = PARTS[part][1](metadata, query.of_topic)
    if part == "configs":
        values = configs(metadata, query.of_topic, query.show_secrets)
        if query.topics:
            values = (value for value in values if value.resourceType == "TOPIC")
    if query.problems and part in ("topics", "partitions"):
        values = (value for value in values if row_style(value))
    return values
