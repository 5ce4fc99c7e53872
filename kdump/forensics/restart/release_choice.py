"""Chooses the release whose startup is replayed: the one that was asked for, or the one that ran on the disk."""

from __future__ import annotations

from kdump.cluster.release_evidence import DEFAULT, DISK, OPTION, ChosenRelease, DiskRelease, completed, disk_release
from kdump.forensics.restart.plan_values import RestartPlan
from kdump.format.kafka_release import KRAFT, KafkaRelease, newer_release_text
from kdump.state.metadata_image import MetadataImage
from kdump.state.releases import is_tried


def choose_release(
    plan: RestartPlan, requested: KafkaRelease | None, metadata: MetadataImage | None
) -> tuple[KafkaRelease, DiskRelease]:
    """Return the release that is started, and the one that ran on the disk; write the choice to the plan."""
    disk = disk_release([each.path for each in plan.directories], metadata)
    stated = disk.number if disk.is_stated else None
    if requested is None:
        source = DISK if disk.is_stated else DEFAULT
        release, reason, doubt = disk.release, disk.reason or "no file states the release", disk.doubt
    else:
        release, source, reason = completed(requested, disk), OPTION, "--kafka-version"
        doubt = newer_release_text(release)
        if metadata is not None and release.mode == KRAFT:  # a replay of the metadata may fail
            plan.doubts += metadata.newer
    plan.release = ChosenRelease(
        release.number, release.mode or KRAFT, source, reason, doubt, is_tried(release), stated, disk.newer
    )
    return release, disk
