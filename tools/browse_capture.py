"""Draws the screenshots of docs/browse.md, the browser on real bytes, and writes its table of commands. Run
`python -m tools.browse_capture` in the root of the repository."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timezone
from pathlib import Path
from typing import NamedTuple

from kdump.browse.app import BrowseApp
from kdump.browse.browser import Browser
from kdump.browse.command import prompt_parsers
from kdump.browse.command_list import COMMANDS
from tools.capture import FONT_FACE

ROOT = Path(__file__).resolve().parents[1]
SEGMENT = "payments-0/00000000000000000000.log"


class Picture(NamedTuple):
    """Screenshot to draw: the path to open, relative to fixtures/clean-1; the size of the terminal; and the keys to
    press. `flip`: position of a byte of the segment in which a bit is flipped first."""

    path: str
    size: tuple[int, int]
    keys: tuple[str, ...]
    flip: int | None = None


PICTURES = {
    "browse.svg": Picture("payments-0", (140, 40), ("t", "a", "enter", "enter", "enter", *["down"] * 5)),
    "browse-histogram.svg": Picture(".", (80, 18), ("H", "s", "s")),
    "browse-finding.svg": Picture("payments-0", (80, 24), ("n",), flip=602),
}


def draw(name: str) -> str:
    """Return a screenshot as SVG."""
    picture = PICTURES[name]
    with _disk(picture.flip):
        return asyncio.run(_drawn(picture))


@contextlib.contextmanager
def _disk(flip: int | None) -> Iterator[None]:
    """Make the fixtures, or a copy with one flipped bit, the working directory."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as copy:
        os.chdir(ROOT / "fixtures" / "clean-1")
        if flip is not None:
            shutil.copytree("payments-0", Path(copy) / "payments-0")
            os.chdir(copy)
            log = Path(SEGMENT)
            data = bytearray(log.read_bytes())
            data[flip] ^= 4
            log.chmod(0o644)
            log.write_bytes(data)
        try:
            yield
        finally:
            os.chdir(before)


async def wait_until_idle(app: BrowseApp) -> None:
    """Wait until the app is idle in three consecutive checks."""
    quiet = 0
    for _ in range(3000):
        await asyncio.sleep(0.001)
        quiet = quiet + 1 if _is_quiet(app) else 0
        if quiet == 3:
            return
    raise AssertionError(f"still busy: {[job.description for job in app.main.jobs.running.values()]}")


def _is_quiet(app: BrowseApp) -> bool:
    if app.main.jobs.running or len(app.workers) or not app.is_running:
        return not app.is_running
    if any(screen._callbacks or screen._layout_required for screen in app.screen_stack):
        return False
    nodes = [app, *app.screen_stack, *app.screen.walk_children()]
    return all(node._message_queue.empty() and not node._next_callbacks for node in nodes)


async def _drawn(picture: Picture) -> str:
    app = BrowseApp(Browser(picture.path), prompt_parsers(timezone.utc))
    async with app.run_test(size=picture.size) as pilot:
        for key in ("", *picture.keys):
            if key:
                await pilot.press(key)
            await wait_until_idle(app)
        drawn = app.export_screenshot(title=f"kdump browse {picture.path}", simplify=True)
        return FONT_FACE.sub("", drawn)  # no font is downloaded


def markdown_table() -> str:
    """Return the table of docs/browse.md."""
    lines = ["| key | command | what it does |", "| --- | --- | --- |"]
    for command in COMMANDS:
        shown = f"`{command.usage}`" if command.name and command.name != "command" else ""
        text = command.help.replace("kdump inspect", "[kdump inspect](inspect.md)")
        lines.append(f"| {command.label} | {shown} | {text} |")
    return "\n".join(lines)


BEGIN, END = "<!-- commands -->\n", "<!-- end -->\n"
"""Lines around the table of commands."""


def with_table(page: str) -> str:
    """Return the page with the table of commands as they are declared."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{markdown_table()}\n{END}{after}"


if __name__ == "__main__":
    for name in PICTURES:
        (ROOT / "docs" / name).write_text(draw(name))
    page = ROOT / "docs" / "browse.md"
    page.write_text(with_table(page.read_text()))
