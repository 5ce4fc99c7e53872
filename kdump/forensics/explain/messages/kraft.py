"""Messages of KRaft: the metadata log, its snapshots, the quorum, and features."""

from __future__ import annotations

from kdump.forensics.explain.message import LAST, Message

VERIFY = "kdump verify {disk}/__cluster_metadata-0"
CLUSTER = "kdump cluster {disk}"
PLAN = "kdump restart-plan {disk}"

METADATA_LOADING = Message(
    name="metadata-loading-fault",
    texts=(
        "Encountered metadata loading fault: {cause}",
        "Encountered metadata publishing fault: {cause}",
        "Encountered {} fault: {cause}",
        "Error loading metadata log record from offset {offset}",
        "Error loading metadata log record from offset {offset} (epoch {leaderEpoch})",
        "Error replaying metadata log record at offset {offset}",
        "Unhandled error initializing {}",
        "Unhandled fault in MetadataLoader#handleCommit. Last image offset was {offset}",
        "Unhandled fault in MetadataLoader#handleLoadSnapshot. Snapshot offset was {offset}",
        "Exception while loading {}",
        "Tried to change broker {nodeId}, but that broker was not registered.",
        'Cannot invoke "org.apache.kafka.image.TopicImage.partitions()" because "this.image" is null',
        "Unknown metadata version for FeaturesImage: metadataVersion(Optional.empty)",
    ),
    source="LoggingFaultHandler, MetadataLoader, MetadataDelta",
    releases=f"3.3 to {LAST}",
    meaning="A record of the metadata log, or of its snapshot, could not be applied",
    cause="The metadata snapshot or log on this disk is incomplete or damaged, or was written by a newer release",
    impact="A broker goes on with metadata that lack this change, or does not finish its startup; a controller halts",
    commands=(VERIFY, CLUSTER, PLAN),
    action="If only this node has it, let it fetch the metadata again from the controllers (the incident page says "
    "how). If all controllers have it, do not restart any of them",
    never="Do not delete __cluster_metadata-0 on a voter while there is no majority of intact others",
    codes=("kraft-snapshot-invalid", "crc-mismatch"),
    incident="metadata-log",
    plan=True,
)

SNAPSHOT_STATE = Message(
    name="metadata-snapshot-missing",
    texts=(
        "Inconsistent snapshot state: there must be a snapshot at an offset larger then the current log start "
        "offset {offset}, but the latest snapshot is {}",
        "Inconsistent snapshot state: there must be a snapshot at an offset larger than the current log start "
        "offset {offset}, but the latest snapshot is {}",
        "First batch is not a control batch with at least one record",
        "data_version ({version}) is not within the min ({}) and max ({}) supported version",
    ),
    source="KafkaMetadataLog, KafkaRaftLog, RecordsIterator, RecordsSnapshotReader",
    releases=f"3.0 to {LAST}",
    meaning="The metadata log begins above offset 0, and the snapshot that covers what is below is missing or cannot "
    "be read",
    cause="The .checkpoint file was deleted, left out of a copy, or damaged",
    impact="The node exits at startup",
    commands=(VERIFY, "ls -l {disk}/__cluster_metadata-0", PLAN),
    action="Restore the .checkpoint from a backup, or let the node fetch the metadata again from the other controllers "
    "(the incident page says how)",
    never="Do not take the file of another cluster, or of a node with another log start offset",
    codes=("kraft-snapshot-missing", "kraft-snapshot-invalid"),
    incident="metadata-log",
    plan=True,
)

QUORUM_STATE = Message(
    name="quorum-state-unreadable",
    texts=(
        "Error while reading the Quorum status from the file {file}",
        "Could not read file {file}/quorum-state",
        "Epoch from quorum store file ({file}) is {leaderEpoch}, which is smaller than last written epoch "
        "{otherEpoch} in the log",
        "Epoch from quorum-state file is {leaderEpoch}, which is smaller than last written epoch {otherEpoch} in "
        "the log",
        "QuorumStateData: unable to locate field '{}', which is mandatory in version {version}",
        "Unrecognized token '{}': was expecting {}",
    ),
    exceptions=("JsonParseException", "JsonEOFException"),
    source="QuorumState, FileQuorumStateStore (FileBasedStateStore before 3.7)",
    meaning="quorum-state, in which a node keeps its vote, is missing, older than the log, or cannot be parsed",
    cause="A crash left it empty, or it was deleted or restored",
    impact="If it cannot be parsed, the node exits at startup. If it is missing, a voter may vote twice in one epoch",
    commands=("cat {disk}/__cluster_metadata-0/quorum-state", VERIFY, PLAN),
    action="On a broker, or a controller that is not a voter, move the file away. On a voter, do that only if the "
    "other voters have a leader",
    never="Do not copy quorum-state from another node: it has that node's vote and directory ID",
    codes=("quorum-state-invalid",),
    incident="metadata-log",
    plan=True,
)

