"""Producer snapshots compared with logs that the log cleaner has rewritten."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command import objects, run
from tests.conftest import FIXTURES
from tests.craft import batch, flip, record, write_file
from tests.disks import snapshot

TIME = 1_700_000_000_000
PRODUCER = {"producerId": 7, "producerEpoch": 0}


def found(directory: Path, *, timestamp: int, kept: tuple[int, ...], filler: int = 0) -> list[str]:
    """Write a batch of three records at 0, 10 and 20 ms of which the cleaner has kept some, after `filler` batches of
    one record, and a snapshot with the timestamp of the batch. Return the messages about the snapshot."""
    path = directory / "users-0"
    path.mkdir()
    log = b"".join(batch(record(), offset=number) for number in range(filler))
    parts = [record(number, b"k", b"v", timestamp=10 * number) for number in kept]
    fields = {**PRODUCER, "baseSequence": 0, "lastOffsetDelta": 2, "maxTimestamp": TIME + 10 * max(kept)}
    log += batch(parts, offset=filler, **fields)
    (path / f"{0:020}.log").write_bytes(log)
    (path / f"{filler + 3:020}.log").write_bytes(batch(record(), offset=filler + 3))
    (path / f"{filler + 3:020}.snapshot").write_bytes(snapshot((7, 0, 2, filler + 2, 2, timestamp, -1, -1)))
    lines = map(json.loads, run("verify", path, "--only", "snapshots", "--json").stdout.splitlines())
    return [each["message"] for each in lines if each.get("code") == "snapshot-mismatch"]


@pytest.mark.parametrize("filler", [0, 300])
def test_the_cleaner_removes_the_largest_timestamp(filler: int, tmp_path: Path) -> None:
    """A cleaned batch has the largest timestamp of the records that are left; a snapshot still has the one before
    (MemoryRecords.buildRetainedRecordsInto)."""
    assert found(tmp_path, timestamp=TIME + 20, kept=(0, 1), filler=filler) == []


def test_no_record_has_the_timestamp_of_the_snapshot(tmp_path: Path) -> None:
    """Nothing was removed: it is wrong. And an earlier one is wrong in any case."""
    later, earlier = tmp_path / "later", tmp_path / "earlier"
    later.mkdir()
    earlier.mkdir()
    assert found(later, timestamp=TIME + 30, kept=(0, 1, 2)) == [
        f"producer 7: timestamp is {TIME + 30}, but {TIME + 20} in the log"
    ]
    assert found(earlier, timestamp=TIME + 5, kept=(0, 1)) == [
        f"producer 7: timestamp is {TIME + 5}, but {TIME + 10} in the log"
    ]


@pytest.mark.parametrize("ending", ["open", "ended", "kept", "killed"])
def test_an_open_transaction_without_a_snapshot_after_a_clean_shutdown(ending: str, tmp_path: Path) -> None:
    """Only with a clean shutdown, no .snapshot at all and an open transaction does a broker forget something
    (UnifiedLog.rebuildProducerState)."""
    disk = tmp_path / "disk"
    shutil.copytree(FIXTURES / "disk-1", disk)
    removed = "orders-zstd-0" if ending == "ended" else "payments-0"
    for path in (disk / removed).glob("*.snapshot") if ending != "kept" else ():
        path.unlink()
    if ending == "killed":
        (disk / ".kafka_cleanshutdown").unlink()
    lines = map(json.loads, run("verify", disk / removed, "--only", "snapshots", "--json").stdout.splitlines())
    messages = [line["message"] for line in lines if line.get("code") == "snapshot-missing"]
    expected = "no .snapshot after a clean shutdown, and 1 open transaction, the earliest from offset 114"
    assert messages == ([expected] if ending == "open" else [])
    if ending == "open":  # what to do depends on the logs that the broker then recovers
        for action in ("Delete .kafka_cleanshutdown before", "Put the damaged logs here right"):
            items = objects("doctor", disk, status=1)
            (item,) = [each for each in items if each.get("code") == "snapshot-missing"]
            assert (len(item["actions"]), action in item["actions"][0]) == (1, True)
            log = disk / "orders-zstd-0" / f"{0:020}.log"
            write_file(log, flip(log.read_bytes(), 7000))


@pytest.mark.parametrize("clean", [True, False])
def test_an_empty_snapshot_is_that_of_a_killed_broker(clean: bool, tmp_path: Path) -> None:
    """It creates the file, and then writes it; after a clean shutdown, and of an older one, it is damage."""
    disk = Path(shutil.copytree(FIXTURES / "disk-1", tmp_path / "disk"))
    mark = disk / ".kafka_cleanshutdown"
    mark.write_bytes(b'{"version":0,"brokerEpoch":5}') if clean else mark.unlink(missing_ok=True)
    newest = max((disk / "payments-0").glob("*.snapshot"))
    newest.write_bytes(b"")
    (found,) = [row for row in findings(disk) if row["code"] == "snapshot-invalid"]
    assert found["severity"] == ("error" if clean else "warning")
    assert ("killed" in found["consequence"]) != clean
    shutil.copy(newest, newest.with_name(f"{0:020}.snapshot"))
    assert len([row for row in findings(disk) if row["severity"] == "error"]) == 1 + clean


def findings(disk: Path) -> list[dict[str, str]]:
    rows = [json.loads(line) for line in run("verify", disk, "--json").stdout.splitlines()]
    return [row for row in rows if row["type"] == "finding"]
