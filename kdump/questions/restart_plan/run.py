"""Predicts what the broker of these log directories does at its next startup, step by step."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from kdump.check.options import Options
from kdump.cluster.disks import Disks
from kdump.cluster.metadata_refusals import first_hidden
from kdump.cluster.node_ids import has_controller_role
from kdump.cluster.release_evidence import DISK, NEWER_NUMBER, OPTION, DiskRelease
from kdump.format.kafka_release import KRAFT, NEWEST, KafkaRelease
from kdump.io.directory_listing import real_path
from kdump.io.errors import Unread
from kdump.io.run import Run, ignore
from kdump.kafka.file_versions import VersionEvidence
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.live_files import SeenDirectory
from kdump.log.lock_holder import is_running
from kdump.log.withheld import with_bytes
from kdump.query import Query, TopicsQuery, now_option, offered, release_option, topic_option
from kdump.questions.restart_plan.answer import PartitionPlan, Quorum, RestartPlan, StartupFailure
from kdump.questions.restart_plan.course import Course, Part, course_of
from kdump.questions.restart_plan.first_checks import FirstChecks
from kdump.questions.restart_plan.first_minutes import (
    committed_offsets,
    find_hanging,
    groups_on,
    leaders,
    transactions,
)
from kdump.questions.restart_plan.loading_events import before, loading
from kdump.questions.restart_plan.log_loading.log_manager import LogManager
from kdump.questions.restart_plan.log_loading.stray_partitions import StrayPartitions
from kdump.questions.restart_plan.node.access_rights import broker_rights, read_only_here
from kdump.questions.restart_plan.node.bootstrap import read_bootstrap
from kdump.questions.restart_plan.node.directories import node_directories
from kdump.questions.restart_plan.node.identity import configured, identify, registered, starts_as
from kdump.questions.restart_plan.node.quorum import (
    last_epoch_stop,
    metadata_after,
    no_voters_stop,
    other_voters_stop,
    quorum_warnings,
    read_quorum,
    sole_voter_stop,
)
from kdump.questions.restart_plan.node.refused_records import RefusedMetadata, invalid_config
from kdump.questions.restart_plan.node.release_change import add_levels, release_change
from kdump.questions.restart_plan.node.root_files import full_stop, full_warning, read_only_stop
from kdump.questions.restart_plan.node.starting_node import StartingNode, choose_release
from kdump.questions.restart_plan.remote_storage import RemoteStorage
from kdump.state.metadata_image import MetadataImage
from kdump.state.releases import BOOTSTRAP_READ, META_ENSEMBLE

__all__ = ["restart_plan"]

ENABLED = (
    "remote.log.storage.system.enable is true: otherwise the logs of tiered topics start at their first local offset"
)


@dataclass(frozen=True)
class RestartQuery(TopicsQuery):
    """Which startup to predict."""

    paths_option = {**Query.paths_option, "metavar": "LOGDIR…"}
    options: Run | None = None
    _: KW_ONLY
    topics: Iterable[str] = topic_option("Examine only these topics, so problems in others are missed")
    kafka_version: KafkaRelease | str | None = release_option("Predict the startup")
    now: int | None = now_option("Predict a startup at this time")
    on_seen: Callable[[str, SeenDirectory], None] = ignore
    disks: Disks | None = None

    @cached_property
    def reading(self) -> Options:
        options = Options.given(self.run)
        return options if self.now is None else replace(options, now=self.now)


def predict_startup(query: RestartQuery) -> RestartPlan:
    """Predict what a broker does at its next startup with these log directories, all of one broker, and in the hour
    after it.

    `kafka_version`: the release that is started; by default the one that ran on the disk, as far as its files state it.
    Problems in topics that are not selected are not detected. `on_seen` is called with what is in each partition's
    directory when it is listed; `disks`: the log directories of the run, those of other nodes, too. `run.begin` is
    called with the plan before anything is examined, to which each step then adds its part; `run.found` with the plan
    of each selected partition once it is complete, `run.more` with numbers of bytes of its segments that have been read
    or need not be read, which add up to their size. Before that, `run.at` is called with the bytes of the metadata log
    read so far, and their total. Reads only what the broker itself would read, and the bytes that it removes, to count
    what is lost. Raises ValueError for a release that is not known, and SourceError for a path that is not a log
    directory; what cannot be read in a log directory is in `unread`."""
    options, paths, is_selected = query.reading, list(query.paths), query.has_topic
    options = replace(options, open_source=with_bytes(options.open_source))
    disks = query.disks or Disks.at(paths, Run(options.limits, ignore), nested=False, server=options.server)
    plan = RestartPlan(node_directories(paths, disks))
    options.begin(plan)
    node = _starting_node(plan, disks, options, query.release)
    configured_as = _examine_directories(node)
    evidence, is_older = VersionEvidence(bool(node.disk.newer), node.disk.is_registered), disks.is_of_older_topic
    around = node.rights, node.release, evidence
    manager = LogManager(node.directories, options, is_selected, *around, on_seen=query.on_seen, is_older=is_older)
    plan.partitions += manager.metadata_logs()
    plan.quorum = _quorum(node, plan.metadata_log)
    known = _cluster_knowledge(node, plan.metadata_log, plan.quorum)
    refused = _refused(node, plan.quorum)
    plan.stops, plan.refusedAt = refused.stops, refused.refusedAt
    if any(stop.code == "startup-record-refused" for stop in plan.stops):  # what follows may assign what is here
        known = known._replace(strays=StrayPartitions(None))
    plan.doubts += refused.doubts
    node_id = starts_as(*plan.directories)
    checks = FirstChecks(known.metadata, node_id, node.server, options.now, node.release)
    remote = RemoteStorage(known.metadata or MetadataImage(), node_id, node.places, options.limits)
    logs = replace(manager, strays=known.strays, metadata=known.metadata, checks=checks).logs()
    for log in plan.partitions:
        _find(plan, log, node, is_selected)
    for log in logs if node.is_broker else ():
        notes, events, log.inRemoteStorage = remote.after(log)
        log.notes += notes
        log.later += events
        plan.partitions.append(log)
        _find(plan, log, node, is_selected)
    if node.is_broker and known.metadata is not None:
        plan.stops += filter(None, [invalid_config(known.metadata, node.release, node.metadata_log_path)])
    _look_for_metadata(node, known, plan)
    if not is_selected(METADATA_TOPIC):
        plan.partitions = [log for log in plan.partitions if log.topic != METADATA_TOPIC or log.stops]
    plan.stops = _advised(plan, plan.stops, node.disk)
    for directory in plan.directories:
        directory.stops = _advised(plan, directory.stops, node.disk)
    _name_newer_release(plan)
    plan.assumptions = [*assumptions(node, known, plan), *configured_as, *assumed_of_logs(node, known, plan, remote)]
    plan.assumptions += [checks.assumption] if node.is_broker and plan.logs else []
    if known.metadata is not None and known.is_whole:
        find_hanging(plan, known.metadata, options.limits)
    plan.later = (*_committed_offsets(node, checks), checks.part())
    plan.course = plan_course(plan)
    return plan


restart_plan = offered("restart_plan", RestartQuery, predict_startup)


def plan_course(plan: RestartPlan) -> Course:
    """Return what each step of the startup does, by the plan as it is now: the disks of other nodes may change it."""
    parts = (before(plan), loading(plan), leaders(plan), transactions(plan.partitions, plan.nodeId))
    return course_of((*parts, *plan.later))


def _find(plan: RestartPlan, log: PartitionPlan, node: StartingNode, is_selected: Callable[[str], bool]) -> None:
    log.stops = _advised(plan, log.stops, node.disk)
    if is_selected(log.topic):
        node.options.found(log)


def _name_newer_release(plan: RestartPlan) -> None:
    """State in the plan that a newer release wrote to the disk, which the directory of a partition may show, too."""
    if plan.newer and plan.release is not None:
        is_given = plan.release.source == OPTION
        plan.release = plan.release._replace(diskVersion=NEWER_NUMBER, newer=tuple(plan.newer))
        plan.release = plan.release if is_given else plan.release._replace(source=DISK, doubt="")


def _starting_node(
    plan: RestartPlan, disks: Disks, options: Options, kafka_version: KafkaRelease | None
) -> StartingNode:
    """Return the node, and add the release to its plan."""
    paths = [directory.path for directory in plan.directories]
    rights = broker_rights(paths)
    # A broker loads its logs with the metadata up to which it has caught up with the controllers.
    source, metadata = disks.newest_metadata(*paths, run=options)
    release, disk, plan.release = choose_release(plan.directories, kafka_version, metadata)
    if kafka_version is not None and metadata is not None and release.mode == KRAFT:  # a replay of it may fail
        plan.doubts += metadata.newer
    of_release = metadata if release.mode == KRAFT else None
    node = StartingNode(plan.directories, disks, options, rights, release, disk, source, of_release)
    groups = partial(groups_on, node.places, options.limits)
    plan.change = release_change(disk, release, metadata, groups, is_several=len(paths) > 1)
    return node


def _examine_directories(node: StartingNode) -> list[str]:
    """Add to the node's directories what stops it before it loads a log. Return what that assumes."""
    rights, release, assumed = node.rights, node.release, []
    identify(node.directories, rights, release)
    if node.server is not None:
        configured(node.directories, node.server, release)
    listed = [directory for directory in node.directories if not directory.failed]
    for directory in listed:
        if directory.metadataLogDir and BOOTSTRAP_READ.applies(release):
            read_bootstrap(directory, node.options, rights, release)
    rights.mounts_count = False
    for directory in listed:
        if read_only_here(directory.path):
            assumed.append(f"the broker may write to {directory.path}, which is mounted read-only here alone")
        stop = read_only_stop(directory) or full_stop(directory, rights, release)
        if stop is None:
            every = (log for here in node.disks.below(directory.path) for log in here.partitions)
            logs = sum(not log.state and log.topic != METADATA_TOPIC for log in every)
            directory.problems += filter(None, [full_warning(directory, rights, logs)])
        else:
            directory.stops.append(stop)
    if node.metadata is not None and META_ENSEMBLE.applies(release):
        assumed += registered(node.directories, node.metadata)
    if not node.is_broker:
        for directory in node.directories:
            directory.clean = None
    return assumed


