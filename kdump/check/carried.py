"""What the check of a partition takes over from one segment to the next, as JSON: so that it can go on another time,
in another process, where it has left off. Each rule declares what that is (`Rule.carries`); here is how it is written.

Nothing is believed of what is read back but its shape: whoever keeps it has to see that it is what was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, fields
from typing import Any, NamedTuple

from kdump.check.finding import Finding
from kdump.log.paths import Target
from kdump.state.producers import Producer, Producers
from kdump.state.transactions import Open, Transactions

MOST = 250_000
"""Producers and transactions of a partition of which a state is made: 20 MiB of JSON, and a second."""
Targets = Mapping[str, Target]
"""The segments of the partition, by their paths."""


class NotCarried(Exception):
    """A state that cannot be written, or read back."""


class Carried(NamedTuple):
    """A kind of value: how it becomes JSON, and a value again. Both raise NotCarried."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any, Targets], Any]


def _checked(kind: type | tuple[type, ...]) -> Callable[[Any, Targets], Any]:
    def unpack(said: Any, targets: Targets) -> Any:
        if not isinstance(said, kind):
            raise NotCarried(f"{str(said)[:40]}: not what is meant to be here")
        return said

    return unpack


def _rows(said: Any, width: int) -> list[list[Any]]:
    if not isinstance(said, list) or not all(isinstance(row, list) and len(row) == width for row in said):
        raise NotCarried(f"no rows of {width}")
    return said


def _few(count: int) -> None:
    if count > MOST:
        raise NotCarried(f"{count} producers or transactions")


def _packed_findings(found: Iterable[Finding]) -> list[list[Any]]:
    return [list(finding) for finding in found]


def _findings(said: Any, targets: Targets) -> list[Finding]:
    return [Finding(*row) for row in _rows(said, len(Finding._fields))]


def _packed_held(held: Iterable[tuple[Finding, int, int | None]]) -> list[list[Any]]:
    return [[*finding, before, end] for finding, before, end in held]


def _held(said: Any, targets: Targets) -> list[tuple[Finding, int, int | None]]:
    return [(Finding(*row[:-2]), row[-2], row[-1]) for row in _rows(said, len(Finding._fields) + 2)]


def _packed_producers(state: Producers) -> dict[str, Any]:
    _few(len(state.by_id))
    return {"byId": [[number, *astuple(each)] for number, each in state.by_id.items()], "forgotten": state.forgotten}


def _producers(said: Any, targets: Targets) -> Producers:
    state = Producers()
    state.forgotten = said["forgotten"]
    for number, *values in _rows(said["byId"], 1 + len(fields(Producer))):
        state.by_id[number] = Producer(*values)
    return state


def _packed_transactions(state: Transactions) -> dict[str, Any]:
    _few(len(state.open) + len(state.epochs))
    opened = [
        [number, *(getattr(each, name) for name in OPEN), each.target.path] for number, each in state.open.items()
    ]
    return {"open": opened, "epochs": [*map(list, state.epochs.items())], "untracked": state.untracked}


OPEN = tuple(field.name for field in fields(Open) if field.name != "target")


def _transactions(said: Any, targets: Targets) -> Transactions:
    state = Transactions()
    state.untracked = said["untracked"]
    for number, *values, path in _rows(said["open"], 2 + len(OPEN)):
        state.open[number] = Open(targets[path], **dict(zip(OPEN, values)))
    state.epochs.update((number, epoch) for number, epoch in _rows(said["epochs"], 2))
    return state


NUMBER = Carried(lambda value: value, _checked((int, type(None))))
FLAG = Carried(lambda value: value, _checked(bool))
NAMES = Carried(list, _checked(list))
FINDINGS = Carried(_packed_findings, _findings)
HELD = Carried(_packed_held, _held)
PRODUCERS = Carried(_packed_producers, _producers)
TRANSACTIONS = Carried(_packed_transactions, _transactions)


class Carrier:
    """Something with a state that outlives a segment: `carries` names the attributes, and of which kind each is."""

    carries: Mapping[str, Carried] = {}

    def resumed(self) -> None:
        """The state is that of another time; what follows from it is put right."""


def packed(carriers: Iterable[Carrier]) -> str:
    """Their states. Raises NotCarried where there is too much, or what JSON has not."""
    said = []
    for each in carriers:
        own = {name: kind.pack(getattr(each, name)) for name, kind in each.carries.items()}
        said.append([type(each).__name__, own])
    try:
        return json.dumps(said, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise NotCarried(str(error)) from None


def unpack(text: str, carriers: Iterable[Carrier], targets: Iterable[Target]) -> None:
    """Give them back their states. Raises NotCarried, with some of them changed."""
    every, by_path = list(carriers), {at.path: at for at in targets}
    try:
        said = json.loads(text)
        if [name for name, _ in said] != [type(each).__name__ for each in every]:
            raise NotCarried("the state of other rules")
        for each, (_, own) in zip(every, said):
            if own.keys() != each.carries.keys():
                raise NotCarried(f"the state of another {type(each).__name__}")
            for name, kind in each.carries.items():
                setattr(each, name, kind.unpack(own[name], by_path))
            each.resumed()
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NotCarried(f"{type(error).__name__}: {error}") from None
