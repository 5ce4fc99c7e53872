"""Draws the screenshots of README.md and docs/inspect.md: commands in a real (pseudo) terminal. Run `python -m
tools.capture`."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import sys
import tempfile
import termios
from pathlib import Path
from typing import NamedTuple

from tools.incident import lay_out
from tools.incident.disk import FIXTURES, ROOT

FONT_FACE = re.compile(r"\s*@font-face \{.*?\n\s*\}", re.DOTALL)


class Picture(NamedTuple):
    """Screenshot to draw: commands, each with the maximum number of lines shown. They run on the disk of `incident` if
    it is set, else in fixtures/."""

    columns: int
    commands: tuple[tuple[str, int], ...]
    incident: str = ""


PICTURES = {
    "kdump.svg": Picture(
        100,
        (("kdump verify disk-1", 99), ("kdump inspect disk-1/orders-none-0 --hex --offset 120..121", 11)),
        "flipped-bit-before-recovery",
    ),
    "inspect.svg": Picture(100, (("kdump inspect clean-1/payments-0/00000000000000000000.log --hex --offset 2", 99),)),
}


def shown(columns: int, command: list[str], directory: Path) -> str:
    """Return what the command writes to a terminal with `columns` columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
        environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment["PATH"]
        os.chdir(directory)
        os.execvpe(command[0], command, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    parts = []
    try:
        while part := os.read(terminal, 65536):
            parts.append(part)
    except OSError:  # raised when the command ends
        pass
    os.waitpid(pid, 0)
    return settled(b"".join(parts).decode().replace("\r\n", "\n"))


def settled(text: str) -> str:
    """Remove progress lines that were overwritten, and replace durations, which vary."""
    lines = [re.split(r"\r(?:\x1b\[K)?", line)[-1] for line in text.split("\n")]
    return re.sub(r"\bin [0-9.]+ s\b", "in 0.1 s", "\n".join(lines))


def draw(picture: Picture) -> str:
    """Return a screenshot as SVG. It refers to no font that would have to be downloaded."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=picture.columns, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    with tempfile.TemporaryDirectory() as made:
        directory = FIXTURES
        if picture.incident:
            directory = Path(made) / "incident"
            lay_out(picture.incident, directory)
        for number, (command, most) in enumerate(picture.commands):
            lines = shown(picture.columns, shlex.split(command), directory).rstrip("\n").split("\n")
            console.print(Text("\n" * bool(number) + f"$ {command}", style="bold"))
            console.print(Text.from_ansi("\n".join(lines[:most])))
            if len(lines) > most:
                console.print(Text("…", style="dim"))
    drawn = FONT_FACE.sub("", console.export_svg(title="kdump", unique_id="kdump"))
    return drawn.replace("<svg ", '<svg xml:space="preserve" ', 1)  # some viewers drop leading spaces


if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (ROOT / "docs" / name).write_text(draw(picture), encoding="utf-8")
