"""Writes kdump/shells/words.json: the words that Tab completes for each command, from click's declarations."""

from __future__ import annotations

import json
from pathlib import Path

from kdump.cli import cli
from kdump.command_line.completion_words import table

WORDS = Path(__file__).resolve().parents[1] / "kdump" / "shells" / "words.json"


def text() -> str:
    """Return the file's text, with one line per command to keep diffs small."""
    lines = [f"{json.dumps(name)}: {json.dumps(words, ensure_ascii=False)}" for name, words in table(cli).items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    found = text()  # complete before the old file, which is not an input, is overwritten
    WORDS.write_text(found, encoding="utf-8")
