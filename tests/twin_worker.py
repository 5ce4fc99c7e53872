"""Runs commands in one engine, for tests/test_twins.py: reads requests from standard input, one line of JSON each, and
answers each with a line. Started as `python -m tests.twin_worker` with KDUMP_ENGINE."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

SECONDS = re.compile(r'"seconds":[0-9.e-]+')
OUT = "out"
"""Directory, in that of the process, to which commands write. The files there are part of the answer."""


def answer(arguments: list[str]) -> list[object]:
    """Run a command line and return its exit status, standard output, the files that it wrote, and the traceback."""
    from click.testing import CliRunner

    from kdump.cli import cli

    shutil.rmtree(OUT, ignore_errors=True)
    result = CliRunner().invoke(cli, arguments)
    crash = ""
    if result.exc_info and result.exc_info[0] is not SystemExit:
        crash = "".join(traceback.format_exception(*result.exc_info))
    files = {str(path): path.read_bytes().hex() for path in sorted(Path(OUT).rglob("*")) if path.is_file()}
    said = SECONDS.sub("", result.stdout.replace(os.getcwd(), ""))
    return [result.exit_code, said, files, crash]


def main() -> None:
    from kdump.engine import running

    out = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        print(running(), file=out, flush=True)
        for line in sys.stdin:
            with contextlib.redirect_stdout(sys.stderr):
                said = [answer(arguments) for arguments in json.loads(line)]
            print(json.dumps(said), file=out, flush=True)
            gc.collect()


if __name__ == "__main__":
    main()
