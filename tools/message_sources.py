"""python -m tools.message_sources RELEASES [PACKAGES] > tests/forensics/message_sources.tsv

Prints where the wordings of `kdump explain` are in the sources of Kafka and its clients: name of the message, wording,
releases, and file of the newest one. RELEASES contains a directory with src/ for each release of Kafka; PACKAGES is a
site-packages with aiokafka and confluent-kafka, whose librdkafka is searched for its texts.

A wording is in a file if all of its literal texts are, in any order: sources split messages into several literals.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from kdump.forensics.explain.catalogue import messages

SHORTEST = 4
"""Number of characters of a literal text that is searched for."""
_JOINED = re.compile(r'"\s*\+\s*(?://[^\n]*\n\s*)?[sf]?"|"""|\n\s*\|')
_PYTHON = re.compile(r'"\s*\n\s*f?"')


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace('\\"', '"').replace("\\n", " "))


def kafka(release: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each source file of a release."""
    for path in sorted(release.rglob("*")):
        if path.suffix in (".java", ".scala") and "Test" not in path.name:
            yield path.name, _plain(_JOINED.sub("", path.read_text(errors="replace")))


def packages(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the sources of aiokafka, and the texts in librdkafka."""
    for path in sorted(directory.glob("aiokafka/**/*.py")):
        yield f"aiokafka/{path.name}", _plain(_PYTHON.sub("", path.read_text(errors="replace")))
    for path in sorted(directory.glob("confluent_kafka*/librdkafka*")):
        found = subprocess.run(["strings", "-n", "4", path], capture_output=True, text=True, check=True)
        # Its formats have %s and the like where wordings have parts.
        yield "librdkafka", _plain(found.stdout)


def pieces(wording: str) -> list[str]:
    """Return the literal texts of a wording."""
    found = (_plain(each).strip() for each in re.split(r"\{\w*\}", wording))
    return [each for each in found if len(each) >= SHORTEST]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", type=Path)
    parser.add_argument("packages", type=Path, nargs="?")
    options = parser.parse_args()
    wordings = [(message.name, text) for message in messages() for text in message.texts]
    where: dict[tuple[str, str], dict[str, str]] = {}
    sources = [(path.name, list(kafka(path / "src"))) for path in sorted(options.releases.iterdir()) if path.is_dir()]
    if options.packages is not None:
        sources.append(("clients", list(packages(options.packages))))
    for release, files in sources:
        for key in wordings:
            wanted = pieces(key[1])
            name = (
                next((name for name, text in files if all(each in text for each in wanted)), None) if wanted else None
            )
            if name is not None:
                where.setdefault(key, {})[release] = name
    for key, found in where.items():
        print(*key, " ".join(found), list(found.values())[-1], sep="\t")


if __name__ == "__main__":
    main()
