"""A schema registry, as its topic on a disk has it: the answers of `kdump registry` and `kdump.registry`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from kdump.answer import Note
from kdump.cluster.disks import Disks
from kdump.cluster.find_state_logs import OLDER
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.read_groups import CoordinatorLog, size_of
from kdump.cluster.schema_registries import (
    FoundRegistries,
    RegistryLog,
    carved_logs,
    find_registries,
    registry_changes,
    versions_in_deleted_logs,
)
from kdump.cluster.topic_coverage import holders
from kdump.decode.known_schemas import KnownSchemas
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.log.internal_topics import SCHEMAS_TOPIC
from kdump.query import Query, as_of_option, many, offered, option, selects, topic_option
from kdump.questions.registry.answer import (
    RegisteredVersion,
    RegistrySetting,
    SchemaUsage,
    setting_answer,
    version_answer,
)
from kdump.questions.registry.usage import logs_with_records, usage
from kdump.state.as_of import AskedAsOf, AsOf, Change, OffsetOfSeveralLogs
from kdump.state.effective_config import effective
from kdump.state.recorded_change import RecordedChange, change_answer
from kdump.state.schema_registry import LIVE, SchemaRegistry, SchemaVersion

__all__ = ["registry"]

RegistryAnswer = RegisteredVersion | RegistrySetting | SchemaUsage | RecordedChange | Note
IN_IMAGE = "kdump carve --out DIR finds its records in an image of the device, and --deleted --carved DIR shows them"
SHOWN = VERSIONS, DELETED, HISTORY, USAGE = "versions", "deleted", "history", "usage"


@dataclass(frozen=True, kw_only=True)
class RegistryQuery(Query, AskedAsOf):
    """What to yield of a registry, and as of when. A program selects one of SHOWN by `show`."""

    show: str = VERSIONS
    subjects: Iterable[str] = many(
        "--subject", type="globs", help="Show only these subjects (a glob, a /regex/); repeatable."
    )
    ids: Iterable[int] = many("--id", type="numbers", help="Show schemas with this ID in full; repeatable.")
    topics: Iterable[str] = topic_option("Like --usage, only for these topics")
    carved: str | None = option(
        "--carved", metavar="DIR", help="Also look for deleted schemas in what kdump carve --out has written to DIR."
    )
    schemas_topic: str = option(
        "--schemas-topic", metavar="TOPIC", default=SCHEMAS_TOPIC, help=f"Topic of the registry.  [{SCHEMAS_TOPIC}]"
    )
    as_of: int | AsOf | None = as_of_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.show not in SHOWN:
            raise ValueError(f"unknown show {self.show}; known are {', '.join(SHOWN)}")

    @cached_property
    def subject(self) -> Callable[[str], bool]:
        return selects(self.subjects)

    @cached_property
    def has_id(self) -> Callable[[int | None], bool]:
        """The predicate for IDs, which is called with every one that there is."""
        return selects(self.ids)

    @property
    def wants_gone(self) -> bool:
        """Whether what is deleted for good is asked for."""
        return self.show in (DELETED, USAGE) or bool(self.ids)


def answers(query: RegistryQuery) -> Iterator[RegistryAnswer]:
    """Yield what a schema registry holds, as its topic `schemas_topic` on these disks has it, with a Note for what
    could not be read and for what a registry skips.

    `paths`: log directories, directories of that topic, or segments in it. `show`: versions (RegisteredVersion, and
    RegistrySetting), deleted (versions only), history (a RecordedChange for each change), or usage (a SchemaUsage for
    each schema ID in the records of each partition). Raises ValueError for an offset if there are several registries,
    and SourceError as `transactions` does."""
    run = query.run
    found, notes = _find(tuple(query.paths), query)
    yield from notes
    if query.moment.offset is not None and len(found.registries) > 1:
        raise OffsetOfSeveralLogs
    carved = _carved(query.carved, run)
    clusters = [each.cluster for each in found.registries]
    used = _logs_with_records(found, query) if query.show == USAGE else {}
    run.expect(size_of([*(each.log for each in found.registries), *chain.from_iterable(used.values())]))
    for each in found.registries:
        if len(found.registries) > 1:
            run.begin(each)
        if clusters.count(each.cluster) > 1 and each.log.partition:
            yield Note(each.log.path, "a registry rejects a topic with several partitions; each is shown alone")
        home = next((here.path for here in found.topics.disks.clusters.get(each.cluster, ())), "")
        deleted = (*each.deleted, *carved)
        gone = _deleted_offsets(each, found.topics.disks)
        yield from _answers(each._replace(deleted=deleted), home, used.get(each.cluster, []), query, gone)


registry = offered("registry", RegistryQuery, answers)


def _find(paths: tuple[str, ...], query: RegistryQuery) -> tuple[FoundRegistries, list[Note]]:
    """Return the registries under the paths, and notes on copies of their logs that are not read."""
    topic = query.schemas_topic
    sources = find_registries(paths, topic, query.run)
    notes = [Note(log.path, OLDER) for log in sources.topics.older]
    is_any = sources.topics.is_complete or sources.registries or sources.topics.disks.directories
    if is_any and (query.show == USAGE or query.carved is not None):
        sources = _with_lost(sources, query)
    elif not sources.registries and sources.topics.is_complete:
        where = holders(topic, sources.topics.disks.newest_metadata()[1])
        query.run.unreadable(SourceError.at(", ".join(paths), f"no {topic} found; {where or IN_IMAGE}"))
    return sources, notes


def _with_lost(found: FoundRegistries, query: RegistryQuery) -> FoundRegistries:
    """Return the registries with an empty one for each cluster that has none: its records still carry IDs."""
    if found.registries and query.show != USAGE:
        return found
    clusters = found.topics.disks.clusters
    if not clusters:
        query.run.unreadable(SourceError(f"{'--usage' if query.carved is None else '--carved'} needs a log directory"))
        return found._replace(registries=[])
    with_registry = {registry.cluster for registry in found.registries}
    empty = [
        RegistryLog(cluster, CoordinatorLog(query.schemas_topic, 0, directories[0].path, ()), ())
        for cluster, directories in clusters.items()
        if cluster not in with_registry
    ]
    return found._replace(registries=[*found.registries, *empty])


def _carved(path: str | None, run: Run) -> tuple[CoordinatorLog, ...]:
    try:
        return () if path is None else tuple(carved_logs(path, run))
    except SourceError as error:
        run.unreadable(error)
        return ()


def _logs_with_records(sources: FoundRegistries, query: RegistryQuery) -> dict[str, list[CoordinatorLog]]:
    """Return the logs whose records may carry schema IDs, by cluster."""
    clusters = sources.topics.disks.clusters
    return {cluster: list(logs_with_records(mine, query.of_topic)) for cluster, mine in clusters.items()}


def _answers(
    registry_log: RegistryLog, home: str, logs: list[CoordinatorLog], query: RegistryQuery, deleted: str
) -> Iterator[RegistryAnswer]:
    """Yield the answers about one registry. `home`: a log directory of its cluster, empty if there is none; `logs`:
    those whose use of schema IDs is asked for; `deleted`: which offsets of its topic were deleted."""
    path, shows, run = registry_log.log.path, query.show, query.run
    state = SchemaRegistry()
    changes = registry_changes(
        registry_log, state, query.moment, keep_gone=query.wants_gone, reports=shows == HISTORY, run=run
    )
    for change in changes:
        if _is_about(change, query):
            yield change_answer(path, change)
    gone = versions_in_deleted_logs(registry_log.deleted, state, run) if query.wants_gone else []
    schemas = KnownSchemas(state, home, [version for _, version in gone])
    notes: list[Note] = []
    for used in usage(logs, schemas, lambda source, message: notes.append(Note(source, message)), run):
        if query.has_id(used.id) and (not query.subjects or any(map(query.subject, used.subjects))):
            yield used
    if shows in (VERSIONS, DELETED):
        yield from _versions(path, state, gone, query)
    run.found((registry_log, schemas))
    yield from notes
    lost = _why_lost(registry_log, state, query)
    if not lost or logs or shows != USAGE:
        yield from (Note(path, problem) for problem in ([lost] if lost else (*state.problems, *state.remarks)))
    if deleted:
        yield Note(path, deleted)
    if query.moment.offset is not None and state.end_offset <= query.moment.offset:
        yield Note(path, f"ends at offset {state.end_offset}; this is the state at its end")


def _deleted_offsets(registry_log: RegistryLog, disks: Disks) -> str:
    """Return which offsets of a registry's topic were deleted, and by what; empty if it begins at offset 0."""
    directories = disks.clusters.get(registry_log.cluster, [])
    if not directories:
        return ""
    metadata = disks.newest_metadata(*(each.path for each in directories))[1]
    topic = registry_log.log.topic
    end = LogOffsetsByPartition(directories, metadata).end(topic, registry_log.log.partition)
    if end is None or not end.logStartOffset:
        return ""
    text = f"its log start offset is {end.logStartOffset}: offsets 0..{end.logStartOffset - 1} were deleted"
    policy = None if metadata is None else effective(metadata, topic, "cleanup.policy", None)
    if policy is None:
        return f"{text}; its cleanup.policy is the brokers', delete by default: set compact for the topic"
    return f"{text}; cleanup.policy={policy}: set compact" if "delete" in policy else text


