"""Prints docs/first-screens.md: the first screen of `kdump doctor` in a terminal of 80 columns and 24 lines."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from itertools import accumulate
from pathlib import Path

from tools.incident import lay_out
from tools.incident.disk import ROOT

COLUMNS, LINES = 80, 24
NAMES = (
    *("torn-tail", "hanging-transaction", "downgrade", "flipped-bit-after-shutdown"),
    *("flipped-bit-before-recovery", "record-size-0", "corrupt-index", "deleted-topic", "diverged-replicas"),
    *("offsets-reset", "compaction-stopped"),
)
SHOWN = 2
"""The first of these names are on the page."""
HEAD = """# The first screen

What `kdump doctor` shows in a terminal of 80 columns and 24 lines, without scrolling, for the disks of some of
[the incidents](incidents/README.md). The other items, and what was examined, follow below.
"""


def screen(directory: Path, *options: str) -> list[str]:
    """Return the lines of the first screen for the disks in a directory."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    env = os.environ | {"NO_COLOR": "1", "TERM": "xterm"}
    paths = sorted(path.name for path in directory.iterdir() if path.is_dir())
    command = [sys.executable, "-m", "kdump", "doctor", *paths, "--now", "2026-11-21T09:00Z", *options]
    env["PYTHONPATH"] = str(ROOT)
    process = subprocess.Popen(command, cwd=directory, stdout=terminal, stderr=subprocess.DEVNULL, env=env)
    os.close(terminal)
    written = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(main)
    process.wait()
    lines = written.decode().replace("\r", "").splitlines()
    rows = accumulate(-(-max(1, len(line)) // COLUMNS) for line in lines)  # a command may need several
    return [line for line, row in zip(lines, rows) if row <= LINES]


def section(name: str) -> str:
    """Return the section of an incident."""
    with tempfile.TemporaryDirectory() as work:
        directory = Path(work) / "disks"
        lay_out(name, directory)
        options = ["--kafka-version", "4.2"] if name == "downgrade" else []
        lines = screen(directory, *options)
    return "\n".join([f"## [{name}](incidents/{name}.md)\n", "```text", *(line.rstrip() for line in lines), "```\n"])


def page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *map(section, NAMES[:SHOWN])])


if __name__ == "__main__":
    print(page(), end="")
