"""Measures what a production broker's disk costs: CPU and memory of each command with a quarter and the whole of many
partitions, and of many of each thing that commands keep track of. Run as python -m bench.broker."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from bench.__main__ import KDUMP, head
from bench.broker_disks import DISKS, make
from bench.kafka import ROOT
from bench.measure import Failed, Run, with_children
from bench.segments import MIB

EVERY = (
    "ls",
    "ls --quick",
    "inspect",
    "verify",
    "stats",
    "transactions",
    "producers",
    "retention",
    "restart-plan",
    "reindex",
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "partitions": (*EVERY, "salvage --out {out}", "report --out {out}.html", "carve"),
    "aborted transactions": ("verify", "transactions", "producers", "stats"),
    "overlapping transactions": ("verify", "transactions", "producers"),
    "producers": ("verify", "producers", "transactions", "restart-plan"),
    "group offsets": ("groups", "verify"),
    "transaction states": ("verify", "inspect --records --json"),
    "share states": ("groups", "verify", "inspect --records --json"),
    "metadata": ("cluster", "verify", "restart-plan"),
    "keys": ("retention --keys", "stats", "verify"),
    "index entries": ("verify", "ls", "reindex"),
}
"""The commands to measure on each disk. {out} is a path for their output."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.broker", description=__doc__)
    parser.add_argument("--part", type=float, default=1.0, help="measure this part of each disk, 0.1 for a tenth")
    parser.add_argument("--only", default="", help="measure only disks whose name contains this text")
    parser.add_argument("--command", default="", help="measure only commands that begin with this text")
    parser.add_argument("--dir", type=Path, default=ROOT / "build" / "bench" / "broker", help="directory of the disks")
    options = parser.parse_args()
    head(None)
    print("| disk | command | CPU of a quarter | whole | growth | peak of a quarter | whole | bytes each |")
    print("|---|---|--:|--:|--:|--:|--:|--:|", flush=True)
    for name, (_, usual) in DISKS.items():
        if options.only in name:
            count = max(4, int(usual * options.part) // 4 * 4)
            for row in rows(options.dir, name, count, options.command):
                print("| " + " | ".join(row) + " |", flush=True)


def rows(directory: Path, name: str, count: int, only: str = "") -> Iterator[list[str]]:
    """Yield the cells of the rows for one disk."""
    disks = [make(directory, name, count // 4), make(directory, name, count)]
    for command in COMMANDS[name]:
        if not command.startswith(only):
            continue
        try:
            quarter, whole = (_run(command, disk, directory) for disk in disks)
        except Failed as error:
            yield [f"{count:,} {name}", command, str(error)]
            continue
        each = max(0, whole.peak - quarter.peak) * 1024 / (count - count // 4)
        cells = [f"{count:,} {name}", command.partition(" --out")[0], f"{quarter.cpu:.1f} s", f"{whole.cpu:.1f} s"]
        cells += [f"{whole.cpu / quarter.cpu:.1f}x", f"{quarter.peak / 1024:.0f} MiB", f"{whole.peak / 1024:.0f} MiB"]
        yield [*cells, f"{each:,.0f}"]


def _run(command: str, disk: Path, directory: Path) -> Run:
    """Run a command on a disk that is in the page cache, so that its CPU time is not that of reading the device."""
    read: set[int] = set()
    for path in disk.rglob("*"):
        number = path.stat().st_ino
        if path.is_file() and number not in read:
            read.add(number)
            with open(path, "rb") as file:
                while file.read(MIB):
                    pass
    out = directory / "out"
    with_children(["rm", "-rf", str(out), f"{out}.html"])
    words = command.format(out=out).split()
    return with_children([*KDUMP, *words, str(disk)], allowed=(0, 1))


if __name__ == "__main__":
    main()
