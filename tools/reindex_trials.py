"""python -m tools.reindex_trials JARS DISKS [--compare]

Compares `kdump reindex` with the indexes that 4.3 brokers left on their disks, and with Kafka's own LogSegment.recover
on copies of the same segments, undamaged and damaged. Rewrites a sentence of docs/reindex.md and
tests/questions/reindex/recovered.tsv. --compare writes nothing, and exits with 1 if these would change or if kdump's
bytes differ from Kafka's.

JARS is a directory with the jars listed in tools/kafka-jars.xml. DISKS contains kafka-4.3. Needs Java 17 and three
minutes."""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import kdump
from kdump.questions.reindex.run import ENDINGS, Reindexed

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reindex.md"
FIXTURES = ROOT / "fixtures"
GOLDEN = ROOT / "tests" / "questions" / "reindex" / "recovered.tsv"
"""Kafka's results for the fixtures, undamaged and damaged: seed, segment, result, and the sizes and hash of its three
files."""
BEGIN, END = "<!-- tools/reindex_trials.py -->\n", "<!-- end -->\n"
DAMAGED = 6
"""Number of damaged copies of each disk."""
LARGEST = 2 << 20
"""Maximum size of a segment in bytes; larger ones are left out."""


def copy(disk: Path, to: Path, seed: int | None) -> None:
    """Copy the segments and snapshots of a disk. With a `seed`, damage the segments: flipped bits, zeroed blocks,
    truncation."""
    dice = random.Random(seed)
    for path in sorted(disk.rglob("*")):
        if path.suffix not in (".log", ".snapshot") or path.stat().st_size > LARGEST:
            continue
        data = bytearray(path.read_bytes())
        if seed is not None and path.suffix == ".log" and data:
            at = dice.randrange(len(data))
            kind = dice.randrange(4)
            if kind == 0:
                del data[at:]
            elif kind == 1:
                data[at : at + 64] = bytes(min(64, len(data) - at))
            else:
                data[at] ^= 1 << dice.randrange(8)
        target = to / path.relative_to(disk)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def recovered(jars: Path, directory: Path) -> dict[str, str]:
    """Run LogSegment.recover on each segment and return its results by path; its indexes are then next to the
    segments."""
    program = Path(__file__).with_name("RecoverIndexes.java")
    command = ["java", "-cp", f"{jars}/*", str(program), str(directory)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return dict(line.split("\t") for line in done.stdout.splitlines())


def agrees(made: Reindexed, own: Path, said: str) -> str:
    """Return how kdump's indexes differ from those that Kafka left next to `own`; empty if they do not."""
    indexes = made.rebuilt.indexes
    if not said.isdigit() or indexes is None:
        return "" if indexes is None and not said.isdigit() else f"Kafka says {said}, kdump {made.rebuilt.ending}"
    if int(said) != made.rebuilt.size - made.rebuilt.valid:
        return f"Kafka cuts {said} bytes, kdump {made.rebuilt.size - made.rebuilt.valid}"
    for ending, data in zip(ENDINGS.values(), (indexes.index, indexes.timeindex, indexes.txnindex)):
        path = own.with_suffix(ending)
        if (path.read_bytes() if path.exists() else b"") != data:
            return f"{ending} differs"
    return ""


def digest(index: bytes, timeindex: bytes, txnindex: bytes) -> str:
    """Return the sizes and hash of three files. A missing .txnindex counts as an empty one."""
    sizes = f"{len(index)} {len(timeindex)} {len(txnindex)} "
    return sizes + hashlib.sha256(index + timeindex + txnindex).hexdigest()[:16]


def golden(jars: Path) -> str:
    """Return the new lines of GOLDEN."""
    lines = []
    for seed in (None, *range(DAMAGED)):
        with tempfile.TemporaryDirectory() as directory:
            copy(FIXTURES, Path(directory), seed)
            for path, said in sorted(recovered(jars, Path(directory)).items()):
                own = [Path(path).with_suffix(ending) for ending in ENDINGS.values()]
                data = [each.read_bytes() if each.exists() else b"" for each in own]
                name = Path(path).relative_to(directory).as_posix()
                lines.append("\t".join([str(seed), name, said, digest(*data) if said.isdigit() else ""]))
    return "\n".join(lines) + "\n"


def trial(jars: Path, disk: Path, seed: int | None) -> tuple[int, list[str]]:
    """Return the number of segments compared with Kafka, and the differences."""
    with tempfile.TemporaryDirectory() as directory:
        ours, theirs = Path(directory, "a"), Path(directory, "b")
        copy(disk, ours, seed)
        shutil.copytree(ours, theirs)
        said = recovered(jars, theirs)
        count, differ = 0, []
        for made in kdump.reindex(str(ours)):
            own = theirs / Path(made.file).relative_to(ours)
            difference = agrees(made, own, said[str(own)])
            count += 1
            if difference:
                differ.append(f"{disk.name}, seed {seed}: {Path(made.file).relative_to(ours)}: {difference}")
        return count, differ


def wrong_ones(disk: Path) -> int:
    """Return how many of the indexes that the broker itself left are reported as wrong or missing."""
    return sum(not verdict.is_valid for made in kdump.reindex(str(disk)) for verdict in made.verdicts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("disks", type=Path)
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    problems: list[str] = []
    alike, counts = Counter[str](), Counter[str]()
    disks = sorted(path for path in (options.disks / "kafka-4.3").iterdir() if path.is_dir())
    for disk in disks:
        wrong = wrong_ones(disk)
        problems += [f"{disk.name}: {wrong} of the broker's own files are reported as wrong"] if wrong else []
        for seed in (None, *range(DAMAGED)):
            count, differ = trial(options.jars, disk, seed)
            problems += differ
            kind = "intact" if seed is None else "damaged"
            counts[kind] += count
            alike[kind] += count - len(differ)
    said = " and ".join(f"{alike[kind]:,} of {counts[kind]:,} {kind} ones" for kind in counts)
    line = (
        f"Of the segments of {len(disks)} disks, {said} had the same indexes, and were truncated at the same\n"
        "byte. The indexes that the brokers had left were identical or legal.\n"
    )
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = before + BEGIN + line + END + after
    for problem in problems:
        print(problem, file=sys.stderr)
    if options.compare:
        return int(bool(problems) or new != text or golden(options.jars) != GOLDEN.read_text())
    PAGE.write_text(new)
    GOLDEN.write_text(golden(options.jars))
    return 0


if __name__ == "__main__":
    sys.exit(main())
