"""Baseline of accepted findings, so that a nightly job reports only new ones."""

from __future__ import annotations

import json
import os

from kdump.check.finding import Finding
from kdump.log.errors import SourceError

OF_SUMMARY = {"findings", "known", "unread"}
"""Keys of verify's summary, which distinguish it from that of other commands."""
FindingKey = tuple[str, str | None, int | None, int | None, str]


class Baseline:
    """Accepted findings, identified by code, topic-partition and offset; without a topic or an offset, also by file
    name."""

    def __init__(self, keys: set[FindingKey]) -> None:
        self.keys = keys

    def __contains__(self, finding: Finding) -> bool:
        return _key(finding.code, finding.topic, finding.partition, finding.offset, finding.file) in self.keys


def read_baseline(path: str) -> Baseline:
    """Read a file written by `kdump verify --json`. Raises SourceError if it cannot be read or is anything else."""
    keys: set[FindingKey] = set()
    lines = 0
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                    lines += 1
                    if row["type"] == "finding":
                        keys.add(_key(row["code"], row["topic"], row["partition"], row["offset"], row["file"]))
                    elif row["type"] != "summary" or not row.keys() >= OF_SUMMARY:
                        raise ValueError(row["type"])
                except (ValueError, KeyError, TypeError) as error:
                    raise SourceError(f"{path}: line {number} is not a line that kdump verify --json writes") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not lines:
        raise SourceError(f"{path}: is empty, and the output of kdump verify --json is not")
    return Baseline(keys)


def _key(code: str, topic: str | None, partition: int | None, offset: int | None, file: str) -> FindingKey:
    return code, topic, partition, offset, os.path.basename(file) if topic is None or offset is None else ""
