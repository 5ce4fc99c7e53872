"""Writes selected batches as JSON Lines: one `record` object per record, as in kdump inspect --records --json."""

from __future__ import annotations

from contextlib import ExitStack
from typing import BinaryIO

from kdump import jsonl
from kdump.log.batch_records import records
from kdump.log.output_directory import OutputDirectory
from kdump.questions.salvage.source.salvage_reader import SalvageCandidate
from kdump.questions.salvage.source.sources import SalvageInput
from kdump.render.inspect_json import record_object


class RecordLines:
    """One file per partition, topic-partition.jsonl. Records recovered from damaged batches have `damaged`: true."""

    def __init__(self, out: OutputDirectory, job: SalvageInput) -> None:
        self.out = out
        self.name = f"{job.name}.jsonl"
        self._stack = ExitStack()
        self._file: BinaryIO | None = None

    @property
    def files(self) -> list[str]:
        """The file, if one has been started."""
        return [self.name] if self._file is not None else []

    def write(self, head: SalvageCandidate) -> tuple[str, None]:
        """Write the records of a batch."""
        if self._file is None:
            self._file = self._stack.enter_context(self.out.writing(self.name))
        target = head.reader.place.target
        for record in records(head.batch):
            value = record_object(target, record)
            if head.recovered is not None:
                value["damaged"] = True
            self._file.write(jsonl.line(value).encode() + b"\n")
        return self.name, None

    def close(self) -> None:
        """Complete the file after the last batch."""
        self._stack.close()

    def abandon(self) -> None:
        """Discard the incomplete file."""
        error = RuntimeError("abandoned")
        self._stack.__exit__(RuntimeError, error, None)
