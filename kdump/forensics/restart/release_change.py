"""What stands in the way of a start with another release than the one that ran on the disk, and what such a start
changes.

Source: MetadataVersion.fromFeatureLevel, BootstrapMetadata, Feature, BrokerLifecycleManager (features that a broker
does not support); MetaPropertiesEnsemble; LocalLog.parseTopicPartitionName; GroupMetadataManager.readMessageKey.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdump.forensics.restart.directories import METADATA_LOG
from kdump.forensics.restart.plan_values import EXIT, ReleaseChange, RestartPlan, StartupFailure
from kdump.format.kafka_release import KRAFT, ZOOKEEPER, KafkaRelease
from kdump.format.known_releases import Line, at_most, first_taking, metadata_changes, metadata_levels
from kdump.state.metadata_image import MetadataImage
from kdump.state.release_evidence import LEVEL, DiskRelease, line_of_level
from kdump.state.releases import (
    META_ENSEMBLE,
    METADATA_MINIMUM,
)

MINIMUM_LEVEL = 7
"""metadata.version 3.3-IV3, the lowest one that 4.0 and later support."""
NEW_REGISTRATION = 30
"""metadata.version 4.3-IV0, with which brokers register by a record that earlier releases cannot read."""
IGNORES_UNKNOWN_GROUPS = (3, 4)
"""First release whose group coordinator ignores keys of unknown versions in __consumer_offsets (UnknownKey)."""
NEW_GROUPS = (4, 0)
"""First release that writes records of the new group protocols by default (KIP-848)."""


def refusals(
    plan: RestartPlan, disk: DiskRelease, release: KafkaRelease, metadata: MetadataImage | None
) -> Iterator[StartupFailure]:
    """Yield why a node of this release does not start with the metadata on the disk."""
    if metadata is None or release.mode != KRAFT:
        return
    path = next((each.path for each in plan.directories if each.metadataLogDir), plan.directories[0].path)
    file = os.path.join(path, METADATA_LOG)
    level = metadata.features.get(LEVEL)
    line = None if level is None else line_of_level(level)
    if level is not None and line is not None and line > release.line:
        name = metadata_levels()[level]
        message = f"the cluster's {LEVEL} is {name}, which Kafka {release.number} does not support"
        remedy = f"start Kafka {line[0]}.{line[1]} or later; {_way_down(level, line, release)}"
        yield StartupFailure(EXIT, file, None, None, message, _unknown_level(level, release), remedy)
        return
    if level is not None and level < MINIMUM_LEVEL and METADATA_MINIMUM.applies(release):
        name = metadata_levels().get(level, str(level))
        message = f"the cluster's {LEVEL} is {name}, but Kafka {release.number} needs 3.3-IV3 or later"
        remedy = "start Kafka 3.9, and upgrade with kafka-features.sh upgrade --release-version 3.9"
        yield StartupFailure(EXIT, file, None, None, message, _unknown_level(level, release), remedy)
        return
    levels = dict(metadata.features)
    if metadata.kraft_version:
        levels["kraft.version"] = metadata.kraft_version
    for name, number in levels.items():
        if name != LEVEL and not at_most(release.line).takes(name, number):
            message = f"the cluster's {name} is {number}, which Kafka {release.number} does not support"
            exception = (
                f"UnsupportedVersionException: Unable to register because the broker does not support finalized version"
                f" {number} of {name}."
            )
            since = first_taking(name, number)
            newer = "a newer Kafka than kdump knows" if since is None else f"Kafka {since[0]}.{since[1]} or later"
            remedy = f"start {newer}, or lower the feature with kafka-features.sh downgrade"
            yield StartupFailure(EXIT, file, None, None, message, exception, remedy)


def _way_down(level: int, line: Line, release: KafkaRelease) -> str:
    """Return how metadata.version is lowered on a running cluster to what the release supports, or why it is not
    (FeatureControlManager.updateMetadataVersion)."""
    lower = max((each for each in metadata_levels() if (line_of_level(each) or line) <= release.line), default=0)
    changed = [each for each in range(lower + 1, level + 1) if each in metadata_changes()]
    if changed:
        why = f"{metadata_levels()[changed[-1]]} changed the metadata"
        return f"the controllers refuse to lower {LEVEL} to that of {release.number}, because {why}"
    option = "--release-version" if line >= (4, 0) else "--metadata"
    text = f"on the running cluster, kafka-features.sh downgrade {option} {release.major}.{release.minor}"
    return f"{text} lowers {LEVEL} to {metadata_levels()[lower]}"


def _unknown_level(level: int, release: KafkaRelease) -> str:
    """Return the exception with which a node reads a level that it does not know."""
    if release.line >= (4, 1) and level >= NEW_REGISTRATION:
        return "MetadataParseException: Failed to deserialize record with type 0"
    return f"IllegalArgumentException: No MetadataVersion with feature level {level}"


def release_change(
    plan: RestartPlan, disk: DiskRelease, release: KafkaRelease, metadata: MetadataImage | None
) -> ReleaseChange | None:
    """Return what the start of another release changes; None if it is the release of the disk."""
    if not disk.is_stated or (disk.since <= release.line <= disk.until and release.mode == disk.release.mode):
        return None
    change = ReleaseChange([], [])
    if disk.release.mode == ZOOKEEPER and release.mode == KRAFT:
        change.rewrites.append(
            "renames every partition that the KRaft cluster does not know: nothing has migrated the topics from"
            " ZooKeeper (3.4 to 3.9 do that: KIP-866)"
        )
    if disk.release.mode == KRAFT and release.mode == ZOOKEEPER:
        change.wayBack.append("topics, configs and ACLs that exist only in the KRaft metadata are unknown to ZooKeeper")
    if META_ENSEMBLE.applies(release) and disk.until < (3, 7) and release.mode == KRAFT:
        change.rewrites.append("meta.properties: adds a directory.id, which 3.6 and earlier ignore (KIP-858)")
        change.wayBack.append("directories named -stray make 3.6.0 and earlier exit")
    if release.line >= (3, 9) and disk.until < (3, 9) and release.mode == KRAFT:
        change.wayBack.append("once kraft.version is 1, 3.8 and earlier do not read quorum-state (KIP-853)")
    if release.line > disk.until and release.mode == KRAFT:
        change.wayBack.append(
            f"once {LEVEL} is upgraded beyond {disk.until[0]}.{disk.until[1]}, that release does not start any more"
        )
    if release.line >= NEW_GROUPS and disk.until < IGNORES_UNKNOWN_GROUPS:
        change.wayBack.append(
            "records of new consumer groups in __consumer_offsets stop the group coordinators of 3.3 and earlier"
        )
    if release.line < disk.since:
        change.wayBack.extend(_downgrade(plan, disk, release))
    return change


def _downgrade(plan: RestartPlan, disk: DiskRelease, release: KafkaRelease) -> Iterator[str]:
    """Yield what an older release does not know of the disk."""
    if disk.since >= NEW_GROUPS:
        if release.line < IGNORES_UNKNOWN_GROUPS:
            yield "the group coordinator fails to load partitions of __consumer_offsets with records of new group types"
        elif release.line < NEW_GROUPS:
            yield "records of new group types in __consumer_offsets are ignored: the members of such groups are lost"
    if disk.since >= (3, 7) and not META_ENSEMBLE.applies(release) and len(plan.directories) > 1:
        yield "directory.id is not known: which log directory the metadata assigns a replica to is ignored"
