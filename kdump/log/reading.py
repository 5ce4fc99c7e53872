"""A reading of a batch: what decoding its records finds, apart from the batch, which is not written."""

from __future__ import annotations

from typing import Any, Generic

from kdump.log.region import Batch, BatchT, Defect


class Reading(Generic[BatchT]):
    """What one reading of a batch has found so far. `problems`: first those that are known without reading its records;
    `decoded_to`: end of the last decoded record, as a position in the file or in the decompressed payload; `ignored`:
    number of bytes that neither Kafka nor kdump looks into."""

    __slots__ = ("batch", "decoded_to", "ignored", "problems")

    def __init__(self, batch: BatchT) -> None:
        self.batch = batch
        self.problems: list[Defect] = [*batch.header_problems]
        self.decoded_to = 0
        self.ignored = batch.unread_key

    @classmethod
    def of(cls, source: Batch | Reading[Any]) -> Reading[Any]:
        """Return a reading that has been begun, or a new one of a batch."""
        return source if isinstance(source, Reading) else Reading(source)

    @property
    def has_found(self) -> bool:
        """Whether decoding has found a problem: not only the header has one."""
        return len(self.problems) > len(self.batch.header_problems)

    def note(self, *problems: Defect) -> None:
        """Add problems, each once: a batch may be read several times. The region of a torn batch states what is missing
        of it."""
        for problem in problems:
            if problem not in self.problems and not self.batch.is_torn:
                self.problems.append(problem)

    def ignore(self, count: int) -> None:
        """Set the number of bytes of the compressed payload that no reader looks into."""
        self.ignored = count + self.batch.unread_key
