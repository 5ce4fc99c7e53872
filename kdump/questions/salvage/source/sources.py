"""Finds the partitions to salvage, each with its copies, and rejects copies that may be of different partitions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kdump.check.engine.units import CheckUnit, units
from kdump.check.options import Options
from kdump.io.errors import SourceError
from kdump.log.file_kinds import SEGMENT
from kdump.log.header_candidate import candidate_at
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import PARTITION, Target, is_replaced
from kdump.questions.find_copies import LOG, Copy, PartitionKey, copy_of, reject_others

__all__ = ["SalvageError"]


class SalvageError(Exception):
    """Raised for a request that cannot be carried out; nothing has been written. The message is one line: the reason,
    and what to do."""


@dataclass
class FoundCopy:
    """A copy as it was found: what a broker serves after a startup. `place` is its directory, None for single files;
    `spares` are its .deleted, .swap and .cleaned segments that a startup deletes, `replaced` those in whose place it
    installs .swap files; `misnamed`: other files with batches, such as 25.log, whose names are not a segment's;
    `unknown_names`: names of files that are neither, and are not read; `was_named`: the user gave its own path, not
    only that of a directory above."""

    copy: Copy
    place: PartitionDirectory | None
    spares: list[Target] = field(default_factory=list)
    was_named: bool = False
    misnamed: list[Target] = field(default_factory=list)
    unknown_names: list[str] = field(default_factory=list)
    replaced: list[Target] = field(default_factory=list)


@dataclass
class SalvageInput:
    """A partition to salvage, with its copies: the source first, then the replicas."""

    topic: str
    partition: int
    copies: list[FoundCopy]
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each file, by path, when it was first opened."""

    @property
    def name(self) -> str:
        """The name of its directory, topic-partition."""
        return f"{self.topic}-{self.partition}"


def jobs(
    sources: Iterable[str],
    replicas: Iterable[str],
    options: Options,
    *,
    is_selected: Callable[[str], bool] = lambda topic: True,
    name: str | None = None,
) -> list[SalvageInput]:
    """Return the partitions to salvage. `name` is topic-partition, for a source whose directory has no such name. Calls
    `options.unreadable` for what cannot be read. Raises SalvageError."""
    inputs: dict[PartitionKey, SalvageInput] = {}
    unnamed = _key(name) if name is not None else None
    for given in _given(list(sources), options):
        key = unnamed or given.copy.key
        if key is None:
            unknown = f"{given.copy.path}: its directory is not named TOPIC-PARTITION"
            if not given.was_named:
                options.unreadable(SourceError(f"{unknown}; left out"))
                continue
            raise SalvageError(f"{unknown}; use --name TOPIC-PARTITION")
        if not is_selected(key[0]):
            continue
        if key in inputs:
            first = inputs[key].copies[0].copy.path
            raise SalvageError(
                f"{key[0]}-{key[1]} is in {first} and in {given.copy.path}: if they are replicas of one partition, pass"
                " one of them with --replica; otherwise salvage them separately"
                if unnamed is None
                else f"--name is for a single source; {first} and {given.copy.path} would be the same partition"
            )
        inputs[key] = SalvageInput(*key, [given])
    for path in replicas:
        _add_replicas(inputs, path, options)
    return list(inputs.values())


def _add_replicas(inputs: dict[PartitionKey, SalvageInput], path: str, options: Options) -> None:
    matched = False
    for given in _given([path], options):
        key = given.copy.key
        if key is None and given.was_named and len(inputs) == 1:
            key = next(iter(inputs))  # it has no name that could be that of another partition
        job = inputs.get(key) if key is not None else None
        if job is None or key is None:
            if given.was_named:
                raise SalvageError(f"--replica {path}: {_name(key)} is not one of the partitions to salvage")
            continue
        for other in job.copies:
            ids = {copy.copy.topic_id for copy in (other, given)} - {None}
            if len(ids) > 1:
                raise SalvageError(
                    f"{given.copy.path} and {other.copy.path} have different topic IDs in partition.metadata: they are"
                    " two topics with the same name, not replicas of one partition"
                )
            if os.path.realpath(other.copy.path) == os.path.realpath(given.copy.path):
                raise SalvageError(f"--replica {path}: {given.copy.path} is given twice")
        job.copies.append(given)
        matched = True
    if not matched:
        raise SalvageError(f"--replica {path}: contains none of the partitions to salvage")


