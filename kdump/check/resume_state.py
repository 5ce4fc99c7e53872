"""JSON form of the state that a partition check carries between segments, so that a later process can resume it. Each
rule declares its part of the state in `Rule.carries`.

Restoring a state checks little more than its shape: the caller must make sure that it is what was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, fields
from typing import Any, NamedTuple

from kdump.check.finding import Finding
from kdump.log.paths import Target
from kdump.state.producers import ProducerState, ProducerStateEntry
from kdump.state.transactions import OngoingTxn, OpenTransactions

MOST = 250_000
"""Maximum number of producers or transactions in a state: 20 MiB of JSON, written in one second."""
Targets = Mapping[str, Target]
"""Segments of the partition by path."""


class NotCarried(Exception):
    """The state cannot be written or restored."""


class Carried(NamedTuple):
    """Conversion of one kind of value to JSON and back. Both functions raise NotCarried."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any, Targets], Any]


def _checked(kind: type | tuple[type, ...]) -> Callable[[Any, Targets], Any]:
    def unpack(said: Any, targets: Targets) -> Any:
        if not isinstance(said, kind):
            raise NotCarried(f"{str(said)[:40]}: not of the expected type")
        return said

    return unpack


def _rows(said: Any, width: int) -> list[list[Any]]:
    if not isinstance(said, list) or not all(isinstance(row, list) and len(row) == width for row in said):
        raise NotCarried(f"expected rows of {width} values")
    return said


def _few(count: int) -> None:
    if count > MOST:
        raise NotCarried(f"too many producers or transactions: {count}")


def _packed_findings(found: Iterable[Finding]) -> list[list[Any]]:
    return [list(finding) for finding in found]


def _findings(said: Any, targets: Targets) -> list[Finding]:
    return [Finding(*row) for row in _rows(said, len(Finding._fields))]


def _packed_held(held: Iterable[tuple[Finding, int, int | None]]) -> list[list[Any]]:
    return [[*finding, before, end] for finding, before, end in held]


def _held(said: Any, targets: Targets) -> list[tuple[Finding, int, int | None]]:
    return [(Finding(*row[:-2]), row[-2], row[-1]) for row in _rows(said, len(Finding._fields) + 2)]


def _packed_producers(state: ProducerState) -> dict[str, Any]:
    _few(len(state.by_id))
    return {"byId": [[number, *astuple(each)] for number, each in state.by_id.items()], "forgotten": state.forgotten}


def _producers(said: Any, targets: Targets) -> ProducerState:
    state = ProducerState()
    state.forgotten = said["forgotten"]
    for number, *values in _rows(said["byId"], 1 + len(fields(ProducerStateEntry))):
        state.by_id[number] = ProducerStateEntry(*values)
    return state


def _packed_transactions(state: OpenTransactions) -> dict[str, Any]:
    _few(len(state.open) + len(state.epochs))
    opened = [
        [number, *(getattr(each, name) for name in OPEN), each.target.path] for number, each in state.open.items()
    ]
    return {"open": opened, "epochs": [*map(list, state.epochs.items())], "untracked": state.untracked}


OPEN = tuple(field.name for field in fields(OngoingTxn) if field.name != "target")


def _transactions(said: Any, targets: Targets) -> OpenTransactions:
    state = OpenTransactions()
    state.untracked = said["untracked"]
    for number, *values, path in _rows(said["open"], 2 + len(OPEN)):
        state.open[number] = OngoingTxn(targets[path], **dict(zip(OPEN, values)))
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
    """Base class of objects with a state that outlives a segment. `carries`: names and kinds of its attributes."""

    carries: Mapping[str, Carried] = {}

    def resumed(self) -> None:
        """Recompute attributes that depend on the restored state."""


def packed(carriers: Iterable[Carrier]) -> str:
    """Return the states of `carriers` as JSON. Raises NotCarried if there is too much, or a value that JSON cannot
    represent."""
    said = []
    for each in carriers:
        own = {name: kind.pack(getattr(each, name)) for name, kind in each.carries.items()}
        said.append([type(each).__name__, own])
    try:
        return json.dumps(said, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise NotCarried(str(error)) from None


def unpack(text: str, carriers: Iterable[Carrier], targets: Iterable[Target]) -> None:
    """Restore the states of `carriers` from `text`. If this raises NotCarried, some of them may have changed."""
    every, by_path = list(carriers), {at.path: at for at in targets}
    try:
        said = json.loads(text)
        if [name for name, _ in said] != [type(each).__name__ for each in every]:
            raise NotCarried("the state is of different rules")
        for each, (_, own) in zip(every, said):
            if own.keys() != each.carries.keys():
                raise NotCarried(f"the state does not fit {type(each).__name__}")
            for name, kind in each.carries.items():
                setattr(each, name, kind.unpack(own[name], by_path))
            each.resumed()
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NotCarried(f"{type(error).__name__}: {error}") from None
