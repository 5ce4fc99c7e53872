"""A schema registry, as its topic on a disk has it: the answers of `kdump registry` and `kdump.registry`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

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
from kdump.io.run import PLAIN_RUN, Run, ignore
from kdump.log.internal_topics import SCHEMAS_TOPIC
from kdump.questions.registry.answer import (
    RegisteredVersion,
    RegistrySetting,
    SchemaUsage,
    setting_answer,
    version_answer,
)
from kdump.questions.registry.usage import logs_with_records, usage
from kdump.state.as_of import AsOf, Change, OffsetOfSeveralLogs
from kdump.state.effective_config import effective
from kdump.state.recorded_change import RecordedChange, change_answer
from kdump.state.schema_registry import LIVE, SchemaRegistry, SchemaVersion

RegistryAnswer = RegisteredVersion | RegistrySetting | SchemaUsage | RecordedChange | Note
IN_IMAGE = "kdump carve --out DIR finds its records in an image of the device, and --deleted --carved DIR shows them"
SHOWN = VERSIONS, DELETED, HISTORY, USAGE = "versions", "deleted", "history", "usage"


class RegistryQuery(NamedTuple):
    """What to select. `shows`: VERSIONS, DELETED, HISTORY or USAGE; `subject`, `topic` and `has_id` are predicates, the
    last of which is called with every ID that there is; `names_ids`: it is one of certain IDs, so that deleted versions
    with these are shown, too, and settings are not. `carved`: what `kdump carve --out` wrote, as further deleted logs.
    `on_registry` is called after the answers of each registry, with its log and what was read of it."""

    shows: str = VERSIONS
    schemas_topic: str = SCHEMAS_TOPIC
    moment: AsOf = AsOf()
    subject: Callable[[str], bool] = lambda name: True
    names_subjects: bool = False
    has_id: Callable[[int | None], bool] = lambda number: True
    names_ids: bool = False
    topic: Callable[[str], bool] = lambda name: True
    carved: str | None = None
    on_registry: Callable[[RegistryLog, KnownSchemas], object] = ignore

    @property
    def wants_gone(self) -> bool:
        """Whether what is deleted for good is asked for."""
        return self.shows in (DELETED, USAGE) or self.names_ids


def registry(paths: Iterable[str], question: RegistryQuery, run: Run = PLAIN_RUN) -> Iterator[RegistryAnswer]:
    """Yield the answers about each registry whose topic is under the paths, one after the other, with a Note for what
    could not be read, and for what a registry skips. `run.begin` is called with the RegistryLog of each, if there are
    several. What cannot be read is passed to `run.unreadable`. Raises OffsetOfSeveralLogs."""
    found, notes = _find(tuple(paths), question, run)
    yield from notes
    if question.moment.offset is not None and len(found.registries) > 1:
        raise OffsetOfSeveralLogs
    carved = _carved(question.carved, run)
    clusters = [each.cluster for each in found.registries]
    used = _logs_with_records(found, question) if question.shows == USAGE else {}
    run.expect(size_of([*(each.log for each in found.registries), *chain.from_iterable(used.values())]))
    for each in found.registries:
        if len(found.registries) > 1:
            run.begin(each)
        if clusters.count(each.cluster) > 1 and each.log.partition:
            yield Note(each.log.path, "a registry refuses a topic with several partitions; each is shown alone")
        home = next((here.path for here in found.topics.disks.clusters.get(each.cluster, ())), "")
        deleted = (*each.deleted, *carved)
        gone = _deleted_offsets(each, found.topics.disks)
        yield from _answers(each._replace(deleted=deleted), home, used.get(each.cluster, []), question, run, gone)


def _find(paths: tuple[str, ...], question: RegistryQuery, run: Run) -> tuple[FoundRegistries, list[Note]]:
    """Return the registries under the paths, and notes on copies of their logs that are not read."""
    topic = question.schemas_topic
    sources = find_registries(paths, topic, run)
    notes = [Note(log.path, OLDER) for log in sources.topics.older]
    is_any = sources.topics.is_complete or sources.registries or sources.topics.disks.directories
    if is_any and (question.shows == USAGE or question.carved is not None):
        sources = _with_lost(sources, question, run)
    elif not sources.registries and sources.topics.is_complete:
        where = holders(topic, sources.topics.disks.newest_metadata()[1])
        run.unreadable(SourceError(f"{', '.join(paths)}: no {topic} found; {where or IN_IMAGE}"))
    return sources, notes


def _with_lost(found: FoundRegistries, question: RegistryQuery, run: Run) -> FoundRegistries:
    """Return the registries with an empty one for each cluster that has none: its records still carry IDs."""
    if found.registries and question.shows != USAGE:
        return found
    clusters = found.topics.disks.clusters
    if not clusters:
        run.unreadable(SourceError(f"{'--usage' if question.carved is None else '--carved'} needs a log directory"))
        return found._replace(registries=[])
    with_registry = {registry.cluster for registry in found.registries}
    empty = [
        RegistryLog(cluster, CoordinatorLog(question.schemas_topic, 0, directories[0].path, ()), ())
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


def _logs_with_records(sources: FoundRegistries, question: RegistryQuery) -> dict[str, list[CoordinatorLog]]:
    """Return the logs whose records may carry schema IDs, by cluster."""
    clusters = sources.topics.disks.clusters
    return {cluster: list(logs_with_records(mine, question.topic)) for cluster, mine in clusters.items()}


def _answers(
    registry_log: RegistryLog, home: str, logs: list[CoordinatorLog], question: RegistryQuery, run: Run, deleted: str
) -> Iterator[RegistryAnswer]:
    """Yield the answers about one registry. `home`: a log directory of its cluster, empty if there is none; `logs`:
    those whose use of schema IDs is asked for; `deleted`: which offsets of its topic were deleted."""
    path, shows = registry_log.log.path, question.shows
    state = SchemaRegistry()
    changes = registry_changes(
        registry_log, state, question.moment, keep_gone=question.wants_gone, reports=shows == HISTORY, run=run
    )
    for change in changes:
        if _is_about(change, question):
            yield change_answer(path, change)
    gone = versions_in_deleted_logs(registry_log.deleted, state, run) if question.wants_gone else []
    schemas = KnownSchemas(state, home, [version for _, version in gone])
    notes: list[Note] = []
    for used in usage(logs, schemas, lambda source, message: notes.append(Note(source, message)), run):
        if question.has_id(used.id) and (not question.names_subjects or any(map(question.subject, used.subjects))):
            yield used
    if shows in (VERSIONS, DELETED):
        yield from _versions(path, state, gone, question)
    question.on_registry(registry_log, schemas)
    yield from notes
    lost = _why_lost(registry_log, state, question)
    if not lost or logs or shows != USAGE:
        yield from (Note(path, problem) for problem in ([lost] if lost else (*state.problems, *state.remarks)))
    if deleted:
        yield Note(path, deleted)
    if question.moment.offset is not None and state.end_offset <= question.moment.offset:
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


def _why_lost(registry_log: RegistryLog, state: SchemaRegistry, question: RegistryQuery) -> str:
    """Return why there is no registry any more, and where its records may be; empty if there is one."""
    topic, is_shown = registry_log.log.topic, question.wants_gone
    if registry_log.log.segments and (state.end_offset or state.problems):
        return ""
    if registry_log.log.segments:
        reason = f"{topic} has no records"
        left = "; directories that a broker was to remove have those of an earlier one" if registry_log.deleted else ""
    elif registry_log.log.path.endswith("-delete"):
        reason, left = f"{topic} was deleted", "; what a broker was to remove is left"
    else:
        reason, left = f"no {topic} found, so no ID resolves", ""
    if question.carved is not None:
        return reason
    return reason + (left + ("" if is_shown else ": --deleted shows it") if left else f"; {IN_IMAGE}")


def _versions(
    path: str, state: SchemaRegistry, elsewhere: list[tuple[CoordinatorLog, SchemaVersion]], question: RegistryQuery
) -> Iterator[RegisteredVersion | RegistrySetting]:
    is_deleted = question.shows == DELETED
    for each in state.versions():
        if question.has_id(each.id) and question.subject(each.subject) and (each.state != LIVE or not is_deleted):
            yield version_answer(path, each)
    if question.wants_gone:
        gone = [(path, each) for each in state.removed()] + [(log.path, each) for log, each in elsewhere]
        for source, each in gone:
            if question.has_id(each.id) and question.subject(each.subject):
                yield version_answer(source, each)
        return
    for setting in state.settings.values():
        if not question.names_subjects or (setting.name and question.subject(setting.name)):
            yield setting_answer(path, setting)


def _is_about(change: Change, question: RegistryQuery) -> bool:
    """Return whether a change is one of the subjects and IDs that are asked for."""
    subject = change.name.rpartition(" version ")[0] if change.entity == "schema" else change.name
    has_id = [question.has_id(schema_id) for schema_id in change.fields.get("id", (None, None))]
    return any(has_id) and question.subject(subject)
