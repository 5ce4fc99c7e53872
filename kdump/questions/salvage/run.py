"""`kdump.salvage`: copies the valid batches of damaged partitions to a new directory, with a ledger of the losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kdump.check.options import Options
from kdump.io.fault_tolerant import careful_source
from kdump.io.work_progress import WorkProgress
from kdump.log.output_directory import OutputDirectory, OutputError
from kdump.query import offered
from kdump.questions.diff.run import LITTLE
from kdump.questions.salvage.answer import Salvaged
from kdump.questions.salvage.partition_run import SalvageQuery, bytes_to_read, copy_named, salvage_partition
from kdump.questions.salvage.source.sources import SalvageError, SalvageInput, jobs

__all__ = ["salvage"]

LEDGER = "ledger.jsonl"


def answers(query: SalvageQuery) -> list[Salvaged]:
    """Write the valid batches of each partition in `paths` to `out`, a new or empty directory: a partition directory
    with segments and indexes for each, and a ledger (ledger.jsonl).

    `replicas`: those of partitions in `paths` fill the gaps in their source. `prefer`: the path, among both, of the
    copy to follow where replicas diverge. `name`: topic-partition, for a source whose directory has no such name. A
    partition with batches out of order is read again: `on_pass` is called with a description and the number of bytes of
    each further pass, and returns a context with a function to call with numbers of bytes read. `sink` creates the
    destination of the batches, by default a partition directory. `cut`: which records are left out; an offset in it is
    of the only partition in `paths`.

    Raises SalvageError if the request is ambiguous (nothing has been written then), SourceError and OutputError."""
    options = Options.given(query.run, only=LITTLE, open_source=careful_source)
    paths, others, out = list(query.paths), list(query.replicas), query.out
    directory = OutputDirectory(out, [*paths, *others])
    inputs = jobs(paths, others, options, is_selected=query.has_topic, name=query.name)
    if not inputs:
        return []
    _refuse_ambiguous(query, inputs)
    made: list[Salvaged] = []
    options.expect(sum(bytes_to_read(job, query) for job in inputs))
    try:
        with directory.writing(LEDGER) as ledger, directory.synced_once():
            for job in inputs:
                work = WorkProgress(bytes_to_read(job, query), options)
                made.append(salvage_partition(job, directory, ledger, query, replace(options, more=work.more)))
                work.end()
    except OutputError as error:
        if not made:
            raise
        raise OutputError(f"{error}; {_unfinished(out, len(made), len(inputs))}") from error
    return made


salvage = offered("salvage", SalvageQuery, answers)


def _refuse_ambiguous(query: SalvageQuery, inputs: Sequence[SalvageInput]) -> None:
    prefer, cut = query.prefer, query.cut
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
