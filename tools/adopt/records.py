"""Records of messages that a release has changed, for tests/decode/every_record.tsv: their bytes, and the JSON that
Kafka's own converters make of them (tests/decode/EveryRecord.java)."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

ROWS = Path(__file__).resolve().parents[2] / "tests" / "decode" / "every_record.tsv"
PROGRAM = ROWS.with_name("EveryRecord.java")
Messages = dict[str, dict[str, Any]]
"""Condensed schemas by package and name."""


def changed(before: Messages, after: Messages) -> Iterator[tuple[str, str]]:
    """Yield package and name of each message that is new or differs."""
    for package, messages in after.items():
        known = before.get(package, {})
        yield from ((package, name) for name, schema in messages.items() if known.get(name) != schema)


def write(jars: Path, before: Messages, after: Messages) -> None:
    """Write the rows of the messages that differ; `jars` are those of the release that has `after`."""
    old = ROWS.read_text().splitlines()
    known = {row.partition("\t")[0] for row in old}
    new = rows(jars, [each for each in changed(before, after) if each[0] in known])
    ROWS.write_text("".join(f"{row}\n" for row in replaced(old, new)))


def rows(jars: Path, messages: Collection[tuple[str, str]]) -> list[str]:
    """Return the rows of these messages, three for each version; none for those without a converter."""
    if not messages:
        return []
    packages = {}
    for jar in sorted(jars.glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as files:
            places = {Path(name).name: name for name in files.namelist()}
        for package, name in messages:
            if place := places.get(f"{name}.class"):
                packages[package] = str(Path(place).parent).replace("/", ".")
    named = [f"{package}={java}" for package, java in packages.items()]
    asked = "\n".join(" ".join(each) for each in messages)
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(PROGRAM), *named]
    return subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout.splitlines()


def replaced(old: list[str], new: list[str]) -> list[str]:
    """Return the rows with the new ones in place of those of the same messages; the order of the packages stays."""
    places = {row.split("\t")[0]: None for row in [*old, *new]}
    names = {tuple(row.split("\t")[:2]) for row in new}
    kept = [row for row in old if tuple(row.split("\t")[:2]) not in names]
    order = list(places)
    return sorted([*kept, *new], key=lambda row: (order.index(row.split("\t")[0]), row.split("\t")[1]))