FEATURES = Message(
    name="feature-unsupported",
    texts=(
        "No MetadataVersion with feature level {version}. Valid feature levels are from {} to {}.",
        "No MetadataVersion with feature level {version}",
        "No MetadataVersion with metadata version {version}",
        "Unable to register because the broker does not support finalized version {version} of {}. The broker "
        "wants a version between {} and {}, inclusive.",
        "Unable to register because the broker does not support version {version} of {}. It wants a version "
        "between {} and {}, inclusive.",
        "Invalid update version {version} for feature {}. {reason}",
        "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
        "downgrade.",
        "Refusing to perform the requested downgrade because it might delete metadata information.",
        "Unsafe metadata downgrade is not supported in this version.",
        "Failed to deserialize record with type {}",
        "Unsupported metadata version - if you are currently upgrading your cluster, please ensure the metadata "
        "version is set to {} (or higher) before updating the software version. The metadata version can be updated "
        "via the `kafka-features` command-line tool.",
        "Tried to apply FeatureLevelRecord {}, but this controller only supports versions {}",
        "No FeatureLevelRecord for metadata.version was found in the bootstrap metadata from {}",
        "Bootstrap metadata.version before {} are not supported. Can't load metadata from {}",
        "Bootstrap metadata versions before {} are not supported. Can't load metadata from {}",
    ),
    exceptions=("UnsupportedVersionException", "UNSUPPORTED_VERSION", "InvalidUpdateVersionException"),
    source="MetadataVersion, ClusterControlManager, FeatureControlManager, BootstrapMetadata",
    releases=f"3.3 to {LAST}",
    meaning="This release does not support the metadata.version, or another feature level, that the cluster or the "
    "disk has; or a request needs a newer broker",
    cause="A downgrade of the software after metadata.version was raised, or a node that was not upgraded. With "
    "'Failed to deserialize record', the metadata may also be damaged",
    impact="The node does not start, or is not registered",
    commands=(CLUSTER, "kafka-features.sh --bootstrap-server HOST:9092 describe"),
    action="Start the release that wrote the disk, or a newer one. Before a downgrade, lower metadata.version first, "
    "where that is supported: restart-plan --kafka-version says so",
    incident="downgrade",
    never="Do not edit the metadata log or bootstrap.checkpoint",
    plan=True,
)

ACTIVATION = Message(
    name="controller-activation",
    texts=(
        "Performing controller activation. {}",
        "Performing controller activation.",
        "The active controller appears to be node {nodeId}.",
        "The active controller appears to be {}",
        "Unexpected error handling request RequestHeader({}) -- {}",
        "Registration {} failed: {reason}",
        "Unable to register the broker because the RPC got timed out before it could be sent.",
        "Broker {nodeId} sent a heartbeat request but received error {cause}",
        "Unable to send a heartbeat because the RPC got timed out before it could be sent.",
    ),
    exceptions=("NotControllerException", "NOT_CONTROLLER"),
    source="QuorumController, ControllerApis, BrokerLifecycleManager",
    releases=f"3.3 to {LAST}",
    meaning="A controller has become the active one, or a node asked one that is not",
    cause="A change of the active controller, as at every startup of the quorum",
    impact="None if it passes within seconds: the request is repeated",
    commands=("kafka-metadata-quorum.sh --bootstrap-server HOST:9092 describe --status", CLUSTER),
    action="If it repeats for minutes, look at the quorum: who is the leader, and do the voters reach each other",
    general=True,
)

CONTROL_STOP = Message(
    name="startup-configuration-rejected",
    texts=("Received a fatal error while waiting for {}",),
    source="FutureUtils, BrokerServer, ControllerServer",
    releases=f"3.3 to {LAST}",
    meaning="The node has waited for another part of its startup, which failed",
    cause="The error in the lines before and below it",
    impact="The node exits",
    commands=(PLAN,),
    action="Read the first error above this line",
    incident="metadata-log",
    plan=True,
    general=True,
)