def _quorum(node: StartingNode, log: PartitionPlan | None) -> Quorum | None:
    """Return the quorum as the files of metadata.log.dir state it; add to that directory what stops the node because of
    it, and warnings if the node is not a voter."""
    directory = node.metadata_directory
    if directory is None or not node.is_kraft:
        return None
    metadata = node.disks.copies.quorum(directory.path)
    quorum = read_quorum(directory, log, metadata)
    stops = (
        last_epoch_stop(quorum, directory),
        sole_voter_stop(quorum, directory),
        no_voters_stop(quorum, node.server, directory),
        other_voters_stop(node.server, directory, node.release),
    )
    directory.stops += filter(None, stops)
    directory.problems += quorum_warnings(quorum, directory, metadata, is_controller=not node.is_broker)
    return quorum


class ClusterKnowledge(NamedTuple):
    """What a node knows of its cluster when it decides which of its directories are stray, and which partitions it
    lacks (BrokerMetadataPublisher.initializeManagers). `metadata`: the cluster's, None if unknown; `is_whole`: whether
    it is undamaged; `is_sole`: whether the node is the only controller, so that its metadata log is what the cluster
    knows."""

    metadata: MetadataImage | None
    is_whole: bool
    is_sole: bool
    strays: StrayPartitions

    @property
    def has_topics(self) -> bool:
        return self.metadata is not None and bool(self.metadata.topics)


