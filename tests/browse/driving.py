"""Drives the browser under textual's pilot: sends keys, and returns the contents of the screen once the app is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timezone
from pathlib import Path
from typing import Any

from textual import events
from textual.pilot import Pilot

from kdump.browse.app import BrowseApp
from kdump.browse.browser import Browser
from kdump.browse.command import prompt_parsers
from kdump.browse.places import RowFactory
from tools.browse_capture import wait_until_idle

NAMES = {" ": "space", "/": "slash", "?": "question_mark", "@": "at", "-": "minus", ".": "full_stop", "*": "asterisk"}
NAMES |= {"[": "left_square_bracket", ":": "colon", "'": "apostrophe", "+": "plus"}
CHARACTERS = {name: character for character, name in NAMES.items()}


class Driver:
    """One run of the app."""

    def __init__(self, pilot: Pilot[Any], app: BrowseApp) -> None:
        self.pilot, self.app = pilot, app

    async def keys(self, *keys: str) -> str:
        """Press the keys one by one, each when the app is idle, and return the contents of the screen."""
        for key in keys:
            self.press(key)
            await self.settled()
        return self.shown

    async def typed(self, text: str) -> str:
        """Type text into a prompt, and press Enter."""
        for letter in text:
            self.press(letter)
        return await self.keys("enter")

    def press(self, key: str) -> None:
        """Press a key like the pilot does, but without waiting before and after."""
        name = NAMES.get(key, key)
        character = CHARACTERS.get(name, name if len(name) == 1 else None)
        self.app.post_message(events.Key(name, character))

    async def settled(self) -> None:
        await wait_until_idle(self.app)

    @property
    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def shown(self) -> str:
        return "\n".join(self.lines)

    @property
    def status(self) -> str:
        return self.app.main.status.text

    @property
    def labels(self) -> list[str]:
        """Labels of the opened rows, and of the current row."""
        browser = self.app.browser
        owners = [level.owner.label for level in browser.levels[1 : browser.depth + 1] if level.owner]
        return [*owners, *([browser.level.row.label] if browser.level.row else [])]


def app_of(path: Path | str) -> BrowseApp:
    typed = prompt_parsers(timezone.utc)
    return BrowseApp(Browser(str(path), RowFactory()), typed)


def drive(path: Path | str, script: Callable[[Driver], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    """Run the app on a path, and the script on the app."""

    async def run() -> None:
        app = app_of(path)
        async with app.run_test(size=size) as pilot:
            driver = Driver(pilot, app)
            await driver.settled()
            await script(driver)

    asyncio.run(run())
