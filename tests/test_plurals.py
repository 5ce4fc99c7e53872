"""A count stands with its noun by count_text and plain_count: nothing says 1 segments."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.command import run
from tests.conftest import FIXTURES, ROOT
from tests.each_case import each_case
from tests.sources import nodes

NOUNS = "batches|records|segments|files|partitions|findings|topics|lines|offsets|transactions|groups|messages|entries"
COUNTED = re.compile(rf" (?:more |other )?(?:{NOUNS})\b")
LAYERS = ("api", "browse", "check", "command_line", "incident", "kafka", "questions", "render")
NOT_A_NUMBER = re.compile(
    r"^odds$|max_|_text\(|join\(|'s' if|^[A-Z_]+$|limit|average|keeps|states|^name|^kind$|^formats$"
)
MANY = {"MAX", "all_", "len(some)", "len(clusters)", "len(found)", "unit_counts['read']", "each['lost']"}
"""Counts that are above 1 wherever they are shown, or constants."""
ONE_OF_MANY = re.compile(r"(?<![\d.,/:~-])1 (?:[a-z]+ )?(?:" + NOUNS + r"|bytes)\b(?! of)")


def by_hand(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.JoinedStr):
            for value, after in zip(node.values, node.values[1:]):
                if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant):
                    text = ast.unparse(value.value)
                    is_many = NOT_A_NUMBER.search(text) or any(each in text for each in MANY)
                    if COUNTED.match(str(after.value)) and not is_many:
                        yield f"{path.relative_to(ROOT)}:{value.lineno}: {text}{after.value}"


def test_no_plural_is_made_by_hand() -> None:
    paths = [path for layer in LAYERS for path in (ROOT / "kdump" / layer).rglob("*.py")]
    assert [each for path in paths if "dump_log" not in path.parts for each in by_hand(path)] == []


@each_case("command", ("ls", "verify", "stats", "retention", "transactions", "producers", "space", "doctor"))
def test_nothing_says_1_segments(command: str) -> None:
    disks = [FIXTURES / name for name in ("clean-1", "crash-1", "indexed-1", "state-1")]
    found = [line for disk in disks for line in run(command, disk).stdout.splitlines() if ONE_OF_MANY.search(line)]
    assert found == []
