"""The cluster according to KRaft's metadata: the result of replaying the log.

Names are those of the records' fields. Source: org.apache.kafka.image.MetadataImage and the images in it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, NAME, Cell, Doc, Shown, answer
from kdump.format.kafka_uuid import ZERO_UUID
from kdump.state.metadata_problem import Kind, MetadataProblem
from kdump.state.metadata_refusal import Refusal
from kdump.state.value_texts import endpoints_text, features_text

NO_DIRECTORY = (ZERO_UUID, "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg")
"""Directory IDs of replicas that the metadata assigns to a broker, but to none of its log directories
(DirectoryId.MIGRATING, UNASSIGNED, LOST)."""


class PartitionRegistration(NamedTuple):
    """A partition. `directories`: the log directory ID of each replica, in the same order; empty if the record has
    none. `leader` is -1 if there is none. The eligible leader replicas are those outside the ISR that have all
    committed records (KIP-966)."""

    replicas: Annotated[
        tuple[int, ...], Doc("brokers with a replica, the preferred leader first", after="isr"), Shown(rank=8)
    ]
    directories: Annotated[tuple[str, ...], Doc("ID of the log directory of each replica", after="partitionEpoch")]
    leader: Annotated[int, Doc("broker that leads it; -1: none"), Shown()]
    leaderEpoch: Annotated[int, Doc("leader epoch, raised with each change of leader"), Shown("epoch", 4)]
    isr: Annotated[tuple[int, ...], Doc("brokers with an in-sync replica"), Shown(), Cell(none="none")] = ()
    addingReplicas: Annotated[tuple[int, ...], Doc("replicas being added"), Shown("adding", 6)] = ()
    removingReplicas: Annotated[tuple[int, ...], Doc("replicas being removed"), Shown("removing", 6)] = ()
    eligibleLeaderReplicas: Annotated[
        tuple[int, ...], Doc("replicas out of sync, but with all committed records (KIP-966)"), Shown("elr", 5)
    ] = ()
    lastKnownElr: Annotated[
        tuple[int, ...],
        Doc("last leader, stored when the ISR became empty; empty if there is a leader"),
        Shown("last known elr", 3),
    ] = ()
    leaderRecoveryState: Annotated[str, Doc("RECOVERING after an unclean election, else RECOVERED")] = "RECOVERED"
    partitionEpoch: Annotated[int, Doc("partition epoch, raised with each change of the partition")] = -1

    def directory_of(self, node: int | None) -> str | None:
        """Return the ID of the log directory to which a broker's replica is assigned; None if it has none, or it is
        assigned to none of the broker's log directories."""
        if node not in self.replicas:
            return None
        number = self.replicas.index(node)
        directory = self.directories[number] if number < len(self.directories) else None
        return None if directory in NO_DIRECTORY else directory

    @property
    def is_under_replicated(self) -> bool:
        """Whether it has fewer in-sync replicas than replicas, not counting those being added (TopicCommand)."""
        adding = len(self.addingReplicas)
        return len(self.isr) < len(self.replicas) - (adding if adding < len(self.replicas) else 0)

    @property
    def is_offline(self) -> bool:
        return self.leader < 0

    @property
    def is_reassigning(self) -> bool:
        return bool(self.addingReplicas or self.removingReplicas)

    def __deepcopy__(self, memo: dict[int, Any]) -> PartitionRegistration:
        """Return itself, because it cannot be changed: the copy of a cluster is made for each aborted transaction."""
        return self


TOPIC, BROKER = 2, 4
"""IDs of ConfigResource.Type."""


NO_CONFIGS: dict[str, str] = {}
"""The configs of most topics: not to be changed."""


@dataclass(slots=True)
class TopicImage:
    """A topic. `id` is in Kafka's base64 form; `configs` are the topic's own."""

    name: str
    id: str
    configs: dict[str, str] = field(default_factory=dict)
    partitions: dict[int, PartitionRegistration] = field(default_factory=dict)


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int
    securityProtocol: str = ""


class SupportedFeature(NamedTuple):
    """A feature that a node supports, with its range of versions."""

    name: str
    minSupportedVersion: int
    maxSupportedVersion: int


