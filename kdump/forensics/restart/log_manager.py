"""All logs of a broker: which directories it takes for partitions, how each is loaded, and what does not go together.

Source: kafka.log.LogManager (loadLogs, loadLog, recoverAbandonedFutureLogs), LocalLog.parseTopicPartitionName,
org.apache.kafka.storage.internals.log.LogManager.isStrayReplica, BrokerMetadataPublisher (4.3.1).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from kdump.check.options import Options
from kdump.forensics.restart import checkpoint_file
from kdump.forensics.restart.checkpoint_file import BadLine
from kdump.forensics.restart.log_loader import Loading, load
from kdump.forensics.restart.metadata_log import load_metadata_log
from kdump.forensics.restart.plan import EXIT, HIDDEN, OFFLINE, DirectoryPlan, PartitionPlan, Step, Stop, Stopped
from kdump.forensics.restart.recovery import INTERVAL
from kdump.forensics.restart.strays import Strays
from kdump.format.numbers import parse_int
from kdump.log.disk import REMOTE_CACHE
from kdump.log.errors import SourceError
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.listing import items
from kdump.log.paths import natural
from kdump.state.image import Metadata
from kdump.state.topic_config import effective

SUFFIXED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)")
OFFSETS = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")
CLEANER = "cleaner-offset-checkpoint"
Found = Callable[[PartitionPlan], None]


def parse_name(name: str) -> tuple[str, int, str] | None:
    """Topic, partition and state of a directory's name; None for one that ends the broker."""
    state, own = "", name
    for suffix in ("delete", "future", "stray"):
        if name.endswith(f"-{suffix}"):
            if not SUFFIXED.fullmatch(name):
                return None
            state, own = suffix, name.rpartition(".")[0]
    topic, dash, text = own.rpartition("-")
    partition = checkpoint_file.number(text, 32)
    return None if not (dash and topic) or partition is None else (topic, partition, state)


def is_offset_checkpoint(stop: Stop) -> bool:
    """Whether a stop is about a checkpoint that is read before the logs are loaded."""
    return os.path.basename(stop.file) in OFFSETS[:2]