def _name(key: PartitionKey | None) -> str:
    return "a copy without a name" if key is None else f"{key[0]}-{key[1]}"


def _key(name: str) -> PartitionKey:
    match = PARTITION.match(name)
    if match is None or match["state"]:
        raise SalvageError(f"--name {name}: not of the form TOPIC-PARTITION, such as orders-0")
    return match["topic"], int(match["partition"])


def _given(paths: list[str], options: Options) -> Iterator[FoundCopy]:
    """Yield the copies at the paths; files in one directory are one copy."""
    named = {os.path.abspath(path) for path in paths}
    files: dict[str, list[CheckUnit]] = {}
    for unit in units(tuple(paths), options):
        place, target = unit.partition, unit.target
        if place is not None:
            was_named = os.path.abspath(place.path) in named
            for problem in place.listing_errors:
                options.unreadable(SourceError(problem))
            copy, replaced = copy_of(place, unit.known), [file for file in place.replaced if file.kind is SEGMENT]
            spares = [
                file
                for file in (*place.unfinished, *place.others)
                if is_replaced(file.path) and (file.kind is SEGMENT or LOG in os.path.basename(file.path).lower())
            ]
            misnamed, unknown_names = _misnamed(place, options)
            if copy.segments and place.state == "stray" and not was_named:
                stray = "stray: a broker did not find it in the cluster's metadata"
                options.unreadable(SourceError.at(place.path, f"{stray}; left out, pass its path to salvage it"))
            is_selected = was_named or (not place.state and place.topic != METADATA_TOPIC)
            if not (is_selected and (copy.segments or spares or misnamed)):
                continue
            yield FoundCopy(copy, place, spares, was_named, misnamed, unknown_names, replaced)
        elif target is not None:
            is_single = target.path == "-" or "://" in target.path
            files.setdefault(target.path if is_single else os.path.dirname(os.path.abspath(target.path)), []).append(
                unit
            )
    for here in files.values():
        targets = []
        for unit in here:
            assert unit.target is not None
            try:
                reject_others(unit.target, options)
                if unit.target.kind not in (None, SEGMENT):
                    raise SourceError.at(unit.target.path, f"{unit.target.kind.title}, not a log segment")
                targets.append(unit.target)
            except SourceError as error:
                options.unreadable(error)
        if targets:
            targets.sort(key=lambda target: (target.name_offset or 0, target.path))
            yield FoundCopy(Copy(targets[0].path, targets, here[0].known), None, [], True)


def _misnamed(place: PartitionDirectory, options: Options) -> tuple[list[Target], list[str]]:
    """Return the files of the partition that may have batches although they have no segment's name, and the names of
    the others that Kafka does not know. For 25.log a broker creates an empty segment of the full name, with orders.log
    it does not start, and it ignores orders.bak (LogLoader.loadSegmentFiles): it serves the batches of none of them."""
    misnamed, unknown_names = [], []
    for target in place.others:
        if is_replaced(target.path) or target.kind not in (None, SEGMENT):
            continue
        if (
            target.kind is SEGMENT
            or LOG in os.path.basename(target.path).lower()
            or _begins_with_batch(target, options)
        ):
            misnamed.append(target)
        else:
            unknown_names.append(os.path.basename(target.path))
    return sorted(misnamed, key=lambda target: target.path), sorted(unknown_names)


def _begins_with_batch(target: Target, options: Options) -> bool:
    try:
        window = options.open(target)
    except SourceError:
        return False
    try:
        return candidate_at(window, 0, options.limits).error is None
    except SourceError:
        return False
    finally:
        window.source.close()