class BrokerRegistration(NamedTuple):
    """A registered broker. A fenced one serves no clients and leads no partitions. `logDirs`: the IDs of its log
    directories (none before metadata.version 3.7). The cordoned ones accept no new replicas (None: unknown)."""

    brokerId: Annotated[int, Doc("node.id"), Shown("broker")]
    brokerEpoch: Annotated[int, Doc("offset of its registration"), Shown("epoch", 2, after="outOfSync")]
    incarnationId: Annotated[str, Doc("incarnation ID of its process")]
    rack: Annotated[str | None, Doc("broker.rack", after="brokerId"), Shown(rank=5)]
    fenced: Annotated[bool, Doc("whether it is registered as fenced")]
    inControlledShutdown: Annotated[bool, Doc("whether it is registered as shutting down")]
    logDirs: Annotated[tuple[str, ...], Doc("IDs of its log directories"), Shown(rank=1, least=22)]
    cordonedLogDirs: Annotated[tuple[str, ...] | None, Doc("IDs of the log directories that accept no new replicas")]
    endPoints: Annotated[
        tuple[Endpoint, ...],
        Doc("endpoints, each {…}", after="inControlledShutdown"),
        Shown("endpoints", 5, least=20),
        Cell(endpoints_text),
    ]
    features: Annotated[
        tuple[SupportedFeature, ...], Doc("features that the node supports, each {…}"), Cell(features_text)
    ]
    isMigratingZkBroker: Annotated[bool, Doc("whether it is a ZooKeeper broker in migration")] = False


@answer("clusterController")
class ControllerRegistration(NamedTuple):
    """A registered controller."""

    controllerId: Annotated[int, Doc("node.id"), Shown("controller")]
    incarnationId: Annotated[str, Doc("incarnation ID of its process"), Shown(rank=2, after="endPoints")]
    zkMigrationReady: Annotated[bool, Doc("whether it can migrate from ZooKeeper", after="features")]
    endPoints: Annotated[
        tuple[Endpoint, ...], Doc("endpoints, each {…}"), Shown("endpoints", 5, least=20), Cell(endpoints_text)
    ]
    features: Annotated[
        tuple[SupportedFeature, ...],
        Doc("features that the node supports, each {…}"),
        Shown(rank=1, least=20),
        Cell(features_text),
    ]


class Voter(NamedTuple):
    """A voter of the quorum; without directory and endpoints if the voters are static (KIP-853)."""

    voterId: Annotated[int, Doc("node.id"), Shown("voter")]
    voterDirectoryId: Annotated[
        str | None, Doc("ID of its metadata directory; null if voters are static"), Shown("directory", 2)
    ] = None
    endpoints: Annotated[
        tuple[Endpoint, ...], Doc("endpoints, each {…}"), Shown(rank=5, least=20), Cell(endpoints_text)
    ] = ()


class QuorumLeader(NamedTuple):
    """The leader of the quorum, and the offset of the record that states it; None if quorum-state does."""

    leaderId: int
    leaderEpoch: int
    offset: int | None = None


@answer("clusterAcl")
class StandardAcl(NamedTuple):
    """An ACL."""

    id: Annotated[str, Doc("ID of the entry", after="host"), Shown(rank=1)]
    resourceType: Annotated[str, Doc("TOPIC, GROUP, CLUSTER …"), Shown()]
    resourceName: Annotated[str, Doc("name of the resource, or prefix"), Shown(least=12, cuts=NAME)]
    patternType: Annotated[str, Doc("LITERAL or PREFIXED"), Shown()]
    principal: Annotated[str, Doc("User:name"), Shown(least=12, cuts=NAME)]
    host: Annotated[str, Doc("client host; * for any"), Shown()]
    operation: Annotated[str, Doc("READ, WRITE …", after="permissionType"), Shown()]
    permissionType: Annotated[str, Doc("ALLOW or DENY", after="principal"), Shown()]


@answer("clusterScram")
class ScramCredential(NamedTuple):
    """A user's SCRAM credential, without its salt and keys."""

    name: Annotated[str, Doc("user"), Shown("user")]
    mechanism: Annotated[str, Doc("SCRAM-SHA-256 or SCRAM-SHA-512"), Shown()]
    iterations: Annotated[int, Doc("iterations of the hash; salt and keys are not shown"), Shown()]


class ScramKeys(NamedTuple):
    """The secrets of a SCRAM credential."""

    salt: bytes
    storedKey: bytes
    serverKey: bytes


