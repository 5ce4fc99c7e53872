"""Messages about disks that fail, are full, or may not be written to."""

from __future__ import annotations

from kdump.forensics.explain.message import Message

PLAN = "kdump restart-plan {disk}"

CHECKPOINT_READ = Message(
    name="checkpoint-unreadable",
    texts=(
        "Error while reading checkpoint file {file}",
        "Malformed line in checkpoint file [{file}]: {}",
        "Malformed line in checkpoint file ({file}): {}",
        "Malformed line in checkpoint file [{file}]",
        "Expected [{}] entries in checkpoint file [{file}], but found only [{}]",
        "Expected {} entries in checkpoint file ({file}), but found only {}",
        "Unrecognised version:{version}, expected version: {} in checkpoint file at: {file}",
        "Unrecognized version of the checkpoint file ({file}): {version}",
        "Failed to access checkpoint file {} in dir {directory}",
        "Failed to access checkpoint file in dir {directory}",
        "Error occurred while reading {} file of directory {directory}",
        "Error occurred while reading {} file of directory {directory}, resetting the recovery checkpoint to 0",
        "Error occurred while reading {} file of directory {directory}, resetting to the base offset of the "
        "first segment",
    ),
    source="CheckpointFile, CheckpointFileWithFailureHandler, LogManager, LogCleanerManager",
    meaning="A checkpoint file of the log directory, or leader-epoch-checkpoint of a partition, cannot be parsed",
    cause="A file of lines with a version and a count, which a crash or an edit left incomplete",
    impact="Depending on the file: the log directory goes offline (and the broker exits if it is the only one), "
    "everything is recovered, or the log start offset is lost",
    commands=("kdump verify {disk} --only checkpoints", "head -3 {file}", PLAN),
    action="Stop the broker and move the file away: except for leader-epoch-checkpoint the broker writes it again. "
    "Without log-start-offset-checkpoint, records deleted with kafka-delete-records.sh come back",
    never="Do not edit the numbers: a recovery point above what is flushed hides damage, a high watermark above the "
    "log loses records",
    codes=("checkpoint-invalid",),
    plan=True,
)

EPOCH_CHECKPOINT = Message(
    name="checkpoint-number-malformed",
    texts=(
        'For input string: "{}"',
        "Received invalid partition leader epoch entry EpochEntry[epoch={leaderEpoch}, startOffset={offset}]",
        "Received invalid partition leader epoch entry EpochEntry(epoch={leaderEpoch}, startOffset={offset})",
    ),
    exceptions=("NumberFormatException",),
    source="CheckpointFile, LeaderEpochFileCache, OffsetCheckpointFile",
    meaning="A file of numbers has something else in it: a checkpoint, leader-epoch-checkpoint or meta.properties",
    cause="The file was damaged or edited. Kafka does not name it in this message",
    impact="The broker exits at startup, or takes the log directory offline",
    commands=("kdump verify {disk} --only checkpoints", PLAN),
    action="verify names the file and the line. Restore it from a backup; for leader-epoch-checkpoint see what verify "
    "says",
    codes=("checkpoint-invalid", "meta-properties-invalid"),
    plan=True,
)

LOG_DIR_FAILED = Message(
    name="log-directory-failed",
    texts=(
        "Stopping serving logs in dir {directory}",
        "Stopping serving replicas in dir {directory} with uuid {} because the log directory has failed.",
        "Stopping serving replicas in dir {directory}",
        "Broker {nodeId} stopped fetcher for partitions {}because they are in the failed log directory {directory}.",
        "The log dir {directory} is already offline due to a previous IO exception.",
        "The log dir {directory} is offline due to a previous IO exception.",
        "Stopping cleaning logs in dir {directory}",
        "Failed to create or validate data directory {directory}",
        "Log dir {directory} failed: {cause}",
        "Can not create log for {partition} because log directory {directory} is offline",
    ),
    exceptions=("KafkaStorageException", "KAFKA_STORAGE_ERROR", "LogDirNotFoundException", "LOG_DIR_NOT_FOUND"),
    source="ReplicaManager, LogManager, LogDirFailureChannel, LocalLog",
    meaning="The broker has given up a log directory: it serves none of its partitions until the next startup",
    cause="An I/O error on any file there, which an earlier message names",
    impact="Partitions led here move to other replicas, or are offline. Nothing is deleted",
    commands=(PLAN, "dmesg --ctime | tail -50", "df -h {directory}"),
    action="Look for the first error about this directory in the log. Mend the file or the device, then restart the "
    "broker",
    never="Do not replace the disk by an empty one while this broker has the only in-sync replica of a partition",
    plan=True,
)

