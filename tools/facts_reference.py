"""Prints docs/facts.md: the facts that several commands state, from the declarations that the tests compare them by."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tests.facts.declared import ABOUT, FACTS, REPORT, Fact

DOCS = Path(__file__).resolve().parent.parent / "docs"
KEY = re.compile(r"\w+\.(?:\{[^}]*\}|\S+)|\b[a-z]+[A-Z]\w*|(?<=number of )\w+")
"""A type with a key or several, or the name of a type."""
HEAD = """# The facts that commands share

What several commands state about a disk means the same in all of them, and has the same value. This page lists these
facts, with the keys of [the JSON objects](json.md) in which each command states them. A test runs the commands on disks
of every release, with random damage to every kind of file, and compares their values (`tests/facts/`); this page is
generated from the same declarations (`make docs`).

- *only if*: the key states the fact only under this condition; otherwise its value may differ from that of the others.
- A value of null means unknown, and contradicts nothing; if the object has the key `unknown`, that says why.
- The facts of the Python function [`kdump.report()`](api.md) are in `facts.partitions` of its answer.
- *No batch is damaged* if `verify` reports no finding of family `bytes` with a severity above info.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *_facts(), *_directories()])


def _facts() -> Iterator[str]:
    for fact in FACTS:
        if fact not in ABOUT:
            yield from _fact(fact)


def _fact(fact: Fact) -> Iterator[str]:
    unit = f" ({fact.unit})" if fact.unit else ""
    yield f"## {fact.name}\n"
    meaning = fact.meaning[0].upper() + fact.meaning[1:]
    source = f" In Kafka: {fact.kafka}." if fact.kafka else ""
    text = f"{meaning}{unit}.{source} Computed by `kdump.{fact.function}`."
    yield textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"
    yield "| command | states it in | only if |\n| --- | --- | --- |"
    for states in fact.states:
        command = states.command if states.command == REPORT else f"kdump {states.command}"
        yield f"| `{command}` | {_keys(states.shown)} | {states.only_if} |"
    yield ""


def _keys(shown: str) -> str:
    """Return the text with types and keys as code."""
    return KEY.sub(r"`\g<0>`", shown)


def _directories() -> Iterator[str]:
    yield "## Directories\n"
    yield "Which of the partition directories below a log directory a command is about:\n"
    yield "| command | directories |\n| --- | --- |\n| `kdump ls`, `kdump verify` | all |"
    for fact in ABOUT:
        yield f"| `kdump {fact.states[0].command}` | {fact.meaning} |"
    yield ""


if __name__ == "__main__":
    print(page(), end="")
