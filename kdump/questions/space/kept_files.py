"""What must not be deleted to make room, where it applies to the disk, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import CLEAN_MARK
from kdump.problems.problem import title_of
from kdump.questions.space.answer import RUNNING, STOPPED, SpaceKept
from kdump.questions.space.usage import DirectoryUsage

WITH_LOGS = {"*/": "segments", "*/*.index": "indexes", "*/*.snapshot": "snapshots"}
"""What must stay of each log, and the end of its code."""
TOPICS = {"__consumer_offsets": "", "__transaction_state": "transactions"}


def kept_files(usage: DirectoryUsage, broker: str, *, is_full: bool) -> Iterator[SpaceKept]:
    """Yield what must stay in a log directory. `is_full`: whether a stopped broker lacks space to start."""
    path = usage.directory.path
    live = usage.live()
    if is_full and broker != RUNNING:
        yield SpaceKept(path, None, True, title_of("space-kept-start"))
    if any(log.segments for log in live):
        for pattern, what in WITH_LOGS.items():
            yield SpaceKept(f"{path}/{pattern}", None, True, title_of(f"space-kept-{what}"))
    for topic, case in TOPICS.items():
        size = sum(log.allocated for log in live if log.place.topic == topic)
        if size:
            yield SpaceKept(f"{path}/{topic}-*", size, True, title_of("space-kept-topic", case))
    for log in usage.in_state(""):
        if log.place.topic == METADATA_TOPIC:
            yield SpaceKept(log.place.path, log.allocated, True, title_of("space-kept-metadata"))
    names = [name for name in usage.directory.files if name.endswith("-checkpoint")]
    if names:
        yield SpaceKept(f"{path}/*-checkpoint", None, True, title_of("space-kept-checkpoints"))
    has_mark = CLEAN_MARK in usage.directory.files
    if has_mark or (broker != RUNNING and names):
        why = title_of("space-kept-clean-mark", "" if has_mark else "missing")
        yield SpaceKept(os.path.join(path, CLEAN_MARK), None, True, why)
    for log in live:
        if ".swap" in log.left or (".cleaned" in log.left and broker != STOPPED):
            yield SpaceKept(f"{log.place.path}/*.swap", None, True, title_of("space-kept-swap"))
            break
    linked = usage.total().linked
    if linked:
        yield SpaceKept(path, linked, False, title_of("space-kept-linked"))
    future = sum(log.allocated for log in usage.in_state("future"))
    if future:
        yield SpaceKept(f"{path}/*-future", future, False, title_of("space-kept-future"))
