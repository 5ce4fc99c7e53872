"""Real lines of brokers and clients for the tests of `kdump explain`: those of whole logs, and those quoted in the
results of trials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.conftest import CORPUS

LOGS = CORPUS / "logs"
DOCS = Path(__file__).resolve().parents[3] / "docs"
PUBLIC_LINES = [line.split("\t") for line in Path(__file__).with_name("explained_lines.tsv").read_text().splitlines()]
"""Lines of public reports, each after the name of its message; " | " is a line break."""


def whole_logs() -> list[Path]:
    return sorted(LOGS.glob("*/*.log"))


@cache
def real_lines() -> frozenset[str]:
    found = set[str]()
    for path in whole_logs():
        found.update(path.read_text(errors="replace").splitlines())
    for path in DOCS.glob("*-trials.json"):
        for text in _texts(json.loads(path.read_text())):
            found.update(text.splitlines())
    return frozenset(found)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
