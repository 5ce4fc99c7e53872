"""Reads bootstrap.checkpoint, as every node does at startup, although only a controller of a new cluster uses it.

Source: BootstrapDirectory.read, BatchFileReader, BootstrapMetadata.fromRecords (4.3.1); MetadataVersion."""

from __future__ import annotations

import os

from kdump.check.options import Options
from kdump.cluster.metadata_files import BOOTSTRAP
from kdump.format.kafka_release import KafkaRelease
from kdump.format.known_releases import at_most, metadata_levels
from kdump.format.metadata_record import decode_metadata_record
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.window import Window
from kdump.kafka.errors import CorruptRecord, UnreadableMessage
from kdump.kafka.file_log_input_stream import FileLogInputStream, read_batches
from kdump.kafka.file_records import base_offset
from kdump.log.batch_records import records
from kdump.log.paths import target
from kdump.log.reading import Reading
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import EXIT, DirectoryPlan, failure
from kdump.questions.restart_plan.node.access_rights import Rights
from kdump.state.releases import BOOTSTRAP_LEVEL

FEATURE, METADATA_VERSION = "FeatureLevelRecord", "metadata.version"
LOWEST = 4
"""3.3-IV0, the lowest level that a bootstrap.checkpoint may have up to 3.9."""


def unknown_level(level: int, release: KafkaRelease) -> str:
    """Return the exception of a node that reads a level of metadata.version of which it does not even have an unstable
    name; empty if it has one (MetadataVersion.fromFeatureLevel)."""
    limits = at_most(release.line)
    if level in limits.levels or level in limits.unstable:
        return ""
    what = "metadata version" if release.line < (3, 8) else "feature level"
    return f"IllegalArgumentException: No MetadataVersion with {what} {level}"


def _refused(level: int, release: KafkaRelease) -> str:
    """Return the exception for a level of metadata.version in bootstrap.checkpoint; empty if there is none."""
    if level >= LOWEST or release.line >= (4, 0):
        return unknown_level(level, release)
    what = "metadata versions" if release.line < (3, 8) else "metadata.version"
    return f"RuntimeException: Bootstrap {what} before {metadata_levels()[LOWEST]} are not supported."


def read_bootstrap(directory: DirectoryPlan, options: Options, rights: Rights, release: KafkaRelease) -> None:
    """Add a stop to the directory if its bootstrap.checkpoint makes the node exit."""
    path = os.path.join(directory.path, BOOTSTRAP)
    if not file_system.exists(path):
        return
    denial = rights.java_error(path)
    found, position = denial and denial.exception, None
    if found is None:
        try:
            window = options.open(target(path))
        except SourceError as error:  # kdump cannot read it; the broker may
            directory.unread.append(str(error))
            return
        try:
            found, position = _problem(window, path, options, release)
            if found is None and release.patch is None:
                first = release._replace(patch=0)
                if exception := _problem(window, path, options, first)[0]:
                    values = {"release": first.number, "file": path, "reason": exception}
                    directory.problems.append(Problem("startup-bootstrap-first-patch", values))
        except SourceError as error:
            directory.unread.append(str(error))
        finally:
            window.source.close()
    if found is not None:
        directory.stops.append(failure(EXIT, "startup-bootstrap-unreadable", path, found, position, reason=found))


def _problem(window: Window, path: str, options: Options, release: KafkaRelease) -> tuple[str | None, int | None]:
    """Return the exception that Java throws and the byte position (None if it has none); None and None for a valid
    file. Like Kafka, does not verify checksums. Raises SourceError."""
    has_version = False
    try:
        for head in read_batches(window, 0, window.source.size or 0):
            if head.header is None:  # a message of magic 0 or 1: a wrong magic, so its compression is random, too
                base_offset(window, head)
                return f"RuntimeException: unable to deserialize record at offset {head.baseOffset}", head.position
            reading = Reading(FileLogInputStream(window).batch(head, options.limits))
            for record in records(reading):
                if record.is_control:
                    continue
                decoded = decode_metadata_record(record.value)
                if decoded.problem is not None or decoded.values is None:
                    return f"RuntimeException: unable to deserialize record at offset {record.offset}", head.position
                if decoded.name == FEATURE and decoded.values.get("name") == METADATA_VERSION:
                    has_version = True
                    if BOOTSTRAP_LEVEL.applies(release) and (
                        wrong := _refused(decoded.values["featureLevel"], release)
                    ):
                        return wrong, head.position
            if reading.problems:
                return f"InvalidRecordException: {reading.problems[0].reason}", head.position
    except (CorruptRecord, UnreadableMessage) as error:
        return error.exception, error.position
    if has_version:
        return None, None
    exception = f"No FeatureLevelRecord for {METADATA_VERSION} was found in the bootstrap metadata from"
    return f"RuntimeException: {exception} the binary bootstrap metadata file: {path}", None
