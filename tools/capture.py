"""capture.py OUT.svg COLUMNS COMMAND…: run a command in a real (pseudo) terminal and draw what it showed."""

from __future__ import annotations

import fcntl
import os
import pty
import shlex
import struct
import sys
import termios


def shown(columns: int, command: list[str]) -> str:
    """What the command wrote to a terminal of that width."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
        environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment["PATH"]
        os.execvpe(command[0], command, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    parts = []
    try:
        while part := os.read(terminal, 65536):
            parts.append(part)
    except OSError:  # the terminal is gone when the command ends
        pass
    os.waitpid(pid, 0)
    return b"".join(parts).decode().replace("\r\n", "\n")


def main() -> None:
    from rich.console import Console
    from rich.text import Text

    out, columns, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    console = Console(record=True, width=columns, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(Text(f"$ {shlex.join(command)}", style="bold"))
    console.print(Text.from_ansi(shown(columns, command)))
    console.save_svg(out, title="kdump inspect")


if __name__ == "__main__":
    main()
