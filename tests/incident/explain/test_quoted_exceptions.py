"""What kdump quotes of Kafka's exceptions is in the classes of the release that it is about.

quoted_exceptions.tsv has the wordings: exception, message with {} for its values, the releases whose classes have all
literal texts of it, and the file of the newest one. tools.message_sources adds a release. What the JDK throws has no
wording in Kafka's classes."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kdump
from kdump.format.kafka_release import NEWEST, parse_release
from tests.conftest import RELEASES, ROOT, sample
from tests.damages import copy_disk
from tools import message_sources
from tools.trials.release_record import starts

WORDINGS = Path(__file__).with_name("quoted_exceptions.tsv")
ROWS = [line.split("\t") for line in WORDINGS.read_text().splitlines()]
OF_THE_JDK = re.compile(
    r"(AccessDenied|File\w+|DirectoryNotEmpty|NullPointer|NoSuchElement|Buffer\w+|IndexOutOfBounds|MalformedInput|Json\w+)"
    r"Exception|InternalError|NumberFormatException: For input|IOException: (Is a directory|No space left)"
    r"|IllegalArgumentException: (Illegal Capacity|newLimit)"
)
PROSE = ("after an unclean shutdown the broker then", "an offset checkpoint is treated as empty")
"""What follows an exception's name and a colon, and is not its message."""
QUOTE = re.compile(r"\b([A-Z]\w+Exception): ([^;\n]+)")


def pattern(wording: str) -> re.Pattern[str]:
    """Return a pattern for a message with this wording, or for its beginning."""
    return re.compile(".*".join(map(re.escape, re.split(r"\{\w*\}", wording))))


PATTERNS = [(name, wording, pattern(wording), releases.split()) for name, wording, releases, _ in ROWS]


def releases_with(exception: str, message: str) -> set[tuple[int, int]]:
    """Return the releases whose classes have the exception's message."""
    found = [places for name, _, each, places in PATTERNS if name == exception and each.match(message)]
    return {parse_release(each).line for places in found for each in places}


def texts(path: Path) -> Iterator[str]:
    """Yield the strings of a module, {} in place of what they format, without docstrings and the parts of others."""
    parts: set[ast.AST] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts |= {*node.values}
            text = "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
            yield text.replace("…", "{}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield re.sub(r"\{[^{}]*\}|\(…\)|…", "{}", node.value)


@pytest.mark.every_disk
def test_each_quoted_exception_is_one_of_kafka() -> None:
    """Each message that a module of kdump quotes is a wording, or a part of it, also with names in place of values."""
    wordings = [(name, wording, message_sources.pieces(wording)) for name, wording, *_ in ROWS]
    unknown = []
    for path in sorted((ROOT / "kdump").rglob("*.py")):
        for exception, message in (each for text in texts(path) for each in QUOTE.findall(text)):
            parts = message_sources.pieces(message.rstrip(")"))
            quoted = any(
                name == exception
                and (all(each in wording for each in parts) or all(each in message for each in literal))
                for name, wording, literal in wordings
            )
            if (
                parts
                and not quoted
                and not OF_THE_JDK.match(f"{exception}: {message}")
                and not message.startswith(PROSE)
            ):
                unknown.append(f"{path.name}: {exception}: {message}")
    assert unknown == [], "\n".join(unknown)


@pytest.mark.sampled
def test_restart_plan_quotes_the_release(tmp_path: Path) -> None:
    """Each exception of a plan for the release of a trial is in the classes of that release."""
    known = {parse_release(each).line for *_, places in PATTERNS for each in places}
    wrong = []
    for start in sample(starts(RELEASES), 51, "quoted exceptions"):
        root = copy_disk(RELEASES / start.release / start.recipe.disk, tmp_path / start.key)
        start.recipe.apply(root)
        release = parse_release(start.started_by)
        plan = kdump.restart_plan([str(root)], kafka_version=release)
        for text in {each.exception for each in plan.allStops}:
            for exception, message in QUOTE.findall(text):
                is_known = OF_THE_JDK.match(f"{exception}: {message}") or release.line not in known
                if not is_known and release.line not in releases_with(exception, message):
                    wrong.append((start.key, exception, message))
    assert wrong == []


@pytest.mark.jars
def test_the_wordings_are_in_the_classes_of_the_newest_release() -> None:
    """The newest release is named by exactly the wordings that its classes have."""
    files = message_sources.compiled(Path(os.environ["KDUMP_JARS"]))
    rows = WORDINGS.read_text().splitlines()
    updated, _ = message_sources.added(rows, NEWEST.number, files)
    assert updated == rows
