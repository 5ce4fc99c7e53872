"""The results of trials in a JSON file, case by case: a run may repeat some of them, or be cut off."""

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
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


def tried(cases: Iterable[C], trial: Callable[[C], object], jobs: int) -> None:
    """Try each case, up to `jobs` at a time: most of a trial is waiting. What fails is printed."""
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(trial, case): case.name for case in cases}
        for done in as_completed(running):
            if error := done.exception():
                print(f"{running[done]} FAILED: {error!r}"[:4000], file=sys.stderr, flush=True)


class KeptGround:
    """What the steps of cases have made, by release and steps, in a directory (--ground), so that a later run need not
    repeat them; nothing is kept without one."""

    def __init__(self, root: Path | None, release: str) -> None:
        self.root, self.release = root, release

    def _path(self, steps: object) -> Path | None:
        return None if self.root is None else self.root / f"{self.release}-{zlib.crc32(repr(steps).encode()):08x}"

    def restored(self, steps: object, work: Path) -> Any:
        """Copy what was kept to `work`, and return the state that was kept with it; None if nothing was."""
        kept = self._path(steps)
        if kept is None or not (kept / "state").exists():
            return None
        shutil.copytree(kept, work, dirs_exist_ok=True)
        return pickle.loads((kept / "state").read_bytes())

    def keep(self, steps: object, work: Path, names: Iterable[str], state: object) -> None:
        """Keep the files and directories with these names in `work`, and a state."""
        if kept := self._path(steps):
            kept.mkdir(parents=True)
            for path in (each for name in names for each in work.glob(name)):
                shutil.copytree(path, kept / path.name)
            (kept / "state").write_bytes(pickle.dumps(state))


class RecordedResults:
    """The results in the file, by the name of the case, in the order of `cases`, and of each by release ("kafka")."""

    def __init__(self, path: Path, cases: Sequence[Case]) -> None:
        self.path, self.names = path, [case.name for case in cases]
        self.by_name: dict[str, list[Result]] = {}
        self._lock = threading.Lock()
        for each in json.loads(path.read_text()) if path.exists() else ():
            self.by_name.setdefault(each["name"], []).append(each)

    def keep(self, name: str, results: list[Result]) -> None:
        """Replace the results of a case with the same release, and write the file."""
        releases = {each.get("kafka") for each in results}
        with self._lock:
            others = [each for each in self.by_name.get(name, ()) if each.get("kafka") not in releases]
            self.by_name[name] = sorted([*others, *results], key=lambda each: str(each.get("kafka", "")))
            rows = [each for known in self.names for each in self.by_name.get(known, ())]
            self.path.write_text(json.dumps(rows, indent=1) + "\n")
