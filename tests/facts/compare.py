"""Runs the commands over disks, and lists where they contradict each other."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from tests.command import run
from tests.facts.declared import COMMANDS, FACTS, Everything, Fact, Said


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


def said_by(command: str, paths: Sequence[str]) -> dict[str, list[Said]]:
    """Return the objects of a command by type."""
    name, *options = command.split()
    found: dict[str, list[Said]] = defaultdict(list)
    for line in run(name, *paths, *options, *COMMANDS[command], "--json").stdout.splitlines():
        said = json.loads(line)
        found[said["type"]].append(said)
    return found


def read_committed(everything: Everything) -> Iterator[Said]:
    """Yield what `inspect --read-committed` says on standard error about each log with transactions."""
    for said in everything["transactions"]["transactionPartition"]:
        if said["committed"] + said["aborted"] + said["open"] + said["hanging"]:
            notes = run("inspect", said["path"], "--read-committed", "--limit", "1", "--json").stderr
            found = re.search(r"read committed: (?:last stable offset (\d+)|no transaction is open)", notes)
            assert found is not None, notes
            yield {"path": said["path"], "stable": found[1] and int(found[1])}


def all_said(paths: Sequence[Path], commands: Iterable[str] = COMMANDS) -> Everything:
    """Return what each command states about log directories. `diff` compares them with links to them."""
    found: Everything = defaultdict(lambda: defaultdict(list))
    names = [str(path) for path in paths]
    for command in commands:
        if command == "diff":
            links = [path.with_name(f"{path.name}-linked") for path in paths]
            for link, path in zip(links, paths):
                if not link.is_symlink():
                    link.symlink_to(path.name)
            found[command] = said_by(command, [names[0], str(links[0])])
        else:
            found[command] = said_by(command, names)
    if "transactions" in found:
        found["inspect --read-committed"]["note"] = list(read_committed(found))
    return found


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
        for subject, said in values.items():
            seen = set()
            for (one, value), (other, other_value) in combinations(said, 2):
                if value != other_value and (one, other) not in seen:
                    seen.add((one, other))
                    yield Contradiction(fact.name, subject, one, other, value, other_value)


def count(everything: Everything, facts: Iterable[Fact] = FACTS) -> int:
    """Return the number of facts that two commands state, with each pair of statements."""
    total = 0
    for fact in facts:
        values: dict[Hashable, int] = defaultdict(int)
        for states in fact.states:
            for subject, value in states.find(everything) if states.command in everything else ():
                values[subject] += value is not None
        total += sum(number * (number - 1) // 2 for number in values.values())
    return total
