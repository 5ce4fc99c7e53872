"""Predicts what the broker of these log directories does at its next startup.

Source: RemoteLogManager (findHighestRemoteOffset, deleteLogSegmentsDueToLeaderEpochCacheTruncation), UnifiedLog.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial

from kdump.check.options import Options
from kdump.cluster.disks import Disks
from kdump.cluster.node_ids import has_controller_role, may_be_broker
from kdump.cluster.release_evidence import (
    DEFAULT,
    DISK,
    NEWER_NUMBER,
    OPTION,
    ChosenRelease,
    DiskRelease,
    completed,
    disk_release,
)
from kdump.cluster.remote_log import RemoteLog, read_remote_log
from kdump.format.count_text import offsets_text
from kdump.format.kafka_release import KRAFT, NEWEST, ZOOKEEPER, KafkaRelease, newer_release_text, parse_release
from kdump.io import file_system
from kdump.io.directory_listing import real_path
from kdump.io.errors import Unread
from kdump.io.run import Limits, Run, ignore
from kdump.kafka.file_versions import VersionEvidence
from kdump.kafka.remote_log_metadata_topic_partitioner import metadata_partition
from kdump.kafka.server_properties import ServerProperties
from kdump.log.bundle_bytes import with_bytes
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC, REMOTE_METADATA_TOPIC
from kdump.log.live_files import SeenDirectory
from kdump.log.mounted_bundles import takes_bundles
from kdump.log.served_files import segments_in
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import PartitionPlan, RestartPlan, StartupFailure
from kdump.questions.restart_plan.course import (
    CERTAIN,
    FIRST_MINUTES,
    MAY,
    RECORDS,
    Course,
    Loss,
    Part,
    StartupEvent,
    course_of,
)
from kdump.questions.restart_plan.first_checks import FirstChecks
from kdump.questions.restart_plan.first_minutes import committed_offsets, groups_on, leaders, transactions
from kdump.questions.restart_plan.loading_events import before, loading
from kdump.questions.restart_plan.log_loading.log_manager import LogManager
from kdump.questions.restart_plan.log_loading.stray_partitions import StrayPartitions
from kdump.questions.restart_plan.node.access_rights import Rights, broker_rights, read_only_here
from kdump.questions.restart_plan.node.bootstrap import read_bootstrap
from kdump.questions.restart_plan.node.directories import node_directories
from kdump.questions.restart_plan.node.identity import configured, identify, registered
from kdump.questions.restart_plan.node.quorum import (
    last_epoch_stop,
    metadata_after,
    no_voters_stop,
    other_voters_stop,
    quorum_warnings,
    read_quorum,
    sole_voter_stop,
)
from kdump.questions.restart_plan.node.refused_records import add_invalid_config, add_refused
from kdump.questions.restart_plan.node.release_change import refusals, release_change
from kdump.questions.restart_plan.node.root_files import full_stop, full_warning, read_only_stop
from kdump.state.effective_config import NOWHERE, is_tiered
from kdump.state.metadata_image import MetadataImage
from kdump.state.releases import BOOTSTRAP_READ, META_ENSEMBLE, is_tried

DEFAULTS = "log.retention.* and offsets.retention.minutes are Kafka's defaults where no file states them (--properties)"


def restart_plan(
    paths: str | Iterable[str],
    options: Run | None = None,
    *,
    kafka_version: KafkaRelease | str | None = None,
    now: int | None = None,
    is_selected: Callable[[str], bool] = lambda topic: True,
) -> RestartPlan:
    """Predict what a broker does at its next startup with these log directories, all of one broker, and in the hour
    after it.

    `kafka_version`: the release that is started; by default the one that ran on the disk, as far as its files state it.
    `now`: epoch ms at which it is started, by default the current time. `is_selected` selects topics by name; problems
    in the others are not detected. `options.found` is called with the plan of each selected partition once it is
    complete, `options.more` with numbers of bytes of its segments that have
    been read or need not be read, which add up to their size. Before that, `options.at` is called with the bytes of the
    metadata log read so far, and their total. Reads only what the broker itself would read, and the bytes that it
    removes, to count what is lost. Raises ValueError for a release that is not known, and SourceError for a path that
    is not a log directory; what cannot be read in a log directory is in `unread`. Source: see the modules of this
    package."""
    options = Options.given(options)
    options = options if now is None else replace(options, now=now)
    return predict_startup(paths, options, kafka_version, is_selected)


@takes_bundles
def predict_startup(
    paths: str | Iterable[str],
    options: Run | None = None,
    kafka_version: KafkaRelease | str | None = None,
    is_selected: Callable[[str], bool] = lambda topic: True,
    on_seen: Callable[[str, SeenDirectory], None] = lambda path, seen: None,
    disks: Disks | None = None,
) -> RestartPlan:
    """Return the same as `restart_plan`, to callers that ask several questions about a disk. `options.begin` is called
    with the plan before anything is examined, which is then filled in; `on_seen` with what is in each partition's
    directory when it is listed; `disks`: the log directories of the run, those of other nodes, too."""
    options = Options.given(options)
    options = replace(options, open_source=with_bytes(options.open_source))
    paths = list(paths)
    disks = disks or Disks.at(paths, Run(options.limits, ignore), nested=False, server=options.server)
    plan = RestartPlan(node_directories(paths, disks))
    options.begin(plan)
    rights = broker_rights(directory.path for directory in plan.directories)
    # A broker loads its logs with the metadata up to which it has caught up with the controllers.
    here = [directory.path for directory in plan.directories]
    source, metadata = disks.newest_metadata(*here, run=options)
    if isinstance(kafka_version, str):
        kafka_version = parse_release(kafka_version)
    release, disk = choose_release(plan, kafka_version, metadata)
    of_zookeeper = disk.release.mode == ZOOKEEPER
    places = [place for path in here for place in disks.below(path)]
    plan.change = release_change(plan, disk, release, metadata, partial(groups_on, places, options.limits))
    if release.mode == ZOOKEEPER:
        metadata = None
    identify(plan.directories, plan, rights, release)
    if disks.server is not None:
        configured(plan.directories, disks.server, release)
    listed = [directory for directory in plan.directories if not directory.failed]
    for directory in listed:
        if directory.metadataLogDir and BOOTSTRAP_READ.applies(release):
            read_bootstrap(directory, options, rights, release)
    rights.mounts_count = False
    for directory in listed:
        if read_only_here(directory.path):
            plan.assumptions.append(f"the broker may write to {directory.path}, which is mounted read-only here alone")
        stop = read_only_stop(directory) or full_stop(directory, rights, release)
        if stop is None:
            logs = sum(not log.state for here in disks.below(directory.path) for log in here.partitions)
            directory.problems += filter(None, [full_warning(directory, rights, logs)])
        else:
            directory.stops.append(stop)
    if metadata is not None and META_ENSEMBLE.applies(release):
        registered(plan.directories, metadata, plan)
    nodes = {directory.nodeId for directory in plan.directories}
    has_failed = any(directory.failed for directory in plan.directories)
    is_broker = may_be_broker(places, nodes, metadata, disks.server, has_failed=has_failed)
    is_broker = is_broker or release.mode == ZOOKEEPER
    strays = StrayPartitions(metadata, of_zookeeper=of_zookeeper and release.mode == KRAFT)
    evidence = VersionEvidence(bool(disk.newer), disk.is_registered)
    manager = LogManager(
        plan.directories, options, strays, metadata, is_selected, rights, release, evidence, on_seen=on_seen
    )

    def report(log: PartitionPlan) -> None:
        _advise(plan, log.stops)
        if is_selected(log.topic):
            options.found(log)

    plan.partitions += manager.metadata_logs()
    is_whole = metadata is not None and not metadata.newer and not _is_cut(plan, metadata)
    starts_empty = is_sole_by_file(disks.server, nodes) and not (source or _metadata_logs(plan))
    if starts_empty and release.mode == KRAFT:
        metadata, is_whole = MetadataImage(), True
        manager.metadata = manager.strays.metadata = metadata
    if release.mode == KRAFT:
        _add_quorum(plan, disks, release, is_broker)
    for log in plan.partitions:
        report(log)
    if release.mode == KRAFT:
        is_controller = not is_broker or (plan.quorum is not None and plan.quorum.isVoter is True)
        _add_refused(plan, disks, release, metadata, is_broker=is_broker, is_controller=is_controller)
    is_alone = metadata is not None and plan.quorum is not None and bool(plan.quorum.isVoter)
    is_alone = is_alone and plan.quorum is not None and len(plan.quorum.voters) == 1
    is_alone = is_alone or starts_empty
    if is_alone and plan.metadata_log is not None and not strays.of_zookeeper:
        # Its log is what the cluster knows, truncated or not.
        own = metadata_after(plan.metadata_log, disks)
        if own is not None and not own.newer and plan.metadata_log.cuts:
            metadata = manager.metadata = own
            manager.strays, is_whole = StrayPartitions(own), True
    # A broker decides on strays once it has what the controllers have. If they are other nodes, a metadata log without
    # topics next to partitions is not what they have.
    has_topics = metadata is not None and bool(metadata.topics)
    if not (is_whole and (has_topics or is_alone)) and not strays.of_zookeeper:
        manager.strays = StrayPartitions(None)
    checks = FirstChecks(metadata, plan.nodeId, disks.server, options.now, release)
    if is_broker:
        manager.checks = checks
        for log in manager.logs():
            plan.partitions.append(log)
            report(log)
    if is_broker and metadata is not None:
        add_invalid_config(plan, release, metadata)
        add_tiered(plan, metadata, options.limits)
    has_metadata = starts_empty or bool(source) or bool(_metadata_logs(plan))
    lacks_topics = (
        not has_topics and not is_alone and any(partition.topic != METADATA_TOPIC for partition in plan.partitions)
    )
    plan.withoutTopics = release.mode == KRAFT and has_metadata and lacks_topics
    lacking = [problem for problem in metadata.problems if isinstance(problem, Unread)] if metadata is not None else []
    plan.directories[0].unread += [problem for problem in lacking if problem not in plan.unread]
    is_unknown = not has_metadata or (lacks_topics and not plan.unread)
    plan.withoutMetadata = release.mode == KRAFT and not strays.of_zookeeper and is_unknown
    if not is_selected(METADATA_TOPIC):
        plan.partitions = [
            partition for partition in plan.partitions if partition.topic != METADATA_TOPIC or partition.stops
        ]
    for stops in (plan.stops, *(directory.stops for directory in plan.directories)):
        _advise(plan, stops)
    if plan.newer and plan.release is not None:  # also in the directory of a partition
        named = plan.release.source == OPTION
        plan.release = plan.release._replace(diskVersion=NEWER_NUMBER, newer=tuple(plan.newer))
        if not named:
            plan.release = plan.release._replace(source=DISK, doubt="")
    source = "this disk's metadata" if source in here else f"the metadata of {source}"
    _assume(plan, metadata, source, is_broker, is_whole, rights, disks.server)
    if is_alone:
        where = disks.server.path if starts_empty and disks.server is not None else "quorum-state or the metadata"
        plan.assumptions.append(f"the node is the cluster's only controller, as stated in {where}")
    if is_broker and plan.logs:
        defaults = f", and {DEFAULTS}" if checks.assumes_defaults else ""
        plan.assumptions.append(f"no client writes in the hour after the start{defaults}")
    plan.later = (*_committed_offsets(plan, disks, checks, options.limits), checks.part())
    plan.course = plan_course(plan)
    return plan


def plan_course(plan: RestartPlan) -> Course:
    """Return what each step of the startup does, by the plan as it is now: the disks of other nodes may change it."""
    parts = (before(plan), loading(plan), leaders(plan), transactions(plan.partitions, plan.nodeId))
    return course_of((*parts, *plan.later))


def _committed_offsets(plan: RestartPlan, disks: Disks, checks: FirstChecks, limits: Limits) -> Iterator[Part]:
    if checks.metadata is not None and checks.metadata.end_time is not None:
        stopped = checks.metadata.end_time
        places = [place for directory in plan.directories for place in disks.below(directory.path)]
        yield committed_offsets(places, disks.server, plan.nodeId, checks.now, stopped, limits)


def _advise(plan: RestartPlan, stops: list[StartupFailure]) -> None:
    """Add what is known of the quorum to what stops a startup, and advise against writing an older version over a file
    that only a newer release writes, unless a known release was asked for."""
    for number, stop in enumerate(stops):
        newer = () if plan.is_named or plan.release is None else plan.release.newer
        is_newer = any(reason.startswith(f"{os.path.basename(stop.file)} version ") for reason in newer)
        is_newer = not plan.is_named and (is_newer or bool(stop.newer))
        stops[number] = stop._replace(of_newer=is_newer).given(plan.quorum.facts if plan.quorum is not None else {})


def _metadata_logs(plan: RestartPlan) -> list[str]:
    paths = (os.path.join(directory.path, METADATA_LOG) for directory in plan.directories)
    return [path for path in paths if file_system.exists(path)]


def _add_quorum(plan: RestartPlan, disks: Disks, release: KafkaRelease, is_broker: bool) -> None:
    """Add the quorum as the files of metadata.log.dir state it, and warnings if this node is not a voter."""
    directory = plan.metadata_directory
    if directory is None or directory.failed:
        return
    metadata = disks.copies.quorum(directory.path)
    plan.quorum = read_quorum(directory, plan.metadata_log, metadata)
    stops = (
        last_epoch_stop(plan.quorum, directory),
        sole_voter_stop(plan.quorum, directory),
        no_voters_stop(plan.quorum, disks.server, directory),
    )
    directory.stops += filter(None, (*stops, other_voters_stop(disks.server, directory, release)))
    directory.problems += quorum_warnings(plan.quorum, directory, metadata, is_controller=not is_broker)


def _add_refused(
    plan: RestartPlan,
    disks: Disks,
    release: KafkaRelease,
    newest: MetadataImage | None,
    *,
    is_broker: bool,
    is_controller: bool,
) -> None:
    """Add what the node does with records of the metadata log that it cannot apply: of its own log; a broker fetches
    the `newest` levels before it uses them."""
    directory = plan.metadata_directory
    own = disks.copies.quorum(directory.path) if directory is not None and not directory.failed else None
    of_levels = [*refusals(plan, release, own or newest if is_controller else newest, is_controller=is_controller)]
    plan.stops += of_levels
    if directory is not None and own is not None:
        nodes = {each.nodeId for each in plan.directories} - {None}
        voters = set() if plan.quorum is None else {each.voterId for each in plan.quorum.voters}
        role = has_controller_role(nodes, voters, own, disks.server) if is_broker else True
        add_refused(plan, directory, release, own, is_controller=role, with_levels=not of_levels)


def is_sole_by_file(server: ServerProperties | None, nodes: Collection[int | None]) -> bool:
    """Return True if the properties of the node state that it is the only controller."""
    is_controller = server is not None and "controller" in (server.roles or ())
    return is_controller and server is not None and server.voters == {server.node_id} == set(nodes)


def _is_cut(plan: RestartPlan, metadata: MetadataImage) -> bool:
    """Return True if the metadata on the disk is incomplete because of damage; an unfinished tail does not count."""
    return bool(metadata.problems) and any(partition.loses or partition.stops for partition in plan.partitions)


def _assume(
    plan: RestartPlan,
    metadata: MetadataImage | None,
    source: str,
    is_broker: bool,
    is_whole: bool,
    rights: Rights,
    server: ServerProperties | None,
) -> None:
    assert plan.release is not None
    is_zookeeper = plan.release.mode == ZOOKEEPER
    runs = f"Kafka {plan.release.version}{' with ZooKeeper' if is_zookeeper else ''}"
    assumptions = [f"the node runs {runs}, and nothing else changes the files before it starts"]
    if plan.release.newer:
        assumptions.append(f"a newer Kafka than {NEWEST.number} does with the files what {NEWEST.number} does")
    if not rights.is_root:
        assumptions.append(f"the node runs as user {rights.name}, with that user's permissions")
    if rights.is_foreign:
        assumptions.append("what a bundle does not have hinders nothing: a running broker, mounts, groups, ACLs")
    ids = " and ".join(sorted({f"{directory.clusterId}" for directory in plan.directories if directory.clusterId}))
    if ids:
        assumptions.append(f"the cluster that the node joins has the ID {ids}: with a different one it does not start")
    assumptions += _assumed_directories(plan, server)
    if is_zookeeper:
        assumptions.append(
            "ZooKeeper still has the cluster's topics and replicas, which no log directory contains: the broker has no "
            "stray partitions, and topic configs are the defaults"
        )
        assumptions.append("log.message.format.version and message.format.version are 0.11 or later")
    elif not is_broker:
        for directory in plan.directories:
            directory.clean = None
        assumptions.append("the node is a controller: its only log is the metadata log")
        if server is None or server.roles is None:
            assumptions[-1] += "; if process.roles has broker, too (--properties FILE), it also creates its partitions"
    elif is_sole_by_file(server, {plan.nodeId}) and not _metadata_logs(plan):
        assumptions.append("it starts with an empty metadata log")
    elif plan.withoutMetadata:
        assumptions.append(_assumed_controllers(server))
    elif metadata is None:
        assumptions.append("no cluster metadata could be read here, so stray directories and topic configs are unknown")
    elif metadata.newer:
        assumptions.append(
            "the cluster's metadata has records of a release that kdump does not know: which directories are stray is "
            "unknown"
        )
    elif not is_whole:
        assumptions.append(
            f"the cluster's metadata on this disk is damaged after offset {metadata.end_offset}: which directories "
            f"are stray is unknown ({metadata.problems[0]})"
        )
    else:
        assumptions.append(
            f"the cluster's topics and replicas are those in {source}, up to offset {metadata.end_offset}; "
            "the broker fetches newer metadata from the controllers"
        )
    if is_broker and metadata is not None:
        assumptions.append("index.interval.bytes is the topic's own value, or 4096")
    plan.assumptions = assumptions + plan.assumptions


def _assumed_controllers(server: ServerProperties | None) -> str:
    """Return where the metadata is that no given directory has."""
    if server is None or "controller" not in (server.roles or ()):
        return "other nodes are the controllers, and still have the cluster's metadata"
    return "the other controllers still have the cluster's metadata"


def _assumed_directories(plan: RestartPlan, server: ServerProperties | None) -> list[str]:
    """Return the assumptions about the directories in the node's configuration, or what its server.properties states
    of them."""
    if server is not None and any(server.names(directory.path) for directory in plan.directories):
        given = {real_path(directory.path) for directory in plan.directories}
        others = [path for path in server.log_dirs if path not in given]
        also = f"; log.dirs also has {', '.join(others)}, of which nothing is known here" if others else ""
        return [f"log.dirs and metadata.log.dir are those in {server.path}{also}"]
    copied = [f"{server.path} names none of these directories, as for a copy of them"] if server is not None else []
    logs = [directory for directory in plan.directories if directory.logDir]
    assumption = f"log.dirs contains {'these directories' if len(logs) > 1 else 'this directory'} and no other"
    if len(plan.directories) == 1:
        return [*copied, assumption]
    metadata = next(directory.path for directory in plan.directories if directory.metadataLogDir)
    if len(logs) < len(plan.directories):
        assumption = f"log.dirs contains {', '.join(directory.path for directory in logs)} and no other directory"
    why = ", whose metadata log is the newest (--properties FILE decides)" if len(_metadata_logs(plan)) > 1 else ""
    return [*copied, assumption, f"metadata.log.dir is {metadata}{why}"]


def choose_release(
    plan: RestartPlan, requested: KafkaRelease | None, metadata: MetadataImage | None
) -> tuple[KafkaRelease, DiskRelease]:
    """Return the release that is started, and the one that ran on the disk; write the choice to the plan."""
    disk = disk_release([directory.path for directory in plan.directories], metadata)
    stated = disk.number if disk.is_stated else None
    if requested is None:
        source = DISK if disk.is_stated else DEFAULT
        release, reason, doubt = disk.release, disk.reason or "no file states the release", disk.doubt
    else:
        release, source, reason = completed(requested, disk), OPTION, "--kafka-version"
        doubt = newer_release_text(release)
        if metadata is not None and release.mode == KRAFT:  # a replay of the metadata may fail
            plan.doubts += metadata.newer
    plan.release = ChosenRelease(
        release.number, release.mode or KRAFT, source, reason, doubt, is_tried(release), stated, disk.newer
    )
    return release, disk


ASSUMPTION = (
    "remote.log.storage.system.enable is true: otherwise the logs of tiered topics start at their first local offset"
)


def add_tiered(plan: RestartPlan, metadata: MetadataImage, limits: Limits) -> None:
    """Add a note to each live log of a tiered topic that loses records or is missing, and the assumption that tiered
    storage is enabled."""
    tiered = {name for name in metadata.topics if is_tiered(metadata, name)}
    logs = [partition for partition in plan.partitions if partition.topic in tiered and not partition.state]
    if logs:
        plan.assumptions.append(ASSUMPTION)
    losing = [log for log in logs if log.loses or log.missing]
    below = [
        (log, first) for log in logs if (first := _first_here(log)) is not None and (log.logStartOffset or 0) < first
    ]
    if not losing and not below:
        return
    remote = _remote_log(plan, metadata, limits)
    gone = frozenset(_gone_metadata(plan, metadata))
    for log, first in below:
        if gone and _metadata_partition(log, metadata) in gone:
            log.later += (_forgotten_remote(plan, log, first, metadata),)
        lacks = remote.lacks(metadata.topics[log.topic].id, log.partition, log.logStartOffset or 0, first)
        if lacks:
            log.notes.append(f"tiered: {NOWHERE.format(offsets=offsets_text(lacks))}")
    for log in losing:
        log.notes.append(_note(log, remote.end_of(metadata.topics[log.topic].id, log.partition)))


def _gone_metadata(plan: RestartPlan, metadata: MetadataImage) -> Iterator[int]:
    """Yield the partitions of __remote_log_metadata of which this broker had the only replica, and has nothing."""
    topic = metadata.topics.get(REMOTE_METADATA_TOPIC)
    logs = plan.partitions if topic is not None else []
    here = {log.partition for log in logs if log.topic == REMOTE_METADATA_TOPIC and not (log.state or log.missing)}
    for number, partition in topic.partitions.items() if topic is not None else ():
        if partition.replicas == (plan.nodeId,) and number not in here:
            yield number


def _metadata_partition(log: PartitionPlan, metadata: MetadataImage) -> int:
    return metadata_partition(
        metadata.topics[log.topic].id, log.partition, len(metadata.topics[REMOTE_METADATA_TOPIC].partitions)
    )


def _forgotten_remote(plan: RestartPlan, log: PartitionPlan, first: int, metadata: MetadataImage) -> StartupEvent:
    """Return that the leader, which finds no segment in the remote metadata, raises the log start offset to the first
    one on the disk (RemoteLogManager.updateRemoteLogStartOffset)."""
    start = log.logStartOffset or 0
    values = {"number": _metadata_partition(log, metadata), "start": start, "first": first}
    problem = Problem("startup-remote-metadata-gone", values)
    elsewhere = None if log.replicas is None else log.replicas.brokers
    loss = Loss(RECORDS, MAY if elsewhere else CERTAIN, None, first - start, None, start, first - 1, elsewhere)
    return StartupEvent(FIRST_MINUTES, problem, 0, "", plan.nodeId, log.topic, log.partition, log.path, loss)


def _first_here(log: PartitionPlan) -> int | None:
    """Return the base offset of the first segment on the disk; None if there is none, or the log does not load."""
    names = [] if log.missing or log.logStartOffset is None else segments_in(log.path)
    return int(names[0][:20]) if names else None


def _remote_log(plan: RestartPlan, metadata: MetadataImage, limits: Limits) -> RemoteLog:
    topic = metadata.topics.get(REMOTE_METADATA_TOPIC)
    count = None if topic is None else len(topic.partitions)
    here = [
        partition.path
        for partition in plan.partitions
        if partition.topic == REMOTE_METADATA_TOPIC and not partition.state
    ]
    return read_remote_log([path for path in here if file_system.isdir(path)], count, limits)


def _note(log: PartitionPlan, last: int | None) -> str:
    """Return what remote storage has. `last`: the last offset that was ever copied, -1 for none, None if unknown."""
    if last == -1:
        return "tiered, but nothing of it is in remote storage"
    end = log.logEndOffset or 0
    note = "tiered: what remote storage has of it is unknown (__remote_log_metadata is not whole here)"
    if last is not None:
        note = f"tiered: remote storage has it up to offset {last}"
        if last < end:
            return note
    note += f"; while another replica leads, nothing of that is lost, but if this one leads, it goes on at offset {end}"
    if log.missing or not log.epochsAfter:
        note += ", and as its leader epochs are gone, it deletes the segments in remote storage"
    return note
