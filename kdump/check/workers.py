"""Units side by side: one after the other here, or in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kdump.check.finding import Finding
from kdump.check.run import Unit
from kdump.check.totals import Totals
from kdump.log.careful import careful
from kdump.log.rate import Rate
from kdump.log.source import Source, open_source

if TYPE_CHECKING:
    from concurrent.futures import Future

Done = tuple[list[Finding], Totals]

_rate: Rate | None = None


def careful_source(path: str, rate: Rate | None = None) -> Source:
    """The file at `path`, read as under a live broker. Raises SourceError."""
    return open_source(path, wrap=partial(careful, rate=rate))


def _begin(rate: Rate | None) -> None:
    global _rate
    _rate = rate


def _work(unit: Unit) -> Done:
    """A unit in a worker. The rate cannot travel with it: all workers share one."""
    totals = Totals()
    unit.options = replace(unit.options, open_source=partial(careful_source, rate=_rate))
    return list(unit.run(totals, lambda size: None)), totals


def run_all(
    units: list[Unit], jobs: int, max_rate: int | None, totals: Totals, met: Callable[[int], None]
) -> Iterator[tuple[Unit, Iterator[Finding]]]:
    """Each unit, in order, with its findings; `met` is told of bytes that have been read. What was checked is added to
    `totals` when a unit's findings have been taken. `max_rate`: bytes a second, of all together."""
    if jobs <= 1 or len(units) < 2:
        rate = Rate(max_rate) if max_rate else None
        for unit in units:
            unit.options = replace(unit.options, open_source=partial(careful_source, rate=rate))
            yield unit, unit.run(totals, met)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Not forked: a thread may already draw progress.
    context = multiprocessing.get_context("spawn")
    rate = Rate(max_rate, context) if max_rate else None
    with ProcessPoolExecutor(min(jobs, len(units)), context, _begin, (rate,)) as pool:
        futures: dict[int, Future[Done]] = {}
        for number in sorted(range(len(units)), key=lambda number: -units[number].size):
            futures[number] = pool.submit(_work, units[number])
        try:
            for number, unit in enumerate(units):
                findings, counted = futures.pop(number).result()
                totals.add(counted)
                met(unit.size)
                yield unit, iter(findings)
        finally:
            pool.shutdown(cancel_futures=True)
