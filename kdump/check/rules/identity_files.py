"""Family files, checkpoints: the files that identify a directory, and the quorum state of a KRaft node.

Source: MetaProperties (versions 0 and 1), PartitionMetadataFile.PartitionMetadataReadBuffer, FileQuorumStateStore."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kdump.check.finding import WARNING, Code, Finding
from kdump.check.rules.newer_release import newer_release
from kdump.format.kafka_release import NEWEST_APPLIES, AppliedRelease, KafkaRelease
from kdump.format.kafka_uuid import ZERO_UUID
from kdump.format.known_releases import at_most, newest
from kdump.format.meta_properties import DIRECTORY_ID, TRIMMED
from kdump.format.numbers import parse_int
from kdump.io.errors import SourceError
from kdump.kafka.checkpoint_file import BadLine
from kdump.kafka.file_versions import VersionEvidence
from kdump.kafka.quorum_state import check_quorum_state
from kdump.kafka.small_files import newer_version
from kdump.log import file_kinds
from kdump.log.entries import Entry, Item
from kdump.log.paths import Target
from kdump.state.releases import (
    META_VERSION_0,
    META_VERSION_1,
    STRAY_WITHOUT_ID,
    STRAY_WITHOUT_ID_EXITS,
    STRAYS_DELETED,
)

if TYPE_CHECKING:
    from kdump.state.metadata_image import MetadataImage

PARTITION_METADATA_INVALID = Code("partition-metadata-invalid")
META_PROPERTIES_INVALID = Code("meta-properties-invalid")
QUORUM_STATE_INVALID = Code("quorum-state-invalid")


UUID = re.compile(r"[\w-]{22}$")


def version_evidence(applied: AppliedRelease) -> VersionEvidence:
    """Return what speaks for or against a version that no known release writes in a small file."""
    return VersionEvidence(bool(applied.newer), applied.is_registered)


def _newer(target: Target, version: int | None, applied: AppliedRelease) -> str:
    """Return that a newer release wrote the file, by its version; empty if it did not."""
    what = f"{os.path.basename(target.path)} version"
    newer = newer_version(target.kind, version, what) if target.kind is not None else ""
    return newer if newer and version_evidence(applied).is_newer(target.path) else ""


def content(target: Target, values: dict[str, str], applied: AppliedRelease = NEWEST_APPLIES) -> Iterator[Finding]:
    """Yield findings for contents of a file, given as names and values, that are invalid for a release."""
    release = applied.release
    if target.kind is file_kinds.PARTITION_METADATA:
        version, topic_id = values.get("version"), values.get("topic_id")
        number = parse_int(version)
        if newer := _newer(target, number, applied):
            yield newer_release(target, newer)
        elif version != "0":
            severity = WARNING if number == 0 else None
            case = "readAs0" if number is not None and number >= 0 else ""
            yield _found(PARTITION_METADATA_INVALID, target, "version", version, "0", severity=severity, case=case)
        if topic_id is None or topic_id == ZERO_UUID or not UUID.match(topic_id):
            yield _found(PARTITION_METADATA_INVALID, target, "topic_id", topic_id, "a 22-character ID other than zero")
    elif target.kind is file_kinds.META_PROPERTIES:
        yield from _meta_properties(target, values, applied)
    elif target.kind is file_kinds.CLEAN_SHUTDOWN:  # no broker looks at its version
        if newer := _newer(target, parse_int(values.get("version")), applied):
            yield newer_release(target, newer)
    elif target.kind is file_kinds.QUORUM_STATE:
        version = values.get("data_version")
        versions = [str(each) for each in at_most(release.line).files["FileQuorumStateStore"].each]
        if newer := _newer(target, parse_int(version), applied):
            yield newer_release(target, newer)
        elif version not in versions:
            yield _found(QUORUM_STATE_INVALID, target, "data_version", version, " or ".join(versions))
        elif parse_int(values.get("leaderEpoch")) is None:
            yield _found(QUORUM_STATE_INVALID, target, "leaderEpoch", values.get("leaderEpoch"), "a number")
        else:
            try:
                check_quorum_state(target.path, release)
            except BadLine as error:
                yield QUORUM_STATE_INVALID.finding(target, message=f"{error}: {error.exception}")
            except SourceError:
                return  # it has gone since


def _meta_properties(target: Target, values: dict[str, str], applied: AppliedRelease) -> Iterator[Finding]:
    text, release = values.get("version"), applied.release
    version = parse_int("0" if text is None else text.strip(TRIMMED))
    if newer := _newer(target, version, applied):
        yield newer_release(target, newer)
        return
    versions = newest().files["MetaProperties"].each
    possible = versions[:1] if META_VERSION_0.applies(release) else versions[META_VERSION_1.applies(release) :]
    if version not in possible or (text is None and "broker.id" not in values):  # without it, the version is 0
        yield _found(META_PROPERTIES_INVALID, target, "version", text, " or ".join(map(str, possible)))
        return
    node = "node.id" if version else "broker.id"
    for name in (node, "cluster.id") if version else (node,):
        value = values.get(name)
        if value is None and META_VERSION_0.applies(release):
            continue  # the broker takes its own broker.id, and writes it
        if value is None or (name == node and parse_int(value) is None):
            yield _found(META_PROPERTIES_INVALID, target, name, value, "a number" if name == node else "an ID")
    directory = values.get("directory.id")
    if directory is not None and not DIRECTORY_ID.fullmatch(directory):
        yield _found(META_PROPERTIES_INVALID, target, "directory.id", directory, "a 22-character ID")


def registered(
    target: Target, values: dict[str, str], metadata: MetadataImage, holds_partitions: bool
) -> Iterator[Finding]:
    """Yield a finding if node.id or directory.id differs from the registration of this log directory in the cluster's
    metadata. An unknown directory.id is only a warning if the directory has no partitions: the broker registers it at
    startup."""
    node, directory = parse_int(values.get("node.id")), values.get("directory.id")
    if node is None or directory is None:
        return
    owner, own = metadata.owner_of(directory), metadata.broker_directories.get(node)
    if owner not in (None, node):
        yield _found(
            META_PROPERTIES_INVALID, target, "node.id", str(node), f"{owner}, the node that registered {directory}"
        )
    elif owner is None and own:
        expected = f"one of {', '.join(own)}"
        yield _found(
            META_PROPERTIES_INVALID,
            target,
            "directory.id",
            directory,
            expected,
            severity=None if holds_partitions else WARNING,
            case="otherDirectory",
        )


def missing_topic_id(target: Target, release: KafkaRelease, is_empty: bool) -> Iterator[Finding]:
    """Yield a finding for a live partition without partition.metadata, the file `target`, in a log directory.
    `is_empty`: no batch is lost with its directory."""
    if STRAY_WITHOUT_ID_EXITS.applies(release):
        severity, case = None, "exits"
    elif STRAY_WITHOUT_ID.applies(release):
        severity, case = WARNING if is_empty else None, "stray"
    elif STRAYS_DELETED.applies(release):
        severity, case = WARNING, "notCompared"
    else:
        return
    yield PARTITION_METADATA_INVALID.finding(
        target, message="there is no partition.metadata, so the topic ID is unknown", severity=severity, case=case
    )


def other_topic_id(
    target: Target, items: Iterable[Item], topic_id: str, *, of_deleted: bool | None = None
) -> Iterator[Finding]:
    """Yield a finding if the topic ID of a partition.metadata, given everything in it, is not the one in the cluster's
    metadata. `of_deleted`: it is that of a topic that was deleted, so nothing is damaged; None if that is unknown."""
    for item in items:
        if isinstance(item, Entry) and item.values.get("name") == "topic_id":
            stored = item.values["value"]
            if stored not in (topic_id, ZERO_UUID):
                yield PARTITION_METADATA_INVALID.finding(
                    target,
                    message=f"topic_id is {stored}, but {topic_id} in the cluster's metadata",
                    position=item.position,
                    size=item.size,
                    expected=topic_id,
                    actual=stored,
                    severity=WARNING if of_deleted else None,
                    case="otherId",
                    facts={"ofDeleted": of_deleted},
                )


def _found(
    code: Code, target: Target, name: str, value: str | None, expected: str, severity: str | None = None, case: str = ""
) -> Finding:
    problem = f"{name} is missing" if value is None else f"{name} is {value[:100]!r}"
    return code.finding(
        target, message=f"{problem}, expected {expected}", expected=expected, actual=value, severity=severity, case=case
    )
