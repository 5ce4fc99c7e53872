"""Runs commands of the browser, from their keys or as typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.widgets import Input

from kdump.browse.command_list import (
    COLUMN,
    DIRECTION,
    KEY,
    MARK,
    NAMED,
    OPTION,
    PART,
    SCOPE,
    TYPED,
    BrowseCommand,
    parse_command,
)
from kdump.browse.completion import candidates
from kdump.browse.prompt import Prompt
from kdump.browse.save import PARTS
from kdump.browse.scope_actions import ScopeActions
from kdump.browse.scopes import SCOPES


class CommandLine(ScopeActions):
    """Asks for commands and for their arguments. Each command has a method: `run_` and its name."""

    asked: BrowseCommand = NAMED["command"]
    """The command whose argument is being typed."""

    def make_prompt(self) -> Prompt:
        return Prompt(self._complete, self._announce, id="prompt")

    @property
    def prompt(self) -> Prompt:
        return self.query_one("#prompt", Prompt)

    def action_run(self, name: str) -> None:
        """Run the command of a key; ask for its argument if it needs one."""
        command = NAMED[name]
        if command.needs_argument:
            self.ask(command, self.options if name == "filter" else "")
        else:
            self.run_command(command, "")

    def ask(self, command: BrowseCommand, text: str = "") -> None:
        """Let the user type the argument of a command."""
        self.asked = command
        hint = "command" if command.name == "command" else f"{command.name}: {command.argument}"
        self.prompt.open(command, text, hint)
        self._announce("")

    def run_command(self, command: BrowseCommand, argument: str) -> None:
        """Run a command. A wrong argument is reported in the status line."""
        if not self.browser.levels and command.name not in ("quit", "help"):
            if "look" in self.jobs.running:
                self.trouble(f"still opening; {command.usage} needs something to work on")
            return
        method: Callable[[str], Any] = getattr(self, command.method)
        try:
            method(argument)
        except ValueError as error:
            self.trouble(str(error))

    def close_prompt(self) -> None:
        self.prompt.display = False
        self.table_pane.focus()
        self._show_place()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        text = message.value.strip()
        self.prompt.note(text)
        self.close_prompt()
        if self.asked.name != "command":
            if text or self.asked.name in ("filter", "search", "find"):
                self.run_command(self.asked, text)
            return
        try:
            parsed = parse_command(text)
        except ValueError as error:
            self.trouble(str(error))
            return
        if parsed is None:
            return
        command, argument = parsed
        if command.needs_argument and not argument:
            self.ask(command, self.options if command.name == "filter" else "")
        else:
            self.run_command(command, argument)

    def on_input_changed(self, message: Input.Changed) -> None:
        """Show what the typed command does."""
        word, space, _ = message.value.removeprefix(":").partition(" ")
        if self.asked.name == "command" and space and word in TYPED:
            self._announce(f" {TYPED[word].usage}  {TYPED[word].help}".replace("`", ""))

    def _announce(self, text: str) -> None:
        """Show candidates of the completion, or else what can be typed."""
        if not text:
            keys = "Tab completes, Enter runs, Esc cancels"
            text = f" {self.asked.name} {self.asked.argument}  ({keys})"
            text += f": {self.asked.help}".replace("`", "") if self.asked.name != "command" else ""
        self.show_status((text, "dim"))

    def _complete(self, text: str) -> list[str]:
        words = {
            COLUMN: self.column_names,
            DIRECTION: lambda: ["asc", "desc"],
            OPTION: lambda: list(self.typed.options),
            MARK: self.mark_letters,
            PART: lambda: list(PARTS),
            KEY: self.keys_shown,
            SCOPE: lambda: list(SCOPES),
        }
        return candidates(text, self.asked, words)

    def column_names(self) -> list[str]:
        """Return the columns of the table."""
        columns = self.browser.level.listing.columns if self.browser.levels else []
        return [*(column.name for column in columns), "off"] if columns else []

    def keys_shown(self) -> list[str]:
        """Return the keys of the records in the table, as far as they can be typed."""
        rows = self.browser.level.rows if self.browser.levels else []
        keys = (bytes(row.item.key or b"") for row in rows if row.type == "record" and row.item.keySize <= 64)
        texts = (key.decode("utf-8", "replace") for key in keys)
        return sorted({text for text in texts if text and text.isprintable() and " " not in text and "�" not in text})
