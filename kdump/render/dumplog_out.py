"""Where the words of dump-log go: lines to standard output, what is wrong to standard error, and the exit status."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kdump.render.escape import printable
from kdump.render.output import Output

TOGETHER = 500
"""Lines that go out at a time: a call for each would cost more than the line."""
LONG = 1 << 20
"""Characters of a line above which it is written in pieces."""


class Out:
    """`complain` takes a line for standard error; `status` is the exit status so far."""

    def __init__(self, output: Output, complain: Callable[[str], None]) -> None:
        self.output = output
        self.complain = complain
        self.status = 0

    def lines(self, lines: list[str]) -> None:
        """Exact in a pipe; without control characters on a terminal, each item on one line."""
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
        """As lines, some together."""
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

    def say(self, text: str) -> None:
        """A line on standard error, behind what standard output has so far."""
        self.output.flush()
        self.complain(f"kdump: {text}")

    def fail(self, text: str) -> None:
        """As say, of what Kafka's tool ends at with 1."""
        self.status = 1
        self.say(text)


def _bytes(text: str) -> bytes:
    """A line's bytes: surrogates stand for those that are no UTF-8, of a path or of DefaultDecoder."""
    return text.encode("utf-8", "surrogateescape")