def _cluster_knowledge(node: StartingNode, log: PartitionPlan | None, quorum: Quorum | None) -> ClusterKnowledge:
    """Return what the node knows once its metadata `log` (None if there is none) is loaded, truncated or not."""
    metadata = node.metadata
    if node.starts_empty and node.is_kraft:
        metadata = MetadataImage()
    # An unfinished tail does not count as damage.
    is_cut = metadata is not None and metadata.doubt is not None and log is not None and bool(log.loses or log.stops)
    is_whole = metadata is not None and not (metadata.newer or is_cut or first_hidden(metadata, node.release))
    voters = [] if quorum is None or not quorum.isVoter else quorum.voters
    is_sole = node.starts_empty or (metadata is not None and len(voters) == 1)
    if is_sole and log is not None and not node.leaves_zookeeper:
        own = metadata_after(log, node.disks)
        if own is not None and log.cuts and not (own.newer or first_hidden(own, node.release)):
            metadata, is_whole = own, True
    strays = StrayPartitions(metadata, node.leaves_zookeeper, lambda id_: node.disks.topic_history(id_, node.source))
    known = ClusterKnowledge(metadata, is_whole, is_sole, strays)
    # A broker decides on strays once it has what the controllers have. If they are other nodes, a metadata log without
    # topics next to partitions is not what they have.
    if not (is_whole and (known.has_topics or is_sole)) and not node.leaves_zookeeper:
        return known._replace(strays=StrayPartitions(None))
    return known


