"""Changes kdump in one small place at a time, and reports which changes no test notices.

    python -m tools.mutants lines                records the lines that each test runs (an hour; Python 3.12 or newer)
    python -m tools.mutants draw > sample.jsonl  draws changes ("mutants") of lines that tests run
    python -m tools.mutants try sample.jsonl     tries each with the tests that run its line, until one fails
    python -m tools.mutants compare OLD NEW      prints the mutants that were found in OLD, and are not in NEW

Works in a copy of a commit, in build/mutants, and appends results to a file: an interrupted run continues where it
ended. To compare two commits, try the sample of one with both (--directory, --rev). A mutant is found again by its
lines and function; with the lines recorded for the other commit (--lines), tests are found again by their names. What
only child processes run, such as Spark's executors, is not seen, and not drawn."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tools import mutant_tests
from tools.mutant_changes import Mutant, applied, is_change, located, mutants

ROOT = Path(__file__).resolve().parents[1]
PRELOADED = (
    "pytest hypothesis.strategies textual.app textual.pilot syrupy click.testing rich.table google.protobuf fastavro"
)
"""Modules that tests import, and that do not import kdump."""
FOUND = ("killed", "timeout")
"""Results of mutants that the tests notice: one fails, or takes ten times as long as before."""
GROUPS = ((1, 1), (3, 20), (15, 200), (1_000_000, 1_000_000))
"""Files and tests that are run together: starting pytest takes a second, each file a fraction, and most mutants are
found by the first tests. The first group is for the test that found the mutant in another run."""
NO_TESTS = 5
"""Pytest's exit status if none of the tests exists any more."""
SAME_NAME = 4
"""How much more specific a test is if its file is named after the module."""