@dataclass
class LogManager:
    """One start of the broker over its `directories`."""

    directories: list[DirectoryPlan]
    options: Options
    strays: Strays
    metadata: Metadata | None
    wanted: Callable[[str], bool]
    met: Callable[[int], None]
    live: dict[tuple[str, int, str], PartitionPlan] = field(default_factory=dict)

    def metadata_logs(self) -> Iterator[PartitionPlan]:
        """The copies of the metadata log; every node has one."""
        for directory in self.directories:
            path = os.path.join(directory.path, f"{METADATA_TOPIC}-0")
            if os.path.isfile(path):
                what = f"FileAlreadyExistsException: {path}"
                remedy = "move it away: the node fetches the metadata anew"
                message = "a file stands in the place of the metadata log's directory"
                directory.stops.append(Stop(EXIT, path, None, None, message, what, remedy))
            if os.path.isdir(path):
                plan = PartitionPlan(path, directory.path, METADATA_TOPIC, 0, "", clean=False)
                how = Loading(self.options.open, False, limits=self.options.limits, met=self.met)
                self._carry_out(plan, how, load_metadata_log)
                plan.stops = [stop._replace(kind=EXIT) for stop in plan.stops]
                yield plan

    def logs(self) -> Iterator[PartitionPlan]:
        """loadLogs: every other directory, one by one."""
        for directory in self.directories:
            if not any(stop.kind == OFFLINE for stop in directory.stops):  # meta.properties
                yield from self._logs_in(directory)

    def _logs_in(self, directory: DirectoryPlan) -> Iterator[PartitionPlan]:
        clean = bool(directory.clean)
        if directory.clean:
            path = os.path.join(directory.path, ".kafka_cleanshutdown")
            directory.steps.append(Step("delete", path, None, None, 0, "so that a crash during the start is noticed"))
        noted = {name: self._offsets(directory, name) for name in OFFSETS}
        points, starts, marks = (noted[name] for name in OFFSETS)
        self._cleaner(directory)
        try:
            entries = sorted(items(directory.path), key=lambda item: natural(item.name))
        except OSError as error:
            directory.unread.append(f"{directory.path}: {error.strerror}")
            return
        for item in entries:
            if not item.is_directory or item.name == REMOTE_CACHE:
                continue
            parsed = parse_name(item.name)
            if parsed is None:
                message = f"a directory whose name is not topic-partition: {item.name!r}"
                form = "topic-partition or topic-partition.uniqueId-delete (if marked for deletion)"
                what = f"KafkaException: Found directory {item.path}, '{item.name}' is not in the form of {form}."
                remedy = (
                    "move it out of the log directory (of a mount point's lost+found: give Kafka a directory below)"
                )
                directory.stops.append(Stop(EXIT, item.path, None, None, message, what, remedy))
                continue
            topic, partition, state = parsed
            if topic == METADATA_TOPIC or not self.wanted(topic):
                continue
            key = (topic, partition)
            plan = PartitionPlan(item.path, directory.path, topic, partition, state, clean, points.get(key))
            plan.highWatermark = None if state else marks.get(key)
            how = Loading(
                self.options.open,
                clean,
                starts.get(key, 0),
                points.get(key, 0),
                limits=self.options.limits,
                met=self.met,
            )
            how = self._configured(how, topic)
            self._carry_out(plan, how, load)
            if any(cut.kind == HIDDEN for cut in plan.cuts):
                instead = PartitionPlan(item.path, directory.path, topic, partition, state, False, points.get(key))
                self._carry_out(instead, replace(how, clean=False), load)
                plan.logEndIfRecovered = instead.logEndOffset
            self._after(plan, directory)
            yield plan

    def _configured(self, how: Loading, topic: str) -> Loading:
        """With the topic's own configs, as far as the metadata on the disk has them."""
        if self.metadata is None or topic not in self.metadata.topics:
            return how
        interval = parse_int(effective(self.metadata, topic, "index.interval.bytes", None))
        remote = effective(self.metadata, topic, "remote.storage.enable", None) == "true"
        return replace(how, interval=INTERVAL if interval is None or interval < 0 else interval, remote=remote)

    def _carry_out(self, plan: PartitionPlan, how: Loading, act: Callable[[PartitionPlan, Loading], None]) -> None:
        try:
            act(plan, how)
        except Stopped as stopped:
            plan.stops.append(stopped.stop)
        except SourceError as error:
            plan.unread.append(str(error))
        except OSError as error:
            plan.unread.append(f"{error.filename or plan.path}: {error.strerror}")

    def _after(self, plan: PartitionPlan, directory: DirectoryPlan) -> None:
        """What loadLog does with a log that is loaded."""
        if plan.stops or plan.unread:
            return
        failed = next((stop for stop in directory.stops if stop.kind == OFFLINE and is_offset_checkpoint(stop)), None)
        if failed is not None and plan.openTransactions:
            message = (
                f"{os.path.basename(failed.file)} has failed the log directory before, and {plan.name} has an open "
                "transaction, for which the broker reads the log once more: that ends it"
            )
            what = f"The log dir {directory.path} is already offline due to a previous IO exception."
            what = f"KafkaStorageException: {what}"
            plan.stops.append(Stop(EXIT, failed.file, failed.position, None, message, what, failed.remedy))
            return
        try:
            topic_id = checkpoint_file.topic_id(os.path.join(plan.path, "partition.metadata"))
        except Stopped as stopped:
            plan.stops.append(stopped.stop)
            return
        except SourceError as error:
            plan.unread.append(str(error))
            return
        if plan.state == "delete":
            plan.steps.append(
                Step("delete", plan.path, None, None, 0, "the directory, file.delete.delay.ms (1 min) after the start")
            )
            return
        if plan.state == "stray":
            plan.notes.append(
                "a stray of an earlier start: it is loaded, not served, and stays until somebody deletes it"
            )
            return
        plan.stray, plan.remedy = self.strays.reason(plan.topic, plan.partition, topic_id, directory.nodeId)
        if plan.stray:
            new = f"{plan.topic}-{plan.partition}.<32 digits>-stray"
            plan.steps.append(Step("rename", plan.path, None, None, 0, f"to {new}: it is a stray"))
            return
        key = (plan.topic, plan.partition, plan.state)
        other = self.live.setdefault(key, plan)
        if other is not plan:
            message = f"{plan.name} is live in {other.source} too"
            both = f"{other.path} and {plan.path}"
            what = f"IllegalStateException: Duplicate log directories for {plan.name} are found in both {both}"
            remedy = (
                "keep the one that is right (kdump diff tells how they differ), move the other out of the log directory"
            )
            plan.stops.append(Stop(EXIT, plan.path, None, None, message, what, remedy))
        elif plan.state == "future":
            self._future(plan, topic_id, directory)

    def _future(self, plan: PartitionPlan, topic_id: str | None, directory: DirectoryPlan) -> None:
        """recoverAbandonedFutureLogs: one that the controller has assigned takes the live one's name."""
        assigned = self.strays.directory_of(topic_id, plan.partition, directory.nodeId)
        if assigned is None or assigned != directory.directoryId:
            plan.notes.append("a replica that moves here from another log directory: the broker goes on with that")
            return
        name = os.path.join(os.path.dirname(plan.path), plan.name)
        if not os.path.lexists(name):
            reason = f"to {plan.name}: the cluster has assigned the partition to this log directory"
            plan.steps.append(Step("rename", plan.path, None, None, 0, reason))
            return
        message = (
            f"the cluster has assigned {plan.name} to this log directory, so that the broker gives this directory the "
            f"name {plan.name}, which there is already"
        )
        what = f"KafkaStorageException: Error while renaming dir for {plan.name}; DirectoryNotEmptyException: {name}"
        remedy = f"decide which of the two is the partition (kdump diff), name it {plan.name}, and move the other away"
        plan.stops.append(Stop(EXIT, plan.path, None, None, message, what, remedy))

    # --- checkpoints ---

    def _offsets(self, directory: DirectoryPlan, name: str) -> dict[tuple[str, int], int]:
        path = os.path.join(directory.path, name)
        try:
            return checkpoint_file.offsets(path)
        except SourceError as error:
            directory.unread.append(str(error))
        except BadLine as error:
            self._bad_checkpoint(directory, path, error)
        return {}

    def _cleaner(self, directory: DirectoryPlan) -> None:
        path = os.path.join(directory.path, CLEANER)
        try:
            checkpoint_file.offsets(path)
        except SourceError as error:
            directory.unread.append(str(error))
        except BadLine as error:
            self._bad_checkpoint(directory, path, error)

    def _bad_checkpoint(self, directory: DirectoryPlan, path: str, error: BadLine) -> None:
        name = os.path.basename(path)
        without = {
            OFFSETS[0]: "without it everything is re-read after an unclean shutdown",
            OFFSETS[1]: "without it records that were deleted by DeleteRecords come back",
            OFFSETS[2]: "without it high watermarks begin at the log start",
            CLEANER: "without it compaction begins anew",
        }[name]
        if not error.is_number:
            message = f"{name} cannot be read: {error}"
            remedy = f"copy {path} away and remove it, or put its lines right: {without}"
            directory.stops.append(Stop(OFFLINE, path, error.position, None, message, error.exception, remedy))
        else:
            directory.warnings.append(
                f"{name}, byte {error.position}: {error}; the broker takes the file for empty: {without}"
            )