@answer("clusterToken")
class DelegationToken(NamedTuple):
    """A delegation token. Times are epoch ms."""

    tokenId: Annotated[str, Doc("token ID; the secret is not on the disk"), Shown()]
    owner: Annotated[str, Doc("principal"), Shown(rank=5)]
    requester: Annotated[str, Doc("principal"), Shown(rank=5)]
    renewers: Annotated[tuple[str, ...], Doc("principals"), Shown(rank=5)]
    issueTimestamp: Annotated[int, Doc("time of creation", EPOCH_MS), Shown(rank=5)]
    maxTimestamp: Annotated[
        int, Doc("time up to which it can be renewed", EPOCH_MS, after="expirationTimestamp"), Shown(rank=5)
    ]
    expirationTimestamp: Annotated[int, Doc("time at which it expires, unless renewed", EPOCH_MS), Shown(rank=5)]


class ProducerIds(NamedTuple):
    """The block of producer IDs that was allocated last ends below `nextProducerId`."""

    brokerId: int
    brokerEpoch: int
    nextProducerId: int


QuotaEntityKey = tuple[tuple[str, str | None], ...]
"""(user, client-id or ip; its name, None for the default) for each part of the entity."""


@dataclass
class QuorumImage:
    """The quorum as of `end_offset`, the offset after the last record that was read, and how far the rest can be known:
    what is kept of each copy of the metadata.

    `snapshot`: the end offset of the snapshot that the replay started with, None if there was none. `problems`: what
    could not be read or applied; whether that puts the rest in doubt, `doubt` says.

    `levels`: every level of a feature that a record set, since the snapshot and in it, with the offset of the first
    such record in the log, None if it is in the snapshot: a controller refuses a level that it does not know, even if
    it was lowered later. `newer`: what only a newer release than the newest known one writes, with the same offset."""

    brokers: dict[int, BrokerRegistration] = field(default_factory=dict)
    controllers: dict[int, ControllerRegistration] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    zk_migration: dict[str, str] = field(default_factory=dict)
    """At most one, under the empty name: state of the migration from ZooKeeper; none in a cluster that started with
    KRaft before 3.4."""
    voters: dict[int, Voter] = field(default_factory=dict)
    leader: QuorumLeader | None = None
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """The leader epochs in the log, each with the offset of the record that states it."""
    kraft_version: int | None = None
    snapshot: int | None = None
    snapshot_epoch: int = 0
    """Leader epoch in the name of that snapshot."""
    end_offset: int = 0
    end_time: int | None = None
    """Timestamp of the last record that was read, epoch ms."""
    refusals: list[Refusal] = field(default_factory=list)
    """Records that nodes of some release cannot apply, in order; at most MAX_PROBLEMS."""
    places: dict[Hashable, tuple[str, int, int | None]] = field(default_factory=dict)
    """File, position of the batch, and number in a snapshot of the records in `levels` and `frames`, by their keys."""
    frames: dict[tuple[int, int, bool], int | None] = field(default_factory=dict)
    """Offset of the first record of each apiKey and version; None in a snapshot. True: with arrays of structures, which
    a release reads only in versions that it knows."""
    committed: int = 0
    """Offset below which all records are certainly committed: the end of the snapshot, or where the last epoch begins
    in which a controller wrote records, because it writes none before it has the ones of earlier epochs committed."""
    open_transaction: int | None = None
    """Offset of the BeginTransactionRecord of a metadata transaction that never ended; its place is in `places`."""
    is_partial: bool = False
    """Whether records are missing from the replay: nothing follows from what is unknown."""
    is_too_large: bool = False
    """Whether they are missing because they did not fit into memory."""
    gap: int | None = None
    """Offset of the first record that is invalid or missing, at which a node's replay ends; None if there is none."""
    emptied: MetadataProblem | None = None
    """What is missing if the log was emptied, as by a recovery on a full disk (IO_ERROR_EMPTIES): the state is that of
    the snapshot, and no config is certain."""
    problems: list[MetadataProblem] = field(default_factory=list)
    levels: dict[tuple[str, int], int | None] = field(default_factory=dict)
    newer: dict[str, int | None] = field(default_factory=dict)
    formatted: dict[str, int] = field(default_factory=dict)
    """Levels of features that `kafka-storage format` has written into a snapshot at offset 0 (KIP-1170), which are no
    state before a controller has copied them into the log."""
    has_format: bool = False
    """Whether that snapshot has any record but those of the quorum."""

    @property
    def replayed_offset(self) -> int:
        """End offset of what a node replays."""
        return self.end_offset if self.gap is None else self.gap

    @property
    def doubt(self) -> MetadataProblem | None:
        """The first reason why the state may be out of date or incomplete; None if there is none."""
        return self.emptied or next((each for each in self.problems if each.kind != Kind.NOT_CHECKED), None)

    @property
    def gap_problem(self) -> MetadataProblem | None:
        """Why there is a gap; None if there is none, or too many problems came before it."""
        return None if self.gap is None else next((each for each in self.problems if each.offset == self.gap), None)

    @property
    def epoch(self) -> int:
        """The last leader epoch. In the log, it is the one of the last leader's own record, with which each epoch
        begins: a batch's epoch has no checksum."""
        return max(self.snapshot_epoch, self.leader.leaderEpoch if self.leader is not None else 0)


