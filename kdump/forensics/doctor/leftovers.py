"""What fills a disk and belongs to no log: .deleted files and -delete directories, and what is not Kafka's. And whether
the file system is full. From kdump.forensics.space."""

from __future__ import annotations

import os

from kdump.forensics.doctor.answers import Priority
from kdump.forensics.doctor.disks import Disks
from kdump.forensics.doctor.report_to import Examination, command
from kdump.forensics.space.file_systems import file_system_of
from kdump.forensics.space.usage import root_usage
from kdump.format.count_text import first_of
from kdump.format.size_text import size_text
from kdump.log.log_directory import LogDirectory
from kdump.log.run import Run

LEAST_SHARE = 0.01
"""Share of what was measured above which leftovers are reported."""
LOW, FULL = 0.05, 0.01
"""Free share of a file system below which it is reported as nearly full, and as full."""
NAMED = 3
NEVER = ("do not delete segments, indexes, snapshots or checkpoints by hand: kdump space lists what may be deleted",)


class Leftovers:
    """Reports them. `deleted`: bytes of .deleted files and -delete directories, by log directory; `full`: the log
    directories whose file system is full."""

    def __init__(self, disks: Disks, on: Examination) -> None:
        self.disks = disks
        self.on = on
        self.deleted: dict[str, int] = {}
        self.full: set[str] = set()

    def add(self, source: str, size: int) -> None:
        """Count bytes of a partition directory of the log directory `source` that no broker reads again."""
        self.deleted[source] = self.deleted.get(source, 0) + size

    def report(self, measured: int) -> None:
        """Report what there is, if it is a considerable part of the `measured` bytes."""
        for broker in self.disks.brokers:
            for directory in broker.directories:
                run = command("space", *broker.paths)
                self._file_system(directory, run)
                self._left_over(directory, run, measured)

    def priority(self, source: str) -> int:
        """Return the priority of what takes space in a log directory."""
        return Priority.FULL if source in self.full else Priority.SPACE

    def _left_over(self, directory: LogDirectory, run: str, measured: int) -> None:
        others = sorted(
            root_usage(directory, Run(unreadable=self.on.unreadable)).others, key=lambda each: (-each[1], each[0])
        )
        deleted, foreign = self.deleted.get(directory.path, 0), sum(each[1] for each in others)
        if deleted + foreign <= LEAST_SHARE * (measured + foreign):
            return
        parts = [f"{size_text(deleted)} deleted (.deleted, -delete)"] if deleted else []
        if foreign:
            names = [f"{os.path.basename(path)} {size_text(size)}" for path, size, _, _ in others]
            parts.append(f"{size_text(foreign)} that is not Kafka's ({first_of(names, NAMED)})")
        self.on.item(
            self.priority(directory.path),
            "warning",
            "space-leftovers",
            directory.path,
            f"{size_text(deleted + foreign)} that no broker reads: {' and '.join(parts)}",
            evidence=tuple(path for path, _, _, _ in others[:NAMED]) or (directory.path,),
            file=others[0][0] if others else None,
            commands=(run,),
            actions=("see in kdump space what may be deleted, in which order, and what it costs",),
            never=NEVER,
        )

    def _file_system(self, directory: LogDirectory, run: str) -> None:
        found = file_system_of(directory)
        if found is None or found.free >= LOW * found.total:
            return
        is_full = found.free < FULL * found.total
        if is_full:
            self.full.add(directory.path)
        self.on.item(
            self.priority(directory.path),
            "error" if is_full else "warning",
            "disk-full" if is_full else "disk-nearly-full",
            directory.path,
            f"{size_text(found.free)} of {size_text(found.total)} are free on its file system",
            impact="a broker that cannot write takes the log directory offline; one that is down needs room to start",
            evidence=(f"{found.mount or directory.path} ({found.type or 'type unknown'})",),
            commands=(run,),
            actions=("free space as kdump space lists it, before you start the broker",),
            never=NEVER,
        )
