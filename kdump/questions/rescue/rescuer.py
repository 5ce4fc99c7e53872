"""What both kinds of rescue do: find the controllers, choose numbers above those of the disks, and write the state."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kdump.answer import answer_object
from kdump.cluster.disks import Disks
from kdump.cluster.release_evidence import LEVEL, level_name
from kdump.format.count_text import count_text
from kdump.format.kafka_release import KafkaRelease
from kdump.format.kafka_uuid import uuid_text
from kdump.format.known_releases import Line, at_most
from kdump.io.mounted_paths import why_without_metadata
from kdump.io.run import Run
from kdump.jsonl import line
from kdump.log.lock_holder import lock_holder
from kdump.log.log_directory import LogDirectory
from kdump.log.output_directory import OutputDirectory
from kdump.problems.problem import title_of
from kdump.query import Query, as_of_option, flag, many, option, release_option
from kdump.questions.rescue.answer import (
    Rescue,
    RescueController,
    RescueError,
    RescueInvention,
    RescueStep,
    RescueSummary,
)
from kdump.questions.rescue.numbers import (
    MORE_EPOCHS,
    MORE_OFFSETS,
    LeaderEpochs,
    new_epoch,
    new_offset,
    new_producer_id,
)
from kdump.questions.rescue.write_log import NewDirectory, NewLog, write_logs
from kdump.state.as_of import AskedAsOf, AsOf
from kdump.state.image_records import image_records
from kdump.state.metadata_image import Endpoint, MetadataImage, ProducerIds, QuorumImage, Voter

LEDGER = "ledger.jsonl"
WITH_DIRECTORY_ID = (3, 7)
LISTENER = "CONTROLLER"
"""Name of the controllers' listener, if no voter states another one."""


