"""The results of trials in a JSON file, case by case: a run may repeat some of them, or be cut off."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

Result = dict[str, Any]


class Case(Protocol):
    """What is tried."""

    @property
    def name(self) -> str: ...


C = TypeVar("C", bound=Case)


def trial_options(description: str | None, out: str) -> argparse.ArgumentParser:
    """Return the parser of what all trials take: JARS, --only and --out."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path(out))
    return parser


def chosen(cases: Sequence[C], only: str) -> Iterator[C]:
    """Yield the cases named in `only`, separated by commas; all if it is empty."""
    names = set(filter(None, only.split(",")))
    return (case for case in cases if not names or case.name in names)


class RecordedResults:
    """The results in the file, by the name of the case, in the order of `cases`."""

    def __init__(self, path: Path, cases: Sequence[Case]) -> None:
        self.path, self.names = path, [case.name for case in cases]
        self.by_name: dict[str, list[Result]] = {}
        for each in json.loads(path.read_text()) if path.exists() else ():
            self.by_name.setdefault(each["name"], []).append(each)

    def keep(self, name: str, results: list[Result]) -> None:
        """Replace the results of a case, and write the file."""
        self.by_name[name] = results
        rows = [each for known in self.names for each in self.by_name.get(known, ())]
        self.path.write_text(json.dumps(rows, indent=1) + "\n")
