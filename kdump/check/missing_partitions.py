"""Family checkpoints: partitions without a directory, which checkpoints or the cluster's metadata name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from kdump.check.catalogue import INFO
from kdump.check.finding import Finding, found
from kdump.check.known import Checkpoint, checkpoint, ids
from kdump.check.options import Options
from kdump.format.count_text import first_of
from kdump.log import file_kinds
from kdump.log.log_directory import LogDirectory
from kdump.log.paths import Target
from kdump.state.missing_partitions import (
    EVIDENCE,
    Expected,
    Key,
    MissingPartitions,
    checkpointed_partitions,
    missing_partitions,
    name_of,
    what_is_at,
)

if TYPE_CHECKING:
    from kdump.state.image import MetadataImage


def missing_in(
    directory: LogDirectory, others: tuple[str, ...], metadata: MetadataImage | None, options: Options
) -> MissingPartitions:
    """Return the log directory's missing partitions. `others`: the paths of the node's other log directories, and of
    directories that cannot be listed and may be such."""
    noted = checkpointed_partitions(directory.files, options.open)
    return missing_partitions(Expected.of(directory.path, others, ids(directory, options), noted, metadata))


def missing_from(
    directory: LogDirectory,
    here: Collection[Key],
    others: tuple[str, ...],
    metadata: MetadataImage | None,
    options: Options,
) -> Iterator[Finding]:
    """Yield a finding for each partition that the log directory had and that is gone; and one for each checkpoint with
    lines of others, and for those that the broker did not create yet. `here`: its live partitions when it was listed;
    `others`: see `missing_in`."""
    noted: dict[str, Checkpoint] = {
        name.removesuffix("-checkpoint"): checkpoint(at, options)
        for name, at in directory.files.items()
        if at.kind is file_kinds.OFFSET_CHECKPOINT
    }
    missing = missing_in(directory, others, metadata, options)
    lost = [key for key in missing.lost if key not in here]  # one that went away in the meantime was deleted
    for key in lost:
        yield _missing(key, noted, directory, missing.blocked.get(key))
    for name, each in noted.items():
        stale = [key for key in each if key not in here and key not in lost]
        if stale:
            message = f"partitions that are not in this log directory: {first_of([name_of(key) for key in stale])}"
            consequence = "the broker removes these lines when it next writes the file"
            at = directory.files[f"{name}-checkpoint"]
            yield found("checkpoint-beyond-log", at, message, severity=INFO, consequence=consequence)
    if missing.never:
        at = Target(directory.path, None, None, None, None, directory.path)
        message = "the metadata assigns partitions to this log directory that its last checkpoint does not name: "
        message += first_of([name_of(key) for key in missing.never])
        consequence = "the broker creates them at startup; it probably stopped before it could"
        yield found("partition-missing", at, message, severity=INFO, consequence=consequence)


def _missing(key: Key, noted: dict[str, Checkpoint], directory: LogDirectory, blocked: str | None) -> Finding:
    """Return the finding about a partition that is gone, at the line of a checkpoint that names it. `blocked`: the path
    of what is in its place, if anything."""
    name = next((name for name in (*EVIDENCE[::-1], *noted) if key in noted.get(name, {})), None)
    message = f"{name_of(key)} is not in this log directory, to which the metadata assigns it"
    message += "; no checkpoint shows whether it was there"
    consequence = None
    if blocked is not None:
        message = f"there is {what_is_at(blocked)} in place of the directory of {name_of(key)}"
        consequence = (
            "the broker cannot create the partition's directory (FileAlreadyExistsException) and takes the log "
            "directory offline; without another one, it ends"
        )
    if name is None:
        at = Target(directory.path, None, *key, None, directory.path)
        return found("partition-missing", at, message, expected=name_of(key), consequence=consequence)
    line = noted[name][key]
    if blocked is None:
        message = f"{name_of(key)} is not in this log directory, but {name}-checkpoint has its offset {line.offset}"
    at = line.at._replace(topic=key[0], partition=key[1])
    return found(
        "partition-missing",
        at,
        message,
        position=line.position,
        size=line.size,
        expected=name_of(key),
        consequence=consequence,
    )
