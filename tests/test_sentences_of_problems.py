"""A sentence about a problem, and advice most of all, is in the catalogue (kdump/problems), not in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import kdump
from tests.each_case import each_case

KDUMP = Path(kdump.__file__).parent
PLACES = (
    "check",
    "cluster",
    "incident/doctor",
    "incident/explain",
    "kafka",
    "questions/reindex",
    "questions/rescue",
    "questions/restart_plan",
    "questions/retention",
    "questions/salvage",
    "questions/space",
    "questions/transactions",
    "render",
    "state",
)
ADVICE = re.compile(
    r"\b(?:do not|stop the (?:broker|node)|start the (?:broker|node)|move (?:it|the|away)|back (?:it|the|DIR)|restore|"
    r"delete (?:it|the|them)|copy (?:it|the|them)|salvage|restart the|find out|look for|set (?:it|the)|"
    r"before (?:you|the broker|startup))\b",
    re.IGNORECASE,
)
EXCEPTIONS = {
    "questions/salvage/run.py": "an error message: what the command needs",
    "questions/salvage/source/salvage_reader.py": "an error message: the input changed",
    "questions/salvage/source/sources.py": "error messages: which paths the command needs",
    "questions/salvage/write_segments.py": "an error message: the input changed",
    "questions/reindex/run.py": "an error message: which path the command needs",
    "questions/retention/partition.py": "what configs mean for a log, which is no problem",
    "state/metadata_topic_handlers.py": "Kafka's own text",
}
"""Modules with a sentence that looks like advice, each with why it is there."""


def sentences(path: Path) -> Iterator[str]:
    """Yield the strings of a module that look like advice; docstrings and the texts of options and keys are none."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in docs else None
        if isinstance(text, str) and len(text) > 25 and ADVICE.search(text):
            yield text


def modules() -> list[Path]:
    """Return the modules that state problems; answers and options describe keys and options."""
    every = (path for place in PLACES for path in (KDUMP / place).rglob("*.py"))
    return sorted(path for path in every if path.name not in ("answer.py", "command.py", "options.py"))


@each_case("path", modules(), ids=lambda path: str(path.relative_to(KDUMP)))
def test_advice_is_in_the_catalogue(path: Path) -> None:
    if str(path.relative_to(KDUMP)) not in EXCEPTIONS:
        assert not [*sentences(path)]


@each_case("name", EXCEPTIONS)
def test_an_exception_is_one(name: str) -> None:
    assert [*sentences(KDUMP / name)]
