"""Which release of Kafka ran on a disk, as far as its files state it.

A node registers with the range of metadata.version that it supports, and the upper end names its release. Without
that, the levels of features that the log has had are a lower bound, and the formats of small files give both. A disk of
a broker with ZooKeeper has no metadata log. What no known release writes is of a newer one, whatever else is there.

Source: BrokerRegistrationRequest, MetadataVersion, Feature; MetaPropertiesVersion (KIP-631, KIP-858);
CleanShutdownFileHandler (since 3.7, KIP-966); PartitionMetadataFile (since 2.8, KIP-516);
FileQuorumStateStore (KIP-853)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from kdump.answer import Doc, PathText
from kdump.format.kafka_release import KRAFT, LINES, NEWEST, ZOOKEEPER, AppliedRelease, KafkaRelease, newer_number
from kdump.format.known_releases import Line, at_most, first_taking, metadata_levels
from kdump.format.numbers import parse_int
from kdump.io import file_system
from kdump.io.directory_listing import length
from kdump.kafka.file_versions import VersionEvidence, file_version
from kdump.kafka.small_files import READERS, newer_version, properties
from kdump.log.file_kinds import CLEAN_MARK
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC
from kdump.log.log_directory import META, LogDirectory, directory_at
from kdump.log.paths import target

if TYPE_CHECKING:  # most disks have no metadata
    from kdump.state.metadata_image import MetadataImage, QuorumImage, SupportedFeature

LEVEL = "metadata.version"
OPTION, DISK, DEFAULT = "option", "disk", "default"
"""Where a release was taken from."""
START_CHECKPOINT, BEFORE_START_CHECKPOINT = "log-start-offset-checkpoint", "0.10"
"""A checkpoint that every broker writes since 0.11 (KIP-107), and the release before."""
MAX_NAMED = 3
"""Maximum number of reasons that are named."""
MAX_LOOKED_AT = 100
"""Maximum number of partition directories in which partition.metadata is looked for."""

FIRST, LAST = LINES[0], LINES[-1]
NEWER = (LAST[0], LAST[1] + 1)
"""Stands for every release after the newest known one."""
LAST_WITH_ZOOKEEPER = (3, 9)
WITH_FORMAT_IN_CHECKPOINT = (4, 4)
"""First release whose kafka-storage writes levels of features into a metadata snapshot at offset 0 (KIP-1170)."""
NEWER_NUMBER = f"newer than {NEWEST.number}"
"""The release of a disk that has what no known release writes, in words."""
OF_DISTRIBUTIONS = "confluent."
"""Prefix of features that Kafka itself does not have."""


class ReleaseFact(NamedTuple):
    """Something on the disk that bounds the release: at least `since`, at most `until`; None: no bound. `file`: the
    name of a file that states it by its version alone; `offset`: of the record in the metadata log that states it."""

    text: str
    since: Line | None
    until: Line | None
    file: str = ""
    offset: int | None = None


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
        str | None,
        Doc(
            f"release of Kafka that the disk itself states: 4.3.1, 2.8 or older, or {NEWER_NUMBER}; null if it states "
            "none",
            after="doubt",
        ),
    ]
    newer: Annotated[
        tuple[PathText, ...],
        Doc("what only a release newer than the newest known one writes; then its rules are applied", after="doubt"),
    ] = ()


class DiskRelease(NamedTuple):
    """The release that ran on a disk: `release` is the most likely one between `since` and `until` (inclusive)."""

    release: KafkaRelease
    since: Line
    until: Line
    reason: str
    doubt: str
    is_stated: bool
    newer: tuple[str, ...] = ()
    """What only a release after the newest known one writes; empty if nothing is. `release` is then the newest known
    one, and `since` and `until` are NEWER."""
    is_registered: bool = False
    """Whether the node registered with a release that is known."""
    oldest: str = ""
    """The newest release that may have run, if it may have been older than those that are known: 2.8, or 0.10."""
    newer_files: frozenset[str] = frozenset()
    """Names of files whose version only a release after the newest known one writes, in each of the directories: that
    release wrote to all of them."""

    @property
    def number(self) -> str:
        """The number of the release, in words if it is not known."""
        if self.newer:
            return NEWER_NUMBER
        return f"{self.oldest} or older" if self.oldest else self.release.number


def first_release(name: str, level: int) -> Line:
    """Return the first release that supports a level of a feature: NEWER if no known one does, FIRST if each does."""
    if level <= 0 or name.startswith(OF_DISTRIBUTIONS):
        return FIRST
    if name == LEVEL and level in metadata_levels():
        major, _, minor = metadata_levels()[level].partition("-")[0].partition(".")
        return int(major), int(minor)
    return first_taking(name, level) or NEWER


def highest_level(name: str, line: Line) -> int:
    """Return the highest level of a feature that a release supports; 0 if it does not have the feature."""
    level = at_most(line).features.get(name)
    return 0 if level is None else level.highest


def level_name(name: str, level: int) -> str:
    """Return a level of a feature in words; if it is above those that are known, with the highest of these."""
    if first_release(name, level) > LAST:
        return newer_number(level, highest_level(name, LAST) or None)
    return metadata_levels().get(level, str(level)) if name == LEVEL else str(level)


def level_text(name: str, level: int) -> str:
    """Return a feature and its level: metadata.version 4.4-IV2."""
    return f"{name} {level_name(name, level)}"


def earlier_level_text(name: str, level: int, offset: int | None) -> str:
    """Return that a record at `offset`, None for the snapshot, set a feature to a level that it no longer has."""
    at = "" if offset is None else f" at offset {offset}"
    return f"{name} was set{at} to {level_name(name, level)}"


def formatted_level_text(name: str, level: int) -> str:
    """Return that kafka-storage has written a level of a feature into the metadata snapshot at offset 0."""
    return f"kafka-storage wrote {level_text(name, level)} into the checkpoint at offset 0"


def disk_release(paths: Sequence[str], metadata: MetadataImage | None) -> DiskRelease:
    """Return the release that ran on these log directories, all of one node, with its cluster's metadata if they have
    it. Directories that cannot be read state nothing."""
    places = [place for place in map(directory_at, paths) if isinstance(place, LogDirectory)]
    metas = [properties(place.files.get(META)) for place in places]
    mode = _mode(places, metas, metadata)
    facts = []
    if mode == ZOOKEEPER:
        text = "meta.properties is that of a broker with ZooKeeper"
        facts.append(ReleaseFact(text, None, LAST_WITH_ZOOKEEPER))
    is_registered = False
    if metadata is not None:
        nodes = {parse_int(meta.get("node.id") or meta.get("broker.id")) for meta in metas}
        facts += _metadata_facts(metadata, nodes)
        is_registered = any(fact.since == fact.until <= LAST for fact in _registrations(metadata, nodes) if fact.until)
    facts += _versions(places, agrees=any(map(_is_newer, facts)), is_registered=is_registered)
    facts += _small_files(places, metas, mode)
    newer = tuple(dict.fromkeys(fact.text for fact in facts if _is_newer(fact)))
    if newer:
        reason = ", ".join(newer[:MAX_NAMED])
        files = frozenset(fact.file for fact in facts if _is_newer(fact) and fact.file)
        likeliest = NEWEST._replace(mode=mode)
        return DiskRelease(likeliest, NEWER, NEWER, reason, "", True, newer, is_registered, newer_files=files)
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
    oldest = _oldest(places) if mode == ZOOKEEPER and until == FIRST else ""
    doubt = "" if since == until else _range(since, until)
    if refuted:
        doubt += ("; " if doubt else "") + f"but {', and '.join(refuted)}"
    reason = ", ".join(fact.text for fact in used)
    return DiskRelease(release, since, until, reason, doubt, bool(used), (), is_registered, oldest)


def _is_newer(fact: ReleaseFact) -> bool:
    return fact.since is not None and fact.since > LAST


def _metadata_facts(metadata: MetadataImage, nodes: set[int | None]) -> list[ReleaseFact]:
    """Return what the metadata states, with the registrations of these nodes."""
    newer = [ReleaseFact(reason, NEWER, None, offset=offset) for reason, offset in metadata.newer.items()]
    return [*_registrations(metadata, nodes), *_levels(metadata), *newer]


def newer_in(metadata: MetadataImage, *nodes: int | None) -> dict[str, int | None]:
    """Return what in the metadata only a release newer than the newest known one writes, with the offset in the log if
    a single record is meant. `nodes`: those whose registrations count, None for one that is unknown."""
    return {fact.text: fact.offset for fact in _metadata_facts(metadata, {*nodes} - {None}) if _is_newer(fact)}


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
        return AppliedRelease(release, release, release, "", disk.newer, disk.is_registered)
    if not disk.is_stated:
        return AppliedRelease()
    mode = disk.release.mode
    since, until = (KafkaRelease(*line, None, mode) for line in (disk.since, disk.until))
    return AppliedRelease(disk.release, since, until, disk.doubt, disk.newer, disk.is_registered)


def _mode(places: Sequence[LogDirectory], metas: Sequence[dict[str, str]], metadata: MetadataImage | None) -> str:
    """Return the mode. A broker that migrates from ZooKeeper has meta.properties of version 0 and a metadata log."""
    of_brokers = [meta for meta in metas if "broker.id" in meta]
    if not of_brokers or any(meta.get("version", "0").strip() != "0" for meta in metas if "node.id" in meta):
        return KRAFT
    state = "" if metadata is None else metadata.zk_migration.get("", "")
    has_log = any(partition.topic == METADATA_TOPIC for place in places for partition in place.partitions)
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
            if top is not None:
                line = first_release(LEVEL, top)
                reason = f"{kind} {number} registered with {LEVEL} up to {level_name(LEVEL, top)}"
                found.append(ReleaseFact(reason, line, line))
            for feature in registration.features:
                if feature.name != LEVEL and first_release(feature.name, feature.maxSupportedVersion) > LAST:
                    reason = f"{kind} {number} registered with {level_text(feature.name, feature.maxSupportedVersion)}"
                    found.append(ReleaseFact(reason, NEWER, None))
    return found


def _level(features: Sequence[SupportedFeature]) -> int | None:
    return next((feature.maxSupportedVersion for feature in features if feature.name == LEVEL), None)


def all_levels(metadata: QuorumImage) -> dict[tuple[str, int], int | None]:
    """Return the levels of features that a node replays, with the offset of the first record that sets each, None for
    the snapshot."""
    levels = dict(metadata.levels)
    if metadata.kraft_version:
        levels.setdefault(("kraft.version", metadata.kraft_version), None)
    return levels


def _levels(metadata: MetadataImage) -> Iterator[ReleaseFact]:
    """Yield what the levels of features state, also those that were lowered later: some node has supported them."""
    for (name, level), offset in all_levels(metadata).items():
        since = first_release(name, level)
        if since == FIRST:
            continue
        is_final = level == (metadata.kraft_version if name == "kraft.version" else metadata.features.get(name))
        reason = f"{name} is {level_name(name, level)}" if is_final else earlier_level_text(name, level, offset)
        yield ReleaseFact(reason, since, None, offset=offset)
    for name, level in metadata.formatted.items():
        since = max(first_release(name, level), WITH_FORMAT_IN_CHECKPOINT)
        yield ReleaseFact(formatted_level_text(name, level), since, None)


def _versions(places: Sequence[LogDirectory], *, agrees: bool, is_registered: bool) -> Iterator[ReleaseFact]:
    """Yield the versions of files at the root of log directories, and of quorum-state, that no known release writes,
    and that are not damage (see VersionEvidence)."""
    stated = []
    for place in places:
        quorum = os.path.join(place.path, METADATA_LOG, "quorum-state")
        files = dict(place.files)
        if file_system.isfile(quorum):
            files["quorum-state"] = target(quorum)
        for name, file in files.items():
            if file.kind is None or file.kind not in READERS:
                continue
            if reason := newer_version(file.kind, file_version(file), f"{name} version"):
                stated.append((file.path, reason))
    evidence = VersionEvidence(agrees or len(stated) > 1, is_registered)
    for path, reason in stated:
        if evidence.is_newer(path):
            yield ReleaseFact(reason, NEWER, None, os.path.basename(path))


def _small_files(places: Sequence[LogDirectory], metas: Sequence[dict[str, str]], mode: str) -> list[ReleaseFact]:
    """Return what the formats of small files state."""
    facts = []
    if any("directory.id" in meta for meta in metas):
        facts.append(ReleaseFact("meta.properties has a directory.id", (3, 7), None))
    elif mode == KRAFT and any("node.id" in meta and "cluster.id" in meta for meta in metas):
        facts.append(ReleaseFact("meta.properties has no directory.id", None, (3, 6)))
    for place in places:
        mark = place.files.get(CLEAN_MARK)
        if mark is None or not file_system.isfile(mark.path):
            continue
        if "brokerEpoch" in properties(mark):
            facts.append(ReleaseFact(f"{CLEAN_MARK} has a broker epoch", (3, 7), None))
        elif length(mark.path) == 0:
            facts.append(ReleaseFact(f"{CLEAN_MARK} is empty", None, (3, 6)))
        break
    if mode == ZOOKEEPER:
        facts += _topic_ids(places)
    return facts


def _topic_ids(places: Sequence[LogDirectory]) -> list[ReleaseFact]:
    """Return what the presence of partition.metadata states. A broker up to 2.7, or with an older
    inter.broker.protocol.version, has none."""
    live = [partition for place in places for partition in place.partitions if partition.topic != METADATA_TOPIC]
    looked_at = live[:MAX_LOOKED_AT]
    if not looked_at:
        return []
    if any(file_system.exists(os.path.join(partition.path, "partition.metadata")) for partition in looked_at):
        return []
    reason = (
        "no partition has a partition.metadata (2.8 and later write it, unless inter.broker.protocol.version is older)"
    )
    return [ReleaseFact(reason, None, FIRST)]


def _oldest(places: Sequence[LogDirectory]) -> str:
    """Return the newest release that may have run on a disk of 2.8 or older."""
    has_start = any(START_CHECKPOINT in place.files for place in places)
    return ".".join(map(str, FIRST)) if has_start else BEFORE_START_CHECKPOINT


def _likeliest(mode: str, since: Line, until: Line, metadata: MetadataImage | None) -> KafkaRelease:
    """Return the newest release that is possible, or that of the finalized metadata.version."""
    level = None if metadata is None else metadata.features.get(LEVEL)
    line = until
    if since != until and level is not None:
        line = min(max(since, first_release(LEVEL, level)), until)
    if line == LAST:
        return NEWEST
    return KafkaRelease(*line, None, mode)


def _range(since: Line, until: Line) -> str:
    names = [".".join(map(str, line)) for line in (since, until)]
    return f"it may be any from {names[0]} to {names[1]}"