def _refused(node: StartingNode, quorum: Quorum | None) -> RefusedMetadata:
    """Return what the node does with records of the metadata log that it cannot apply: of its own log; a broker fetches
    the newest levels before it uses them."""
    part = RefusedMetadata(node.metadata_log_path, quorum)
    if not node.is_kraft:
        return part
    is_controller = not node.is_broker or (quorum is not None and quorum.isVoter is True)
    directory = node.metadata_directory
    own = node.disks.copies.quorum(directory.path) if directory is not None else None
    of_levels = own or node.metadata if is_controller else node.metadata
    add_levels(part, node.release, of_levels, is_controller=is_controller)
    if directory is not None and own is not None:
        voters = set() if quorum is None else {each.voterId for each in quorum.voters}
        role = has_controller_role(node.ids - {None}, voters, own, node.server) if node.is_broker else True
        part.add_records(own, node.release, is_controller=role, with_levels=not part.stops)
        directory.problems += part.problems
    return part


def _look_for_metadata(node: StartingNode, known: ClusterKnowledge, plan: RestartPlan) -> None:
    """Add whether the directories have the cluster's topics, and what of its metadata could not be read."""
    has_metadata = node.starts_empty or bool(node.source) or bool(node.metadata_logs)
    has_logs = any(log.topic != METADATA_TOPIC for log in plan.partitions)
    lacks_topics = has_logs and not (known.has_topics or known.is_sole)
    plan.withoutTopics = node.is_kraft and has_metadata and lacks_topics
    problems = [] if known.metadata is None else known.metadata.problems
    unread = [problem.text for problem in problems if isinstance(problem.text, Unread)]
    plan.directories[0].unread += [problem for problem in unread if problem not in plan.unread]
    is_unknown = not has_metadata or (lacks_topics and not plan.unread)
    plan.withoutMetadata = node.is_kraft and not node.leaves_zookeeper and is_unknown


def _committed_offsets(node: StartingNode, checks: FirstChecks) -> Iterator[Part]:
    if checks.metadata is not None and checks.metadata.end_time is not None:
        is_at_work = any(is_running(place.path) for place in node.places)
        stopped = checks.now if is_at_work else checks.metadata.end_time
        yield committed_offsets(node.places, node.server, checks.node, checks.now, stopped, node.options.limits)


def _advised(plan: RestartPlan, stops: list[StartupFailure], disk: DiskRelease) -> list[StartupFailure]:
    """Return what stops a startup with what is known of the quorum, and with advice against writing an older version
    over a file that only a newer release writes, unless a known release was asked for."""
    facts = dict(plan.quorum.facts) if plan.quorum is not None else {}
    facts["running"] = any(problem.code == "startup-running" for each in plan.directories for problem in each.problems)
    advised = []
    for stop in stops:
        is_newer = not plan.is_named and (os.path.basename(stop.file) in disk.newer_files or bool(stop.newer))
        advised.append(stop._replace(of_newer=is_newer).given(facts))
    return advised