@dataclass
class MetadataImage(QuorumImage):
    """The known state of the cluster. `configs`: the dynamic ones by resource type and name (a broker's name is its ID
    as text, "" for the cluster-wide defaults)."""

    topics: dict[str, TopicImage] = field(default_factory=dict)
    by_id: dict[str, TopicImage] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    quotas: dict[QuotaEntityKey, dict[str, float]] = field(default_factory=dict)
    acls: dict[str, StandardAcl] = field(default_factory=dict)
    scram: dict[tuple[str, str], ScramCredential] = field(default_factory=dict)
    scram_keys: dict[tuple[str, str], ScramKeys] = field(default_factory=dict, repr=False)
    """Secrets of the credentials, only if they are to be written again."""
    tokens: dict[str, DelegationToken] = field(default_factory=dict)
    producer_ids: dict[str, ProducerIds] = field(default_factory=dict)
    """At most one, under the empty name."""

    def quorum(self) -> QuorumImage:
        """Return what a QuorumImage has."""
        return QuorumImage(**{each.name: getattr(self, each.name) for each in fields(QuorumImage)})

    def partition_count(self, topic: str) -> int | None:
        """Return how many partitions a topic has; None if that is unknown."""
        return len(self.topics[topic].partitions) if topic in self.topics else None

    def registration(self, topic_id: str, partition: int | None) -> PartitionRegistration | None:
        """Return a partition; None if there is none, which makes its directory stray."""
        topic = self.by_id.get(topic_id)
        return None if topic is None or partition is None else topic.partitions.get(partition)

    @property
    def is_empty(self) -> bool:
        """Whether no record describes a cluster."""
        some = self.topics or self.configs or self.brokers or self.controllers or self.features or self.quotas
        more = self.acls or self.scram or self.tokens or self.producer_ids or self.zk_migration or self.voters
        return not (some or more) and self.leader is None and self.kraft_version is None

    @property
    def broker_configs(self) -> dict[str, dict[str, str]]:
        """The brokers' dynamic configs by node ID as text, "" for the cluster-wide defaults."""
        return {name: configs for (kind, name), configs in self.configs.items() if kind == BROKER}

    @property
    def broker_directories(self) -> dict[int, tuple[str, ...]]:
        """The log directory IDs of each registered broker."""
        return {number: broker.logDirs for number, broker in self.brokers.items()}

    def owner_of(self, directory: str) -> int | None:
        """Return the broker that has registered a log directory ID; None if none has."""
        return next((number for number, broker in self.brokers.items() if directory in broker.logDirs), None)

    def is_offline(self, node: int | None, directory: str | None) -> bool:
        """Return True if a broker serves clients, and its registration lists log directories without this ID: it has
        taken it offline (ReplicationControlManager.handleDirectoriesOffline; KIP-858)."""
        broker = None if node is None else self.brokers.get(node)
        if broker is None or broker.fenced or broker.inControlledShutdown or not broker.logDirs:
            return False
        return directory is not None and directory not in broker.logDirs


def endpoints(values: list[dict[str, Any]] | None, protocols: dict[int, str]) -> tuple[Endpoint, ...]:
    """Convert the endpoints of a record."""
    return tuple(
        Endpoint(
            endpoint["name"],
            endpoint["host"],
            endpoint["port"],
            protocols.get(endpoint["securityProtocol"], str(endpoint["securityProtocol"]))
            if "securityProtocol" in endpoint
            else "",
        )
        for endpoint in values or ()
    )
