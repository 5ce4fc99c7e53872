"""Runs what a change must pass: linters, type checks and tests, each with one line that says how long it took.

python -m tools.run_tests           all of it; the types are checked while the tests run
python -m tools.run_tests ARGUMENT… only tests, in this process: paths, or other arguments of pytest"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WORKERS = "3"
"""Processes that run tests, on two cores: some tests wait for a JVM, a server or a clock."""
LINTERS = {"lint": ("ruff", "check", "--quiet", "."), "format": ("ruff", "format", "--check", "--quiet", ".")}
TYPES = ("mypy", "--no-error-summary")


def main(arguments: list[str]) -> int:
    """Return 0 if everything passes."""
    tools = Path(sys.executable).parent
    environment = {**os.environ, "KDUMP_ENGINE": "compiled"}
    if arguments:
        os.execve(sys.executable, [sys.executable, "-m", "pytest", *arguments], environment)
    failed = []
    for name, (tool, *options) in LINTERS.items():
        started = time.monotonic()
        if subprocess.run([tools / tool, *options], check=False).returncode:
            failed.append(name)
        _report(name, time.monotonic() - started, name in failed)
    if failed:
        return 1  # it takes a second to find out, and a minute to run what follows
    with ThreadPoolExecutor(1) as pool:
        types = pool.submit(_timed, [str(tools / TYPES[0]), *TYPES[1:]])
        started = time.monotonic()
        tests = [sys.executable, "-m", "pytest", "-n", WORKERS]
        if subprocess.run(tests, env=environment, check=False).returncode:
            failed.append("tests")
        _report("tests", time.monotonic() - started, "tests" in failed)
        done, seconds = types.result()
        if done.returncode:
            failed.append("types")
            print(done.stdout, end="")
        _report("types (while the tests ran)", seconds, "types" in failed)
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    return bool(failed)


def _timed(arguments: list[str]) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a program, and return what it wrote, and how many seconds it took."""
    started = time.monotonic()
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done, time.monotonic() - started


def _report(stage: str, seconds: float, failed: bool) -> None:
    print(f"{stage}: {seconds:.0f} s{', FAILED' if failed else ''}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
