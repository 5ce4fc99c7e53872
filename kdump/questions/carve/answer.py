"""What `kdump carve` answers besides runs: batches within others, and the whole in numbers."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, FILE_BYTE, Doc, PathText, answer


@answer("nested")
class NestedBatch(NamedTuple):
    """A batch that is in a value of another."""

    file: Annotated[PathText, Doc("path of the searched file")]
    position: Annotated[int, Doc("start of the nested batch; its `batch` is the object before this one", FILE_BYTE)]
    size: Annotated[int, Doc("length of the nested batch", BYTES)]
    within: Annotated[int, Doc("start of the batch that contains it in a value; it belongs to no run", FILE_BYTE)]


@answer("tornBatch")
class CarvedTornBatch(NamedTuple):
    """A batch that the end of the file truncates, of which the complete records were found."""

    file: Annotated[PathText, Doc("path of the searched file")]
    position: Annotated[
        int, Doc("start of the batch; the object before this one is a `batch` of its complete records", FILE_BYTE)
    ]
    records: Annotated[int, Doc("number of its complete records; no checksum covers them")]
    recordCount: Annotated[int, Doc("number of records that its header states")]


@answer("carveSummary")
class CarveSummary(NamedTuple):
    """All files together."""

    files: Annotated[int, Doc("number of files searched completely")]
    bytes: Annotated[int, Doc("total size of these files", BYTES)]
    holes: Annotated[int, Doc("size of the holes in sparse files, which were not read", BYTES)]
    batches: Annotated[int, Doc("number of batches found")]
    nested: Annotated[int, Doc("number of batches inside others")]
    torn: Annotated[int, Doc("number of batches of the complete records of one that the end of its file truncates")]
    batchBytes: Annotated[int, Doc("size of the batches that are not inside others", BYTES)]
    runs: Annotated[int, Doc("number of runs")]
    written: Annotated[int, Doc("number of segments written")]
    unchecked: Annotated[int, Doc("number of headers skipped because too many bytes only look like headers")]
    unreadable: Annotated[int, Doc("bytes that the device could not read; treated as zeros", BYTES)]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    seconds: Annotated[float, Doc("elapsed time", "s")]