class Copy:
    """A copy of a commit whose modules are changed, and the map of its tests."""

    def __init__(self, directory: Path, rev: str, lines: Path | None = None) -> None:
        self.tree = (directory / "tree").resolve()
        if not self.tree.exists():
            add = ["git", "worktree", "add", "--quiet", "--detach", str(self.tree), rev]
            subprocess.run(add, cwd=ROOT, check=True)
            build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
            subprocess.run(build, cwd=self.tree, check=True)
        self.map_path = (lines or directory / "lines.sqlite").resolve()
        self.map = sqlite3.connect(self.map_path)

    def source(self, file: str) -> str:
        return (self.tree / file).read_text()

    def run(self, *arguments: str, engine: str, timeout: float | None = None) -> int:
        """Run mutant_tests.py in the copy with a core, and end its children. Return -1 if it did not end in time, and
        -N if signal N has ended it. A fork saves two seconds of imports."""
        child = os.fork()
        if child == 0:
            self._run(arguments, engine, timeout is not None)
        status = None
        end = time.monotonic() + (timeout or 1e9)
        while status is None and time.monotonic() < end:
            done, ended = os.waitpid(child, os.WNOHANG)
            if done:
                status = os.waitstatus_to_exitcode(ended)
            else:
                time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if status is None:
            os.waitpid(child, 0)
            return -1
        return status

    def _run(self, arguments: tuple[str, ...], engine: str, is_trial: bool) -> None:
        status = 1
        try:
            os.setsid()
            os.chdir(self.tree)
            os.environ |= {"PYTHONPATH": str(self.tree), "KDUMP_ENGINE": engine}
            sys.path[0] = str(self.tree)
            sys.modules["__main__"] = ModuleType("__main__")  # which processes started by multiprocessing would import
            for name in [each for each in sys.modules if each.partition(".")[0] == "tools"]:
                del sys.modules[name]
            if is_trial:
                sys.dont_write_bytecode = True
                os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream in range(3):
                    os.dup2(nothing, stream)
            status = mutant_tests.main(*arguments)
        finally:
            os._exit(status)

    @cache  # noqa: B019 - one object a run
    def seen(self, file: str) -> int:
        """Return a number with the lines of a file that any test runs as bits."""
        together = 0
        for _, _, _, bits in self.hits(file):
            together |= bits
        return together

    def has_tests(self, mutant: Mutant) -> bool:
        if mutant.defining:
            return any(map(self.seen, (mutant.file, *self.importers(mutant.file))))
        return bool(self.seen(mutant.file) & lines_of(mutant))

    @cache  # noqa: B019 - one object a run
    def importers(self, file: str) -> list[str]:
        """Return the modules that import a module by name."""
        package, _, name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".").rpartition(".")
        imports = re.compile(rf"from {package}\.{name} import |from {package} import .*\b{name}\b", re.M)
        files = (str(path.relative_to(self.tree)) for path in sorted((self.tree / "kdump").rglob("*.py")))
        return [each for each in files if imports.search(self.source(each))]

    @cache  # noqa: B019 - one object a run
    def hits(self, file: str) -> list[tuple[str, float, int, int]]:
        """Return (test, its seconds, the number of lines it runs, a number with its lines of the file as bits)."""
        rows = self.map.execute(
            "SELECT name, seconds, lines, bits FROM hits JOIN tests ON test = id WHERE file = ?", (file,)
        )
        return [(name, seconds, lines, int.from_bytes(bits, "little")) for name, seconds, lines, bits in rows]

    def tests(self, mutant: Mutant) -> list[tuple[str, float]]:
        """Return the tests that run the mutant, the cheapest and most specific first, but one case of each test before
        the second of any. For what runs when the module is imported: those that run anything of it, or of a module that
        imports it."""
        files = [mutant.file, *(self.importers(mutant.file) if mutant.defining else ())]
        scores: dict[str, tuple[float, float]] = {}
        for file in files:
            for test, seconds, lines, bits in self.hits(file):
                if mutant.defining or bits & lines_of(mutant):
                    stem = re.escape(Path(mutant.file).stem.lstrip("_"))
                    named = re.search(rf"test_{stem}", test.partition("::")[0]) is not None
                    scores.setdefault(test, ((lines + 1000 * seconds) / (SAME_NAME if named else 1), seconds))
        cases: Counter[str] = Counter()
        ranked = []
        for test, (score, seconds) in sorted(scores.items(), key=lambda each: each[1]):
            cases[test.partition("[")[0]] += 1
            ranked.append((score * cases[test.partition("[")[0]], test, seconds))
        return [(test, seconds) for _, test, seconds in sorted(ranked)]


def lines_of(mutant: Mutant) -> int:
    """Return a number with the lines of its statement as bits."""
    return sum(1 << line for line in range(mutant.span[0], mutant.span[1] + 1))


def weight(source: str) -> int:
    """Return the number of lines that are not empty and not comments."""
    return sum(1 for line in source.split("\n") if line.strip() and not line.lstrip().startswith("#"))


def draw(copy: Copy, count: int, seed: int, without: list[str]) -> list[Mutant]:
    """Return mutants of lines that tests run, from each module in proportion to its lines."""
    files = [str(path.relative_to(copy.tree)) for path in sorted((copy.tree / "kdump").rglob("*.py"))]
    sources = {file: copy.source(file) for file in files if not any(map(file.startswith, without))}
    total, at = sum(map(weight, sources.values())), random.Random(seed).random()
    chosen: list[Mutant] = []
    spare: list[Mutant] = []
    unseen = 0
    for file, source in sources.items():
        first, at = int(at), at + weight(source) * count / total
        every = list(mutants(file, source))
        run = [each for each in every if copy.has_tests(each)]
        unseen += len(every) - len(run)
        random.Random(f"{seed} {file}").shuffle(run)
        different = list({each.line: each for each in reversed(run)}.values())[::-1]
        valid = (each for each in different if is_change(each, source))
        taken = [each for each, _ in zip(valid, range(int(at) - first + 1))]
        chosen += taken[: int(at) - first]
        spare += taken[int(at) - first :]
    random.Random(seed).shuffle(spare)
    chosen += spare[: count - len(chosen)]
    print(f"{len(chosen)} mutants; no test runs {unseen} others in its own process", file=sys.stderr)
    return sorted(chosen, key=lambda each: random.Random(f"{seed} {each.key}").random())


