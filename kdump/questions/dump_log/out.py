"""Output of dump-log: lines to standard output, errors to standard error, and the exit status."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kdump.render.escape import printable
from kdump.render.stdout import Output

TOGETHER = 500
"""Number of lines that are written together: a call for each would cost more than the line."""
LONG = 1 << 20
"""Number of characters above which a line is written in pieces."""


class DumpOutput:
    """Writes output and errors. `complain` receives lines for standard error; `status` is the exit status so far."""

    def __init__(self, output: Output, complain: Callable[[str], None]) -> None:
        self.output, self.complain = output, complain
        self.status = 0

    def lines(self, lines: list[str]) -> None:
        """Write lines: unchanged to a pipe, on a terminal without control characters and each on a single line."""
        if self.output.terminal:
            lines = [printable(_bytes(line).decode("utf-8", "backslashreplace")) for line in lines]
        if max(map(len, lines), default=0) <= LONG:
            self.output.write(_bytes("\n".join(lines) + "\n"))
            return
        for line in lines:
            for start in range(0, len(line), LONG):
                self.output.write(_bytes(line[start : start + LONG]))
            self.output.write(b"\n")

    def pieces(self, line: Iterable[str]) -> None:
        """One line that comes in pieces."""
        for piece in line:
            if self.output.terminal:
                piece = printable(_bytes(piece).decode("utf-8", "backslashreplace"))
            self.output.write(_bytes(piece))
        self.output.write(b"\n")

    def each(self, lines: Iterable[str]) -> None:
        """Write lines, several at a time."""
        kept: list[str] = []
        try:
            for line in lines:
                kept.append(line)
                if len(kept) == TOGETHER:
                    self.lines(kept)
                    kept = []
        finally:
            if kept:
                self.lines(kept)

    def error_line(self, message: str) -> None:
        """Write a line to standard error, after everything written to standard output so far."""
        self.output.flush()
        self.complain(f"kdump: {message}")

    def fail(self, message: str) -> None:
        """Like `error_line`, for errors for which Kafka's tool exits with 1."""
        self.status = 1
        self.error_line(message)


def _bytes(line: str) -> bytes:
    """Encode a line; surrogates stand for bytes that are not UTF-8, in a path or from DefaultDecoder."""
    return line.encode("utf-8", "surrogateescape")
