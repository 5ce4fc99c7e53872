"""Runs pytest in a copy of the checkout for `python -m tools.mutants`: records the lines that each test runs, or runs
tests until one fails."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

TABLES = """
CREATE TABLE IF NOT EXISTS tests (id INTEGER PRIMARY KEY, name TEXT UNIQUE, seconds REAL, lines INTEGER);
CREATE TABLE IF NOT EXISTS hits (file TEXT, test INTEGER, bits BLOB);
CREATE INDEX IF NOT EXISTS by_file ON hits (file);
"""
"""hits.bits: a number, least significant byte first, in which bit N is set if the test ran line N."""


def spent() -> float:
    """Return the CPU seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def function_of(test: str) -> str:
    return test.partition("[")[0]


class LineRecorder:
    """pytest plugin that writes the lines of kdump that each passed test runs to the map. A line is reported once a
    test. Lines run by child processes, and by fixtures that an earlier test has used, are not seen."""

    def __init__(self, path: Path, cases: int) -> None:
        self.map = sqlite3.connect(path, timeout=60, isolation_level=None)
        self.map.executescript("PRAGMA synchronous = OFF;" + TABLES)
        self.cases = cases
        self.top = os.path.join(os.getcwd(), "kdump", "")
        self.hits: dict[str, int] = {}
        self.passed = False
        if sys.version_info >= (3, 12):
            events, tool = sys.monitoring.events, sys.monitoring.COVERAGE_ID
            sys.monitoring.use_tool_id(tool, "mutants")
            sys.monitoring.register_callback(tool, events.PY_START, self.start)
            sys.monitoring.register_callback(tool, events.LINE, self.line)
            sys.monitoring.set_events(tool, events.PY_START)
        else:
            raise SystemExit("needs Python 3.12 or newer, which reports each line once")

    if sys.version_info >= (3, 12):

        def start(self, code: CodeType, offset: int) -> Any:
            if code.co_filename.startswith(self.top):
                sys.monitoring.set_local_events(sys.monitoring.COVERAGE_ID, code, sys.monitoring.events.LINE)
            return sys.monitoring.DISABLE

        def line(self, code: CodeType, line: int) -> Any:
            self.hits[code.co_filename] = self.hits.get(code.co_filename, 0) | 1 << line
            return sys.monitoring.DISABLE

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
            self.hits, self.passed = {}, True
            sys.monitoring.restart_events()
            before = spent()
            result = yield
            if self.passed:
                self._write(item.nodeid, spent() - before)
            return result

        def pytest_unconfigure(self) -> None:
            sys.monitoring.free_tool_id(sys.monitoring.COVERAGE_ID)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what the map has, and all but some cases of each parametrized test."""
        known = {name for (name,) in self.map.execute("SELECT name FROM tests")}
        total, seen = Counter(function_of(item.nodeid) for item in items), Counter[str]()
        chosen = []
        for item in items:
            function = function_of(item.nodeid)
            seen[function] += 1
            spread = max(1, total[function] / self.cases)
            if int(seen[function] / spread) > int((seen[function] - 1) / spread) and item.nodeid not in known:
                chosen.append(item)
        items[:] = chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed = self.passed and report.passed

    def _write(self, name: str, seconds: float) -> None:
        lines = sum(bits.bit_count() for bits in self.hits.values())
        self.map.execute("BEGIN")
        test = self.map.execute("INSERT INTO tests VALUES (NULL, ?, ?, ?)", (name, seconds, lines)).lastrowid
        for file, bits in self.hits.items():
            blob = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
            self.map.execute("INSERT INTO hits VALUES (?, ?, ?)", (os.path.relpath(file), test, blob))
        self.map.execute("COMMIT")


class InOrder:
    """pytest plugin that runs the wanted tests in their order, until CPU seconds are spent. A test that takes ten times
    as long as it should, and 20 s, ends the process."""

    def __init__(self, job: dict[str, Any], result: Path) -> None:
        self.seconds: dict[str, float] = dict(job["tests"])
        self.limit: float = job["limit"]
        self.to_the_end: bool = job["all"]
        self.path = result
        self.result: dict[str, Any] = {"tried": 0, "failed": [], "running": "", "spent": 0.0, "over": False}

    def write(self, **changed: Any) -> None:
        self.result |= changed
        self.path.write_text(json.dumps(self.result))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select the tests. The IDs of some depend on what is changed: then all cases of that test are run."""
        found = {item.nodeid for item in items}
        lost = {function_of(test) for test in self.seconds if test not in found}
        order = {test: at for at, test in enumerate(self.seconds)}
        last = len(order)
        wanted = [item for item in items if item.nodeid in order or function_of(item.nodeid) in lost]
        items[:] = sorted(wanted, key=lambda item: order.get(item.nodeid, last))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """End without the check of the whole corpus, which takes a second; `confirm` makes it."""
        if not self.to_the_end:
            os._exit(exitstatus)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write(running=nodeid)
        signal.setitimer(signal.ITIMER_PROF, 20 + 10 * self.seconds.get(nodeid, 1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.write(failed=[*self.result["failed"], report.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.write(failed=[*self.result["failed"], f"{report.nodeid} (import)"])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        result = yield
        self.write(tried=self.result["tried"] + 1, spent=spent())
        if self.result["spent"] > self.limit:
            self.write(over=True)
            item.session.shouldstop = "no time left"
        return result


def main(what: str, path: str, *rest: str) -> int:
    """Run in the current directory: `lines MAP CASES [OPTIONS]` or `tests JOB RESULT`. Return the status."""
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    if what == "lines":
        return pytest.main([*options, *rest[1:]], plugins=[LineRecorder(Path(path), int(rest[0]))])
    job = json.loads(Path(path).read_text())
    plugin = InOrder(job, Path(rest[0]))
    named = dict.fromkeys(test.partition("::")[0] for test, _ in job["tests"])
    files = [file for file in named if os.path.exists(file)]
    if not files:
        return pytest.ExitCode.NO_TESTS_COLLECTED
    options += ["--basetemp", str(Path(path).parent / "tests"), *(() if plugin.to_the_end else ("-x",))]
    return pytest.main([*options, *files], plugins=[plugin])
