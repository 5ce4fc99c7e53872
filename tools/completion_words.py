"""Writes kdump/shells/words.json: what Tab can complete of each command, from click's declarations."""

from __future__ import annotations

import json
from pathlib import Path

from kdump.cli import cli
from kdump.commands.completion_words import table

WORDS = Path(__file__).resolve().parents[1] / "kdump" / "shells" / "words.json"


def text() -> str:
    """A command a line, so that a change is seen as one."""
    lines = [f"{json.dumps(name)}: {json.dumps(words, ensure_ascii=False)}" for name, words in table(cli).items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    found = text()  # whole, before the old one is touched, which it must not be made from
    WORDS.write_text(found, encoding="utf-8")
