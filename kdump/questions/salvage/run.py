"""`kdump.salvage`: copies the valid batches of damaged partitions to a new directory, with a ledger of the losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kdump.check.options import Options
from kdump.decode.record_cut import CutRequest
from kdump.io.fault_tolerant import careful_source
from kdump.io.mounted_paths import takes_paths
from kdump.io.run import Run
from kdump.io.work_progress import WorkProgress
from kdump.log.output_directory import OutputDirectory, OutputError
from kdump.questions.diff.run import LITTLE
from kdump.questions.salvage.answer import Salvaged
from kdump.questions.salvage.partition_run import (
    MakeSink,
    OnPass,
    SalvageRequest,
    bytes_to_read,
    copy_named,
    no_progress,
    salvage_partition,
)
from kdump.questions.salvage.source.sources import SalvageError, SalvageInput, jobs
from kdump.questions.salvage.write_segments import BatchWriter, SegmentWriter

__all__ = ["salvage"]

LEDGER = "ledger.jsonl"


@takes_paths
def salvage(
    sources: str | Iterable[str],
    out: str,
    *,
    replicas: Iterable[str] = (),
    prefer: str | None = None,
    deleted: bool = False,
    damaged_records: bool = False,
    name: str | None = None,
    options: Run | None = None,
    is_selected: Callable[[str], bool] = lambda topic: True,
    on_pass: OnPass = no_progress,
    sink: MakeSink | None = None,
    cut: CutRequest | None = None,
    abort_open: bool = False,
) -> list[Salvaged]:
    """Write the valid batches of each partition in `sources` to `out`, a new or empty directory: a partition directory
    with segments and indexes for each, and a ledger (ledger.jsonl).

    `replicas`: those of partitions in `sources` fill the gaps in their source. `prefer`: the path, among both, of the
    copy to follow where replicas diverge. `deleted`: also use .deleted, .swap and .cleaned files. `damaged_records`:
    also recover the records of damaged batches that decode; their values may be wrong. `name`: topic-partition, for a
    source whose directory has no such name. `is_selected` selects topics by name. A partition with batches out of order
    is read again: `on_pass` is called with a description and the number of bytes of each further pass, and returns a
    context with a function to call with numbers of bytes read. `sink` creates the destination of the batches, by
    default a partition directory. `cut`: which records are left out; an offset in it is of the only partition in
    `sources`. `abort_open`: end the transactions that are open in the output with ABORT markers.

    Raises SalvageError if the request is ambiguous (nothing has been written then), SourceError and OutputError."""

    options = Options.given(options, only=LITTLE, open_source=careful_source)
    paths, others = list(sources), list(replicas)
    directory = OutputDirectory(out, [*paths, *others])
    inputs = jobs(paths, others, options, is_selected=is_selected, name=name)
    if not inputs:
        return []
    wishes = SalvageRequest(prefer, deleted, damaged_records, cut, abort_open)
    _refuse_ambiguous(wishes, inputs)
    made: list[Salvaged] = []
    options.expect(sum(bytes_to_read(job, wishes) for job in inputs))
    try:
        with directory.writing(LEDGER) as ledger, directory.synced_once():
            for job in inputs:
                work = WorkProgress(bytes_to_read(job, wishes), options)
                made.append(
                    salvage_partition(
                        job, directory, ledger, wishes, replace(options, more=work.more), on_pass, sink or _segments
                    )
                )
                work.end()
    except OutputError as error:
        if not made:
            raise
        raise OutputError(f"{error}; {_unfinished(out, len(made), len(inputs))}") from error
    return made


def _refuse_ambiguous(wishes: SalvageRequest, inputs: Sequence[SalvageInput]) -> None:
    prefer, cut = wishes.prefer, wishes.cut
    if prefer is not None and not any(copy_named(job, prefer) is not None for job in inputs):
        raise SalvageError(f"--prefer {prefer}: not one of the sources and replicas")
    if cut is not None and cut.has_offset and len(inputs) > 1:
        raise SalvageError(
            f"an offset is of one partition, but there are {len(inputs)}; pass one of them, or a time as in "
            "2026-11-20T14:05"
        )


def _unfinished(out: str, done: int, all_: int) -> str:
    """Return a message about the partitions that were written without a ledger."""
    return (
        f"{done} of {all_} partitions were written to {out}, but no ledger; delete {out}, free disk space and run "
        "salvage again"
    )


def _segments(out: OutputDirectory, job: SalvageInput) -> BatchWriter:
    return SegmentWriter(out, job.name)
