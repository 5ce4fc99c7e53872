"""What stands in the way of a start with another release than the one that ran on the disk, and what such a start
changes.

Source: FeaturesDelta, FeatureControlManager.replay, BootstrapMetadata, Feature, BrokerLifecycleManager (features that a
broker does not support); MetaPropertiesEnsemble; LocalLog.parseTopicPartitionName; GroupMetadataManager.readMessageKey.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from kdump.cluster import metadata_refusals
from kdump.cluster.release_evidence import (
    LAST,
    LEVEL,
    DiskRelease,
    all_levels,
    earlier_level_text,
    first_release,
    formatted_level_text,
    highest_level,
    level_name,
    level_text,
)
from kdump.format.count_text import first_of
from kdump.format.kafka_release import KRAFT, ZOOKEEPER, KafkaRelease
from kdump.format.known_releases import at_most, metadata_changes, metadata_levels
from kdump.problems.advice import NO_FACTS
from kdump.problems.problem import Problem, title_of
from kdump.questions.restart_plan.answer import EXIT, NewerLevelDoubt, ReleaseChange, StartupFailure, failure
from kdump.questions.restart_plan.node.bootstrap import unknown_level
from kdump.questions.restart_plan.node.refused_records import RefusedMetadata
from kdump.state.groups import CLASSIC, GroupCoordinatorState
from kdump.state.metadata_image import MetadataImage, QuorumImage
from kdump.state.releases import FORMAT_IN_CHECKPOINT, META_ENSEMBLE, METADATA_MINIMUM

IGNORES_UNKNOWN_GROUPS = (3, 4)
"""First release whose group coordinator ignores keys of unknown versions in __consumer_offsets (UnknownKey)."""
NEW_GROUPS = (4, 0)
"""First release that writes records of the new group protocols by default (KIP-848)."""
WITHOUT_ZOOKEEPER = (4, 0)
"""First release that reads nothing from ZooKeeper; its controllers ignore ZkMigrationStateRecord."""
KRAFT_LEVEL = "kraft.version"
BOOTSTRAP_SNAPSHOT = f"{0:020}-{0:010}.checkpoint"
READS_FIRST = (4, 1)
"""First release whose nodes have been seen to fail at such a record before they apply an earlier level."""
WRAPPED = (4, 0)
"""First release whose FeaturesDelta throws an exception of its own for a level of metadata.version that it does not
know."""


def add_levels(
    part: RefusedMetadata, release: KafkaRelease, metadata: QuorumImage | None, *, is_controller: bool
) -> None:
    """Add why a node of this release does not start with the levels in the metadata on the disk. What a broker does
    with a level that it does not know, and that was lowered later, and an unfinished migration from ZooKeeper (KIP-866)
    are doubts."""
    if metadata is None or release.mode != KRAFT or release.is_newer:
        return
    migration = metadata.zk_migration.get("")
    is_too_late = release.line >= WITHOUT_ZOOKEEPER
    if migration == "PRE_MIGRATION" or (migration == "MIGRATION" and is_too_late):
        values = {"state": migration, "release": release.number}
        case = "withoutZookeeper" if is_too_late else ""
        part.doubts.append(Problem("startup-migration-unfinished", values, case=case).title)
    final = dict(metadata.features)
    if metadata.kraft_version:
        final[KRAFT_LEVEL] = metadata.kraft_version
    of = {"release": release.number, "uncommitted": "", "directory": os.path.dirname(part.folder)}
    refused = metadata_refusals.refusals(metadata, release) if release.line >= READS_FIRST else []
    unread = next((each.exception for each in refused if each.reader), "")
    stop = partial(_stop, part, metadata, is_read=not unread)
    for name, level in sorted(final.items(), key=lambda item: item[0] != LEVEL):
        since = first_release(name, level)
        what = f"{name} is {level_name(name, level)}"
        if since > release.line:
            start = "a release that supports it" if since > LAST else f"Kafka {since[0]}.{since[1]} or later"
            facts, values = _way_down(final, release)
            values |= {"level": what, "start": start}
            case = "newer" if since > LAST else ""
            exception = unread or _exception(name, level, release, is_controller)
            part.stops.append(stop((name, level), "unsupported", exception, of | values, case=case, facts=facts))
            if name == LEVEL:
                return
        elif name == LEVEL and METADATA_MINIMUM.applies(release) and level < (lowest := _lowest_level(release)):
            values = {"level": what, "lowest": metadata_levels()[lowest]}
            exception = unread or _unknown_level(level, release)
            part.stops.append(stop((name, level), "too-low", exception, of | values))
            return
    lacks_level = metadata.has_format and LEVEL not in metadata.formatted
    if lacks_level and is_controller and FORMAT_IN_CHECKPOINT.applies(release):
        exception = "No FeatureLevelRecord for metadata.version was found in the bootstrap metadata from bootstrap"
        file = os.path.join(part.folder, BOOTSTRAP_SNAPSHOT)
        part.stops.append(failure(EXIT, "startup-format-without-level", file, f"RuntimeException: {exception}"))
    for name, level in metadata.formatted.items():
        if FORMAT_IN_CHECKPOINT.applies(release) and not metadata.levels and first_release(name, level) > release.line:
            part.doubts.append(_doubt(name, level, formatted_level_text(name, level)))
    for (name, level), offset in all_levels(metadata).items():
        if first_release(name, level) <= release.line or final.get(name) == level:
            continue
        earlier = earlier_level_text(name, level, offset)
        if is_controller:
            exception = unread or _exception(name, level, release, is_controller)
            part.stops.append(stop((name, level), "lowered", exception, of | {"level": earlier}))
            return
        if name == LEVEL or first_release(name, level) > LAST:
            title = Problem("startup-level-lowered", of | {"level": earlier}).title
            part.doubts.append(_doubt(name, level, title))


def _doubt(name: str, level: int, text: str) -> str:
    return NewerLevelDoubt(text) if first_release(name, level) > LAST else text


def _stop(
    part: RefusedMetadata,
    metadata: QuorumImage,
    level: tuple[str, int],
    problem: str,
    exception: str,
    values: dict[str, str],
    *,
    is_read: bool,
    case: str = "",
    facts: Mapping[str, bool | None] = NO_FACTS,
) -> StartupFailure:
    """Return the stop at the first record with the level of a feature, or at the metadata log if it is not in a record;
    `problem`: the end of the code; `is_read`: whether the node can read its log, and so gets to this record."""
    offset = metadata.levels.get(level)
    path, position, _ = metadata.places.get(level, ("", 0, None))
    if is_read:
        values = {**values, "uncommitted": part.uncommitted(metadata, offset)}
        part.refusedAt.append(offset)
    code, place = f"startup-level-{problem}", position if path else None
    file = path or part.folder
    return failure(EXIT, code, file, exception, place, offset, case=case, facts=facts, values=values)


def _lowest_level(release: KafkaRelease) -> int:
    """Return the lowest level of metadata.version with which a node of this release registers."""
    return at_most(release.line).features[LEVEL].lowest


def _way_down(final: dict[str, int], release: KafkaRelease) -> tuple[dict[str, bool | None], dict[str, str]]:
    """Return whether the levels of features are lowered on a running cluster to what the release supports, or why they
    are not, and how. (kafka-features.sh downgrade --release-version also sets features to the defaults of the release,
    and refuses to if one of them is above the current level, such as kraft.version 1: FeatureCommand,
    FeatureControlManager.updateFeature.)"""
    level = final.get(LEVEL, 0)
    lower = {name: highest_level(name, release.line) for name in sorted(final)}
    lower = {name: number for name, number in lower.items() if number < final[name]}
    changed = [changed_at for changed_at in metadata_changes() if lower.get(LEVEL, level) < changed_at <= level]
    is_unknown = not changed and first_release(LEVEL, level) > LAST
    lowers = not changed and not is_unknown and KRAFT_LEVEL not in lower
    refused = KRAFT_LEVEL if not changed and not is_unknown else LEVEL
    facts: dict[str, bool | None] = {"lowers": lowers, "metadataChanged": bool(changed), "levelUnknown": is_unknown}
    values = {"options": " ".join(f"--feature {name}={number}" for name, number in lower.items()), "refused": refused}
    return facts, values | {"changed": metadata_levels()[max(changed)] if changed else ""}


def _exception(name: str, level: int, release: KafkaRelease, is_controller: bool) -> str:
    """Return the exception with which a node refuses a level above those that it supports."""
    highest = highest_level(name, release.line)
    limits = at_most(release.line)
    is_unstable = name == LEVEL and level in limits.unstable
    if is_controller and (name != LEVEL or is_unstable):
        record = f"FeatureLevelRecord(name='{name}', featureLevel={level})"
        lowest = limits.features[name].lowest if name in limits.features else 0
        supported = f"{lowest}-{highest}" if highest > lowest else f"{highest}"
        exception = f"RuntimeException: Tried to apply FeatureLevelRecord {record}, but this controller only supports"
        return f"{exception} versions {supported}"
    if name == LEVEL and not is_unstable:
        return _unknown_level(level, release)
    return (
        "UnsupportedVersionException: Unable to register because the broker does not support finalized version"
        f" {level} of {name}."
    )


def _unknown_level(level: int, release: KafkaRelease) -> str:
    """Return the exception with which a node reads a level in the metadata log that it does not know."""
    if release.line >= WRAPPED:
        return "IllegalArgumentException: Unsupported metadata version"
    return unknown_level(level, release)


def release_change(
    disk: DiskRelease,
    release: KafkaRelease,
    metadata: MetadataImage | None,
    groups: Callable[[], GroupCoordinatorState | None],
    *,
    is_several: bool,
) -> ReleaseChange | None:
    """Return what the start of another release changes; None if it is the release of the disk. `groups`: reads those of
    the node; None if they are unknown. `is_several`: whether the node has more than one directory."""
    if not disk.is_stated or (disk.since <= release.line <= disk.until and release.mode == disk.release.mode):
        return None
    change = ReleaseChange([], [])
    if disk.release.mode == ZOOKEEPER and release.mode == KRAFT:
        change.rewrites.append(_text())
    if disk.release.mode == KRAFT and release.mode == ZOOKEEPER:
        change.wayBack.append(_text("zookeeper"))
    if META_ENSEMBLE.applies(release) and disk.until < (3, 7) and release.mode == KRAFT:
        change.rewrites.append(_text("directoryId"))
        change.wayBack.append(_text("strays"))
    if release.line >= (3, 9) and disk.until < (3, 9) and release.mode == KRAFT:
        change.wayBack.append(_text("quorumState"))
    is_new = metadata is not None and not metadata.levels
    if metadata is not None and is_new and metadata.formatted and not FORMAT_IN_CHECKPOINT.applies(release):
        levels = ", ".join(level_text(*stated) for stated in sorted(metadata.formatted.items()))
        change.wayBack.append(_text("formatted", levels=levels))
    if release.line > disk.until and release.mode == KRAFT and not disk.newer:
        change.wayBack.append(_text("level", level=LEVEL, release=f"{disk.until[0]}.{disk.until[1]}"))
    if release.line >= NEW_GROUPS and disk.until < IGNORES_UNKNOWN_GROUPS:
        change.wayBack.append(_text("newGroups"))
    if release.line < disk.since:
        if disk.since >= NEW_GROUPS and release.line < NEW_GROUPS:
            change.wayBack.extend(_new_groups(release, groups()))
        if disk.since >= (3, 7) and not META_ENSEMBLE.applies(release) and is_several:
            change.wayBack.append(_text("assigned"))
    return change


def _new_groups(release: KafkaRelease, groups: GroupCoordinatorState | None) -> Iterator[str]:
    """Yield what an older release does with groups of types that it does not know. The record of one that was deleted
    may still be in the log."""
    stops = release.line < IGNORES_UNKNOWN_GROUPS
    known = [] if groups is None else groups.groups.values()
    new = [group.groupId for group in known if group.type != CLASSIC and (stops or group.members)]
    if groups is not None and not new:
        return
    which = "if there are any" if groups is None else first_of(new)
    yield _text("groupsStop" if stops else "groupsLost", which=which)


def _text(case: str = "", **values: object) -> str:
    return title_of("release-change", case, **values)
