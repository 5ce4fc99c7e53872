"""Which release of Kafka ran on a disk, as far as its files state it.

A node registers with the range of metadata.version that it supports, and the upper end names its release. Without
that, the finalized features are a lower bound, and the formats of small files give both. A disk of a broker with
ZooKeeper has no metadata log.

Source: BrokerRegistrationRequest, MetadataVersion, Feature; MetaPropertiesVersion (KIP-631, KIP-858);
CleanShutdownFileHandler (since 3.7, KIP-966); PartitionMetadataFile (since 2.8, KIP-516);
FileQuorumStateStore (KIP-853).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from kdump.answer import Doc, PathText
from kdump.format.kafka_release import (
    KRAFT,
    LINES,
    NEWEST,
    ZOOKEEPER,
    AppliedRelease,
    KafkaRelease,
)
from kdump.format.known_releases import Line, first_taking, metadata_levels
from kdump.format.numbers import parse_int
from kdump.log import file_system
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import CLEAN_MARK, LogDirectory, directory_at
from kdump.state.identity import meta_properties
from kdump.state.metadata_image import MetadataImage, SupportedFeature
from kdump.state.small_files import properties

LEVEL = "metadata.version"
OPTION, DISK, DEFAULT = "option", "disk", "default"
"""Where a release was taken from."""
MAX_LOOKED_AT = 100
"""Maximum number of partition directories in which partition.metadata is looked for."""

FIRST, LAST = LINES[0], LINES[-1]
LAST_WITH_ZOOKEEPER = (3, 9)


class ReleaseFact(NamedTuple):
    """Something on the disk that bounds the release: at least `since`, at most `until`; None: no bound."""

    text: str
    since: Line | None
    until: Line | None


class ChosenRelease(NamedTuple):
    """The release of Kafka whose rules are applied, and why."""

    version: Annotated[str, Doc("release of Kafka, such as 3.6 or 4.3.1")]
    mode: Annotated[str, Doc("kraft or zookeeper")]
    source: Annotated[
        str, Doc("why this one: option (--kafka-version), disk (the files state it) or default (nothing states it)")
    ]
    reason: Annotated[PathText, Doc("what states it")]
    doubt: Annotated[PathText, Doc("which other releases are possible; empty if none is")]
    tried: Annotated[bool, Doc("whether the rules of this release have been compared with real brokers of it")]
    diskVersion: Annotated[
        str | None, Doc("release of Kafka that the disk itself states; null if it does not", after="doubt")
    ]


class DiskRelease(NamedTuple):
    """The release that ran on a disk: `release` is the most likely one between `since` and `until` (inclusive)."""

    release: KafkaRelease
    since: Line
    until: Line
    reason: str
    doubt: str
    is_stated: bool


def line_of_level(level: int) -> Line | None:
    """Return major and minor release of a level of metadata.version; None for an unknown one."""
    name = metadata_levels().get(level)
    if name is None:
        return None
    major, _, minor = name.partition("-")[0].partition(".")
    return int(major), int(minor)


def disk_release(paths: Sequence[str], metadata: MetadataImage | None) -> DiskRelease:
    """Return the release that ran on these log directories, all of one node, with its cluster's metadata if they have
    it. Directories that cannot be read state nothing."""
    places = [place for place in map(directory_at, paths) if isinstance(place, LogDirectory)]
    metas = [meta_properties(place) for place in places]
    mode = _mode(places, metas, metadata)
    facts = []
    if mode == ZOOKEEPER:
        text = "meta.properties is that of a broker with ZooKeeper"
        facts.append(ReleaseFact(text, None, LAST_WITH_ZOOKEEPER))
    if metadata is not None:
        nodes = {parse_int(meta.get("node.id") or meta.get("broker.id")) for meta in metas}
        facts += _registrations(metadata, nodes)
        facts += _features(metadata)
    facts += _small_files(places, metas, mode)
    since, until, used, refuted = FIRST, LAST, [], []
    for fact in facts:
        low, high = max(since, fact.since or FIRST), min(until, fact.until or LAST)
        if low > high:
            refuted.append(fact.text)
            continue
        if fact.text and (low, high) != (since, until):
            used.append(fact)
        since, until = low, high
    release = _likeliest(mode, since, until, metadata)
    doubt = "" if since == until else _range(since, until, mode)
    if refuted:
        doubt += ("; " if doubt else "") + f"but {', and '.join(refuted)}"
    reason = ", ".join(fact.text for fact in used)
    return DiskRelease(release, since, until, reason, doubt, bool(used))


def completed(requested: KafkaRelease, disk: DiskRelease) -> KafkaRelease:
    """Return a release that a user named, with the mode of the disk if the user named none."""
    return requested._replace(mode=requested.mode or (disk.release.mode if requested.has_modes else KRAFT))


def applied_release(
    paths: Sequence[str], metadata: MetadataImage | None, requested: KafkaRelease | None
) -> AppliedRelease:
    """Return the release whose rules apply to these log directories of one node: the one that was asked for, the one
    that they state, or else the newest."""
    disk = disk_release(paths, metadata)
    if requested is not None:
        release = completed(requested, disk)
        return AppliedRelease(release, release, release)
    if not disk.is_stated:
        return AppliedRelease()
    mode = disk.release.mode
    since, until = (KafkaRelease(*line, None, mode) for line in (disk.since, disk.until))
    return AppliedRelease(disk.release, since, until, disk.doubt)


def _mode(places: Sequence[LogDirectory], metas: Sequence[dict[str, str]], metadata: MetadataImage | None) -> str:
    """Return the mode. A broker that migrates from ZooKeeper has meta.properties of version 0 and a metadata log."""
    of_brokers = [meta for meta in metas if "broker.id" in meta]
    if not of_brokers or any(meta.get("version", "0").strip() != "0" for meta in metas if "node.id" in meta):
        return KRAFT
    state = "" if metadata is None else metadata.zk_migration.get("", "")
    has_log = any(each.topic == METADATA_TOPIC for place in places for each in place.partitions)
    return KRAFT if has_log and state not in ("PRE_MIGRATION", "MIGRATION") else ZOOKEEPER


def _registrations(metadata: MetadataImage, nodes: set[int | None]) -> list[ReleaseFact]:
    """Return what the node's own registrations state."""
    found = []
    for kind, registered in (("broker", metadata.brokers), ("controller", metadata.controllers)):
        for number, registration in registered.items():
            if number not in nodes:
                continue
            top = _level(registration.features)
            if top is None and kind == "broker" and registration.features == ():
                found.append(ReleaseFact(f"{kind} {number} registered without {LEVEL}", None, (3, 2)))
                continue
            line = None if top is None else line_of_level(top)
            if line is not None:
                line = min(line, LAST)
                text = f"{kind} {number} registered with {LEVEL} up to {metadata_levels()[top or 0]}"
                found.append(ReleaseFact(text, line, line))
    return found


