"""Benchmark of `kdump bundle`: logs of large and of very small batches. Run as python -m bench.bundles.

Reports CPU seconds, peak memory, and the size of the bundle: in per cent of the log, and in bytes per batch beyond a
thousandth of the log.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.measure import run
from kdump.format.batch_header import BATCH_HEADER, CRC_START
from kdump.format.checksum import castagnoli

KDUMP = str(Path(sys.executable).with_name("kdump"))
SEGMENT = 1 << 30
MIB = 1 << 20
HEADER = BATCH_HEADER.struct
COVERED = HEADER.size - CRC_START


class Log(NamedTuple):
    """A log to make. `batch`: bytes of a batch; `records`: records in it."""

    name: str
    batch: int
    records: int


LOGS = (Log("16 KiB", 16 << 10, 100), Log("200 bytes", 200, 1))


def write(directory: Path, log: Log, size: int) -> int:
    """Write segments of together `size` bytes; return the number of batches. Their payloads are random bytes: nothing
    but --depth records looks at them. Three idempotent producers write at irregular times."""
    directory.mkdir(parents=True)
    dice = random.Random(log.batch)
    payload = log.batch - HEADER.size
    offset = batches = 0
    now, sequences = 1_700_000_000_000, [0, 0, 0]
    while size > 0:
        with (directory / f"{offset:020}.log").open("wb") as file:
            left = min(size, SEGMENT)
            size -= left
            while left >= log.batch:
                pool = dice.randbytes(4 * MIB + payload)
                for at in range(0, min(4 * MIB, left - left % log.batch), log.batch):
                    now += dice.randrange(20)
                    producer = at % 3
                    fields = (
                        *(0, log.records - 1, now - dice.randrange(5), now, 1000 + producer, 0),
                        *(sequences[producer], log.records),
                    )
                    body = HEADER.pack(offset, log.batch - 12, 7, 2, 0, *fields)[CRC_START:] + pool[at : at + payload]
                    crc = castagnoli(body)
                    file.write(HEADER.pack(offset, log.batch - 12, 7, 2, crc, *fields)[:CRC_START] + body)
                    sequences[producer] = (sequences[producer] + log.records) & 0x7FFFFFFF
                    offset += log.records
                    batches += 1
                    left -= log.batch
    return batches


def measure(at: Path, log: Log, size: int) -> None:
    """Make a log and its bundles, and print what they cost."""
    source = at / log.name.replace(" ", "-") / "topic-0"
    batches = write(source, log, size)
    stored = sum(file.stat().st_size for file in source.iterdir())
    for depth in ("headers", "crc"):
        out = at / f"bundle-{depth}"
        command = [KDUMP, "bundle", str(source), "--out", str(out), "--depth", depth, "--quiet"]
        first, again = run(command), run(command)
        took = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        each = (took - stored / 1000) / batches
        print(
            f"{log.name:>10} --depth {depth:8} {batches:>11,} batches, {stored / MIB:,.0f} MiB: "
            f"{100 * took / stored:.2f} %, {each:5.1f} bytes per batch; CPU {first.cpu:6.1f} s, "
            f"peak {first.peak // 1024} MiB; again {again.cpu:.1f} s",
            flush=True,
        )
        shutil.rmtree(out)
    shutil.rmtree(source.parent)


def main() -> None:
    """Measure both logs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=5120, help="MiB of each log")
    parser.add_argument("--dir", help="directory for the logs, with room for them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as at:
        for log in LOGS:
            measure(Path(at), log, options.size * MIB)


if __name__ == "__main__":
    main()
