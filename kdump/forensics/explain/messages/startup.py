"""Messages of a broker's startup and shutdown."""

from __future__ import annotations

from kdump.forensics.explain.message import LAST, Message

PLAN = "kdump restart-plan {disk}"

FATAL_FAULT = Message(
    name="fatal-fault",
    texts=(
        "Encountered fatal fault: {cause}",
        "Error starting LogManager",
    ),
    source="ProcessTerminatingFaultHandler",
    releases=f"3.2 to {LAST}",
    meaning="The node has met an error that it must not go on with, and halts",
    cause="The exception below this line: usually a log, a checkpoint or a metadata record that cannot be loaded",
    impact="The process exits, without a clean shutdown: the next startup recovers logs",
    commands=(PLAN,),
    action="Read the exception. restart-plan names the file, and what else would stop the next startup",
    never="Do not let a supervisor restart it in a loop: each startup may truncate something",
    incident="metadata-log",
    plan=True,
    general=True,
)

EXITING = Message(
    name="startup-failed",
    texts=(
        "Exiting Kafka due to fatal exception during startup.",
        "Exiting Kafka due to fatal exception",
        "Exiting Kafka.",
        "Fatal error during broker startup. Prepare to shutdown",
        "Fatal error during KafkaServer startup. Prepare to shutdown",
        "Fatal error during controller startup. Prepare to shutdown",
        "Got exception while starting SharedServer",
    ),
    source="Kafka, BrokerServer, ControllerServer, SharedServer, KafkaServer",
    meaning="The node does not start",
    cause="The exception below this line",
    impact="The process exits; its partitions have one replica fewer",
    commands=(PLAN,),
    action="Read the exception. restart-plan names the file, and what else would stop the next startup",
    plan=True,
    general=True,
)

UNKNOWN_DIRECTORY = Message(
    name="directory-name-unknown",
    texts=(
        "Found directory {file}, '{}' is not in the form of topic-partition or topic-partition.uniqueId-delete "
        "(if marked for deletion).",
        "Found directory {file}, '{}' is not in the form of topic-partition{}",
    ),
    source="LocalLog (Log before 3.0)",
    meaning="A log directory contains a directory that is not a partition",
    cause="Every directory in log.dirs must be named topic-partition. lost+found belongs to a file system that is "
    "mounted there; others are copies made by hand",
    impact="The broker exits at startup",
    commands=("kdump verify {disk} --crc", PLAN),
    action="Move the directory out of log.dirs. For lost+found, use a subdirectory of the mount as log.dirs",
    never="Do not rename it to something like orders-0: the broker would load it as that partition. Do not delete it "
    "before you know what it is",
    codes=("directory-unknown",),
    plan=True,
)

DUPLICATE = Message(
    name="partition-in-two-directories",
    texts=(
        "Duplicate log directories for {partition} are found in both {file} and {otherFile}. It is likely "
        "because log directory failure happened while broker was replacing current replica with future replica. "
        "Recover broker from this failure by manually deleting one of the two directories for this partition. It "
        "is recommended to delete the partition in the log directory that is known to have failed recently.",
        "Duplicate log directories found: {file}, {otherFile}!",
    ),
    source="LogManager",
    meaning="Two log directories of this broker have the same partition",
    cause="A move between directories was interrupted when one of them failed, or a directory was copied",
    impact="The broker exits at startup",
    commands=("kdump diff {file} {otherFile}", "kdump ls {file} {otherFile}"),
    action="diff shows which copy has more. Move the other one out of log.dirs",
    never="Do not delete one by its age: the older directory may be the complete one",
    codes=("partition-duplicate",),
    plan=True,
)

STRAY = Message(
    name="stray-log",
    texts=(
        "Loaded stray log: {file}",
        "Log in {file} marked stray and renamed to {otherFile}",
        "Found stray log dir Log(dir={file}, topic={topic}, partition={}): {reason}",
        "Found stray log dir UnifiedLog(dir={file}, topic={topic}, partition={}): {reason}",
        "Found stray log dir Log(dir={file}, topicId={topicId}, topic={topic}, partition={}): {reason}",
        "Found stray log dir {}: {reason}",
    ),
    source="LogManager",
    meaning="The cluster's metadata do not assign this partition to this broker, so the broker does not serve it, and "
    "since 3.7 renames its directory to …-stray",
    cause="The topic was deleted or created again with another ID, the replica was moved away while this broker was "
    "down, or the metadata are those of another cluster",
    impact="The records in it are served by no one. A broker does not delete stray directories by itself",
    commands=("kdump ls {disk}", "kdump cluster {disk} --show topics", "cat {path}/partition.metadata"),
    action="Compare the topic ID in partition.metadata with that of the cluster. Delete the directory only if its "
    "records are not needed",
    never="Do not rename it back without .-stray while the topic has another ID: the broker would reject it again",
    codes=("directory-stray", "partition-metadata-invalid"),
    incident="recreated-topic",
    plan=True,
    at_info=True,
)

