"""Steps that remove what no consumer can read: deleted files, stray directories, and files that are not Kafka's."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kdump.forensics.space.answers import FILES, JUDGE, NOTHING, RECORDS, RUNNING, STOPPED, WAIT, SpaceKept, SpaceStep
from kdump.forensics.space.replica_copies import ReplicaCopies
from kdump.forensics.space.stray_directories import stray_verdict
from kdump.forensics.space.usage import DirectoryUsage, PartitionUsage
from kdump.format.count_text import all_of, count_text

DELETE_DELAY_MS = 60_000
"""Default of file.delete.delay.ms and log.segment.delete.delay.ms."""
LOST_AND_FOUND = "lost+found"
LARGE = 65_536
"""Allocated bytes from which a file that is not Kafka's is worth mentioning."""
IsSelected = Callable[[str], bool]


def step(kind: str, how: str, source: str, **fields: object) -> SpaceStep:
    """Return a step; `fields` that are not given do not apply."""
    values: dict[str, object] = {
        "number": 0,
        "step": kind,
        "how": how,
        "source": source,
        "topic": None,
        "frees": 0,
        "size": 0,
        "files": 0,
        "isEstimate": False,
        "cost": NOTHING,
        "needs": "any",
        "freesAfter": 0,
        "text": "",
        "command": "",
        "undo": "",
        "paths": (),
    }
    return SpaceStep(**{**values, **fields})  # type: ignore[arg-type]


def deleted_steps(usage: DirectoryUsage, broker: str, is_selected: IsSelected) -> Iterator[SpaceStep]:
    """Yield the step for .deleted and .cleaned files and -delete directories, which no broker reads again.

    A startup deletes all .cleaned files, but they also determine which .swap files it completes (LogLoader): they stay
    in a partition that has any of these."""
    path = usage.directory.path
    gone = [each for each in usage.in_state("delete") if is_selected(each.place.topic or "")]
    inside = [each for each in usage.live() if each.deleted_files and is_selected(each.place.topic or "")]
    unfinished = [
        each
        for each in usage.live()
        if broker == STOPPED and each.cleaned_files and not each.has_swap and is_selected(each.place.topic or "")
    ]
    frees = sum(each.allocated for each in gone) + sum(each.deleted for each in inside)
    frees += sum(each.cleaned for each in unfinished)
    files = sum(each.files for each in gone) + sum(each.deleted_files for each in inside)
    files += sum(each.cleaned_files for each in unfinished)
    if not files:
        return
    what = []
    if inside:
        number = sum(each.deleted_files for each in inside)
        what.append(f"{count_text(number, '.deleted file')} of {count_text(len(inside), 'partition')}")
    if gone:
        what.append(f"{len(gone):,} -delete {'directory' if len(gone) == 1 else 'directories'}")
    if unfinished:
        number = sum(each.cleaned_files for each in unfinished)
        what.append(f"{count_text(number, '.cleaned file')} of an interrupted log cleaner")
    found = all_of(what)
    size = sum(each.size for each in gone) + sum(each.deleted_size for each in inside)
    size += sum(each.cleaned_size for each in unfinished)
    if broker == RUNNING:
        text = f"{found}: the broker deletes them within file.delete.delay.ms (1 min); leave them to it"
        yield step(
            "deleted",
            WAIT,
            path,
            frees=frees,
            size=size,
            files=files,
            freesAfter=DELETE_DELAY_MS,
            text=text,
            needs="running",
        )
        return
    lines = []
    lines += [f"rm -f {_quoted(each.place.path)}/*.deleted" for each in inside]
    lines += [f"rm -f {_quoted(each.place.path)}/*.cleaned" for each in unfinished]
    lines += [f"rm -rf {_quoted(each.place.path)}" for each in gone]
    paths = [f"{each.place.path}/*.deleted" for each in inside]
    paths += [f"{each.place.path}/*.cleaned" for each in unfinished]
    paths += [each.place.path for each in gone]
    text = f"{found}: no broker reads them again; the next startup deletes them anyway"
    if unfinished:
        text += ". After startup, the log cleaner begins again, and needs the space of a segment"
    yield step(
        "deleted",
        FILES,
        path,
        frees=frees,
        size=size,
        files=files,
        needs="stopped",
        text=text,
        command="\n".join(lines),
        paths=tuple(paths),
    )


