"""Measures the table in docs/performance.md. Run as python -m bench."""

from __future__ import annotations

import argparse
import compileall
import os
import platform
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from bench.broker_disks import make
from bench.kafka import ROOT, VERSION, Kafka, find
from bench.limits import bound
from bench.measure import Failed, Run, in_turn
from bench.segments import FIRST, all_segments, kinds, last_of, total

DISKS = {
    "offset commits": ("group offsets", 100_000, "--offsets-decoder"),
    "transaction states": ("transaction states", 200_000, "--transaction-log-decoder"),
    "share states": ("share states", 200_000, "--share-group-state-decoder"),
    "cluster metadata": ("metadata", 200_000, "--cluster-metadata-decoder"),
    "one-record transactions": ("aborted transactions", 200_000, ""),
}
"""By segment: the disk of broker_disks, its size, and the option with which kafka-dump-log decodes its records."""
JSON = ("inspect", "--records", "--json")
PRINT = ("--print-data-log",)


class Row(NamedTuple):
    """Row of the table. `kdump`: arguments before the path; `kafka`: those of kafka-dump-log for the same task, None if
    only kdump is measured."""

    what: str
    segment: str
    kdump: tuple[str, ...]
    kafka: tuple[str, ...] | None

    @property
    def needs(self) -> tuple[str, ...]:
        """What any tool has to do with all of the segment: see bench.limits.limit."""
        if "--offset" in self.kdump:
            return ()
        if self.kdump[0] == "verify":
            return ("read", "crc") if "--crc" in self.kdump else ("read", "crc", "codec")
        return ("read", "crc", "codec") if "--records" in self.kdump else ("read",)


def rows(end: int) -> list[Row]:
    """Return the rows to measure. `end`: last offset of the large segment."""
    codecs = ("gzip", "snappy", "lz4", "zstd")
    shapes = ("one-record batches", "10k-record batches", "records of 100 B", "records of 100 kB", "v1 gzip")
    texts = ("none", "one-record batches", "records of 100 kB", "binary values")
    few = (*JSON, "--key", "user-17")
    return [
        Row("start-up", "small", ("inspect",), ()),
        Row("verify --crc", "none", ("verify", "--crc"), ()),
        Row("verify --crc", "one-record batches", ("verify", "--crc"), ()),
        Row("verify", "none", ("verify",), ("--deep-iteration",)),
        *(Row("verify", codec, ("verify",), ("--deep-iteration",)) for codec in codecs),
        Row("verify", "one-record batches", ("verify",), ("--deep-iteration",)),
        Row("inspect", "none", ("inspect",), ()),
        Row("inspect", "one-record batches", ("inspect",), ()),
        Row("inspect --json", "one-record batches", ("inspect", "--json"), ()),
        *(Row("inspect --records", name, ("inspect", "--records"), PRINT) for name in texts),
        Row("inspect --records --json", "binary values", JSON, PRINT),
        Row("inspect --records --json", "none", JSON, PRINT),
        *(Row("inspect --records --json", name, JSON, PRINT) for name in (*codecs, *shapes)),
        Row("… --key user-17", "none", few, PRINT),
        *(Row("… --key user-17", codec, few, PRINT) for codec in codecs),
        Row("… --producer-id 1007", "zstd", (*JSON, "--producer-id", "1007"), PRINT),
        Row("… --offset near the end", "large, indexed", (*JSON, "--offset", f"{end - 9}..{end - 5}"), PRINT),
        Row("verify --crc", "large, indexed", ("verify", "--crc"), ()),
        Row("verify", "v0", ("verify",), ("--deep-iteration",)),
        Row("inspect --records --json", "v0", JSON, PRINT),
        Row("inspect --records --json", "v1 gzip, nested", JSON, None),
        *(Row("inspect --records --json", name, JSON, (*PRINT, key)) for name, (_, _, key) in DISKS.items() if key),
        Row("groups", "offset commits", ("groups",), None),
        Row("cluster", "cluster metadata", ("cluster",), None),
        *(Row(command, "one-record transactions", (command,), None) for command in ("verify", "transactions")),
        Row("ls", "small", ("ls",), None),
        Row("verify --crc --jobs 1", "20 segments", ("verify", "--crc", "--jobs", "1"), ()),
        Row("… --records --json --jobs 1", "20 segments", (*JSON, "--jobs", "1"), None),
        Row("… --records --json --jobs 2", "20 segments", (*JSON, "--jobs", "2"), PRINT),
        Row("verify --jobs 1", "4 partitions", ("verify", "--jobs", "1"), None),
        Row("verify --jobs 2", "4 partitions", ("verify", "--jobs", "2"), None),
        Row("registry", "100,000 versions", ("registry",), None),
        Row("registry --json", "100,000 versions", ("registry", "--json"), None),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--jars", help="directory with Kafka's jars  [downloaded by Maven, if installed]")
    parser.add_argument("--size", type=int, default=512, help="size of the uncompressed segment in MiB")
    parser.add_argument("--runs", type=int, default=3, help="number of measured runs of each command")
    parser.add_argument("--only", default="", help="measure only rows whose name contains this text")
    parser.add_argument("--dir", type=Path, default=ROOT / "build" / "bench", help="directory of the segments")
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "kdump", quiet=1)  # as an installation does, so that it is not measured
    kafka = find(options.jars or None, options.dir)
    writer = "kafka" if kafka else "fixtures"
    # Other processes do the work that takes memory: a child process starts with the peak memory of its parent.
    with ProcessPoolExecutor(1, get_context("spawn")) as elsewhere:
        paths = elsewhere.submit(all_segments, options.dir / f"{options.size}-{writer}", options.size, kafka).result()
        for name, (disk, count, _) in DISKS.items():
            (paths[name],) = elsewhere.submit(make, options.dir / "broker", disk, count).result().glob(f"*-0/{FIRST}")
        counts = {name: elsewhere.submit(total, path).result() for name, path in paths.items()}
        end = elsewhere.submit(last_of, paths["large, indexed"]).result()
        head(kafka)
        print("| what | segment | kdump | kafka-dump-log | ratio | MB/s | records/s | CPU of both | bound | peak |")
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
        of_codec = {name: kind.codec for name, kind in kinds(options.size).items() if kind.codec != "legacy"}
        for row in rows(end):
            if options.only not in f"{row.what} {row.segment}":
                continue
            path, least = paths[row.segment], 0.0
            if row.segment in of_codec:
                command = [*KDUMP, *row.kdump, str(path)]
                least = elsewhere.submit(bound, path, of_codec[row.segment], row.needs, command).result()
            measured(row, path, counts[row.segment], kafka, options.runs, least)


