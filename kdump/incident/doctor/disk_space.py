"""What fills the disks: the largest topics, and what keeps segments of the largest partitions longer than configured.
From kdump.cluster.partition_summary and kdump.questions.retention."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from kdump.cluster.partition_summary import occupied, partition_summary
from kdump.format.count_text import count_text, first_of, size_text
from kdump.incident.doctor.answer import AffectedRange, LargestTopic
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import Examination, OutOfTime, command
from kdump.io.run import Run
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.problems.catalogue import OLD, STOPS
from kdump.problems.problem import Problem
from kdump.questions.retention.answer import RetentionBlocker
from kdump.questions.space.disks import file_system_of
from kdump.questions.space.usage import root_usage

TOPICS = 5
"""Number of topics that are named."""
PARTITIONS = 20
"""Number of partitions whose retention is examined."""


class Size(NamedTuple):
    """Lengths in bytes of all files, and what they occupy."""

    partitions: int = 0
    bytes: int = 0
    on_disk: int = 0

    def __add__(self, other: object) -> Size:
        assert isinstance(other, Size)
        return Size(*(one + more for one, more in zip(self, other)))


class SpaceExamination:
    """Sizes of all partitions, then the retention of the largest ones."""

    def __init__(self, disks: Disks, on: Examination) -> None:
        self.disks, self.on = disks, on
        self.total = Size()
        self.leftovers = Leftovers(disks, on)

    def run(self) -> None:
        question = self.on.question
        sizes = self._sizes()
        self.leftovers.report(self.total.bytes)
        examined = self._retention(sizes)
        left = len(sizes) - examined
        if left > 0:
            run = command("retention", *self.disks.paths)
            question.notExamined.append(f"retention of {count_text(left, 'smaller partition')}: run {run}")
        question.isComplete = not question.unread

    def _sizes(self) -> list[tuple[int, PartitionDirectory]]:
        """Emit the largest topics; return the partitions with their sizes, the largest first."""
        by_topic: dict[tuple[str, str], Size] = {}
        sizes: list[tuple[int, PartitionDirectory]] = []
        seen: set[tuple[int, int]] = set()
        try:
            for unit in self.disks.units:
                place = unit.partition
                if place is None:
                    continue
                facts = partition_summary(place)
                length = facts.size + facts.others_size + facts.deleted + facts.unfinished
                size = Size(1, length, occupied([facts], seen))
                key = (place.source, place.topic or place.name)
                by_topic[key] = by_topic.get(key, Size()) + size
                self.total += size
                self.leftovers.add(place.source, 0 if place.state == "delete" else facts.deleted)
                sizes.append((size.bytes, place))
                self.on.question.partitions += 1
                self.on.limit.raise_if_over()
        except OutOfTime:
            self.on.question.notExamined.append("the time was over before all partitions were measured")
        finally:
            largest = sorted(by_topic.items(), key=lambda item: (-item[1].bytes, item[0]))[:TOPICS]
            for (source, topic), size in largest:
                self.on.emit(LargestTopic(source, topic, *size))
            count = count_text(len({topic for _, topic in by_topic}), "topic")
            self.on.question.answer = f"{count_text(self.total.partitions, 'partition')} of {count}"
        return sorted(sizes, key=lambda item: (-item[0], item[1].path))

    def _retention(self, sizes: list[tuple[int, PartitionDirectory]]) -> int:
        """Examine the largest partitions; return of how many the retention is known."""
        chosen = {place.path: number for number, (_, place) in enumerate(sizes[:PARTITIONS])}
        places = [place for place in self.disks.places if place.partition.path in chosen]
        places.sort(key=lambda place: chosen[place.partition.path])
        done = sum(place.topic == METADATA_TOPIC for _, place in sizes)
        with suppress(OutOfTime):
            for place, answers in self.disks.retention(places, self.on):
                partition = place.partition
                for answer in answers:
                    # the directory is an item
                    is_item = partition.state == "stray" and partition.source not in self.leftovers.full
                    if isinstance(answer, RetentionBlocker) and answer.isAgainstPolicy and not is_item:
                        self._blocker(answer, partition.path)
                done += 1
        return done

    def _blocker(self, answer: RetentionBlocker, path: str) -> None:
        where = answer.file if answer.position is None else f"byte {answer.position} of {answer.file}"
        kept = f"{count_text(answer.segments, 'segment')} of {size_text(answer.bytes)}"
        assert answer.problem is not None
        self.on.report(
            answer.problem,
            answer.source,
            title=f"{answer.keeps} of {kept} is blocked: {answer.message}",
            urgency=self.leftovers.urgency(answer.source),
            at=answer,
            places=(AffectedRange(answer.source, answer.topic, answer.partition, answer.file),),
            evidence=(where,),
            commands=(command("retention", path),),
            commandForAll=command("retention", *self.disks.paths, "--holds"),
            titleForAll=f"{answer.keeps} of segments is blocked",
        )


LEAST_SHARE = 0.01
"""Share of what was measured above which leftovers are reported."""
LOW, FULL = 0.05, 0.01
"""Free share of a file system below which it is reported as nearly full, and as full."""
NAMED = 3


class Leftovers:
    """Reports them. `deleted`: bytes of .deleted files, by log directory (a -delete directory is an item of its own);
    `full`: the log directories whose file system is full."""

    def __init__(self, disks: Disks, on: Examination) -> None:
        self.disks, self.on = disks, on
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

    def urgency(self, source: str) -> str:
        """Return the urgency of what takes space in a log directory."""
        return STOPS if source in self.full else OLD

    def _left_over(self, directory: LogDirectory, run: str, measured: int) -> None:
        others = root_usage(directory, Run(unreadable=self.on.unreadable)).others
        others.sort(key=lambda other: (-other.files.size, other.path))
        deleted, foreign = self.deleted.get(directory.path, 0), sum(other.files.size for other in others)
        deleted = 0 if directory.is_running else deleted  # a broker at work deletes it after a delay
        if deleted + foreign <= LEAST_SHARE * (measured + foreign):
            return
        parts = [f"{size_text(deleted)} deleted (.deleted)"] if deleted else []
        if foreign:
            names = [f"{os.path.basename(other.path)} {size_text(other.files.size)}" for other in others]
            parts.append(f"{size_text(foreign)} that is not Kafka's ({first_of(names, NAMED)})")
        values = {"size": size_text(deleted + foreign), "what": " and ".join(parts)}
        self.on.report(
            Problem("space-leftovers", values),
            directory.path,
            urgency=self.urgency(directory.path),
            evidence=tuple(other.path for other in others[:NAMED]) or (directory.path,),
            file=others[0].path if others else None,
            commands=(run,),
        )

    def _file_system(self, directory: LogDirectory, run: str) -> None:
        file_system = file_system_of(directory)
        if file_system is None or file_system.free >= LOW * file_system.total:
            return
        is_full = file_system.free < FULL * file_system.total
        if is_full:
            self.full.add(directory.path)
        values = {"free": size_text(file_system.free), "total": size_text(file_system.total)}
        self.on.report(
            Problem("disk-full" if is_full else "disk-nearly-full", values),
            directory.path,
            evidence=(f"{file_system.mount or directory.path} ({file_system.fileSystem or 'type unknown'})",),
            commands=(run,),
        )