def _level(features: Sequence[SupportedFeature]) -> int | None:
    return next((each.maxSupportedVersion for each in features if each.name == LEVEL), None)


def _features(metadata: MetadataImage) -> list[ReleaseFact]:
    """Return what the finalized features state: all nodes support them."""
    found = []
    level = metadata.features.get(LEVEL)
    line = None if level is None else line_of_level(level)
    if line is not None and level is not None:
        found.append(ReleaseFact(f"{LEVEL} is {metadata_levels()[level]}", min(line, LAST), None))
    levels = dict(metadata.features)
    if metadata.kraft_version:
        levels["kraft.version"] = metadata.kraft_version
    for name, number in levels.items():
        since = first_taking(name, number)
        if name != LEVEL and number > 0 and since is not None:
            found.append(ReleaseFact(f"{name} is {number}", since, None))
    return found


def _small_files(places: Sequence[LogDirectory], metas: Sequence[dict[str, str]], mode: str) -> list[ReleaseFact]:
    """Return what the formats of small files state."""
    found = []
    if any("directory.id" in meta for meta in metas):
        found.append(ReleaseFact("meta.properties has a directory.id", (3, 7), None))
    elif mode == KRAFT and any("node.id" in meta and "cluster.id" in meta for meta in metas):
        found.append(ReleaseFact("meta.properties has no directory.id", None, (3, 6)))
    for place in places:
        mark = place.files.get(CLEAN_MARK)
        if mark is None or not file_system.isfile(mark.path):
            continue
        if "brokerEpoch" in properties(mark):
            found.append(ReleaseFact(f"{CLEAN_MARK} has a broker epoch", (3, 7), None))
        elif file_system.stat(mark.path).st_size == 0:
            found.append(ReleaseFact(f"{CLEAN_MARK} is empty", None, (3, 6)))
        break
    if mode == ZOOKEEPER:
        found += _topic_ids(places)
    return found


def _topic_ids(places: Sequence[LogDirectory]) -> list[ReleaseFact]:
    """Return what the presence of partition.metadata states. A broker up to 2.7, or with an older
    inter.broker.protocol.version, has none."""
    live = [each for place in places for each in place.partitions if each.topic != METADATA_TOPIC]
    looked_at = live[:MAX_LOOKED_AT]
    if not looked_at:
        return []
    if any(file_system.exists(os.path.join(each.path, "partition.metadata")) for each in looked_at):
        return []
    text = (
        "no partition has a partition.metadata (2.8 and later write it, unless inter.broker.protocol.version is older)"
    )
    return [ReleaseFact(text, None, FIRST)]


def _likeliest(mode: str, since: Line, until: Line, metadata: MetadataImage | None) -> KafkaRelease:
    """Return the newest release that is possible, or that of the finalized metadata.version."""
    level = None if metadata is None else metadata.features.get(LEVEL)
    line = until
    if since != until and level is not None:
        line = min(max(since, line_of_level(level) or since), until)
    if line == LAST:
        return NEWEST
    return KafkaRelease(*line, None, mode)


def _range(since: Line, until: Line, mode: str) -> str:
    names = [".".join(map(str, line)) for line in (since, until)]
    return f"it may be any from {names[0]} to {names[1]}"
