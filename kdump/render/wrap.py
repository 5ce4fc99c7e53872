"""Wraps text for people, and leaves commands in it as they are."""

from __future__ import annotations

import re
from textwrap import wrap

_QUOTED = r"""(?:\$'(?:[^'\\]|\\.)*'|'[^']*'|"[^"]*")"""
_WORD = re.compile(rf" +(?:[^\s'\"]*=)?((?:{_QUOTED}+[^\s'\"]*)+|\S+)")
_PROGRAM = re.compile(
    r"(?<![\w/.-])(?:kdump [a-z][a-z-]*|kafka-[a-z-]+\.sh|(?:cp|mv|rm|ls|chown|chmod|findmnt|fuser|dmesg|printf|echo|"
    r"tune2fs)(?= [-/'\"$]))(?= )"
)
_ARGUMENT = re.compile(
    r" +(?:[-/.~'\"$|<>&]|\d|[A-Z][A-Z-]|\S*[/=@:*{]\S|"
    r"(?:abort|describe|downgrade|find-hanging|remove-controller|upgrade)\b)"
)
_OPTION_FOLLOWS = re.compile(r"(?: [^\s,;:.)]+){0,3} --?[a-z]")
_GLUE = "\0"


def wrapped(text: str, width: int, indent: str = "", first: str = "") -> list[str]:
    """Return the lines of a text for people, with an indent on all but the first. Neither a word nor a command with its
    arguments is broken: the terminal continues what is longer than a line, and it can be copied."""
    done = 0
    for program in _PROGRAM.finditer(text):
        end, takes_any = program.end(), True
        if program.start() < done:
            continue
        while (word := _WORD.match(text, end)) and (
            takes_any or _ARGUMENT.match(word[0]) or _OPTION_FOLLOWS.match(text, word.end())
        ):
            end = word.end()
            takes_any = word[0].lstrip().startswith(("-", "|", ">")) and "=" not in word[0]
            if word[0][-1] in ",;:)" or (word[0][-1] == "." and word[0][-2] != "."):
                break
        text = text[: program.start()] + text[program.start() : end].replace(" ", _GLUE) + text[end:]
        done = end
    lines = wrap(
        text, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace(_GLUE, " ") for line in lines] or [first]
