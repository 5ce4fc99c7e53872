"""JSON form of the state that a partition check carries between segments, so that a later process can resume it. Each
rule declares its part of the state in `Rule.saved_fields`.

Restoring a state checks little more than its shape: the caller must make sure that it is what was written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, fields
from typing import Any, NamedTuple

from kdump.check.finding import Finding
from kdump.log.paths import Target
from kdump.state.producer_state import ProducerState, ProducerStateEntry
from kdump.state.transaction_tracker import OngoingTxn, OpenTransactions

MAX_ENTITIES = 250_000
"""Maximum number of producers or transactions in a state: 20 MiB of JSON, written in one second."""
Targets = Mapping[str, Target]
"""Segments of the partition by path."""


class StateError(Exception):
    """The state cannot be written or restored."""


class SavedState(NamedTuple):
    """Conversion of one kind of value to JSON and back. Both functions raise StateError."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any, Targets], Any]


def _checked(kind: type | tuple[type, ...]) -> Callable[[Any, Targets], Any]:
    def unpack(value: Any, targets: Targets) -> Any:
        if not isinstance(value, kind):
            raise StateError(f"{str(value)[:40]}: not of the expected type")
        return value

    return unpack


def _rows(value: Any, width: int) -> list[list[Any]]:
    if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == width for row in value):
        raise StateError(f"expected rows of {width} values")
    return value


def _check_count(count: int) -> None:
    if count > MAX_ENTITIES:
        raise StateError(f"too many producers or transactions: {count}")


def _packed_findings(findings: Iterable[Finding]) -> list[list[Any]]:
    return [list(finding) for finding in findings]


def _findings(value: Any, targets: Targets) -> list[Finding]:
    return [Finding(*row) for row in _rows(value, len(Finding._fields))]


def _packed_held(held: Iterable[tuple[Finding, int, int | None]]) -> list[list[Any]]:
    return [[*finding, before, end] for finding, before, end in held]


def _held(value: Any, targets: Targets) -> list[tuple[Finding, int, int | None]]:
    return [(Finding(*row[:-2]), row[-2], row[-1]) for row in _rows(value, len(Finding._fields) + 2)]


def _packed_producers(state: ProducerState[ProducerStateEntry]) -> dict[str, Any]:
    _check_count(len(state))
    return {"byId": [[number, *astuple(producer)] for number, producer in state.items()], "forgotten": state.forgotten}


def _producers(value: Any, targets: Targets) -> ProducerState[ProducerStateEntry]:
    state: ProducerState[ProducerStateEntry] = ProducerState()
    state.forgotten = value["forgotten"]
    for number, *values in _rows(value["byId"], 1 + len(fields(ProducerStateEntry))):
        state.put(number, ProducerStateEntry(*values))
    return state


def _packed_transactions(state: OpenTransactions) -> dict[str, Any]:
    _check_count(len(state.open) + len(state.loaded) + len(state.epochs) + len(state.raised))
    opened, loaded = (
        [[number, *_packed_transaction(running)] for number, running in transactions.items()]
        for transactions in (state.open, state.loaded)
    )
    numbers = {name: [*map(list, getattr(state, name).items())] for name in NUMBERED}
    return {"open": opened, "loaded": loaded, **numbers, "untracked": state.untracked}


def _packed_transaction(running: OngoingTxn | None) -> list[Any]:
    return [None] if running is None else [*(getattr(running, name) for name in OPEN), running.target.path]


OPEN = tuple(field.name for field in fields(OngoingTxn) if field.name != "target")
NUMBERED = ("epochs", "raised")
"""Attributes of OpenTransactions that are IdNumbers."""


def _transactions(value: Any, targets: Targets) -> OpenTransactions:
    state = OpenTransactions()
    state.untracked = value["untracked"]
    for number, *values, path in _rows(value["open"], 2 + len(OPEN)):
        state.open[number] = OngoingTxn(targets[path], **dict(zip(OPEN, values)))
    for number, *values, path in value["loaded"]:
        state.loaded[number] = None if path is None else OngoingTxn(targets[path], **dict(zip(OPEN, values)))
    for name in NUMBERED:
        for number, epoch in _rows(value[name], 2):
            getattr(state, name).put(number, epoch)
    return state


NUMBER = SavedState(lambda value: value, _checked((int, type(None))))
FLAG = SavedState(lambda value: value, _checked(bool))
NAMES = SavedState(list, _checked(list))
FINDINGS = SavedState(_packed_findings, _findings)
HELD = SavedState(_packed_held, _held)
PRODUCERS = SavedState(_packed_producers, _producers)
TRANSACTIONS = SavedState(_packed_transactions, _transactions)


class Resumable:
    """Base class of objects with a state that outlives a segment. `saved_fields`: names and kinds of its attributes."""

    saved_fields: Mapping[str, SavedState] = {}

    def resumed(self) -> None:
        """Recompute attributes that depend on the restored state."""


def packed(carriers: Iterable[Resumable]) -> str:
    """Return the states of `carriers` as JSON. Raises StateError if there is too much, or a value that JSON cannot
    represent."""
    value = []
    for carrier in carriers:
        own = {name: kind.pack(getattr(carrier, name)) for name, kind in carrier.saved_fields.items()}
        value.append([type(carrier).__name__, own])
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StateError(str(error)) from None


def unpack(packed_state: str, carriers: Iterable[Resumable], targets: Iterable[Target]) -> None:
    """Restore the states of `carriers` from `packed_state`. If this raises StateError, some may have changed."""
    every, by_path = list(carriers), {target.path: target for target in targets}
    try:
        value = json.loads(packed_state)
        if [name for name, _ in value] != [type(carrier).__name__ for carrier in every]:
            raise StateError("the state is of different rules")
        for carrier, (_, own) in zip(every, value):
            if own.keys() != carrier.saved_fields.keys():
                raise StateError(f"the state does not fit {type(carrier).__name__}")
            for name, kind in carrier.saved_fields.items():
                setattr(carrier, name, kind.unpack(own[name], by_path))
            carrier.resumed()
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise StateError(f"{type(error).__name__}: {error}") from None