def _why_lost(registry_log: RegistryLog, state: SchemaRegistry, query: RegistryQuery) -> str:
    """Return why there is no registry any more, and where its records may be; empty if there is one."""
    topic, is_shown = registry_log.log.topic, query.wants_gone
    if registry_log.log.segments and (state.end_offset or state.problems):
        return ""
    if registry_log.log.segments:
        reason = f"{topic} has no records"
        left = "; directories that a broker was to remove have those of an earlier one" if registry_log.deleted else ""
    elif registry_log.log.path.endswith("-delete"):
        reason, left = f"{topic} was deleted", "; what a broker was to remove is left"
    else:
        reason, left = f"no {topic} found, so no ID resolves", ""
    if query.carved is not None:
        return reason
    return reason + (left + ("" if is_shown else ": --deleted shows it") if left else f"; {IN_IMAGE}")


def _versions(
    path: str, state: SchemaRegistry, elsewhere: list[tuple[CoordinatorLog, SchemaVersion]], query: RegistryQuery
) -> Iterator[RegisteredVersion | RegistrySetting]:
    is_deleted = query.show == DELETED
    for each in state.versions():
        if query.has_id(each.id) and query.subject(each.subject) and (each.state != LIVE or not is_deleted):
            yield version_answer(path, each)
    if query.wants_gone:
        gone = [(path, each) for each in state.removed()] + [(log.path, each) for log, each in elsewhere]
        for source, each in gone:
            if query.has_id(each.id) and query.subject(each.subject):
                yield version_answer(source, each)
        return
    for setting in state.settings.values():
        if not query.subjects or (setting.name and query.subject(setting.name)):
            yield setting_answer(path, setting)


def _is_about(change: Change, query: RegistryQuery) -> bool:
    """Return whether a change is one of the subjects and IDs that are asked for."""
    subject = change.name.rpartition(" version ")[0] if change.entity == "schema" else change.name
    has_id = [query.has_id(schema_id) for schema_id in change.fields.get("id", (None, None))]
    return any(has_id) and query.subject(subject)
