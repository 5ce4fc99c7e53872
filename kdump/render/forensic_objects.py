"""Answers of forensics as JSON objects; tables show the same."""

from __future__ import annotations

from typing import Any

from kdump import answer as declared
from kdump.check.finding import Finding
from kdump.forensics.answers import (
    CoordinatorTransaction,
    Difference,
    Note,
    PartitionProducers,
    PartitionTransactions,
    Producer,
    ProducerEvent,
    Transaction,
)
from kdump.render import jsonl
from kdump.render.escape import path_text
from kdump.render.objects import finding_object
from kdump.render.state_keys import ordered

Object = dict[str, Any]
TYPES: dict[type, str] = {
    Transaction: "transaction",
    PartitionTransactions: "transactionPartition",
    CoordinatorTransaction: "transactionCoordinator",
    Difference: "transactionDifference",
    Producer: "producer",
    ProducerEvent: "producerEvent",
    PartitionProducers: "producerPartition",
    Note: "note",
}
PATHS = ("source", "file", "path", "markerFile", "seededFrom", "stateFrom", "coordinator")
"""Keys whose values are paths, of whatever bytes."""


def answer_object(answer: Any) -> Object:
    """The object of an answer; its keys are the fields of the answer."""
    if type(answer) not in TYPES:
        return declared.answer_object(answer)
    values = answer._asdict()
    for name in PATHS:
        if isinstance(values.get(name), str):
            values[name] = path_text(values[name])
    return {
        "type": TYPES[type(answer)],
        **{name: list(value) if isinstance(value, tuple) else value for name, value in values.items()},
    }


def answer_line(answer: Any) -> str:
    """The line of JSON."""
    if isinstance(answer, Finding):
        return jsonl.line(finding_object(answer))
    found = answer_object(answer)
    return jsonl.line(found if type(answer) not in TYPES else ordered(found))
