"""Runs the programs that build the single file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(*command: str | Path, cwd: Path | None = None, quiet: bool = False, **variables: str) -> None:
    """Run a command with additional environment variables. Exits if it fails, with what it said."""
    output = subprocess.PIPE if quiet else None
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **variables}, stdout=output, stderr=subprocess.STDOUT if quiet else None
    )
    if done.returncode:
        if done.stdout:
            sys.stderr.write(done.stdout.decode(errors="replace")[-4000:])
        sys.exit(f"failed: {' '.join(map(str, command))}")
