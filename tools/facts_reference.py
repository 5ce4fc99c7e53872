"""Prints docs/facts.md: the facts that several commands state, from the declarations that the tests compare them by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.facts.declared import ABOUT, FACTS, REPORT, Fact

DOCS = Path(__file__).resolve().parent.parent / "docs"
KEY = re.compile(r"\w+\.(?:\{[^}]*\}|\S+)|\b[a-z]+[A-Z]\w*|(?<=number of )\w+")
"""A type with a key or several, or the name of a type."""
HEAD = """# The facts that commands share

What several commands state about a disk has the same value in all of them (a test compares them on damaged disks of
every release). Each line below is such a fact, with the keys of [the JSON objects](json.md) that state it.

- *if*: the key states the fact only under this condition; otherwise its value may differ from that of the others.
- A value of null means unknown, and contradicts nothing; if the object has the key `unknown`, that says why.
- The facts of the Python function [`kdump.report()`](api.md) are in `facts.partitions` of its answer.
- *No batch is damaged* if `verify` reports no finding of family `bytes` with a severity above info.
{conditions}
## Facts
"""
CONDITIONS = {
    "loaded whole": "the startup loads the log, truncates nothing and deletes no segment",
    "on one disk": "only one log directory has the live partition",
    "of one node": "no partition is in two directories, no topic in one whose meta.properties is unreadable or differs",
    "complete": "each valid batch has as many records as it counts, and they decode",
    "ends whole": "the last segment does not end in zeros or an incomplete batch, which is paddingBytes",
}
"""Conditions of several facts, which the page writes once, by the words that it has for them."""


def page() -> str:
    """Return the page."""
    said = "".join(f"- *{name}*: {condition}.\n" for name, condition in CONDITIONS.items())
    return "\n".join([HEAD.replace("{conditions}", said), *_facts(), *_directories()])


def _facts() -> Iterator[str]:
    for fact in FACTS:
        if fact not in ABOUT:
            yield from _fact(fact)


def _fact(fact: Fact) -> Iterator[str]:
    unit = f" ({fact.unit})" if fact.unit else ""
    keys = (
        (f"{each.command} " if each.command == REPORT or "." not in each.shown else "")
        + _keys(each.shown)
        + (f", if {_condition(each.only_if)}" if each.only_if else "")
        for each in fact.states
    )
    yield f"- **{fact.name}**: {fact.meaning}{unit}. {'; '.join(dict.fromkeys(keys))}"


def _condition(text: str) -> str:
    for name, condition in CONDITIONS.items():
        text = text.replace(condition, f"*{name}*")
    return text


def _keys(shown: str) -> str:
    """Return the text with types and keys as code."""
    return KEY.sub(r"`\g<0>`", shown)


def _directories() -> Iterator[str]:
    yield "\n## Directories\n"
    yield "Which of the partition directories below a log directory a command is about:\n"
    yield "| command | directories |\n| --- | --- |\n| `kdump ls`, `kdump verify` | all |"
    for fact in ABOUT:
        yield f"| `kdump {fact.states[0].command}` | {fact.meaning} |"
    yield ""


if __name__ == "__main__":
    print(page(), end="")
