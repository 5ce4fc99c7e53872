"""python -m tools.adopt.registry

Tells which releases of Kafka the Maven registry has that are newer than the newest one that kdump knows: exit status 1
if there is one. Needs Maven."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from kdump.format.releases import RELEASES

Version = tuple[int, ...]

POM = Path(__file__).resolve().parents[1] / "kafka-jars.xml"
ARTIFACT = "org.apache.kafka:kafka-clients"
MAVEN = ("mvn", "-q", "-B")


def numbers(version: str) -> Version:
    """Return the numbers of a version."""
    return tuple(map(int, version.split(".")))


def text(version: Version) -> str:
    """Return a version as Kafka writes it."""
    return ".".join(map(str, version))


def fetch(version: str, jars: Path) -> Path:
    """Return the directory with the jars of a release; downloads them unless they are there."""
    target = jars.resolve() / version
    if not target.is_dir():
        copying = ("dependency:copy-dependencies", f"-Dkafka.version={version}", f"-DoutputDirectory={target}")
        subprocess.run([*MAVEN, "-f", str(POM), *copying], check=True)
    return target


def published() -> list[Version]:
    """Return the releases that the registry has, oldest first, without release candidates."""
    # Maven keeps the list of an artifact's versions next to the artifact.
    subprocess.run(
        [*MAVEN, "-U", "dependency:get", f"-Dartifact={ARTIFACT}:RELEASE:pom", "-Dtransitive=false"], check=True
    )
    asked = [*MAVEN, "help:evaluate", "-Dexpression=settings.localRepository", "-DforceStdout"]
    local = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    place = Path(re.sub(r"\x1b\[[0-9;]*m", "", local).strip()) / ARTIFACT.replace(".", "/").replace(":", "/")
    found = {
        numbers(match[1])
        for path in place.glob("maven-metadata-*.xml")
        for match in re.finditer(r"<version>(\d+\.\d+\.\d+)</version>", path.read_text())
    }
    return sorted(found)


def main() -> None:
    newest = RELEASES[-1]
    unknown = [text(each) for each in published() if each > newest]
    if unknown:
        print(f"not adopted: Kafka {', '.join(unknown)}; the newest known release is {text(newest)}")
        print(f"make release-adopt VERSION={unknown[-1]}")
        sys.exit(1)
    print(f"Kafka {text(newest)} is the newest release")


if __name__ == "__main__":
    main()