def attempt(
    copy: Copy, mutant: Mutant, tests: list[tuple[str, float]], limit: float, groups: tuple[tuple[int, int], ...]
) -> dict[str, Any]:
    """Run tests on a mutant until one fails or the CPU seconds are spent. Return the result."""
    source = copy.source(mutant.file)
    path = copy.tree / mutant.file
    before = path.stat()
    tried = 0
    try:
        path.write_text(applied(mutant, source))
        for group in grouped(tests, groups):
            status, said = run_tests(copy, group, limit, engine_of(source))
            tried, limit = tried + said["tried"], limit - said["spent"]
            if said["failed"]:
                return {"result": "killed", "test": said["failed"][0], "tried": tried}
            if status == -signal.SIGPROF:
                return {"result": "timeout", "test": said["running"], "tried": tried}
            if said["over"] or status == -1:
                return {"result": "unfinished", "test": "", "tried": tried}
    finally:
        path.write_text(source)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return {"result": "survived", "test": "", "tried": tried}


def grouped(tests: list[tuple[str, float]], groups: tuple[tuple[int, int], ...]) -> Iterator[list[tuple[str, float]]]:
    """Yield the tests in groups: of the files with the first tests, then of more."""
    for files, count in groups:
        first = list(dict.fromkeys(file_of(test) for test, _ in tests))[:files]
        group = [each for each in tests if file_of(each[0]) in first][:count]
        if group:
            yield group
        tried = set(group)
        tests = [each for each in tests if each not in tried]


def file_of(test: str) -> str:
    return test.partition("::")[0]


def engine_of(source: str) -> str:
    return "plain" if source.startswith("# cython:") else "compiled"


def run_tests(
    copy: Copy, tests: list[tuple[str, float]], limit: float, engine: str, *, all_of_them: bool = False
) -> tuple[int, dict[str, Any]]:
    """Run tests in that order. Return pytest's status, and what mutant_tests.py wrote."""
    with tempfile.TemporaryDirectory() as work:
        job, result = Path(work, "job"), Path(work, "result")
        job.write_text(json.dumps({"tests": tests, "limit": limit, "all": all_of_them}))
        status = copy.run("tests", str(job), str(result), engine=engine, timeout=60 + 2 * limit)
        said: dict[str, Any] = {"tried": 0, "failed": [], "running": "", "spent": 0.0, "over": False}
        if result.exists():
            said |= json.loads(result.read_text())
        elif status not in (-1, -signal.SIGPROF, NO_TESTS):
            said["failed"] = ["(start)"]
    return status, said


def try_all(copy: Copy, sample: list[Mutant], first: dict[str, str], results: Path, limit: float) -> None:
    """Try each mutant that has no result yet, with its test in `first` before others, and append its result. Then run
    the tests that found one on the unchanged copy: one that fails there, too, has found nothing."""
    done = read_results(results) if results.exists() else {}
    for number, mutant in enumerate(sample, 1):
        if mutant.key in done:
            continue
        now = located(mutant, copy.source(mutant.file)) if (copy.tree / mutant.file).exists() else None
        tests = copy.tests(now) if now else []
        if known := "::" in first.get(mutant.key, ""):
            tests.insert(0, (first[mutant.key], 1.0))
        if now and tests:
            result = attempt(copy, now, tests, limit, GROUPS[not known :])
        else:
            result = {"result": "no test" if now else "gone", "test": "", "tried": 0}
        result |= {"key": mutant.key, "covering": len(tests), "old": mutant.old, "new": mutant.new}
        done[mutant.key] = result
        with results.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(f"{number}/{len(sample)} {mutant.key}: {result['result']} {result['test']}", flush=True)
    confirm(copy, done, results)