FUTURE_RENAME = Message(
    name="future-replica-rename-failed",
    texts=("Error while renaming dir for {partition} in log dir {directory}",),
    source="LogDirFailureChannel, UnifiedLog, LogManager",
    meaning="The broker could not rename the directory of a partition, and treats the whole log directory as failed",
    cause="The target exists, or the file system refused: a future replica next to the current one, or missing rights",
    impact="All partitions in this log directory go offline; if it is the only one, the broker exits",
    commands=("kdump ls {disk}", PLAN),
    action="Move the directory that is in the way out of log.dirs",
    never="Do not move the directory without the suffix before you have compared both with kdump diff",
    codes=("directory-stray",),
    incident="future-directory",
    plan=True,
)

LOCKED = Message(
    name="log-directory-locked",
    texts=(
        "Failed to acquire lock on file .lock in {directory}. A Kafka instance in another process or thread is "
        "using this directory.",
    ),
    source="LogManager",
    meaning="Another process has this log directory open",
    cause="The previous broker has not exited yet, or two brokers have the same log.dirs",
    impact="The broker exits at startup",
    commands=("fuser -v {directory}/.lock",),
    action="Find the other process, and stop one of the two",
    never="Do not delete .lock: two brokers that write to the same logs destroy them",
    plan=True,
)

UNCAUGHT_TASK = Message(
    name="scheduled-task-failed",
    texts=("Uncaught exception in scheduled task '{}'",),
    source="KafkaScheduler",
    meaning="A periodic task of the broker has failed: kafka-log-retention, kafka-log-flusher, "
    "kafka-recovery-point-checkpoint, kafka-log-start-offset-checkpoint, delete-expired-group-metadata, flush-log, "
    "delete-file and others",
    cause="The exception below it. Until 3.x a single partition that fails keeps the task from reaching the others",
    impact="While it lasts, the task does not do its work: old segments stay, checkpoints are not written, or expired "
    "offsets remain",
    commands=("kdump verify {disk} --crc", "kdump retention {disk} --holds", "df -h {disk}"),
    action="Mend what the exception names. The task runs again by itself",
    never="Do not delete segments by hand because retention fails",
    codes=("offset-not-monotonic", "segment-name-mismatch", "checkpoint-invalid"),
    incident="disk-full",
    general=True,
)

UNCAUGHT_THREAD = Message(
    name="uncaught-exception",
    texts=("Uncaught exception in thread '{}':",),
    source="KafkaThread",
    meaning="A thread of the process has ended with an exception",
    cause="The exception below it",
    impact="What this thread did is not done any more, until a restart",
    action="Read the exception; restart the process if the thread was one that serves requests",
    general=True,
)

SHUTDOWN_TIMEOUT = Message(
    name="controlled-shutdown-timed-out",
    texts=(
        "Timed out waiting for the controller to approve controlled shutdown",
        "Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed",
        "Retrying controlled shutdown after the previous attempt failed...",
    ),
    source="BrokerServer, KafkaServer",
    meaning="The controller did not move the leadership of all partitions away in time; the broker shuts down all the "
    "same",
    cause="No controller was reachable, or some partition has no other replica in sync",
    impact="Partitions without another leader are offline until the broker is back. Its files are still flushed",
    commands=(PLAN,),
    action="Check the controllers, and partitions with a single in-sync replica",
    plan=True,
)

BAD_CONFIG = Message(
    name="config-unknown",
    texts=(
        "The configuration '{}' was supplied but isn't a known config.",
        "These configurations '{}' were supplied but are not used yet.",
        "Invalid value {} for configuration {}",
    ),
    exceptions=("ConfigException", "INVALID_CONFIG"),
    source="AbstractConfig, ConfigDef",
    meaning="A setting is not known to this release, or has a value that it does not accept",
    cause="A typing error, a config that a newer release has removed, or one for a plug-in",
    impact="An unknown setting has no effect; an invalid value keeps the process from starting",
    action="Compare with the documentation of this release; remove what it does not know",
)

SHUTTING_DOWN = Message(
    name="broker-shutting-down",
    texts=(
        "Shutting down because we were unable to register with the controller quorum.",
        "Group coordinator is already shutting down.",
        "Share coordinator is already shutting down.",
        "Coordinator runtime is already shutting down.",
        "Coordinator loader is already shutting down.",
    ),
    source="BrokerLifecycleManager, GroupCoordinatorService, ShareCoordinatorService, CoordinatorRuntime",
    meaning="The broker, or a part of it, is shutting down",
    cause="An earlier error, or SIGTERM. A broker that cannot register within initial.broker.registration.timeout.ms "
    "gives up",
    impact="The broker serves nothing",
    commands=(PLAN,),
    action="Read the first error before this line",
    plan=True,
    general=True,
)
