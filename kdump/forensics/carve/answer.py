"""What `kdump carve` answers besides runs: batches within others, and the whole in numbers."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, FILE_BYTE, Doc, PathText, answer


@answer("nested")
class NestedBatch(NamedTuple):
    """A batch that is in a value of another."""

    file: Annotated[PathText, Doc("path of the file that was searched")]
    position: Annotated[int, Doc("where the batch begins, whose `batch` comes right before", FILE_BYTE)]
    size: Annotated[int, Doc("its length", BYTES)]
    within: Annotated[int, Doc("where the batch begins that holds it in a value: it is in no run", FILE_BYTE)]


@answer("carveSummary")
class CarveSummary(NamedTuple):
    """All files together."""

    files: Annotated[int, Doc("that were searched to their ends")]
    bytes: Annotated[int, Doc("of those files", BYTES)]
    holes: Annotated[int, Doc("of holes in sparse files, which were not read", BYTES)]
    batches: Annotated[int, Doc("that were found")]
    nested: Annotated[int, Doc("of them, that lie within others")]
    batchBytes: Annotated[int, Doc("of those that do not", BYTES)]
    runs: Annotated[int, Doc("that they form")]
    written: Annotated[int, Doc("segments that were written")]
    unchecked: Annotated[int, Doc("headers that were passed over: there were too many that only look like headers")]
    unreadable: Annotated[int, Doc("that the device did not give, and that were taken for zeros", BYTES)]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    seconds: Annotated[float, Doc("how long it took", "s")]
