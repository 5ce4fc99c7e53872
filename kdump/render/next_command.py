"""The kdump command that shows more about a finding: its bytes, or what they mean for the partition."""

from __future__ import annotations

import os
import shlex

from kdump.check.catalogue import CATALOGUE
from kdump.check.finding import Finding
from kdump.log.file_kinds import by_name
from kdump.log.log_directory import AT_ROOT

BYTES = "inspect {file} --hex --position {position}"
BATCH = "inspect {file} --position {position}"
SEGMENTS = "ls {partition}"
STARTUP = "restart-plan {directory}"

BY_FAMILY = {
    "bytes": BYTES,
    "records": BYTES,
    "offsets": BATCH,
    "epochs": BATCH,
    "timestamps": "retention {partition}",
    "producers": "producers {partition} --broken",
    "transactions": "transactions {partition}",
    "indexes": "reindex {partition}",
    "snapshots": "producers {partition}",
    "checkpoints": STARTUP,
    "files": STARTUP,
}
"""Command by family of findings. `partition` is the directory of the file, `directory` the log directory."""
BY_CODE = {
    "unreadable-bytes": SEGMENTS,
    "size-over-limit": BATCH,
    "segment-name-mismatch": SEGMENTS,
    "segment-overlap": SEGMENTS,
    "segment-too-large": SEGMENTS,
    "leader-epoch-checkpoint-mismatch": "inspect {partition}/leader-epoch-checkpoint",
    "index-orphan": SEGMENTS,
    "file-unknown": SEGMENTS,
}
"""Commands of codes for which the one of their family shows less, or nothing."""


def next_command(finding: Finding) -> str:
    """Return the command line; an empty string if the finding is about standard input, which cannot be read again."""
    if finding.file == "-":
        return ""
    form = BY_CODE.get(finding.code) or BY_FAMILY[CATALOGUE[finding.code].family]
    partition = os.path.dirname(finding.file) or "."
    directory = finding.source
    kind = by_name(os.path.basename(finding.file))[0]
    if (
        finding.topic is not None
        and kind is not None
        and kind not in AT_ROOT
        and directory.rstrip("/") in (finding.file, partition)
    ):
        # not the log directory, but a partition or a file was given
        directory = os.path.dirname(partition) or "."
    places = {"file": finding.file, "partition": partition, "directory": directory}
    return f"kdump {form.format(position=finding.position, **{key: shlex.quote(path) for key, path in places.items()})}"
