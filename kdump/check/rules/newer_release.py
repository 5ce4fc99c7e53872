"""Family files, checkpoints: what only a release newer than the newest known one writes.

Source: kdump.cluster.release_evidence.
"""

from __future__ import annotations

import os

from kdump.check.finding import WARNING, Code, Finding
from kdump.format.kafka_release import NEWEST_KNOWN
from kdump.log.paths import Target

NEWER_RELEASE = Code(
    code="newer-release",
    family="checkpoints",
    severity=WARNING,
    meaning=f"Something has a version, level or type that only a release newer than {NEWEST_KNOWN}, writes.",
    consequence="what it means is not known here; a release that does not know it either may not start",
    fix="Use a newer kdump, one that knows the release that ran here, and start no older release on the disk",
    source="MetadataVersion, Feature, MetadataRecordSerde, CheckpointFile, ProducerStateManager",
)


def newer_release(target: Target, text: str, position: int = 0, size: int = 0, offset: int | None = None) -> Finding:
    """Return the finding for something in a file; `text` says what."""
    name = os.path.basename(target.path)
    message = text if text.startswith(name) or not text.startswith("version ") else f"{name} {text}"
    return NEWER_RELEASE.finding(target, message=message, position=position, size=size, offset=offset)
