"""The offset checkpoints of a log directory, as a broker reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kdump.answer import Unknown
from kdump.kafka.small_files import offset_lines
from kdump.log import file_kinds
from kdump.log.live_files import Opener
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, applied_checkpoints
from kdump.log.paths import Target
from kdump.state.unknown_offsets import CheckpointFiles, no_file

WRITTEN = ("log-start-offset", "replication-offset", "recovery-point-offset")
"""Those that every broker writes; cleaner-offset exists only where something was compacted."""


class CheckpointOffset(NamedTuple):
    """Offset of a partition in the checkpoint file `target`, and position and size of its line in bytes."""

    offset: int
    target: Target
    position: int
    size: int


class OffsetCheckpoints(dict[str, dict[tuple[str, int], CheckpointOffset]]):
    """Offsets by the file's name without '-checkpoint', then by topic and partition."""

    def __init__(self, directory: LogDirectory, opener: Opener | None = None) -> None:
        super().__init__()
        self.unread: dict[str, Unknown] = {name: no_file(directory.path, name) for name in WRITTEN}
        self.files = CheckpointFiles(directory.path, self.unread)
        for file_name, target in directory.files.items():
            if target.kind is not file_kinds.OFFSET_CHECKPOINT:
                continue
            name = file_name.removesuffix("-checkpoint")
            lines, unknown = offset_lines(target, opener)
            self.unread.pop(name, None)
            self.unread |= {} if unknown is None else {name: unknown}
            self[name] = {
                (line.values["topic"], line.values["partition"]): CheckpointOffset(
                    line.values["offset"], target, line.position, line.size
                )
                for line in lines
            }

    def of(self, place: PartitionDirectory) -> Mapping[str, CheckpointOffset]:
        """Return those of a partition's offsets that apply to its directory, by the name of the file."""
        key = place.topic, place.partition
        return applied_checkpoints(place.state, {name: of[key] for name, of in self.items() if key in of})