def assumptions(node: StartingNode, known: ClusterKnowledge, plan: RestartPlan) -> list[str]:
    """Return what a plan of a node takes for granted before its logs are considered."""
    assert plan.release is not None
    rights, server, metadata = node.rights, node.server, known.metadata
    runs = f"Kafka {plan.release.version}{'' if node.is_kraft else ' with ZooKeeper'}"
    assumed = [f"the node runs {runs}, and nothing else changes the files before it starts"]
    if plan.release.newer:
        assumed.append(f"a newer Kafka than {NEWEST.number} does with the files what {NEWEST.number} does")
    if not rights.is_root:
        assumed.append(f"the node runs as user {rights.name}, with that user's permissions")
    if rights.is_foreign:
        assumed.append("what a bundle does not have hinders nothing: a running broker, mounts, groups, ACLs")
    ids = " and ".join(sorted({f"{directory.clusterId}" for directory in plan.directories if directory.clusterId}))
    if ids:
        assumed.append(f"the cluster that the node joins has the ID {ids}: with a different one it does not start")
    assumed += _assumed_directories(node)
    if not node.is_kraft:
        assumed.append(
            "ZooKeeper still has the cluster's topics and replicas, which no log directory contains: the broker has no "
            "stray partitions, and topic configs are the defaults"
        )
        assumed.append("log.message.format.version and message.format.version are 0.11 or later")
    elif not node.is_broker:
        assumed.append("the node is a controller: its only log is the metadata log")
        if server is None or server.roles is None:
            assumed[-1] += "; if process.roles has broker, too (--properties FILE), it also creates its partitions"
    elif node.is_sole_by_file and not node.metadata_logs:
        assumed.append("it starts with an empty metadata log")
    elif plan.withoutMetadata:
        assumed.append(_assumed_controllers(server))
    elif metadata is None:
        assumed.append("no cluster metadata could be read here, so stray directories and topic configs are unknown")
    elif metadata.newer:
        assumed.append(
            "the cluster's metadata has records of a release that kdump does not know: which directories are stray is "
            "unknown"
        )
    elif not known.is_whole and metadata.doubt is not None:
        hidden = first_hidden(metadata, node.release)
        state = "has what is not known here" if hidden else f"is damaged after offset {metadata.end_offset}"
        unknown = f"which directories are stray is unknown ({(hidden or metadata.doubt).text})"
        assumed.append(f"the cluster's metadata on this disk {state}: {unknown}")
    else:
        is_here = any(directory.path == node.source for directory in node.directories)
        source = "this disk's metadata" if is_here else f"the metadata of {node.source}"
        assumed.append(
            f"the cluster's topics and replicas are those in {source}, up to offset {metadata.end_offset}; "
            "the broker fetches newer metadata from the controllers"
        )
    if node.is_broker and metadata is not None:
        assumed.append("index.interval.bytes is the topic's own value, or 4096")
    return assumed


def assumed_of_logs(
    node: StartingNode, known: ClusterKnowledge, plan: RestartPlan, remote: RemoteStorage
) -> Iterator[str]:
    """Yield what depends on the node's logs."""
    if node.is_broker and any(map(remote.has, plan.partitions)):
        yield ENABLED
    if known.is_sole:
        where = node.server.path if node.starts_empty and node.server is not None else "quorum-state or the metadata"
        yield f"the node is the cluster's only controller, as stated in {where}"


def _assumed_controllers(server: ServerProperties | None) -> str:
    """Return where the metadata is that no given directory has."""
    if server is None or "controller" not in (server.roles or ()):
        return "other nodes are the controllers, and still have the cluster's metadata"
    return "the other controllers still have the cluster's metadata"


def _assumed_directories(node: StartingNode) -> list[str]:
    """Return the assumptions about the directories in the node's configuration, or what its server.properties states
    of them."""
    server, directories = node.server, node.directories
    if server is not None and any(server.names(directory.path) for directory in directories):
        given = {real_path(directory.path) for directory in directories}
        others = [path for path in server.log_dirs if path not in given]
        also = f"; log.dirs also has {', '.join(others)}, of which nothing is known here" if others else ""
        return [f"log.dirs and metadata.log.dir are those in {server.path}{also}"]
    copied = [f"{server.path} names none of these directories, as for a copy of them"] if server is not None else []
    copied += [
        f"log.dirs does not contain {path}, a copy of {original.path} with its directory.id: a broker with both exits "
        f"(RuntimeException: Duplicate directory ID {original.directoryId})"
        for original in directories
        for path in original.copies
    ]
    logs = [directory for directory in directories if directory.logDir]
    assumption = f"log.dirs contains {'these directories' if len(logs) > 1 else 'this directory'} and no other"
    if len(directories) == 1:
        return [*copied, assumption]
    metadata = next(directory.path for directory in directories if directory.metadataLogDir)
    if len(logs) < len(directories):
        assumption = f"log.dirs contains {', '.join(directory.path for directory in logs)} and no other directory"
    why = ", whose metadata log is the newest (--properties FILE decides)" if len(node.metadata_logs) > 1 else ""
    return [*copied, assumption, f"metadata.log.dir is {metadata}{why}"]