def head(kafka: Kafka | None) -> None:
    """Print date, machine and versions."""
    version = subprocess.run([*KDUMP, "--version"], capture_output=True, text=True).stdout.strip()
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    print(f"{now}, {_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}; {version}; ", end="")
    print(f"kafka-dump-log {VERSION}\n" if kafka else "without kafka-dump-log, which needs Java, and Maven or --jars\n")


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


KDUMP = (str(Path(sys.executable).with_name("kdump")),)


def measured(row: Row, path: Path, count: int | None, kafka: Kafka | None, runs: int, least: float) -> None:
    """Measure one row and print it. `least`: its lower bound, the CPU seconds for Python's start, reading, checksums,
    the codec and writing by themselves; 0 for none."""
    files = sorted(path.rglob("*.log")) if path.is_dir() else [path]
    other = None
    if kafka is not None and row.kafka is not None:
        other = kafka.dump_log(*row.kafka, "--files", ",".join(map(str, files)))
    try:
        mine, theirs = in_turn([[*KDUMP, *row.kdump, str(path)], other], runs)
    except Failed as error:
        print(f"| {row.what} | {row.segment} | {error} |", flush=True)
        return
    assert mine is not None
    size = sum(file.stat().st_size for file in files)
    cells = [row.what, row.segment, _seconds(mine), _seconds(theirs)]
    cells.append(f"{theirs.seconds / mine.seconds:.1f}x" if theirs else "")
    cells.append(f"{size / mine.seconds / 1e6:,.0f}")
    cells.append(f"{count / mine.seconds:,.0f}" if count else "")
    both = [f"{run.cpu:.2f} s" for run in (mine, theirs) if run is not None]
    of_bound = f"{least:.2f} s, {mine.cpu / least:.1f}x" if least else ""
    cells += [" / ".join(both), of_bound, f"{mine.peak / 1024:.0f} MiB"]
    print("| " + " | ".join(cells) + " |", flush=True)


def _seconds(run: Run | None) -> str:
    return "" if run is None else f"{run.seconds:.2f} s"


if __name__ == "__main__":
    main()
