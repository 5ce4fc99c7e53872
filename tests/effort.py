"""What a run of the tests costs: time, CPU, processes and JVMs.

After a run with several processes, the last lines show the slowest files, the CPU seconds of each directory, and the
counts. A run of all tests also writes the figures of each test to build/test-effort.json, and fails if it has more
tests, or starts more processes or JVMs, than tests/effort.json allows. Those are counts, which do not depend on how
busy a machine is. If a change needs more, raise them there, on purpose."""

from __future__ import annotations

import functools
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ALLOWED = HERE / "effort.json"
WRITTEN = HERE.parent / "build" / "test-effort.json"
STARTS = ((subprocess.Popen, "__init__"), (os, "fork"), (os, "forkpty"), (os, "posix_spawn"))
"""Functions that start another process."""
JVM_COUNTER = HERE / "counted_java"
"""A Java home, whose bin/java adds a line to the file KDUMP_JVMS and becomes KDUMP_JAVA."""
SLOWEST = 5
REPEATED = 10
"""How many slow files and failed tests are listed."""

Row = tuple[str, float, float, int]
"""Test, seconds, CPU seconds (of this process and of finished ones that it started), processes that it started."""


class Measuring:
    """Measures each test, in a process that runs tests."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.started = 0
        for module, name in STARTS:
            setattr(module, name, self._counted(getattr(module, name)))

    def _counted(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that also counts its calls. (An audit hook would be called a million times a minute.)"""

        @functools.wraps(start)
        def counted(*arguments: Any, **options: Any) -> Any:
            self.started += 1
            return start(*arguments, **options)

        return counted

    def _now(self) -> tuple[float, float, int]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime, self.started

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        before = self._now()
        result = yield
        seconds, cpu, started = (end - start for start, end in zip(before, self._now()))
        self.rows.append((item.nodeid, round(seconds, 3), round(cpu, 3), int(started)))
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        session.config.workeroutput["effort"] = self.rows  # type: ignore[attr-defined]


class Summing:
    """Adds up what the processes of a run measured."""

    def __init__(self, config: pytest.Config) -> None:
        self.rows: list[Row] = []
        self.whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not _selected(config)
        self.java = count_jvms()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.rows += [tuple(row) for row in getattr(node, "workeroutput", {}).get("effort", ())]

    @property
    def counts(self) -> dict[str, int]:
        """The counts that are limited."""
        return {
            "tests": len(self.rows),
            "processes": sum(row[3] for row in self.rows),
            "jvms": len(self.java.read_bytes().splitlines()),
        }

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self.whole:
            return
        WRITTEN.parent.mkdir(exist_ok=True)
        WRITTEN.write_text("".join(f"{json.dumps(row)}\n" for row in sorted(self.rows, key=lambda row: -row[2])))
        if exitstatus == pytest.ExitCode.OK and self.excess():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def excess(self) -> list[str]:
        """Return what exceeds tests/effort.json, in words."""
        allowed = json.loads(ALLOWED.read_text())
        return [
            f"{count} {name}, and {ALLOWED.name} allows {allowed[name]}"
            for name, count in self.counts.items()
            if count > allowed[name]
        ]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write = terminalreporter.write_line
        files: Counter[str] = Counter()
        directories: Counter[str] = Counter()
        for test, seconds, cpu, _ in self.rows:
            file = test.partition("::")[0]
            files[file] += seconds
            directories["/".join(os.path.dirname(file).split("/")[:2])] += cpu
        failures = [*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ())]
        for report in failures[:REPEATED]:
            write(f"to repeat it alone: make test ONLY='{report.nodeid}'")
        write("")
        write("slowest files: " + ", ".join(f"{name} {spent:.0f} s" for name, spent in files.most_common(SLOWEST)))
        write("CPU seconds: " + ", ".join(f"{name} {spent:.0f}" for name, spent in directories.most_common()))
        write(", ".join(f"{count} {name}" for name, count in self.counts.items()))
        if self.whole:
            for excess in self.excess():
                write(f"MORE THAN ALLOWED: {excess}; if that is on purpose, raise it there", red=True)

    def pytest_unconfigure(self) -> None:
        self.java.unlink()


def _selected(config: pytest.Config) -> bool:
    """Return True if options leave tests out."""
    return bool(config.option.keyword) or config.option.markexpr != _default_markers(config) or config.option.lf


def _default_markers(config: pytest.Config) -> str:
    options = config.getini("addopts")
    return str(options[options.index("-m") + 1])


def count_jvms() -> Path:
    """Have the JVMs counted that this process and those that it starts will start, in the file that is returned."""
    counts = Path(tempfile.mkstemp(prefix="kdump-jvms-")[1])
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java:
        os.environ |= {"KDUMP_JAVA": java, "KDUMP_JVMS": str(counts), "JAVA_HOME": str(JVM_COUNTER)}
    return counts
