"""python -m tools.adopt.oracle JARS DISK OUT

Writes the oracle of a disk: what kafka-dump-log prints of each file, to OUT/PATH.txt, and if it throws, the exception
to OUT/PATH.err. Then prints the files of which `kdump dump-log` or `kdump inspect` says something else. JARS is a
directory with the jars of the disk's release. Needs Java 17."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from kdump.cli import cli
from tools.release_disks import copy

DUMPED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
PROGRAM = Path(__file__).with_name("DumpFiles.java")
TOOLS = ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments")


class Compared(NamedTuple):
    """A file, and how kdump differs: of dump-log, the first line; of inspect, the first batch or record."""

    file: str
    dump_log: str
    inspect: str


def tool(jars: Path) -> str:
    """Return the class of kafka-dump-log, which has moved."""
    for name in TOOLS:
        if not subprocess.run(["javap", "-cp", f"{jars}/*", name], capture_output=True).returncode:
            return name
    raise ValueError(f"{jars}: none of {', '.join(TOOLS)}")


def written(jars: Path, disk: Path, out: Path) -> list[str]:
    """Write the oracle of a disk, and return its files. The tool creates files next to those that it reads, and runs on
    a copy."""
    decoders = importlib.import_module("tests.questions.dump_log.test_command").ORACLE_DECODERS
    place = out.with_name(out.name + "-copy")
    out.mkdir(parents=True, exist_ok=True)
    copy(disk, place)
    found = [
        str(path.relative_to(place))
        for path in sorted(place.rglob("*"))
        if path.suffix in DUMPED and path.is_file() and path.stat().st_size
    ]
    asked = "\n".join(" ".join([file, *_decoder(file, decoders)]) for file in found)
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(PROGRAM), tool(jars), str(out)]
    subprocess.run(command, cwd=place, input=asked, text=True, check=True, capture_output=True)
    subprocess.run(["rm", "-r", "--", place], check=True)
    return found


def _decoder(file: str, decoders: dict[str, str]) -> list[str]:
    if not file.endswith((".log", ".checkpoint")):
        return []
    return ([option for part, option in decoders.items() if part in file] or ["--print-data-log"])[:1]


def compare(disk: Path, out: Path, files: list[str], *options: str) -> list[Compared]:
    """Return the files of which kdump says something else than the oracle in `out`. `options` are those of dump-log."""
    decoders = importlib.import_module("tests.questions.dump_log.test_command").ORACLE_DECODERS
    found = []
    for file in files:
        said = (out / f"{file}.txt").read_bytes()
        ours = kdump("dump-log", "--files", f"./{file}", *_decoder(file, decoders), *options, cwd=disk)
        theirs, mine = said.split(b"\n"), ours.split(b"\n")
        if (out / f"{file}.err").exists():
            theirs = theirs[:-1]  # where Kafka's tool ends with an exception, kdump goes on
            mine = mine[: len(theirs)]
        differs = _first(theirs, mine)
        inspected = _inspected(disk / file, out / f"{file}.txt") if file.endswith((".log", ".checkpoint")) else ""
        if differs or inspected:
            found.append(Compared(file, differs, inspected))
    return found


def kdump(*arguments: str, cwd: Path = Path()) -> bytes:
    """Return what a command prints. It runs in this process: another Python for each file would take minutes."""
    before = os.getcwd()
    os.chdir(cwd)
    try:
        result = CliRunner().invoke(cli, arguments)
    finally:
        os.chdir(before)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{result.exception!r}\n".encode()
    return result.stdout_bytes


def _first(theirs: list[bytes], ours: list[bytes]) -> str:
    for number in range(max(len(theirs), len(ours))):
        pair = [lines[number] if number < len(lines) else b"" for lines in (theirs, ours)]
        if pair[0] != pair[1]:
            same = (one == other for one, other in zip(*pair))
            at = next((place for place, equal in enumerate(same) if not equal), min(map(len, pair)))
            kafka, said = (part[max(at - 40, 0) : at + 80].decode(errors="replace") for part in pair)
            return f"line {number + 1}: Kafka “{kafka}”, kdump “{said}”"
    return ""


def _inspected(path: Path, words: Path) -> str:
    """Return the first batch or record of which `inspect` says something else than the oracle."""
    tests = importlib.import_module("tests.test_oracle")
    for said, options in zip(tests.entries(words), ((), ("--records",))):
        ours = [json.loads(line) for line in kdump("inspect", str(path), "--json", *options).splitlines()]
        if len(said) != len(ours):
            return f"{len(said)} entries in the oracle, {len(ours)} in kdump"
        for line, each in zip(said, ours):
            try:
                if options:
                    tests.check_record(line, each, any(part in str(path) for part in tests.DECODED))
                else:
                    tests.check_batch(line, each)
            except (AssertionError, KeyError, ValueError) as error:
                return f"{line[:100]}: {type(error).__name__} {str(error).splitlines()[0] if str(error) else ''}"
    return ""


def findings(disks: list[Path]) -> list[dict[str, Any]]:
    """Return what verify finds on healthy disks, without what is only information."""
    rows = [json.loads(line) for line in kdump("verify", "--json", *map(str, disks)).splitlines()]
    return [row for row in rows if row.get("severity") not in (None, "info")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("jars", "disk", "out"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    out = options.out.resolve()
    for each in compare(options.disk, out, written(options.jars.resolve(), options.disk, out)):
        print(*each, sep="\n  ")


if __name__ == "__main__":
    main()
