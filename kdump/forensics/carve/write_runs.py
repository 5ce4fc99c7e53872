"""Writes each batch run as a segment with its indexes, in its own directory: two runs may be from two partitions."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import BinaryIO

from kdump.forensics.carve.carved_runs import CarvedRun
from kdump.forensics.output_directory import PASSING, OutputDirectory
from kdump.kafka.errors import KafkaError
from kdump.kafka.index_builder import IndexBuilder
from kdump.log.region import Batch


class Writer:
    """Writes one run after the other, batch by batch: run-000001/<first offset>.log …"""

    def __init__(self, output: OutputDirectory) -> None:
        self.output = output
        self._together = ExitStack()
        self._stack = ExitStack()
        self._file: BinaryIO | None = None
        self._builder: IndexBuilder | None = None
        self._directory = self._stem = ""

    def add(self, run: CarvedRun, batch: Batch) -> None:
        """Write the next batch of a run. Raises OutputError."""
        if self._file is None:
            self._directory, self._stem = f"run-{run.number:06}", f"{run.firstOffset:020}"
            self._together.enter_context(self.output.together(self._directory))
            self._file = self._stack.enter_context(self.output.writing(self._passing(".log")))
            self._builder = IndexBuilder(run.firstOffset)
        if self._builder is not None:
            try:
                self._builder.add(batch, batch.position - run.position)
            except KafkaError as stop:
                self._builder = None
                run.note = f"no indexes written, because of the batch at byte {batch.position}: {stop}"
        for piece in batch.chunks(0, batch.size):
            self._file.write(piece)

    def end(self, run: CarvedRun) -> None:
        """Finish a run after its last batch. Raises OutputError."""
        self._stack.close()
        if self._builder is not None:
            self._indexes(run, self._builder)
        self._file = None
        self._together.close()
        run.written = self.output.path(f"{self._directory}/{self._stem}.log")

    def _indexes(self, run: CarvedRun, builder: IndexBuilder) -> None:
        try:
            indexes = builder.finish()
        except KafkaError as stop:
            run.note = f"no indexes written: {stop}"
            return
        endings = ((".index", indexes.index), (".timeindex", indexes.timeindex), (".txnindex", indexes.txnindex))
        for ending, data in endings:
            if data or ending != ".txnindex":
                self.output.write(self._passing(ending), data)

    def _passing(self, ending: str) -> str:
        """Return the temporary name of a file of the run, used until the run is complete."""
        return f"{self._directory}{PASSING}/{self._stem}{ending}"

    def abandon(self) -> None:
        """Remove a partially written run."""
        for stack in (self._stack, self._together):
            with suppress(KeyboardInterrupt):
                stack.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
        self._file = None
