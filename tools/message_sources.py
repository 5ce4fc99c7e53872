"""python -m tools.message_sources RELEASES [PACKAGES] > tests/incident/explain/message_sources.tsv

Prints where the wordings of `kdump explain` are in the sources of Kafka and its clients: name of the message, wording,
releases, and file of the newest one. RELEASES contains a directory with src/ for each release of Kafka; PACKAGES is a
site-packages with aiokafka and confluent-kafka, whose librdkafka is searched for its texts.

A wording is in a file if all of its literal texts are, in any order: sources split messages into several literals. So
do the classes that are compiled from them: `added` looks there for the wordings of a release whose sources are not at
hand (of 4.4.0, it finds each that is in the sources; of 3.9.1, all but 26 of 302)."""

from __future__ import annotations

import argparse
import re
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from kdump.incident.explain.catalogue import messages

SHORTEST = 4
"""Number of characters of a literal text that is searched for."""
_JOINED = re.compile(r'"\s*\+\s*(?://[^\n]*\n\s*)?[sf]?"|"""|\n\s*\|')
_SOURCE = re.compile(r"[\w$]+\.(?:java|scala)")
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


def compiled(jars: Path) -> Iterator[tuple[str, str]]:
    """Yield name and texts of each source file of which there are classes in the jars of a release."""
    found: dict[str, list[str]] = {}
    for jar in sorted(jars.glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as files:
            for name in files.namelist():
                if name.endswith(".class"):
                    text = files.read(name).decode(errors="replace")
                    found.setdefault((_SOURCE.findall(text) or [name])[-1], []).append(text)
    for name, texts in found.items():
        yield name, _plain("\n".join(texts))


def added(rows: list[str], release: str, files: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the rows, with the release where its files have the wording, and those that only the release before has.
    A wording without a row gets none: which other releases have it is not known here."""
    number = _numbers(release)
    table = [(key, text, places.split(), file) for key, text, places, file in (row.split("\t") for row in rows)]
    before = max((each for *_, places, _ in table for each in places if _numbers(each) < number), key=_numbers)
    read, updated, lost = list(files), [], []
    for key, text, places, file in table:
        wanted = pieces(text)
        found = {Path(name).stem: name for name, text in read if wanted and all(each in text for each in wanted)}
        places = sorted({*places, release} if found else {*places} - {release}, key=_numbers)
        if found and places[-1] == release:
            file = found.get(Path(file).stem, next(iter(found.values())))
        updated.append("\t".join((key, text, " ".join(places), file)))
        if before in places and not found:
            lost.append(updated[-1])
    return updated, lost


def _numbers(release: str) -> tuple[float, ...]:
    """Return the numbers of a release; clients are after all of them."""
    return tuple(map(int, release.split("."))) if release[0].isdigit() else (float("inf"),)


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
