"""What a scan does with the batches that the rules see: they are counted, and are rows of the table batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kdump.check.finding import Finding
from kdump.check.rule import NONE, Part, Rule, Seen
from kdump.format.heads import Heads
from kdump.render.escape import path_text
from kdump.spark.batches import BatchColumns
from kdump.spark.tally import Tally


class Watch(Rule):
    """A rule that finds nothing. `batches` gives the columns of the table, once there is a row for it, and `put` takes
    what they hold; without a table batches are counted alone."""

    def __init__(
        self,
        tally: Tally,
        common: dict[str, Any],
        batches: Callable[[], BatchColumns] | None,
        put: Callable[[], None],
    ) -> None:
        self.tally = tally
        self.common = common
        self.batches = batches
        self.put = put
        self.path = ""
        self.here: dict[str, Any] = {}

    def free(self, part: Part, heads: Heads, first: int, stop: int) -> int:
        return stop

    def take(self, part: Part, heads: Heads, first: int, stop: int) -> None:
        self.tally.batches(heads, first, stop)
        if self.batches is not None and self.batches().add_many(heads, first, stop, self._here(part)):
            self.put()

    def batch(self, seen: Seen) -> Iterable[Finding]:
        self.tally.batch(seen)
        if self.batches is not None and self.batches().add(seen.batch, self._here(seen.part)):
            self.put()
        return NONE

    def _here(self, part: Part) -> dict[str, Any]:
        """What all rows of a segment say."""
        path = part.target.path
        if path != self.path:
            self.path, self.here = path, {**self.common, "file": path_text(path)}
        return self.here