ALL_DIRS_FAILED = Message(
    name="all-log-directories-failed",
    texts=(
        "Shutdown broker because all log dirs in {directory} have failed",
        "Shutdown broker because none of the specified log dirs from {directory} can be created or validated",
    ),
    source="LogManager",
    meaning="The broker has no log directory left and halts",
    cause="Every log directory had an I/O error, or could not be opened",
    impact="The broker is down, without a clean shutdown: the next startup recovers logs",
    commands=(PLAN, "dmesg --ctime | tail -50", "df -h {directory}"),
    action="Look for the first error about the directory in the log, and mend that. restart-plan shows what the next "
    "startup does",
    never="Do not restart it in a loop: recovery may truncate logs",
    incident="disk-full",
    plan=True,
)

NO_SPACE = Message(
    name="no-space-left",
    texts=(
        "No space left on device",
        "Disk quota exceeded",
        "{file}: No space left on device",
    ),
    source="the operating system, in an IOException",
    meaning="The file system of a log directory is full",
    cause="Retention keeps more than fits, or something else fills the file system",
    impact="The log directory goes offline, the broker usually exits. The batch that did not fit may be there in part",
    commands=("df -h {disk}", "kdump ls {disk} --sort size", "kdump retention {disk} --holds", PLAN),
    action="Make room before the startup: enlarge the file system, or shorten retention of the largest topics. "
    "Recovery needs room for indexes",
    never="Do not delete .log or .index files by hand: the log then starts with a gap, or is deleted as a whole",
    incident="disk-full",
    plan=True,
    decides=True,
)

TOO_MANY_FILES = Message(
    name="too-many-open-files",
    texts=(
        "Too many open files",
        "{file}: Too many open files",
        "{file} (Too many open files)",
    ),
    source="the operating system, in an IOException",
    meaning="The process has used up its file descriptors",
    cause="A broker needs one for each .log and one for each connection",
    impact="A log directory may go offline, connections are refused",
    commands=("kdump ls {disk} --sort segments", "grep 'open files' /proc/PID/limits"),
    action="Raise LimitNOFILE (100,000 or more); use larger segments in topics with many",
    never="Do not delete segments by hand to save descriptors",
    plan=True,
    decides=True,
)

PERMISSION = Message(
    name="access-denied",
    texts=(
        "{file} (Permission denied)",
        "{file} (Is a directory)",
        "{file}: Not a directory",
        "{file}: Is a directory",
        "Permission denied",
        "Could not read file {file}",
    ),
    exceptions=("AccessDeniedException",),
    source="the operating system, in an IOException",
    meaning="The broker's user may not read or write a file of the log directory",
    cause="Files that another user made: a restore, a tool run as root, or a copy without its owners",
    impact="The broker exits, or takes the log directory offline",
    commands=("find {disk} ! -user kafka | head", PLAN),
    action="Give all files of the directory to the broker's user (chown -R)",
    never="Do not run the broker as root: the files that it then makes have the same problem later",
    plan=True,
    decides=True,
)

IO_ERROR = Message(
    name="input-output-error",
    texts=(
        "Input/output error",
        "Read-only file system",
        "Stale file handle",
        "{file}: Read-only file system",
    ),
    source="the operating system, in an IOException",
    meaning="The device or its file system fails",
    cause="A defective disk, a lost network volume, or a file system that was remounted read-only after an error",
    impact="The log directory goes offline. What was written last may be missing on the device",
    commands=("dmesg --ctime | tail -50", "kdump verify {disk} --crc"),
    action="Make an image of the device, or copy it, before anything else. Then replace it",
    never="Do not run fsck with repair on the only copy",
    plan=True,
    decides=True,
)

FILE_FAILED = Message(
    name="file-operation-failed",
    texts=(
        "Failed to write to checkpoint file {file}. This is ok if the topic/partition is being deleted",
        "Error while writing to checkpoint file {file}",
        "Error while writing partition metadata file {file}",
        "Error while writing to highwatermark file in directory {directory}",
        "Error while deleting segments for {partition} in dir {directory}",
        "Error while deleting all segments for {partition} in dir {directory}",
        "Error while deleting log for {partition} in dir {directory}",
        "Error while deleting dir for {partition} in dir {directory}",
        "Error while deleting producer state snapshots for {partition} in dir {directory}",
        "Error while deleting producer state snapshot {} for {partition} in dir {directory}",
        "Error while flushing log for {partition} in dir {directory} with offset {offset} and recovery point {}",
        "Error while flushing log for {partition} in dir {directory} with offset {}",
        "Error while flushing producer state snapshot {} for {partition} in dir {directory}",
        "Error while taking producer state snapshot for {partition} in dir {directory}",
        "Error while appending records to {partition} in dir {directory}",
        "Error while rolling log segment for {partition} in dir {directory}",
        "Error while truncating log to offset {offset} for {partition} in dir {directory}",
        "Error while truncating the entire log for {partition} in dir {directory}",
        "Error while fetching offset by timestamp for {partition} in dir {directory}",
        "Error while closing log segments for {partition} in dir {directory}",
        "Error while preparing active segment for close for {partition} in dir {directory}",
        "Error while creating log for {partition} in dir {directory}",
        "Failed to create data directory {directory}",
        "Failed to clean up log for {partition} in dir {directory} due to IOException",
        "Disk error while locking directory {directory}",
        "Disk error while loading ID {directory}",
        "Disk error while writing recovery offsets checkpoint in directory {directory}: {cause}",
        "Disk error while writing log start offsets checkpoint in directory {directory}: {cause}",
    ),
    source="LogManager, UnifiedLog, LocalLog, CheckpointFile, PartitionMetadataFile, ReplicaManager",
    meaning="The broker could not read, write, rename or delete a file of a log directory",
    cause="The exception below it: a full disk, missing rights, a failed device, or a file that is gone",
    impact="The log directory goes offline; without another one the broker exits. For a checkpoint of a partition "
    "that is being deleted: none",
    commands=(PLAN, "df -h {disk}", "dmesg --ctime | tail -50"),
    action="Read the exception, and explain it",
    plan=True,
    general=True,
)

