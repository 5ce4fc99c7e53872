"""verify and reindex agree on every index: the severity of verify's findings about a file is that of reindex's verdict,
whatever happens to its entries, or to the end of its log."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.io.run import QUIET_RUN
from tests.check.test_batch_runs import verify
from tests.conftest import DISKS, FIXTURES, SEED, sample, seeded

LAYOUTS: dict[str, Any] = {".index": INDEX_ENTRY, ".timeindex": TIME_INDEX_ENTRY, ".txnindex": TXN_INDEX_ENTRY}
PARTITIONS = (
    FIXTURES / "indexed-1" / "payments-0",
    FIXTURES / "clean-1" / "trimmed-0",
    FIXTURES / "cleaned-1" / "users-0",
    DISKS / "kafka-4.3" / "clean-1" / "payments-0",
    DISKS / "kafka-4.3" / "clean-1" / "clicks-0",
    DISKS / "kafka-4.3" / "crash-1" / "payments-0",
    DISKS / "kafka-2.8-legacy" / "v0-broker28-none-0",
    DISKS / "kafka-2.8-legacy" / "v1-compacted-gzip-0",
    DISKS / "kafka-2.8-legacy" / "upgraded-gzip-0",
)
AROUND = ("meta.properties", ".kafka_cleanshutdown", "cleaner-offset-checkpoint", "log-start-offset-checkpoint")
SEVERITIES = ("error", "warning")


def changes(data: bytes, layout: Any, name: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield changed copies of an index: of a few entries, and of its end; None if it is gone."""
    size, dice = layout.size, seeded(name)
    used = len(data.rstrip(b"\0")) // size + 1
    for number in sorted({0, used - 1, *dice.sample(range(used), min(used, 4 if SEED else 1))}):
        at, after = number * size, (number + 1) * size
        if after > len(data):
            continue
        values = layout.struct.unpack_from(data, at)
        for field in range(len(values)):
            for step in (-7, -1, 1, 40, 100_000):
                changed = [*values[:field], values[field] + step, *values[field + 1 :]]
                try:
                    entry = layout.struct.pack(*changed)
                except struct.error:
                    continue
                yield f"entry {number}, field {field}: {step:+}", data[:at] + entry + data[after:]
        yield f"entry {number} of zeros", data[:at] + bytes(size) + data[after:]
        yield f"without entry {number}", data[:at] + data[after:]
        yield f"entry {number} twice", data[:after] + data[at:]
        following = data[after : after + size]
        yield f"entry {number} after the next one", data[:at] + following + data[at:after] + data[after + size :]
        yield f"cut after {number} entries", data[:at]
    yield "cut by 3 bytes", data[: max(0, len(data) - 3)]
    for added in (bytes(4 * size), bytes(4 * size + 1), b"\1\2\3"):
        yield f"{len(added)} bytes added", data + added
    yield "empty", b""
    yield "gone", None


def cases() -> list[tuple[Path, str, str, bytes | None]]:
    """Return partition, file, what is changed, and the new content of the file."""
    found: list[tuple[Path, str, str, bytes | None]] = []
    for partition in PARTITIONS:
        for file in sorted(partition.iterdir()):
            if file.suffix in LAYOUTS:
                data = file.read_bytes()
                found += [(partition, file.name, *each) for each in changes(data, LAYOUTS[file.suffix], str(file))]
            elif file.suffix == ".log":
                data, dice = file.read_bytes(), seeded(file)
                for end in (dice.randrange(len(data)) if data else 0, max(0, len(data) - 1)):
                    found.append((partition, file.name, f"cut at {end}", data[:end]))
    return found


def of_verify(disk: Path, segment: str) -> dict[str, str | None]:
    """Return the highest severity of the findings about each index of a segment, by its suffix."""
    found: dict[str, str | None] = dict.fromkeys(LAYOUTS)
    for row in verify(disk, "--only", "indexes")[1]:
        if row["type"] != "finding" or Path(row["file"]).stem != segment:
            continue
        suffix = Path(row["file"]).suffix
        if suffix == ".log":  # an index that is missing
            suffix = "." + row["message"].rpartition(" has no .")[2] if " has no ." in row["message"] else ""
            if suffix == ".index" and not Path(row["file"]).with_suffix(".timeindex").exists():
                found[".timeindex"] = row["severity"]  # said once for both: the broker rebuilds both
        at_least = SEVERITIES[: SEVERITIES.index(row["severity"])] if row["severity"] in SEVERITIES else SEVERITIES
        if suffix in found and found[suffix] not in at_least and row["severity"] in SEVERITIES:
            found[suffix] = row["severity"]
    return found


def of_reindex(disk: Path, segment: str) -> dict[str, str | None]:
    made_of = kdump.reindex(str(disk), options=QUIET_RUN)  # a .txnindex of a newer release is not judged
    (made,) = (made for made in made_of if Path(made.file).stem == segment)
    return {f".{verdict.kind.name}": verdict.severity for verdict in made.verdicts}


@pytest.mark.sampled
def test_verify_and_reindex_agree(tmp_path: Path) -> None:
    differ = []
    seen = set()
    disk = tmp_path / "disk"
    for partition, name, what, content in sample(cases(), 24, "agreement"):
        shutil.rmtree(disk, ignore_errors=True)
        copy = shutil.copytree(partition, disk / partition.name)
        for file in AROUND:
            if (partition.parent / file).exists():
                shutil.copy(partition.parent / file, disk)
        (copy / name).unlink()
        if content is not None:
            (copy / name).write_bytes(content)
        segment = os.path.splitext(name)[0]
        one, other = of_verify(copy, segment), of_reindex(copy, segment)
        if one != other:
            differ.append((f"{partition.parent.name}/{partition.name}/{name}", what, one, other))
        seen |= {(suffix, severity) for suffix, severity in one.items()}
    assert differ == []
    severities = (*SEVERITIES, None) if SEED else (None,)  # a sample need not have all
    assert seen >= {(suffix, severity) for suffix in LAYOUTS for severity in severities}
    assert {severity for _, severity in seen} >= {*SEVERITIES, None}
