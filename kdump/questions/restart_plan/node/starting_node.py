"""A node before it loads its logs: its directories, the release that is started, and what their metadata states."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

from kdump.check.options import Options
from kdump.cluster.disks import Disks
from kdump.cluster.node_ids import may_be_broker
from kdump.cluster.release_evidence import DEFAULT, DISK, OPTION, ChosenRelease, DiskRelease, completed, disk_release
from kdump.format.kafka_release import KRAFT, ZOOKEEPER, KafkaRelease, newer_release_text
from kdump.io import file_system
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.log_directory import LogDirectory
from kdump.questions.restart_plan.answer import DirectoryPlan
from kdump.questions.restart_plan.node.access_rights import Rights
from kdump.state.metadata_image import MetadataImage
from kdump.state.releases import is_tried


def choose_release(
    directories: list[DirectoryPlan], requested: KafkaRelease | None, metadata: MetadataImage | None
) -> tuple[KafkaRelease, DiskRelease, ChosenRelease]:
    """Return the release that is started, the one that ran on the disk, and the choice."""
    disk = disk_release([directory.path for directory in directories], metadata)
    stated = disk.number if disk.is_stated else None
    if requested is None:
        source = DISK if disk.is_stated else DEFAULT
        release, reason, doubt = disk.release, disk.reason or "no file states the release", disk.doubt
    else:
        release, source, reason = completed(requested, disk), OPTION, "--kafka-version"
        doubt = newer_release_text(release)
    mode = release.mode or KRAFT
    chosen = ChosenRelease(release.number, mode, source, reason, doubt, is_tried(release), stated, disk.newer)
    return release, disk, chosen


@dataclass(frozen=True)
class StartingNode:
    """`source`: the log directory with the newest `metadata`, empty if there is none; with ZooKeeper it does not
    count."""

    directories: list[DirectoryPlan]
    disks: Disks
    options: Options
    rights: Rights
    release: KafkaRelease
    disk: DiskRelease
    source: str
    metadata: MetadataImage | None

    @property
    def server(self) -> ServerProperties | None:
        """Its server.properties, if they are known."""
        return self.disks.server_of(*(directory.path for directory in self.directories))

    @property
    def is_kraft(self) -> bool:
        return self.release.mode == KRAFT

    @property
    def leaves_zookeeper(self) -> bool:
        """Whether the disk is that of a broker with ZooKeeper, and a release without it is started."""
        return self.is_kraft and self.disk.release.mode == ZOOKEEPER

    @cached_property
    def places(self) -> list[LogDirectory]:
        return [place for directory in self.directories for place in self.disks.below(directory.path)]

    @cached_property
    def ids(self) -> set[int | None]:
        """Its node ID; more than one if its directories state different ones."""
        return {directory.nodeId for directory in self.directories}

    @cached_property
    def is_broker(self) -> bool:
        has_failed = any(directory.failed for directory in self.directories)
        is_broker = may_be_broker(self.places, self.ids, self.metadata, self.server, has_failed=has_failed)
        return is_broker or not self.is_kraft

    @property
    def metadata_directory(self) -> DirectoryPlan | None:
        """The directory that is metadata.log.dir; None if it failed."""
        return next((each for each in self.directories if each.metadataLogDir and not each.failed), None)

    @property
    def metadata_log_path(self) -> str:
        """The path at which its metadata log is expected."""
        directory = next((each for each in self.directories if each.metadataLogDir), self.directories[0])
        return os.path.join(directory.path, METADATA_LOG)

    @cached_property
    def metadata_logs(self) -> list[str]:
        paths = (os.path.join(directory.path, METADATA_LOG) for directory in self.directories)
        return [path for path in paths if file_system.exists(path)]

    @property
    def is_sole_by_file(self) -> bool:
        """Whether its properties state that it is the only controller."""
        server = self.server
        is_controller = server is not None and "controller" in (server.roles or ())
        return is_controller and server is not None and server.voters == {server.node_id} == self.ids

    @property
    def starts_empty(self) -> bool:
        """Whether it is the only controller, and has nothing of a metadata log."""
        return self.is_sole_by_file and not (self.source or self.metadata_logs)