def confirm(copy: Copy, done: dict[str, dict[str, Any]], results: Path) -> None:
    for engine in ("compiled", "plain"):
        found = {}
        for result in done.values():
            file = copy.tree / result["key"].partition(":")[0]
            if (
                result["result"] == "killed"
                and "::" in result["test"]
                and file.exists()
                and engine_of(file.read_text()) == engine
            ):
                found[result["test"]] = 10.0
        if not found:
            continue
        _, said = run_tests(copy, list(found.items()), 3600, engine, all_of_them=True)
        for result in done.values():
            if result["result"] == "killed" and result["test"] in said["failed"]:
                result |= {"result": "unsure"}
                with results.open("a") as file:
                    file.write(json.dumps(result) + "\n")


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """Return the last result of each mutant."""
    return {each["key"]: each for each in map(json.loads, path.read_text().splitlines())}


def compare(old: Path, new: Path) -> int:
    """Print the mutants that were found and are not any more; return how many."""
    before, after = read_results(old), read_results(new)
    lost = 0
    for key, result in before.items():
        now = after.get(key, {"result": "not tried"})["result"]
        if result["result"] in FOUND and now not in (*FOUND, "gone"):
            lost += 1
            print(f"{now}: {key}\n  found by {result['test']}")
            for sign, lines in (("-", result["old"]), ("+", result["new"])):
                print("\n".join(f"  {sign} {line.strip()}" for line in lines[:5]))
    for name, path in (("old", before), ("new", after)):
        print(name, dict(Counter(each["result"] for each in path.values())))
    return lost


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=ROOT / "build" / "mutants", help="of the copy and its map")
    parser.add_argument("--rev", default="HEAD", help="commit to copy, if there is no copy yet  [HEAD]")
    parser.add_argument("--lines", type=Path, help="recorded lines  [lines.sqlite in --directory]")
    commands = parser.add_subparsers(dest="command", required=True)
    lines = commands.add_parser("lines", help="record the lines that each test runs")
    lines.add_argument("--cases", type=int, default=1_000_000, help="at most N cases of each parametrized test  [all]")
    lines.add_argument("--engine", choices=("compiled", "plain"), default="plain", help="core that is used  [plain]")
    lines.add_argument("pytest", nargs="*", help="options and paths for pytest, after --")
    drawn = commands.add_parser("draw", help="draw mutants")
    drawn.add_argument("-n", type=int, default=300, help="number of mutants  [300]")
    drawn.add_argument("--seed", type=int, default=0, help="seed  [0]")
    drawn.add_argument("--without", action="append", default=[], help="leave out modules with that prefix; repeatable")
    tried = commands.add_parser("try", help="try a sample of mutants")
    tried.add_argument("sample", type=Path)
    tried.add_argument("--results", type=Path, help="file of results  [results.jsonl in --directory]")
    tried.add_argument("--only", type=Path, help="results of another run: try only the mutants that were found there")
    tried.add_argument("--seconds", type=float, default=60, help="CPU seconds for each  [60]")
    compared = commands.add_parser("compare", help="compare the results of two runs")
    compared.add_argument("results", nargs=2, type=Path, metavar="RESULTS")
    options = parser.parse_args()
    if options.command == "compare":
        return 1 if compare(*options.results) else 0
    copy = Copy(options.directory, options.rev, options.lines)
    if options.command == "lines":
        return copy.run("lines", str(copy.map_path), str(options.cases), *options.pytest, engine=options.engine)
    if options.command == "draw":
        for mutant in draw(copy, options.n, options.seed, options.without):
            print(json.dumps(mutant._asdict()))
        return 0
    for name in PRELOADED.split():
        with contextlib.suppress(ImportError):
            import_module(name)
    sample = [Mutant(**json.loads(line)) for line in options.sample.read_text().splitlines()]
    first: dict[str, str] = {}
    if options.only:
        before = read_results(options.only).items()
        first = {key: each["test"] for key, each in before if each["result"] in FOUND}
        sample = [each for each in sample if each.key in first]
    try_all(copy, sample, first, options.results or options.directory / "results.jsonl", options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