MAPS = Message(
    name="memory-map-failed",
    texts=("Map failed",),
    source="FileChannelImpl, in an IOException or OutOfMemoryError",
    meaning="The process cannot map another index into memory",
    cause="It has vm.max_map_count maps (65,530 by default): a broker needs two for each segment, and three with a "
    "transaction index",
    impact="The log directory goes offline, or the broker exits",
    commands=("kdump ls {disk} --sort segments", "sysctl vm.max_map_count", "wc -l /proc/PID/maps"),
    action="Raise vm.max_map_count (262,144 or more). Use larger segments in the topics with the most",
    never="Do not delete segments by hand",
    plan=True,
    decides=True,
)

IN_USE = Message(
    name="file-in-use-on-windows",
    texts=(
        "The process cannot access the file because it is being used by another process",
        "{file}: The process cannot access the file because it is being used by another process",
        "{file} -> {otherFile}: The process cannot access the file because it is being used by another process",
        "{file} -> {otherFile}: The process cannot access the file because another process has locked a portion of the "
        "file",
        "The requested operation cannot be performed on a file with a user-mapped section open",
    ),
    source="Windows, in a FileSystemException",
    meaning="Windows does not let the broker rename, truncate or delete a file that is open",
    cause="The file is open elsewhere: mapped by the broker itself (indexes, KAFKA-1194), or open in an antivirus or "
    "backup program",
    impact="The log directory goes offline, or the broker exits. Retention, compaction and deleted topics do this",
    commands=("kdump ls {path} --segments", PLAN),
    action="Kafka does not support Windows: run the broker in Linux (WSL 2, a container). Exclude log.dirs from scans. "
    "Until then, a restart deletes what has the suffix .deleted",
    never="Do not delete indexes or segments of a running broker by hand",
    plan=True,
    decides=True,
)

NO_LOCKS = Message(
    name="file-system-without-locks",
    texts=("{file}/.lock: Invalid argument", "{file}.lock: Invalid argument", "No locks available", "Invalid argument"),
    source="the operating system, in an IOException or FileSystemException",
    meaning="The file system of the log directory does not support what the broker needs: locks, or memory maps",
    cause="log.dirs on NFS without a lock service, or on another network or FUSE file system",
    impact="The log directory is not used; without another one the broker exits",
    commands=("df -T {directory}", PLAN),
    action="Put log.dirs on a local file system (XFS, ext4). With NFS, mount it with locks, and without silly renames "
    "(KAFKA-13403)",
    never="Do not switch locking off with a mount option: two brokers on one directory destroy it",
    plan=True,
    decides=True,
)

FILE_GONE = Message(
    name="file-not-found",
    texts=(
        "Failed atomic move of {file} to {otherFile} retrying with a non-atomic move",
        "{file} -> {otherFile}",
        "{file} -> {otherFile}: Directory not empty",
        "{file} (No such file or directory)",
    ),
    exceptions=("NoSuchFileException", "FileNotFoundException", "DirectoryNotEmptyException", "FileSystemException"),
    source="Utils, UnifiedLog, LocalLog, CheckpointFile",
    meaning="A file that the broker wants to rename, flush or delete is not there (any more)",
    cause="Two threads deleted the same file (then it is harmless: KAFKA-6188, KAFKA-15391), the topic was deleted "
    "meanwhile, or someone deleted files by hand",
    impact="After recovery, with .snapshot files: none. For a .log or an index, the log directory goes offline",
    commands=("kdump ls {path} --segments", "kdump verify {path}"),
    action="Look whether the file's segment is still there. If files are deleted by another program (tmpwatch, a "
    "clean-up of /tmp), keep it away from log.dirs",
    never="Do not create empty files in place of the missing ones",
    plan=True,
)
