"""Family checkpoints: partitions without a directory, which checkpoints or the cluster's metadata name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from kdump.check.finding import ERROR, INFO, Code, Finding
from kdump.check.options import Options
from kdump.check.rules.checkpoints import absent_partitions
from kdump.cluster.missing_partitions import (
    EVIDENCE,
    MissingPartitions,
    PartitionKey,
    name_of,
    what_is_at,
)
from kdump.format.count_text import first_of
from kdump.format.numbers import parse_int
from kdump.kafka.small_files import OffsetCheckpoints
from kdump.log.log_directory import LogDirectory
from kdump.log.paths import Target
from kdump.state.other_replicas import other_replicas, replica_facts

if TYPE_CHECKING:
    from kdump.state.metadata_image import MetadataImage


PARTITION_MISSING = Code("partition-missing")


def missing_from(
    directory: LogDirectory,
    ids: dict[str, str],
    here: Collection[PartitionKey],
    missing: MissingPartitions,
    metadata: MetadataImage | None,
    options: Options,
) -> Iterator[Finding]:
    """Yield a finding for each partition that the log directory had and that is gone; and one for each checkpoint with
    lines of others, and for those that the broker did not create yet or that had no records. `ids`: what its
    meta.properties states; `here`: its live partitions when it was listed."""
    noted = OffsetCheckpoints(directory, options.open_source)
    lost = [key for key in missing.lost if key not in here]  # one that went away in the meantime was deleted
    for key in lost:
        replicas = replica_facts(other_replicas(metadata, *key, parse_int(ids.get("node.id"))))
        finding = _missing(key, noted, directory, missing.blocked.get(key)).given(replicas)
        if key in missing.remote:
            message = f"{finding.message}; only it names what remote storage has of {first_of(missing.remote[key])}"
            finding = finding._replace(message=message).in_case("remote", ERROR)
        yield finding
    for name, evidence in noted.items():
        stale = [key for key in evidence if key not in here and key not in lost]
        if stale:
            yield absent_partitions(directory.files[f"{name}-checkpoint"], [name_of(key) for key in stale])
    if missing.never:
        target = Target(directory.path, None, None, None, None, directory.path)
        message = "the metadata assigns partitions to this log directory of which its checkpoints show no records: "
        message += first_of([name_of(key) for key in missing.never])
        yield PARTITION_MISSING.finding(target, message=message, severity=INFO, case="never")


def _missing(key: PartitionKey, noted: OffsetCheckpoints, directory: LogDirectory, blocked: str | None) -> Finding:
    """Return the finding about a partition that is gone, at the line of a checkpoint that names it. `blocked`: the path
    of what is in its place, if anything."""
    name = next((name for name in (*EVIDENCE[::-1], *noted) if key in noted.get(name, {})), None)
    message = f"{name_of(key)} is not in this log directory, to which the metadata assigns it"
    message += "; no checkpoint shows whether it was there"
    case = "" if blocked is None else "blocked"
    if blocked is not None:
        message = f"there is {what_is_at(blocked)} in place of the directory of {name_of(key)}"
    if name is None:
        target = Target(directory.path, None, *key, None, directory.path)
        return PARTITION_MISSING.finding(target, message=message, expected=name_of(key), case=case)
    line = noted[name][key]
    if blocked is None:
        message = f"{name_of(key)} is not in this log directory, but {name}-checkpoint has its offset {line.offset}"
    target = line.target._replace(topic=key[0], partition=key[1])
    return PARTITION_MISSING.finding(
        target, message=message, position=line.position, size=line.size, expected=name_of(key), case=case
    )
