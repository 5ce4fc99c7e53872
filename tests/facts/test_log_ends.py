"""Whichever bit of the last batch's header is flipped, a log ends at one offset: that of the broker that starts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kdump.cluster.partition_summary import log_end
from kdump.format.batch_header import BATCH_HEADER
from kdump.log.log_directory import LogDirectory, directory_at
from tests.command import run
from tests.conftest import RELEASES, few, sample
from tests.craft import flip, split
from tests.damages import copy_some
from tests.questions.salvage.test_cut import _java

LOGS = [
    (f"{release}/{state}", partition)
    for release, state in (("4.3.1-kraft", "clean"), ("3.9.1-zk", "clean"), ("4.3.1-kraft", "crash"))
    for partition in ("plain-0", "payments-0", "pair-0")
]
"""Logs with an index entry of the last batch, with a marker at the end, and of one segment."""
BITS = 8 * BATCH_HEADER.size


def last_header(place: Path) -> tuple[Path, bytes, int]:
    """Return the last segment of a partition, its bytes, and the number of the first bit of its last batch."""
    log = max(place.glob("*.log"))
    data = log.read_bytes()
    return log, data, 8 * (len(data) - len(split(data)[-1]))


def of_type(disk: Path | str, command: tuple[str, ...], kind: str) -> dict[str, Any]:
    rows = map(json.loads, run(*command, disk, "--json").stdout.splitlines())
    return next(row for row in rows if row["type"] == kind)


def stated(disk: Path) -> dict[str, object]:
    """Return the log end by each command that states it; that of restart-plan if the log is loaded."""
    ends = {
        command[0]: of_type(disk, command, kind)["logEndOffset"]
        for command, kind in (
            (("ls",), "partitionLog"),
            (("transactions", "--list"), "transactionPartition"),
            (("producers", "--list"), "producerPartition"),
            (("retention", "--list"), "retention"),
        )
    }
    ends["diff"] = of_type(disk, ("diff", disk), "diff")["copies"][0]["logEndOffset"]
    plan = of_type(disk, ("restart-plan", "--all"), "restartPartition")
    return ends if plan["stops"] else ends | {"restart-plan": plan["logEndOffset"]}


EVERY = [(*log, bit) for log in LOGS for bit in range(BITS)]


@pytest.mark.sampled
@pytest.mark.parametrize(("disk", "partition", "bit"), sample(EVERY, 340, "log ends"))
def test_commands_agree(disk: str, partition: str, bit: int, tmp_path: Path) -> None:
    made = copy_some(RELEASES / disk, tmp_path / "disk", partition)
    log, data, start = last_header(made / partition)
    log.write_bytes(flip(data, start + bit))
    ends = stated(made)
    assert len(set(ends.values())) == 1, ends


@pytest.mark.parametrize(("disk", "partition"), few(LOGS, 4))
def test_a_log_that_is_shorter_than_its_index(disk: str, partition: str, tmp_path: Path) -> None:
    """It was cut between two batches: after a clean shutdown, a broker goes by the index."""
    made = copy_some(RELEASES / disk, tmp_path / "disk", partition)
    log, data, _ = last_header(made / partition)
    batches = split(data)
    for count in range(1, len(batches)):
        log.write_bytes(b"".join(batches[:-count]))
        ends = stated(made)
        assert len(set(ends.values())) == 1, (count, ends)


@pytest.mark.parametrize("kind", ["path", "url"])
def test_a_damaged_batch_counts(kind: str, tmp_path: Path) -> None:
    """A broker that was shut down cleanly does not check the last batch, in an object store neither."""
    disk, partition = LOGS[0]
    made = copy_some(RELEASES / disk, tmp_path / "disk", partition)
    end = of_type(made, ("ls",), "partitionLog")["logEndOffset"]
    log, data, _ = last_header(made / partition)
    log.write_bytes(flip(data, 8 * len(data) - 1))
    given = made if kind == "path" else f"file://{made}"
    assert of_type(given, ("ls",), "partitionLog")["logEndOffset"] == end
    of_place = of_type(f"{given}/{partition}", ("transactions", "--list"), "transactionPartition")
    assert of_place["logEndOffset"] == end


def flipped(root: Path) -> Iterator[Path]:
    """Yield the log of a clean disk with one bit flipped, for each of them, and without its last batches."""
    for disk, partition in LOGS:
        for bit in range(BITS) if disk.endswith("clean") else ():
            place = root / f"{len(list(root.iterdir()))}"
            made = copy_some(RELEASES / disk, place, partition)
            log, data, start = last_header(made / partition)
            log.write_bytes(flip(data, start + bit))
            yield made
        for count in range(1, 8) if disk.endswith("clean") else ():
            made = copy_some(RELEASES / disk, root / f"{len(list(root.iterdir()))}", partition)
            log, data, _ = last_header(made / partition)
            log.write_bytes(b"".join(split(data)[:-count]))
            yield made


@pytest.mark.jars
def test_the_end_is_that_of_a_broker(tmp_path: Path) -> None:
    """LogLoader, after a clean shutdown; a log that it does not load has no other end than its valid batches."""
    known = {"interval": 4096, "largest": 10 << 20, "clean": True, "logStart": 0, "recoveryPoint": 0, "remote": False}
    ends, lines = [], []
    for disk in flipped(tmp_path):
        directory = directory_at(str(disk))
        assert isinstance(directory, LogDirectory)
        (place,) = directory.partitions
        ends.append(max(0, log_end(place, True, []) or 0))  # a broker deletes a log that ends before it starts
        lines.append(json.dumps({"path": place.path, **known}))
    answers = [json.loads(line) for line in _java("LoadLogs.java", lines)]
    shutil.rmtree(tmp_path)
    wrong = [
        (end, answer["answer"]["logEnd"], answer["path"])
        for end, answer in zip(ends, answers, strict=True)
        if answer["answer"] is not None and answer["answer"]["logEnd"] != end
    ]
    assert wrong == []
    assert sum(answer["answer"] is None for answer in answers) < len(answers) // 50
