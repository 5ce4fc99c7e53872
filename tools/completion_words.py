"""completion_words.py > kdump/shells/words.json: what Tab can complete of each command, from click's declarations."""

from __future__ import annotations

import json

from kdump.cli import cli
from kdump.commands.completion_words import table


def text() -> str:
    """A command a line, so that a change is seen as one."""
    lines = [f"{json.dumps(name)}: {json.dumps(words, ensure_ascii=False)}" for name, words in table(cli).items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    print(text(), end="")
