"""Predicts the loading of all logs of a broker: which directories it treats as partitions, how each is loaded, which
contradict each other, and which partitions it creates with an empty log because their directories are missing.

Source: kafka.log.LogManager (loadLogs, loadLog, recoverAbandonedFutureLogs), LocalLog.parseTopicPartitionName,
org.apache.kafka.storage.internals.log.LogManager.isStrayReplica, BrokerMetadataPublisher (4.3.1). Of missing ones:
ReplicaManager.getOrCreatePartition, Partition.createLogInAssignedDirectoryId, LogManager.getOrCreateLog and
createLogDirectory (4.3.1). The log directory is online, so that it does not matter whether another one is offline.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kdump.check.options import Options
from kdump.cluster.missing_partitions import (
    Expected,
    PartitionKey,
    checkpointed_partitions,
    missing_partitions,
    name_of,
    what_is_at,
)
from kdump.format.kafka_release import KRAFT, NEWEST, ZOOKEEPER, KafkaRelease
from kdump.io import file_system
from kdump.io.directory_listing import items, length
from kdump.io.errors import SourceError, reason
from kdump.io.run import Run
from kdump.io.source import Identity
from kdump.io.work_progress import WorkProgress
from kdump.kafka import checkpoint_file
from kdump.kafka.checkpoint_file import BadLine
from kdump.kafka.errors import CorruptRecord, KafkaError
from kdump.kafka.file_versions import NO_EVIDENCE, VersionEvidence
from kdump.kafka.index_builder import INTERVAL, LARGEST_INDEX
from kdump.kafka.log_segment import LogSegment
from kdump.log.file_kinds import CLEAN_MARK, REMOTE_CACHE
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC
from kdump.log.live_files import PAUSES, SeenDirectory, identity, is_changing, see
from kdump.log.log_directory import META
from kdump.log.paths import natural, seen_file, target
from kdump.log.served_files import current_segments
from kdump.problems.problem import Problem, title_of
from kdump.questions.restart_plan.answer import (
    EXIT,
    HIDDEN,
    OFFLINE,
    TRUNCATED,
    DirectoryPlan,
    PartitionPlan,
    StartupFailed,
    StartupFailure,
    Step,
    failure,
    startup_failure,
    storage_stop,
)
from kdump.questions.restart_plan.first_checks import FirstChecks
from kdump.questions.restart_plan.log_loading.log_loader import LoadParameters, load
from kdump.questions.restart_plan.log_loading.metadata_log import load_metadata_log
from kdump.questions.restart_plan.log_loading.removed_bytes import removed_bytes
from kdump.questions.restart_plan.log_loading.replica_moves import Moves, parse_name, partition_directories
from kdump.questions.restart_plan.log_loading.stray_partitions import StrayPartitions
from kdump.questions.restart_plan.node.access_rights import (
    ENTER,
    READ,
    WRITE,
    Rights,
    denied,
    not_opened,
    temporary_file_stop,
)
from kdump.questions.restart_plan.node.identity import starts_as
from kdump.questions.restart_plan.node.root_files import (
    CLEANER,
    OFFSETS,
    clean_shutdown_file_stop,
    metadata_stops,
    write_stops,
    write_warning,
)
from kdump.state.effective_config import effective, is_tiered, size_config
from kdump.state.metadata_image import MetadataImage
from kdump.state.other_replicas import other_replicas
from kdump.state.releases import (
    DIRECTORIES_ASSIGNED,
    FUTURE_BESIDE,
    FUTURE_RECOVERED,
    REMOTE_CACHE_KNOWN,
    STRAY_WITHOUT_ID,
    STRAY_WITHOUT_ID_EXITS,
    STRAYS_DELETED,
    STRAYS_RENAMED,
)


def _wrong_name(path: str, name: str) -> StartupFailure:
    form = "topic-partition or topic-partition.uniqueId-delete (if marked for deletion)"
    exception = f"KafkaException: Found directory {path}, '{name}' is not in the form of {form}."
    facts = {"lostAndFound": name == "lost+found"}
    return failure(EXIT, "startup-directory-name", path, exception, facts=facts, shown=repr(name))


def missing_logs(
    directory: DirectoryPlan,
    others: Sequence[str],
    checkpoints: Mapping[str, Mapping[PartitionKey, int]],
    metadata: MetadataImage | None,
    is_selected: Callable[[str], bool],
    *,
    is_created: bool,
) -> Iterator[PartitionPlan]:
    """Yield the plans of the partitions that the log directory had and that are gone; count the selected new ones.
    `others`: the paths of the node's other log directories; `checkpoints`: the offsets in the checkpoints, by file
    name; `is_created`: whether the cluster may have the partitions, so that the broker creates them."""
    paths = {name: os.path.join(directory.path, name) for name in checkpoints}
    checkpointed = checkpointed_partitions(
        {name: target(path, source=directory.path) for name, path in paths.items() if file_system.lexists(path)}
    )
    expected = Expected(
        directory.path, tuple(others), starts_as(directory), directory.directoryId, checkpointed, metadata
    )
    missing = missing_partitions(expected)
    new = sum(is_selected(topic) for topic, _ in missing.never)
    directory.newPartitions = new if is_created else 0
    condition = "" if expected.is_known else ", if the cluster still has the partition"
    for key in missing.lost:
        path = os.path.join(directory.path, name_of(key))
        plan = PartitionPlan(*key, path, directory.path, "", bool(directory.clean), checkpoints[OFFSETS[0]].get(key))
        plan.highWatermark = checkpoints[OFFSETS[2]].get(key)
        plan.missing = True
        if is_created:
            plan.logStartOffset = plan.logEndOffset = 0
            plan.segments = 1
            plan.steps.append(Step("create", path, None, 0, 0, f"an empty log{condition}"))
            if key in missing.blocked:
                values = {"blocking": what_is_at(path), "condition": condition}
                facts = {"link": file_system.islink(path)}
                exception = f"FileAlreadyExistsException: {path}"  # LogManager.createLogDirectory
                plan.stops.append(
                    failure(OFFLINE, "startup-partition-blocked", path, exception, facts=facts, values=values)
                )
        case = "" if not is_created else "mayBeCreated" if condition else "created"
        plan.problem = Problem("startup-missing", case=case)
        yield plan


def _offline_file(directory: DirectoryPlan, *names: str) -> StartupFailure | None:
    """Return why the directory goes offline because of one of these files; None if it does not."""
    stops = (stop for stop in directory.stops if stop.kind == OFFLINE and os.path.basename(stop.file) in names)
    return next(stops, None)


def _beside(plan: PartitionPlan, live: str) -> StartupFailure:
    """Return the stop for a -future directory that takes the name of a live one in the same log directory."""
    case = "moved" if file_system.isdir(live) else "created"
    return failure(
        OFFLINE, "startup-log-replaced", plan.path, _cannot_rename(plan), case=case, log=plan.name, live=live
    )


def _cannot_rename(plan: PartitionPlan) -> str:
    """Return the exception of LocalLog.renameDir."""
    return f"KafkaStorageException: Error while renaming dir for {plan.name} in log dir {plan.source}"


@dataclass
class LogManager:
    """One startup of the broker over its `directories`. `strays`, `metadata` and `checks` count for all logs but the
    metadata log."""

    directories: list[DirectoryPlan]
    options: Options
    is_selected: Callable[[str], bool]
    rights: Rights
    release: KafkaRelease = NEWEST
    evidence: VersionEvidence = NO_EVIDENCE
    on_seen: Callable[[str, SeenDirectory], None] = lambda path, seen: None
    strays: StrayPartitions = StrayPartitions(None)
    metadata: MetadataImage | None = None
    checks: FirstChecks | None = None
    is_older: Callable[[str, str, str], bool] = lambda checkpoint, directory, topic: False
    """Disks.is_of_older_topic."""
    live: dict[tuple[str, int, str], PartitionPlan] = field(default_factory=dict)
    moves: Moves = field(init=False)

    def metadata_logs(self) -> Iterator[PartitionPlan]:
        """Yield the plans of the metadata logs; every KRaft node has one."""
        if self.release.mode == ZOOKEEPER:
            return
        for directory in self.directories:
            if not directory.metadataLogDir or directory.failed:
                continue
            directory.stops += metadata_stops(directory, self.rights)
            path = os.path.join(directory.path, METADATA_LOG)
            if file_system.isfile(path):
                exception = f"FileAlreadyExistsException: {path}"
                directory.stops.append(failure(EXIT, "startup-metadata-log-is-file", path, exception))
            if file_system.isdir(path):
                plan = PartitionPlan(METADATA_TOPIC, 0, path, directory.path, "", clean=False)
                work = WorkProgress(0, self.options)
                how = replace(self._parameters(work, clean=False), expires=False)

                def act(plan: PartitionPlan, seen: SeenDirectory, how: LoadParameters = how) -> None:
                    self._carry_out(plan, lambda: load_metadata_log(plan, how, seen))

                plan = self._planned(plan, act, work if self.is_selected(METADATA_TOPIC) else None)
                work.end()
                plan.stops = [stop._replace(kind=EXIT) for stop in plan.stops]
                directory.problems += plan.problems
                yield plan

    def logs(self) -> Iterator[PartitionPlan]:
        """loadLogs: yield the plans of all other logs, one by one."""
        chosen = [directory for directory in self.directories if directory.logDir and not directory.failed]
        chosen = [candidate for candidate in chosen if _offline_file(candidate, META) is None]
        self._strays_without_ids(chosen)
        self.moves = Moves(chosen, self.strays, self.release)
        for directory in chosen:
            for plan in self._logs_in(directory):
                plan.replicas = other_replicas(self.metadata, plan.topic, plan.partition, starts_as(directory))
                plan.stops = [stop.given(plan.facts) for stop in plan.stops]
                directory.problems += [] if plan.stray else plan.problems
                yield plan

    def _logs_in(self, directory: DirectoryPlan) -> Iterator[PartitionPlan]:
        clean = bool(directory.clean)
        directory.stops += write_stops(directory, self.rights)
        directory.problems += filter(None, [write_warning(directory, self.rights)])
        if clean and self._is_stopped_by_mark(directory):
            return
        checkpoints = {name: self._offsets(directory, name) for name in OFFSETS}
        points, starts, marks = (checkpoints[name] for name in OFFSETS)
        self._offsets(directory, CLEANER)
        try:
            listed = items(directory.path) if self.rights.can(directory.path, READ) else []
            entries = sorted(listed, key=lambda item: natural(item.name))
        except OSError as error:
            directory.unread.append(f"{directory.path}: {reason(error, directory.path)}")
            return
        for item in entries:
            is_cache = item.name == REMOTE_CACHE and REMOTE_CACHE_KNOWN.applies(self.release)
            if not item.is_directory or is_cache or item.name == CLEAN_MARK:  # which is deleted by now
                continue
            parsed = parse_name(item.name, self.release)
            if parsed is None:
                directory.stops.append(_wrong_name(item.path, item.name))
                continue
            topic, partition, state = parsed
            if topic == METADATA_TOPIC or not self.is_selected(topic):
                continue
            key = (topic, partition)
            plan = PartitionPlan(topic, partition, item.path, directory.path, state, clean, points.get(key))
            plan.highWatermark = None if state else marks.get(key)
            work = WorkProgress(0, self.options)
            how = self._parameters(work, clean=clean)
            how = replace(how, log_start=starts.get(key, 0), recovery_point=points.get(key, 0))
            how = self._configured(how, topic)

            def act(plan: PartitionPlan, seen: SeenDirectory, how: LoadParameters = how) -> None:
                segments: list[LogSegment] = []
                self._carry_out(plan, lambda: segments.extend(load(plan, how, seen)))
                if any(cut.kind == HIDDEN for cut in plan.cuts):
                    instead = replace(plan.again(), clean=False)
                    self._carry_out(instead, lambda: load(instead, replace(how, clean=False), seen))
                    plan.take_recovered(instead)
                if not (plan.stops or plan.unread):
                    self._carry_out(plan, lambda: self._after(plan, directory))
                if segments and self.checks is not None:
                    plan.later = self.checks.of(plan, segments, seen)

            plan = self._planned(plan, act, work)
            work.end()
            if plan.acknowledged and self.is_older(os.path.join(directory.path, OFFSETS[2]), plan.path, topic):
                plan.highWatermark = None
            if file_system.isdir(plan.path):  # its topic may have been deleted in the meantime
                yield plan
        names = {item.name for item in entries if item.is_directory}
        others = [other.path for other in self.directories if other is not directory and (other.logDir or other.failed)]
        others += [path for directory in self.directories for path in directory.unlisted]
        metadata = None if self.strays.of_zookeeper else self.metadata
        is_created = not self.strays.of_zookeeper and not self._is_any_offline()
        for plan in missing_logs(directory, others, checkpoints, metadata, self.is_selected, is_created=is_created):
            if plan.name not in names and self.is_selected(plan.topic):  # or it was deleted in the meantime
                yield plan

    def _is_stopped_by_mark(self, directory: DirectoryPlan) -> bool:
        """Add the step that deletes the mark of a clean shutdown; return True if it stops the start before any log."""
        path = os.path.join(directory.path, CLEAN_MARK)
        directory.steps.append(Step("delete", path, None, None, 0, "so that a crash during startup is detected"))
        stop = clean_shutdown_file_stop(directory, self.rights)
        directory.stops += filter(None, [stop])
        return stop is not None

    def _is_any_offline(self) -> bool:
        """Return True if the release creates no missing partition because a log directory is offline."""
        if DIRECTORIES_ASSIGNED.applies(self.release):
            return False
        return any(directory.failed or directory.is_offline for directory in self.directories)

    def _strays_without_ids(self, directories: list[DirectoryPlan]) -> None:
        """Up to 3.6, a partition without a topic ID prevents that stray partitions are found at all: the broker logs
        an error, and continues."""
        if not STRAYS_DELETED.applies(self.release) or self.strays.metadata is None:
            return
        for directory in directories:
            for path, topic, _, state in partition_directories(directory.path, self.release):
                if state == "delete" or topic == METADATA_TOPIC:
                    continue
                if not file_system.exists(os.path.join(path, "partition.metadata")):
                    self.strays = StrayPartitions(None)
                    directory.problems.append(Problem("startup-strays-unknown", {"directory": path}))
                    return

    def _parameters(self, work: WorkProgress, *, clean: bool) -> LoadParameters:
        run = Run(self.options.limits, more=work.more)
        return LoadParameters(
            self.options.open, self.rights, clean, release=self.release, evidence=self.evidence, run=run
        )

    def _configured(self, how: LoadParameters, topic: str) -> LoadParameters:
        """Apply the topic's own configs, as far as the metadata on the disk contains them."""
        if self.metadata is None or topic not in self.metadata.topics:
            return how
        interval = size_config(self.metadata, topic, "index.interval.bytes", None, INTERVAL)
        largest = size_config(self.metadata, topic, "segment.index.bytes", None, LARGEST_INDEX)
        policy = effective(self.metadata, topic, "cleanup.policy", None) or ""
        expires = policy != "compact" and effective(self.metadata, topic, "retention.ms", None) != "-1"
        remote = is_tiered(self.metadata, topic)
        return replace(how, interval=interval, largest=largest, remote=remote, expires=expires)

    def _planned(
        self,
        plan: PartitionPlan,
        act: Callable[[PartitionPlan, SeenDirectory], None],
        work: WorkProgress | None,
    ) -> PartitionPlan:
        """Return the plan that `act` makes from the files of the partition, which are listed once; `work` gets the size
        of the segments. If it stops, or something could not be read, while a broker is changing the partition's
        files, it is made again; if the files keep changing, the plan only notes that."""
        before: dict[tuple[str, str], Identity | None] = {}
        for pause in (*PAUSES, None):
            made = plan.again()
            seen = see(plan.path)
            self.on_seen(plan.path, seen)
            if work is not None and pause == PAUSES[0]:
                work.expect(sum(seen.identities[name].size for name in seen.files if name.endswith(".log")))
            act(made, seen)
            if not (made.stops or made.unread) or not is_changing(plan.path, seen.identities):
                return made
            now = {(stop.file, stop.message): identity(stop.file) for stop in made.stops}
            if now and not made.unread and now == before:
                return made
            before = now
            if self.live.get((plan.topic, plan.partition, plan.state)) is made:
                del self.live[(plan.topic, plan.partition, plan.state)]
            if pause is None or not file_system.isdir(plan.path):
                break
            time.sleep(pause)
        made = replace(plan.again(), newer=made.newer)
        made.notes.append(title_of("directory-note", "changing", path=plan.path))
        return made

    def _carry_out(self, plan: PartitionPlan, act: Callable[[], object]) -> None:
        """Add to the plan why `act` stops."""
        try:
            act()
        except StartupFailed as stopped:
            plan.stops.append(stopped.stop)
        except KafkaError as error:
            if isinstance(error, BadLine) and error.newer and not self.evidence.is_newer(error.file):
                error.newer = ""
            plan.stops.append(startup_failure(error, self.release).given({"logEndsHere": self._ends_at(plan, error)}))
        except SourceError as error:
            plan.unread.append(str(error))
        except OSError as error:
            plan.unread.append(f"{error.filename or plan.path}: {reason(error, error.filename or plan.path)}")

    def _ends_at(self, plan: PartitionPlan, error: KafkaError) -> bool | None:
        """Return whether no batch follows the bytes that an exception is about, not even a damaged or incomplete one;
        None if it is about no bytes of a segment."""
        if not isinstance(error, CorruptRecord) or error.position is None:
            return None
        name = os.path.basename(error.file)
        if name not in current_segments(plan.path)[-1:]:
            return False
        size = length(error.file) or 0
        segment = LogSegment(int(name[:20]), seen_file(error.file), size, self.options.open)
        rest = removed_bytes(segment, error.position, TRUNCATED, "", size, self.options.limits)
        return not rest.loses and rest.tornOffset is None

    def _after(self, plan: PartitionPlan, directory: DirectoryPlan) -> None:
        """Handle a loaded log as loadLog does. Raises StartupFailed, KafkaError, SourceError."""
        failed = _offline_file(directory, *OFFSETS[:2])  # which are read before the logs are loaded
        if failed is not None and plan.openTransactions:
            already = "already " if self.release.line >= (3, 0) else ""
            exception = f"The log dir {directory.path} is {already}offline due to a previous IO exception."
            exception = f"KafkaStorageException: {exception}"
            values = {"log": plan.name, "remedy": failed.remedy}
            raise StartupFailed(
                failure(EXIT, "startup-open-transaction", failed.file, exception, failed.position, values=values)
            )
        topic_id_at = os.path.join(plan.path, "partition.metadata")
        denial = self.rights.java_error(topic_id_at)
        if denial is not None and not denial.reason:
            raise StartupFailed(storage_stop(denied(topic_id_at, "read", denial.exception, self.rights), self.release))
        topic_id = None
        if denial is None or file_system.isdir(topic_id_at):  # what cannot be looked at is missing for File.exists
            topic_id = checkpoint_file.topic_id(topic_id_at, plan.newer, self.release, self.evidence.is_newer)
        plan.topicId = topic_id
        if plan.state == "delete":
            plan.steps.append(
                Step("delete", plan.path, None, None, 0, "the directory, file.delete.delay.ms (1 min) after startup")
            )
            if not self.rights.can(plan.path, WRITE | ENTER):  # UnifiedLog.delete fails the log directory
                exception = f"AccessDeniedException: {plan.path}"
                raise StartupFailed(denied(plan.path, "delete", exception, self.rights, "startup-deletion-denied"))
            return
        if plan.state == "stray":
            plan.notes.append(title_of("directory-note"))
            return
        is_stray_first = STRAY_WITHOUT_ID.applies(self.release)
        if is_stray_first and self._becomes_stray(plan, topic_id, directory):
            return
        key = (plan.topic, plan.partition, plan.state)
        other = self.live.setdefault(key, plan)
        if other is plan and not is_stray_first and self._becomes_stray(plan, topic_id, directory):
            return
        if other is not plan:
            both = f"{other.path} and {plan.path}"
            exception = f"IllegalStateException: Duplicate log directories for {plan.name} are found in both {both}"
            values = {"log": plan.name, "other": other.source}
            raise StartupFailed(failure(EXIT, "startup-log-duplicate", plan.path, exception, values=values))
        if plan.state == "future":
            self._future(plan, topic_id, directory)
        elif (moved := self.moves.other_end(plan)) is not None:
            new = f"{plan.name}.<32 digits>-delete"
            reason = f"to {new}: as soon as {moved} has all its records and replaces it"
            plan.steps.append(Step("rename", plan.path, None, None, 0, reason))
        path = os.path.join(plan.path, "leader-epoch-checkpoint")  # written when a leader is elected
        if not self.rights.can(plan.path, WRITE):
            exception = f"FileNotFoundException: {path}.tmp (Permission denied)"
            raise StartupFailed(denied(f"{path}.tmp", "write", exception, self.rights))
        plan.stops += filter(None, [temporary_file_stop(path, self.rights)])

    def _becomes_stray(self, plan: PartitionPlan, topic_id: str | None, directory: DirectoryPlan) -> bool:
        """Return True, and say so in the plan, if the broker treats the directory as stray."""
        if topic_id is None and self.release.mode == KRAFT and STRAY_WITHOUT_ID_EXITS.applies(self.release):
            exception = "RuntimeException: The log dir … does not have a topic ID, "
            exception += "which is not allowed when running in KRaft mode."
            path = os.path.join(plan.path, "partition.metadata")
            raise StartupFailed(failure(EXIT, "startup-topic-id-missing", path, exception, log=plan.name))
        problem = self.strays.problem(plan.topic, plan.partition, topic_id, starts_as(directory))
        is_kraft = self.release.mode == KRAFT and not self.strays.of_zookeeper
        if topic_id is None and is_kraft and STRAY_WITHOUT_ID.applies(self.release) and problem is None:
            # whatever the controllers have (BrokerMetadataPublisher.initializeManagers)
            problem = Problem("startup-stray-without-id", {"log": plan.name}, {"assigned": False})
        if problem is None:
            plan.otherTopic = self.strays.other_topic(plan.topic, plan.partition, topic_id, starts_as(directory))
            return False
        plan.strayDeleted = not STRAYS_RENAMED.applies(self.release)
        plan.assignedTo = self.strays.assigned_to(topic_id, plan.partition)
        plan.problem = problem._replace(values={**problem.values, "path": plan.path, "directory": directory.path})
        if plan.strayDeleted:
            reason = "the directory, file.delete.delay.ms (1 min) after startup: it is stray"
            plan.steps.append(Step("delete", plan.path, None, None, 0, reason))
        else:
            new = f"{plan.topic}-{plan.partition}.<32 digits>-stray"
            plan.steps.append(Step("rename", plan.path, None, None, 0, f"to {new}: the directory is stray"))
        return True

    def _future(self, plan: PartitionPlan, topic_id: str | None, directory: DirectoryPlan) -> None:
        """recoverAbandonedFutureLogs: a future log that the controller has assigned to this log directory takes the
        name of the live one."""
        assigned = None
        if FUTURE_RECOVERED.applies(self.release):
            assigned = self.strays.directory_of(topic_id, plan.partition, starts_as(directory))
        name = os.path.join(os.path.dirname(plan.path), plan.name)
        live = self.moves.other_end(plan)
        if FUTURE_BESIDE.applies(self.release) and live is None:
            is_only = sum(directory.logDir for directory in self.directories) == 1
            if is_only or file_system.isdir(name):
                raise StartupFailed(_beside(plan, name))
        if assigned is None or assigned != directory.directoryId:
            plan.notes.append(title_of("directory-note", "moving"))
            if live is not None and not file_system.lexists(name):
                reason = f"to {plan.name}: as soon as it has all records of {live} and replaces it"
                plan.steps.append(Step("rename", plan.path, None, None, 0, reason))
            return
        if not file_system.lexists(name):
            reason = f"to {plan.name}: the cluster has assigned the partition to this log directory"
            plan.steps.append(Step("rename", plan.path, None, None, 0, reason))
            return
        exception = f"{_cannot_rename(plan)}; DirectoryNotEmptyException: {name}"
        raise StartupFailed(failure(EXIT, "startup-log-replaced", plan.path, exception, log=plan.name))

    # --- checkpoints ---

    def _offsets(self, directory: DirectoryPlan, name: str) -> dict[tuple[str, int], int]:
        """Return the offsets in a checkpoint; one that the broker may not read fails the log directory."""
        path = os.path.join(directory.path, name)
        denial = self.rights.java_error(path)
        if denial is not None and not file_system.isdir(path):
            directory.stops.append(not_opened(path, "read", denial, self.rights))
            return {}
        try:
            return checkpoint_file.offsets(path, self.release)
        except SourceError as error:
            directory.unread.append(str(error))
        except BadLine as error:
            self._bad_checkpoint(directory, path, error)
        return {}

    def _bad_checkpoint(self, directory: DirectoryPlan, path: str, error: BadLine) -> None:
        without = {
            OFFSETS[0]: "the broker re-reads everything after an unclean shutdown",
            OFFSETS[1]: "records deleted with DeleteRecords reappear",
            OFFSETS[2]: "high watermarks start at the log start offset",
            CLEANER: "compaction starts from the beginning",
        }[os.path.basename(path)]
        values = {"reason": error, "without": without}
        if not error.is_number:
            stop = failure(
                OFFLINE,
                "startup-checkpoint-unreadable",
                path,
                error.exception,
                error.position,
                facts={
                    "versionOnly": error.is_version,
                    "recoveryFile": path.endswith(OFFSETS[0]),
                    "clean": directory.clean,
                },
                values=values,
            )
            directory.stops.append(stop)
        else:
            values |= {"name": os.path.basename(path), "file": path, "position": error.position}
            directory.problems.append(Problem("startup-checkpoint-emptied", values))
