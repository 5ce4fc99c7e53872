"""The catalogue of findings: every code, collected from the modules of check/rules/ in the order of this list.

`kdump verify --list` prints it, and docs/findings.md is generated from it.
"""

from __future__ import annotations

from kdump.check.finding import Code, codes_in
from kdump.check.rules import (
    bytes,
    checkpoints,
    directories,
    identity_files,
    kraft_snapshot,
    leader_epochs,
    missing_partitions,
    newer_release,
    offset_index,
    offsets,
    producer_snapshots,
    producers,
    records,
    segment_size,
    time_index,
    timestamps,
    transactions,
    txn_index,
)

MODULES = (
    bytes,
    records,
    offsets,
    leader_epochs,
    timestamps,
    producers,
    transactions,
    segment_size,
    offset_index,
    time_index,
    txn_index,
    producer_snapshots,
    checkpoints,
    missing_partitions,
    identity_files,
    newer_release,
    kraft_snapshot,
    directories,
)
"""The modules that declare codes; a test compares them with the files of check/rules/."""

CATALOGUE: dict[str, Code] = {}
for _module in MODULES:
    for _name, _code in codes_in(vars(_module)).items():
        CATALOGUE.setdefault(_name, _code)
