"""Runs the commands over disks, and lists where they contradict each other."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import kdump
from kdump.answer import answer_object
from kdump.io.run import Run
from tests.command import run
from tests.facts.declared import COMMANDS, FACTS, REPORT, Everything, Fact, Row


class Contradiction(NamedTuple):
    """Two statements of a fact about one subject, and their different values."""

    fact: str
    subject: Hashable
    one: str
    other: str
    value: Any
    other_value: Any

    @property
    def kind(self) -> tuple[str, str, str]:
        return self.fact, self.one, self.other

    def __str__(self) -> str:
        return (
            f"{self.fact} of {self.subject}: {self.one} states {self.value!r}, {self.other} states {self.other_value!r}"
        )


def rows_of(
    command: str, paths: Sequence[str], names: Mapping[str, str] = MappingProxyType({})
) -> dict[str, list[Row]]:
    """Return the objects of a command by type. `names`: other names for paths in them."""
    name, *options = command.split()
    found: dict[str, list[Row]] = defaultdict(list)
    printed = run(name, *paths, *options, *COMMANDS[command], "--json").stdout
    for path, other in names.items():
        printed = printed.replace(path, other)
    for line in printed.splitlines():
        row = json.loads(line)
        found[row["type"]].append(row)
    return found


def read_committed(everything: Everything) -> Iterator[Row]:
    """Yield what `inspect --read-committed` says on standard error about each log with transactions."""
    for row in everything["transactions"]["transactionPartition"]:
        if row["committed"] + row["aborted"] + row["open"] + row["hanging"]:
            notes = run("inspect", row["path"], "--read-committed", "--limit", "1", "--json").stderr
            found = re.search(r"read committed: (?:last stable offset (\d+)|no transaction is open)", notes)
            assert found is not None, notes
            yield {"path": row["path"], "stable": found[1] and int(found[1])}


def run_all(paths: Sequence[Path]) -> Everything:
    """Return what each command states about log directories. `diff` compares the first with a link to it."""
    found: Everything = defaultdict(lambda: defaultdict(list))
    names = [str(path) for path in paths]
    for command in COMMANDS:
        if command == "diff":
            link = paths[0].with_name(f"{paths[0].name}-linked")
            link.symlink_to(paths[0].name)
            found[command] = rows_of(command, [names[0], str(link)])
        else:
            found[command] = rows_of(command, names)
    found["inspect --read-committed"]["note"] = list(read_committed(found))
    found[REPORT] = reported(names, paths[0].with_name(f"{paths[0].name}.html"))
    return found


def reported(paths: list[str], page: Path) -> dict[str, list[Row]]:
    """Return what the answer of `kdump.report` states about partitions."""
    try:
        partitions = kdump.report(paths, str(page), options=Run(unreadable=lambda error: None)).facts.partitions
    except kdump.SourceError:  # no partition is left
        return defaultdict(list)
    page.unlink()
    totals = [(row.path, row.stats.files, row.stats.bytes, row.stats.batches) for row in partitions]
    return {
        "ended": [answer_object(row.ended) for row in partitions if row.ended is not None],
        "stats": [dict(zip(("path", "files", "bytes", "batches"), each, strict=True)) for each in totals],
    }


EXPLAINED = ("logStartOffset", "logEndOffset", "highWatermark", "recoveryPoint", "lastStableOffset")
"""Keys of which `unknown` says why they are null, in objects that have it."""


def unexplained(everything: Everything) -> Iterator[str]:
    """Yield the objects in which such a key is null without a reason, or has a value and a reason."""
    rows = [
        *(("ls", row) for row in everything["ls"]["partitionLog"]),
        *(("transactions", row) for row in everything["transactions"]["transactionPartition"]),
        *(("retention", row) for row in everything["retention"]["retention"]),
        *(("diff", copy) for row in everything["diff"]["diff"] for copy in row["copies"]),
    ]
    for command, row in rows:
        null = {key for key in EXPLAINED if key in row and row[key] is None}
        reasons = {each["key"] for each in row["unknown"]}
        if null != reasons or not all(each["reason"] for each in row["unknown"]):
            yield f"{command}: null {sorted(null)}, explained {sorted(reasons)}: {row}"


def run_on_bundles(paths: Sequence[Path]) -> Everything:
    """Return what each command but `diff` states about bundles of log directories, as if these had their paths."""
    names = {f"{path}.bundle": str(path) for path in paths}
    for bundle, path in names.items():
        run("bundle", path, "--out", bundle)
    return {command: rows_of(command, list(names), names) for command in COMMANDS if command != "diff"}


def differences(disks: Everything, bundles: Everything, facts: Iterable[Fact] = FACTS) -> Iterator[Contradiction]:
    """Yield the facts of which a command states different values about a disk and about its bundle."""
    for fact in facts:
        for states in fact.states:
            if states.command in bundles:
                known = dict(states.find(disks))
                for subject, value in states.find(bundles):
                    if value is not None and known.get(subject) not in (None, value):
                        other = f"{states.command} of a bundle"
                        yield Contradiction(fact.name, subject, states.command, other, known[subject], value)


def contradictions(everything: Everything, facts: Iterable[Fact] = FACTS) -> Iterator[Contradiction]:
    """Yield the contradictions, one for each fact, subject and pair of commands. Of two places in the output of one
    command, the one that agrees with the others is not blamed."""
    for fact in facts:
        values: dict[Hashable, list[tuple[str, Any]]] = defaultdict(list)
        for states in fact.states:
            if states.command in everything:
                for subject, value in states.find(everything):
                    if value is not None:
                        values[subject].append((states.command, value))
        for subject, stated in values.items():
            seen = set()
            for (one, value), (other, other_value) in combinations(stated, 2):
                if value != other_value and (one, other) not in seen:
                    seen.add((one, other))
                    yield Contradiction(fact.name, subject, one, other, value, other_value)
