"""python -m tools.adopt.facts JARS VERSION…

Writes kdump/format/releases/MINOR.json, what a release knows of what is on disks, from its jars in JARS/VERSION, and
lists the releases in kdump/format/releases/__init__.py. kdump/format/known_releases.py reads them, and describes the
keys. Needs Java 17; a release takes five seconds."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tools.condense_schemas import in_jars, render

PROGRAM = Path(__file__).with_name("ReleaseFacts.java")
FORMAT = Path(__file__).resolve().parents[2] / "kdump" / "format"
RELEASES = FORMAT / "releases"
KEPT = re.compile(
    r"log\.(cleaner|retention|roll|segment|cleanup|index|local|message|dir)|producer\.id|transactional\.id"
)
"""Configs of a broker that determine what is on its disks."""


def facts(jars: Path, version: str) -> dict[str, Any]:
    """Return all that the jars of a release state: what the data files hold, and every config of a broker."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{jars}: {done.stderr}")
    known = json.loads(done.stdout)
    levels = known.pop("levels", [])
    return {
        "release": version,
        "features": known.get("features", {}),
        "levels": {str(row["level"]): row["name"] for row in levels if row["production"]},
        "changed": [row["level"] for row in levels if row["production"] and row["changed"]],
        "unstable": {str(row["level"]): row["name"] for row in levels if not row["production"]},
        **_messages(jars),
        "files": {name: "-".join(dict.fromkeys(map(str, ends))) for name, ends in known["files"].items()},
        "topicConfigs": known["topicConfigs"],
        "topicRules": known["topicRules"],
        "synonyms": {name: ",".join(names) for name, names in known["synonyms"].items()},
        "brokerConfigs": known["brokerConfigs"],
    }


def _messages(jars: Path) -> dict[str, dict[str, Any]]:
    """Return the versions of each message by package and name, as Kafka writes them: 0-3; and the tags by name."""
    places = {name: path.stem for path in FORMAT.glob("schemas/*.json") for name in json.loads(path.read_text())}
    found: dict[str, dict[str, str]] = {}
    tags: dict[str, int] = {}
    for package, schemas in in_jars(jars).items():
        for name, schema in schemas.items():
            found.setdefault(places[name] if package == "core" else package, {})[name] = schema["validVersions"]
            if tagged := [int(field["tag"]) for field in schema["fields"] if "tag" in field]:
                tags[name] = max(tagged)
    messages = {package: dict(sorted(found[package].items())) for package in sorted(found)}
    return {"messages": messages, "tags": dict(sorted(tags.items()))}


def line(version: str) -> str:
    """Return the minor release: 4.4 of 4.4.0."""
    return ".".join(version.split(".")[:2])


def write(known: dict[str, Any], folder: Path = RELEASES) -> None:
    """Write the data file of a release, and list it."""
    kept = {name: default for name, default in known["brokerConfigs"].items() if KEPT.match(name)}
    text = render(known | {"brokerConfigs": kept}) + "\n"
    (folder / f"{line(known['release'])}.json").write_text(text)
    files = [json.loads(path.read_text())["release"] for path in folder.glob("*.json")]
    listed = sorted(tuple(map(int, each.split("."))) for each in files)
    rows = "".join(f"    {each},\n" for each in listed)
    about = '"""The releases of Kafka that kdump knows: the newest patch of each minor one. Written by tools/adopt."""'
    (folder / "__init__.py").write_text(f"{about}\n\nRELEASES = (\n{rows})\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("versions", nargs="+", metavar="VERSION")
    options = parser.parse_args()
    RELEASES.mkdir(exist_ok=True)
    for version in options.versions:
        write(facts(options.jars / version, version))


if __name__ == "__main__":
    main()