class NewController(NamedTuple):
    """A controller of the rescued cluster; `host` and `port`: as the voters are named (controller.quorum.voters)."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.node_id}@{host}:{self.port}"


CONTROLLER = re.compile(r"(\d{1,10})@(?:\[([0-9A-Fa-f:.]+)\]|([^\s:@\[\]]+)):(\d{1,5})")


def parse_controller(typed: str | NewController) -> NewController:
    """Parse a controller as controller.quorum.voters names it: 1@host:9093. Raises ValueError."""
    match = CONTROLLER.fullmatch(str(typed))
    if match is None or int(match[1]) >= 1 << 31 or not 0 < int(match[4]) < 1 << 16:
        raise ValueError(f"{typed!r} is not a controller; use ID@HOST:PORT, such as 1@kafka-1:9093")
    return NewController(int(match[1]), match[2] or match[3], int(match[4]))


@dataclass(frozen=True, kw_only=True)
class RescueQuery(Query, AskedAsOf):
    """What to rescue."""

    out: str | None = option(
        "--out", metavar="DIR", help="Write log directories for controllers to this new directory."
    )
    as_of: int | AsOf | None = as_of_option("Take")
    copy: str | None = option(
        "--copy", metavar="DIR", help="Take the state from the copy in this log directory.  [the newest]"
    )
    leave_out: Iterable[int] = many(
        "--leave-out", type="offset", help="Leave out the record at this offset; repeatable."
    )
    controllers: Iterable[str | NewController] = many(
        "--controller",
        metavar="ID@HOST:PORT",
        type=parse_controller,
        help="Write a log directory for this controller; repeatable.  [the voters that the metadata names]",
    )
    kafka_version: KafkaRelease | str | None = release_option("Leave out what controllers cannot apply that are")
    from_data: bool = flag(
        "--from-data", help="If no copy of the metadata is left: rebuild it from the brokers' partition directories."
    )
    configs: str | None = option(
        "--configs",
        metavar="FILE",
        help="With --from-data: take configs from this file: the output of kafka-configs.sh --describe or "
        "kafka-topics.sh --describe, or JSON.",
    )
    with_stray: bool = flag(
        "--with-stray", help="With --from-data: also rebuild topics that only stray directories have."
    )
    dynamic_quorum: bool = flag(
        "--dynamic-quorum",
        help="With --from-data: the nodes have controller.quorum.bootstrap.servers, not controller.quorum.voters.",
    )
    while_running: bool = flag("--while-running", help="Also read disks of running nodes, which may change.")

    @cached_property
    def offsets(self) -> frozenset[int]:
        """The offsets of records to leave out."""
        return frozenset(self.leave_out)

    @cached_property
    def new_controllers(self) -> list[NewController]:
        return [parse_controller(each) for each in self.controllers]


class Rescuer:
    """One rescue. A subclass sets `release` and `image`, then `voters`."""

    release: KafkaRelease
    image: MetadataImage
    voters: list[Voter]
    more_offsets, more_epochs = MORE_OFFSETS, MORE_EPOCHS
    epoch_places: Sequence[LogDirectory]
    """Log directories whose partitions may have higher leader epochs than the state."""

    def __init__(self, disks: Disks, asked: RescueQuery, run: Run) -> None:
        self.disks, self.asked, self.run = disks, asked, run
        self.places = self.epoch_places = disks.directories
        cluster_id = disks.one_cluster()
        if cluster_id is None:
            raise RescueError(
                "no meta.properties states the cluster ID; add a log directory of any node of the cluster that has one"
            )
        self.cluster_id = cluster_id
        refuse_running(self.places, asked.while_running)
        for place in self.places:
            why = why_without_metadata(place.path)
            if why is not None:
                raise RescueError(f"{place.path}: {why}")
        self.inventions: list[RescueInvention] = []

    @property
    def line(self) -> Line:
        return at_most(self.release.line).line

    @property
    def images(self) -> list[QuorumImage]:
        """What was found in copies of the metadata log, and the state that is written."""
        raise NotImplementedError

    def summary(self, log: NewLog, out: str | None) -> RescueSummary:
        """Return the summary of what has been, or would be, written, without what `answers` adds."""
        image, level = self.image, self.image.features.get(LEVEL)
        return RescueSummary(
            clusterId=self.cluster_id,
            release=str(self.release),
            out=out,
            ledger=None if out is None else os.path.join(out, LEDGER),
            snapshot=image.snapshot,
            endOffset=image.end_offset,
            endTimestamp=image.end_time,
            leaderEpoch=image.epoch,
            newOffset=log.offset,
            newEpoch=log.epoch,
            metadataVersion=None if level is None else level_name(LEVEL, level),
            kraftVersion=image.kraft_version or 0,
            brokers=len(image.brokers),
            topics=len(image.topics),
            partitions=sum(len(topic.partitions) for topic in image.topics.values()),
            configs=sum(map(len, image.configs.values())),
            acls=len(image.acls),
            scramCredentials=len(image.scram),
        )

    def answers(self, made: Rescue) -> None:
        """Add what is in the ledger, but for the inventions, and what the summary says of it."""
        raise NotImplementedError

    def steps(self, made: Rescue) -> Iterator[RescueStep]:
        """Yield what to do next."""
        raise NotImplementedError

    def found_directory(self, number: int) -> LogDirectory | None:
        """Return the log directory of a node that has its metadata log, or is to get it."""
        raise NotImplementedError

    def named_voters(self) -> list[Voter]:
        """Return the voters of the rescued cluster, each with its directory and endpoints as far as they are known.
        Raises RescueError if none is."""
        known = self.image.voters
        asked = {each.node_id: each for each in self.asked.new_controllers}
        numbers = list(asked) or sorted(known)
        if not numbers:
            raise RescueError(
                "no controller is known: nothing on these disks names one; name each with --controller ID@HOST:PORT"
            )
        listener = next((each.name for voter in known.values() for each in voter.endpoints), LISTENER)
        voters = []
        for number in numbers:
            voter = known.get(number, Voter(number))
            endpoints = voter.endpoints
            if number in asked:
                endpoints = (Endpoint(listener, asked[number].host, asked[number].port),)
            voters.append(Voter(number, self._directory_id(number, voter), endpoints))
        for voter in voters if self.image.kraft_version else ():
            if not voter.endpoints:
                raise RescueError(f"no address of controller {voter.voterId} is known; name it with --controller")
        if known and set(numbers) != set(known):
            reason = "named with --controller"
            self.inventions.append(RescueInvention("voters", sorted(known), sorted(numbers), reason))
        return voters

    def _directory_id(self, number: int, voter: Voter) -> str | None:
        """Return the directory.id of a controller: that of its log directory, the one that the voters have, or a new
        one. None if the release has none."""
        place = self.found_directory(number)
        stated = None if place is None else self.disks.ids(place).get("directory.id")
        if stated is not None or self.line < WITH_DIRECTORY_ID:
            return stated
        if voter.voterDirectoryId is not None:
            return voter.voterDirectoryId
        made = new_uuid(self.cluster_id, str(number))
        reason = "neither a log directory of it nor the log states one"
        self.inventions.append(RescueInvention(f"directory.id of controller {number}", None, made, reason))
        return made

    def result(self, directory: OutputDirectory | None, out: str | None) -> Rescue:
        """Write everything, or nothing if `directory` is None. `out`: its path as it was given."""
        images = self.images
        log = NewLog(
            new_offset(images, self.places, self.more_offsets),
            new_epoch(images, self.places, self.more_epochs),
            self.image.end_time or 0,
            self.image.kraft_version or 0,
            self.voters,
        )
        self.invent(log)
        controllers = [self._controller(each, out) for each in self.voters]
        names = [
            NewDirectory(f"controller-{each.voterId}", self.cluster_id, each.voterId, each.voterDirectoryId)
            for each in self.voters
        ]
        leader_epochs = LeaderEpochs(self.epoch_places)
        values = image_records(self.image, self.line, leader_epochs.raise_epoch)
        made = Rescue(self.summary(log, out), [], [], self.inventions, controllers)
        self.answers(made)
        try:
            if directory is None:
                count = sum(1 for _ in values)
                self._raised(leader_epochs)
            else:
                with directory.whole() as passing:
                    count = write_logs(passing, names, log, values)
                    self._raised(leader_epochs)
                    with passing.writing(LEDGER) as file:
                        for each in made.ledger:
                            file.write(line(answer_object(each)).encode() + b"\n")
        except ValueError as error:
            raise RescueError(f"a record cannot be written: {error}") from error
        made.summary.records = count
        made.steps = list(self.steps(made))
        return made

    def invent(self, log: NewLog) -> None:
        """Add what is written and is in no copy, and change the state accordingly."""
        source = "above those of every copy, quorum-state and broker epoch that was found"
        self.inventions.append(RescueInvention("end offset", self.image.end_offset, log.offset, source))
        reason = f"{source}: a node that still has its old copy fetches the new snapshot"
        self.inventions.append(RescueInvention("leader epoch", self.image.epoch, log.epoch, reason))
        block = self.image.producer_ids.get("")
        new = new_producer_id(self.image)
        self.image.producer_ids[""] = ProducerIds(-1, -1, new)
        reason = "above every block that may have been assigned since, so that no producer ID is assigned twice"
        was = None if block is None else block.nextProducerId
        self.inventions.append(RescueInvention("next producer ID", was, new, reason))
        gone = sorted(set(self.image.controllers) - {voter.voterId for voter in self.voters})
        for number in gone:
            del self.image.controllers[number]
            reason = "it is not a controller of the rescued cluster"
            self.inventions.append(RescueInvention(f"registration of controller {number}", "registered", None, reason))

    def _raised(self, epochs: LeaderEpochs) -> None:
        if epochs.raised:
            what = f"leader epochs of {count_text(epochs.raised, 'partition')}"
            reason = (
                "each is above those in the state and on the disks: with an older one, replicas may truncate records"
            )
            self.inventions.append(RescueInvention(what, None, f"up to {epochs.highest}", reason))

    def _controller(self, voter: Voter, out: str | None) -> RescueController:
        endpoint = next(iter(voter.endpoints), None)
        place = self.found_directory(voter.voterId)
        return RescueController(
            voter.voterId,
            None if out is None else os.path.join(out, f"controller-{voter.voterId}"),
            voter.voterDirectoryId,
            None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
            None if place is None else place.path,
        )


def refuse_copies(disks: Disks) -> None:
    """Raise RescueError if one log directory is a copy of another: what is to be done with one would be done with the
    other."""
    for path, original in disks.copy_of.items():
        raise RescueError(f"{path}: a copy of {original}, or that of this one; pass one of them")


def refused(case: str = "", **values: object) -> RescueError:
    """Return why nothing is rescued from these disks, and what to do."""
    return RescueError(title_of("rescue-refused", case, **values))


def refuse_zookeeper(disks: Disks) -> None:
    """Raise RescueError if a log directory is one of a broker with ZooKeeper."""
    for place in disks.directories:
        ids = disks.ids(place)
        if "broker.id" in ids and ids.get("version", "0") == "0":
            raise refused("zookeeper", path=place.path)


def refuse_running(places: Sequence[LogDirectory], while_running: bool) -> None:
    """Raise RescueError if a node is running on one of the log directories, and that was not asked for."""
    for place in places:
        process = None if while_running else lock_holder(place.path)
        if process is not None:
            raise RescueError(
                f"{place.path}: a node is running on it (process {process}), so that it may change, and its copy may "
                "be behind; stop it, or pass --while-running"
            )


def new_uuid(cluster_id: str, name: str) -> str:
    """Return an ID for something of a cluster, the same on every run; as Kafka's, it does not begin with a dash
    (Uuid.randomUuid)."""
    digest = hashlib.sha256(f"kdump rescue {cluster_id} {name}".encode())
    while (uuid := uuid_text(digest.digest()[:16])).startswith("-"):
        digest.update(b"-")
    return uuid