def stray_steps(
    usage: DirectoryUsage, copies: ReplicaCopies, node_id: int | None, is_selected: IsSelected
) -> Iterator[SpaceStep | SpaceKept]:
    """Yield a step, or the reason why there is none, for each -stray directory."""
    for each in usage.in_state("stray"):
        if not is_selected(each.place.topic or ""):
            continue
        cost, why = stray_verdict(each.place, copies, node_id)
        if cost is None:
            text = f"not offered: {why}; copy it elsewhere, or pass --with"
            yield SpaceKept(each.place.path, each.allocated, False, text)
            continue
        yield step(
            "stray",
            FILES,
            usage.directory.path,
            topic=each.place.topic,
            frees=each.allocated,
            size=each.size,
            files=each.files,
            cost=cost,
            needs="stopped",
            text=f"stray directory: {why}",
            command=f"rm -rf {_quoted(each.place.path)}",
            paths=(each.place.path,),
        )


def other_steps(usage: DirectoryUsage) -> Iterator[SpaceStep]:
    """Yield the step for files and directories that are not Kafka's."""
    found = [each for each in usage.others if os.path.basename(each[0]) != LOST_AND_FOUND]
    found += [(*each, 1) for part in usage.partitions if not part.place.state for each in part.unknown]
    found = sorted((each for each in found if each[2] >= LARGE), key=lambda each: -each[2])
    if not found:
        return
    names = ", ".join(os.path.relpath(each[0], usage.directory.path) for each in found[:3])
    more = f" and {len(found) - 3:,} more" if len(found) > 3 else ""
    yield step(
        "otherFiles",
        FILES,
        usage.directory.path,
        frees=sum(each[2] for each in found),
        size=sum(each[1] for each in found),
        files=sum(each[3] for each in found),
        cost=JUDGE,
        needs="any",
        text=f"not Kafka's: {names}{more}; the broker needs none of them, but you may",
        command="mv " + " ".join(_quoted(each[0]) for each in found) + " /ANOTHER/DISK/",
        paths=tuple(each[0] for each in found),
    )


class DueSegments(NamedTuple):
    """The segments first..stop - 1 of a partition, which are due, and why."""

    usage: PartitionUsage
    first: int
    stop: int
    why: str


def oldest_segments(usage: DirectoryUsage, logs: list[DueSegments], missing: int, cost: str) -> SpaceStep | None:
    """Return the step that removes as many of the oldest segments, all due, as free `missing` bytes: what retention
    does once the broker runs. Those partitions whose first segments are largest come first."""
    lines: list[str] = []
    paths: list[str] = []
    reasons: dict[str, None] = {}
    frees = size = 0
    for log, count, stop, why in sorted(logs, key=lambda each: -each.usage.allocs[each.first]):
        while frees < missing and count < stop:
            frees += log.allocs[count]
            size += log.sizes[count]
            stem = f"{log.place.path}/{log.bases[count]:020}"
            lines.append(f"rm -f {_quoted(stem)}.log {_quoted(stem)}.*index {_quoted(stem)}.snapshot")
            paths += [f"{stem}.log", f"{stem}.*index", f"{stem}.snapshot"]
            reasons[why] = None
            count += 1
        if frees >= missing:
            break
    if not lines:
        return None
    found = count_text(len(lines), "segment")
    text = f"{found}, the oldest of each log, to make room for the startup: {'; '.join(reasons)}"
    if cost == RECORDS:
        text += "; set that first"
    return step(
        "oldestSegments",
        FILES,
        usage.directory.path,
        frees=frees,
        size=size,
        files=len(lines),
        cost=cost,
        needs="stopped",
        text=text,
        command="\n".join(lines),
        paths=tuple(paths),
    )


def _quoted(path: str) -> str:
    return shlex.quote(path)
