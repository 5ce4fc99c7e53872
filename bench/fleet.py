"""Benchmark of `kdump scan` on a fleet of several brokers. Run as python -m bench.fleet.

Measures how fast a scan reads compared with `kdump verify`, how fast it writes records to Parquet, and how much memory
its tasks take as partitions grow. Speeds are per CPU second where not stated otherwise, so that other work on the
machine does not count.
"""

from __future__ import annotations

import argparse
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from crc32c import crc32c

from bench.kafka import ROOT

MIB = 1 << 20
DISK = ROOT / "fixtures" / "clean-1"
SOURCES = ("orders-none-0", "kafkajs-none-0", "orders-lz4-0", "orders-zstd-0")
"""Sources of real batches, one per broker. Their batches have 60 records in 5.5 KiB, 40 in 1.3 KiB, 60 in 2.2 KiB and
60 in 1.5 KiB."""
INTERVAL = 4096
"""index.interval.bytes."""


def batches(source: str) -> list[tuple[bytes, int]]:
    """Return the batches of a source, each with the number of offsets that it covers. They have no producer ID, epoch
    and sequence, so that they can be repeated any number of times."""
    data = (DISK / source / f"{0:020}.log").read_bytes()
    found, at = [], 0
    while at < len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        batch = bytearray(data[at : at + size])
        batch[43:57] = struct.pack(">qhi", -1, -1, -1)
        batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
        found.append((bytes(batch), int.from_bytes(batch[23:27], "big") + 1))
        at += size
    return found


def segment(directory: Path, size: int, source: str = SOURCES[0]) -> int:
    """Write a segment of real batches in ascending offset order (checksums do not cover base offsets), and its .index.
    Returns the number of records."""
    directory.mkdir(parents=True)
    every = batches(source)
    offset = position = indexed = 0
    with open(directory / f"{0:020}.log", "wb") as log, open(directory / f"{0:020}.index", "wb") as index:
        while position < size:
            for data, count in every:
                if position - indexed > INTERVAL:
                    index.write(struct.pack(">ii", offset + count - 1, position))
                    indexed = position
                log.write(offset.to_bytes(8, "big") + data[8:])
                offset += count
                position += len(data)
    return offset


def fleet(root: Path, partitions: int, size: int, sources: tuple[str, ...] = SOURCES) -> int:
    """Write the disks of a fleet, one broker per source and `size` bytes in total. Returns the number of records."""
    records = 0
    for broker, source in enumerate(sources):
        disk = root / f"broker-{broker}"
        for partition in range(partitions):
            place = disk / f"orders-{broker * partitions + partition}"
            records += segment(place, size // len(sources) // partitions, source)
        ids = ("version=1", "cluster.id=" + 22 * "A", f"node.id={broker}", f"directory.id={21 * 'A'}{broker}")
        (disk / "meta.properties").write_text("\n".join(ids) + "\n")
    return records


class Used(NamedTuple):
    """CPU seconds and peak memory (MiB) of Spark's Python workers."""

    seconds: float
    peak: int


def workers() -> Used:
    """Return the resources used so far by the workers that are running."""
    ticks, peak = 0.0, 0
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or b"pyspark.daemon" not in (entry / "cmdline").read_bytes():
                continue
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            ticks += sum(map(int, fields[11:15]))
            status = (entry / "status").read_text()
            peak = max(peak, int(status.partition("VmHWM:")[2].split()[0]) // 1024)
        except (OSError, IndexError):
            continue
    return Used(ticks / os.sysconf("SC_CLK_TCK"), peak)


def verify(root: Path) -> float:
    """Run `kdump verify` and return the CPU seconds that it takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "kdump", "verify", str(root), "--quiet"], check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def scanned(spark: Any, root: Path, out: Path, records: bool) -> tuple[float, Used]:
    """Scan `root` into `out`. Returns the elapsed seconds and the resources that the workers used."""
    from kdump.spark.scan import scan
    from kdump.spark.scan_answer import ScanQuery
    from kdump.spark.store import Store
    from kdump.spark.task_runner import SparkTasks

    before, began = workers(), time.perf_counter()
    scan(SparkTasks(spark), ScanQuery((str(root),), records=records), Store(str(out)))
    seconds, after = time.perf_counter() - began, workers()
    return seconds, Used(after.seconds - before.seconds, after.peak)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("--mib", type=int, default=2048, help="size of the fleet in MiB")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--sources", default=",".join(SOURCES), help="partition of each broker's batches")
    options = parser.parse_args()
    from kdump.spark.session import session

    spark = session(options.master)
    with tempfile.TemporaryDirectory(prefix="kdump-fleet-") as name:
        root = Path(name)
        size = options.mib * MIB
        records = fleet(root / "fleet", 2, size, tuple(options.sources.split(",")))
        fleet(root / "warm", 1, 8 * MIB)
        scanned(spark, root / "warm", root / "warm-out", True)
        brokers = len(os.listdir(root / "fleet"))
        print(f"fleet of {brokers} brokers, {options.mib} MiB, {records:,} records, on {options.master}")
        alone = verify(root / "fleet")
        print(f"kdump verify         {options.mib / alone:8,.0f} MiB per CPU second")
        clock, used = scanned(spark, root / "fleet", root / "out", False)
        share = alone / used.seconds
        speed = options.mib / used.seconds
        print(f"kdump scan           {speed:8,.0f} MiB per CPU second: {share:.0%} of that; took {clock:.1f} s")
        before = used.seconds
        clock, used = scanned(spark, root / "fleet", root / "out-records", True)
        alone_records = max(0.01, used.seconds - before)
        print(f"records to Parquet   {records / alone_records:8,.0f} records per CPU second")
        print(f"with the check       {records / clock:8,.0f} records per second of elapsed time")
        for mib in (16, 128, 512):
            segment(root / f"one-{mib}" / "orders-0", mib * MIB)
            spark.stop()
            spark = session(options.master)
            _, used = scanned(spark, root / f"one-{mib}", root / f"one-out-{mib}", True)
            print(f"peak memory of a worker for a partition of {mib:4} MiB: {used.peak} MiB")
    spark.stop()


if __name__ == "__main__":
    main()
