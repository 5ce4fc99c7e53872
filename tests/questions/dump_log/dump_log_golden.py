"""Runs the real kafka-dump-log on the cases of tests/questions/dump_log/dump_log_cases.py and stores its output.

    python -m tests.questions.dump_log.dump_log_golden JARS

JARS: the directory with the jars of Kafka 4.3.1 (its libs/). tests/golden/dump-log then contains the standard output of
each case (<name>.out), and runs.json with the arguments, exit status and standard error of all, without stack traces.
Every run gets a new copy of the files, because the tool creates files next to those that it reads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.questions.dump_log.dump_log_cases import GOLDEN, build, cases

TOOL = "org.apache.kafka.tools.DumpLogSegments"
NOISE = re.compile(r"^(?:SLF4J.*|\s+at .*|\s+\.\.\. \d+ more)\n", re.MULTILINE)


def run(jars: str, arguments: tuple[str, ...]) -> tuple[bytes, str, int]:
    with tempfile.TemporaryDirectory() as name:
        build(Path(name))
        done = subprocess.run(
            ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", TOOL, *arguments],
            cwd=name,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            capture_output=True,
            check=False,
        )
        error = NOISE.sub("", done.stderr.decode()).replace(os.path.realpath(name), "")
        return done.stdout, error, done.returncode


def main() -> None:
    jars = sys.argv[1]
    runs = {}
    for case in cases():
        out, error, status = run(jars, case.arguments)
        (GOLDEN / f"{case.name}.out").write_bytes(out)
        usage = error.partition("\nOption ")[0]
        runs[case.name] = {"arguments": case.arguments, "status": status, "stderr": usage.splitlines()}
    (GOLDEN / "runs.json").write_text(json.dumps(runs, indent=1) + "\n")
    print(len(runs), "runs")


if __name__ == "__main__":
    main()
