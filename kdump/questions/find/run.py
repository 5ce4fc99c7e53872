"""`kdump.find`: the records that match, wherever they are on the disks, and what could not be searched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from kdump.check.engine.workers import LARGE
from kdump.format.count_text import offsets_text
from kdump.io.run import QUIET_RUN
from kdump.log.expression.terms import NO, FileFacts
from kdump.log.paths import Target
from kdump.parallel_jobs import usual_jobs
from kdump.query import offered
from kdump.questions.find.answer import Answer
from kdump.questions.find.listing import Listing
from kdump.questions.find.search import FindQuery, Search

if TYPE_CHECKING:
    from kdump.questions.find.workers import SearchWorkers

__all__ = ["find"]

Files = list[tuple[Target, int]]


def answers(query: FindQuery) -> Iterator[Answer]:
    """Yield the records that match an expression (docs/find.md), each as a Found, in the order of partitions and
    offsets, and last the SearchCoverage. `paths`: log directories or directories above, partition directories, files,
    bundles. All records are searched that are in them: also those of deleted partitions and segments, of aborted
    transactions, in damaged batches, and in bytes that are no part of the log.

    `when`: with what removes each, and when, by the rules of retention at `now`. `jobs`: number of processes that
    search directories; None: by the size of what is there. `decode`: how keys and values are decoded. What cannot be
    read is passed to `run.unreadable`. Raises ExpressionError."""
    search = Search(query)
    listing = Listing(replace(query.options, unreadable=search.unlisted))
    directories = list(listing.files(query.paths))
    left = query.limit
    with ExitStack() as stack:
        workers = _workers(stack, query, directories)
        for number, files in enumerate(directories):
            if left == 0:
                search.coverage.stopped(files)
                continue
            there = left
            for found in search.matches(files) if workers is None else workers.matches(number, search, left):
                yield found
                search.coverage.matches += 1
                if left is not None:
                    left -= 1
                    if left == 0:
                        break
            if workers is not None and left == 0:
                workers.stop()
                _search_again(search, files, there)
        for place, lacking in search.remote.not_searched():
            reason = f"offsets {offsets_text(lacking)} are in remote storage, and in none of the paths"
            search.coverage.add(place, reason, None, 0)
        search.coverage.not_there(query.parsed, listing, next(iter(query.paths)), live=query.live)
        yield search.coverage.answer(query.parsed.text, listing)


find = offered("find", FindQuery, answers)


def _workers(stack: ExitStack, query: FindQuery, directories: list[Files]) -> SearchWorkers | None:
    """Start workers; None if this process is enough."""
    term = query.parsed.term
    sizes = [sum(size for file, size in files if term.truth(FileFacts(file)) != NO) for files in directories]
    total, several = sum(sizes), sum(size > 0 for size in sizes)
    query.options.expect(total)
    processes = min(several, query.jobs or (usual_jobs() if total >= LARGE else 1))
    if processes < 2 or "-" in query.paths:
        return None
    from kdump.questions.find.workers import start_workers  # multiprocessing is slow to import

    return start_workers(stack, query, directories, sizes, processes)


def _search_again(search: Search, files: Files, limit: int | None) -> None:
    """Count what is searched of a directory up to its last match that is wanted: a worker has searched on."""
    again = Search(replace(search.query, run=replace(search.options, **vars(QUIET_RUN))))
    again.coverage = search.coverage
    for _ in islice(again.matches(files), limit):
        pass
