"""`kdump.find`: the records that match, wherever they are on the disks, and what could not be searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from kdump.check.engine.workers import LARGE
from kdump.check.options import Options
from kdump.decode.record_decoder import DecodeOptions
from kdump.format.count_text import offsets_text
from kdump.io.fault_tolerant import careful_source
from kdump.io.mounted_paths import takes_paths
from kdump.io.run import PLAIN_RUN, QUIET_RUN, Run
from kdump.log.expression.parser import parse
from kdump.log.expression.terms import NO, Expression, FileFacts
from kdump.log.paths import Target
from kdump.parallel_jobs import usual_jobs
from kdump.questions.find.answer import Answer
from kdump.questions.find.listing import Listing
from kdump.questions.find.search import Question, Search

if TYPE_CHECKING:
    from kdump.questions.find.workers import SearchWorkers

__all__ = ["find"]

Files = list[tuple[Target, int]]


@takes_paths
def find(
    paths: str | Iterable[str],
    expression: str | Expression,
    *,
    live: bool = False,
    when: bool = False,
    limit: int | None = None,
    jobs: int | None = 1,
    decode: DecodeOptions | None = None,
    now: int | None = None,
    run: Run = PLAIN_RUN,
) -> Iterator[Answer]:
    """Yield the records that match an expression (docs/find.md), each as a Found, in the order of partitions and
    offsets, and last the SearchCoverage. `paths`: log directories or directories above, partition directories, files,
    bundles. All records are searched that are in them: also those of deleted partitions and segments, of aborted
    transactions, in damaged batches, and in bytes that are no part of the log.

    `live`: only what a consumer with isolation.level=read_committed receives. `when`: with what removes each, and when,
    by the rules of retention at `now` (epoch ms, by default the current time). `limit`: at most so many. `jobs`: number
    of processes that search directories; None: by the size of what is there. `decode`: how keys and values are decoded.
    What cannot be read is passed to `run.unreadable`. Raises ExpressionError."""
    parsed = parse(expression) if isinstance(expression, str) else expression
    named = (paths,) if isinstance(paths, str) else tuple(paths)
    options = Options.as_of(run, now, only=frozenset({"indexes"}), open_source=careful_source)
    question = Question(parsed, options, decode or DecodeOptions(paths=named), live=live, when=when)
    with ExitStack() as stack:
        yield from _answers(stack, question, named, limit, jobs)


def _answers(
    stack: ExitStack, question: Question, paths: tuple[str, ...], limit: int | None, jobs: int | None
) -> Iterator[Answer]:
    search = Search(question)
    listing = Listing(replace(question.options, unreadable=search.unlisted))
    directories = list(listing.files(paths))
    workers = _workers(stack, question, directories, jobs, limit, paths)
    left = limit
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
    search.coverage.not_there(question.expression, listing, paths, live=question.live)
    yield search.coverage.answer(question.expression.text, listing)


def _workers(
    stack: ExitStack,
    question: Question,
    directories: list[Files],
    jobs: int | None,
    limit: int | None,
    paths: tuple[str, ...],
) -> SearchWorkers | None:
    """Start workers; None if this process is enough."""
    term = question.expression.term
    sizes = [sum(size for file, size in files if term.truth(FileFacts(file)) != NO) for files in directories]
    total, several = sum(sizes), sum(size > 0 for size in sizes)
    question.options.expect(total)
    processes = min(several, jobs or (usual_jobs() if total >= LARGE else 1))
    if processes < 2 or "-" in paths:
        return None
    from kdump.questions.find.workers import start_workers  # multiprocessing is slow to import

    return start_workers(stack, question, directories, sizes, processes, limit, paths)


def _search_again(search: Search, files: Files, limit: int | None) -> None:
    """Count what is searched of a directory up to its last match that is wanted: a worker has searched on."""
    again = Search(replace(search.question, options=replace(search.options, **vars(QUIET_RUN))))
    again.coverage = search.coverage
    for _ in islice(again.matches(files), limit):
        pass
