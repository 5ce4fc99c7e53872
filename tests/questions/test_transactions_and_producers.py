"""`kdump transactions` and `kdump producers` on the command line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kdump.all_answers import TYPES
from kdump.render.amounts import duration_text
from tests.command import objects, run
from tests.conftest import FIXTURES
from tests.craft import flip, split
from tests.disks import PAYMENTS, coordinator, data, marker, partition
from tools.incident import lay_out
from tools.incident.disk import Disk

NOW = ("--now", "2026-11-21T08:00")
CLEAN, CRASH = FIXTURES / "clean-1", FIXTURES / "crash-1"
COMMANDS = ["transactions", "producers"]


@pytest.mark.parametrize("command", COMMANDS)
def test_json_has_the_declared_keys(command: str) -> None:
    seen = set()
    for options in ([], ["--history"] if command == "producers" else ["--open"]):
        result = run(command, CLEAN, CRASH, "--json", *options, *NOW)
        assert result.exit_code == 0, result.stderr
        for line in result.stdout.splitlines():
            said = json.loads(line)
            seen.add(said["type"])
            assert list(said) == ["type", *(key.name for key in TYPES[said["type"]])]
    expected = {"transactions": {"transaction", "transactionPartition", "transactionCoordinator"}}
    expected["producers"] = {"producer", "producerEvent", "producerPartition"}
    assert expected[command] <= seen


@pytest.mark.parametrize("command", COMMANDS)
def test_every_kind_of_path(command: str, tmp_path: Path) -> None:
    """A file, a partition directory, a log directory, a directory above it, several paths, a pipe, a renamed file: all
    give the same rows."""
    shutil.copytree(PAYMENTS.parent, tmp_path / "disk" / "payments-0")
    renamed = tmp_path / "segment.bin"
    shutil.copy(PAYMENTS, renamed)

    def of(*paths: Path) -> list[str]:
        named = () if renamed in paths else ("--topic", "payments")  # its name does not contain the topic
        result = run(command, *paths, "--json", *NOW, *named)
        assert result.exit_code == 0, result.stderr
        kind = command.rstrip("s")
        found = [json.loads(line) for line in result.stdout.splitlines()]
        return [str((e["producerId"], e.get("firstOffset"), e["state"])) for e in found if e["type"] == kind]

    expected = of(PAYMENTS)
    assert len(expected) > 3
    for path in (PAYMENTS.parent, CLEAN, tmp_path / "disk", tmp_path / "disk" / "payments-0", renamed):
        assert of(path) == expected, path
    assert of(PAYMENTS.parent, tmp_path / "disk") == expected * 2
    piped = subprocess.run(
        ["bash", "-c", f"cat {PAYMENTS} | {sys.executable} -m kdump {command} - --json --now 0"],
        capture_output=True,
        text=True,
        check=True,
    )
    kind = command.rstrip("s")
    assert sum(json.loads(line)["type"] == kind for line in piped.stdout.splitlines()) == len(expected)


@pytest.mark.parametrize("command", COMMANDS)
def test_exit_statuses(command: str, tmp_path: Path) -> None:
    assert run(command, CLEAN / "orders-none-0").exit_code == 0
    missing = run(command, tmp_path / "nothing", PAYMENTS, *NOW)
    assert missing.exit_code == 2
    assert str(tmp_path / "nothing") in missing.stderr
    assert "payments-0" in missing.stdout  # the others were read
    assert run(command, PAYMENTS.with_suffix(".txnindex")).exit_code == 2
    assert run(command).exit_code == 2
    assert run(command, PAYMENTS, "--columns", "nothing").exit_code == 2
    assert run(command, PAYMENTS, "--columns", "state", "--json").exit_code == 2
    assert run(command, PAYMENTS, "--now", "soon").exit_code == 2
    contradictions = {
        "transactions": [["--open", "--state", "open"], ["--coordinator", "--list"]],
        "producers": [["--history", "--broken"], ["--history", "--state", "live"]],
    }
    for options in contradictions[command]:
        assert run(command, PAYMENTS, *options).exit_code == 2


def test_all_states_are_a_selection() -> None:
    """Which shows one row per producer, as one of them does."""
    states = [word for state in ("live", "expired", "unknown") for word in ("--state", state)]
    assert run("producers", CLEAN, *states, *NOW).stdout == run("producers", CLEAN, "--list", *NOW).stdout


def test_columns_are_one_table_of_all_partitions() -> None:
    result = run("transactions", CLEAN, "--columns", "topic,producerId,state", "--state", "aborted")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["topic", "producer", "state"]
    assert {line.split()[0] for line in lines[1:]} == {"__consumer_offsets", "payments"}
    result = run("producers", CLEAN / "payments-0", "--columns", "producerId,epoch")
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [
        ["9", "8"],
        ["10", "10"],
        ["11", "0"],
        ["12", "0"],
    ]


def test_the_command_that_ends_it_is_given_when_it_is_old() -> None:
    old = run("transactions", CRASH / "payments-0", "--open", "--now", "2026-11-21T09:00").stdout
    assert "abort --topic payments --partition 0 --start-offset 114" in old
    assert "--producer-id 11 --producer-epoch 0 --coordinator-epoch 0" in old
    assert "find-hanging" in old
    young = run("transactions", CRASH / "payments-0", "--open", *NOW).stdout
    assert "abort" not in young.replace("aborted", "")
    late = run("transactions", CRASH / "payments-0", "--open", *NOW, "--transaction-timeout", "1m").stdout
    assert "--start-offset 114" in late


def test_a_disk_without_transactions_says_so() -> None:
    result = run("transactions", FIXTURES / "clean-2")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no transactions in 1 partition" in result.stderr
    result = run("producers", FIXTURES / "legacy")
    assert "no idempotent producers in" in result.stderr


def test_a_disk_with_only_coordinators_says_so(tmp_path: Path) -> None:
    coordinator(tmp_path, ("x", 1, 0, "Ongoing", {"t": [0]}))
    result = run("transactions", tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no partitions that may have transactions; --coordinator shows" in result.stderr
    assert run("transactions", tmp_path, "--coordinator").stdout.startswith("transactional ID")


def test_differences_and_damage_are_shown(tmp_path: Path) -> None:
    partition(tmp_path, data(0, 1) + marker(1, 1, 1, commit=False) + data(2, 3))
    name = "tx\x1b[31m"
    coordinator(tmp_path, (name, 1, 1, "PrepareCommit", {"payments": [0]}), (name, 1, 1, "CompleteCommit", {}))
    log = tmp_path / "payments-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + flip(data(3, 4), 8 * 66) + data(4, 5))
    for options in ([], ["--list"]):
        text = run("transactions", tmp_path, "--now", "1700000000000", *options).stdout
        assert re.search(r"\bABORT\b.*\bCOMMIT\b", text)  # the marker, and the decision
        assert "crc-mismatch" in text
        assert "\x1b" not in text
    assert "1 damaged byte range could not be considered" in text
    for command, columns in (("transactions", "state"), ("producers", "epoch")):
        said = run(command, tmp_path, "--now", "1700000000000", "--columns", columns).stderr
        assert "not shown; omit --columns" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_live_broker_is_not_disturbed(command: str, tmp_path: Path) -> None:
    folder = shutil.copytree(PAYMENTS.parent, tmp_path / "payments-0")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    try:
        assert run(command, folder, "--json").exit_code == 0
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    finally:
        folder.chmod(0o755)


def test_lengths_of_time() -> None:
    said = {
        None: "",
        0: "0 ms",
        999: "999 ms",
        96_000: "1 min 36 s",
        3_600_000: "1 h",
        -5000: "-5 s",
        90_000_000: "1 d 1 h",
    }
    assert {number: duration_text(number) for number in said} == said


def test_import_kdump_is_light() -> None:
    code = "import sys, kdump; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not re.search(r"kdump\.(log|state|check|forensics|format)", done.stdout)
    with pytest.raises(AttributeError):
        __import__("kdump").nothing  # noqa: B018


@pytest.mark.parametrize(
    ("start", "state"), [(0, "live"), (120, "live"), (239, "live"), (299, "live"), (300, "unknown")]
)
def test_a_replay_begins_at_the_log_start(start: int, state: str, tmp_path: Path) -> None:
    """UnifiedLog.rebuildProducerState reads from the batch that contains the log start offset, and truncateAndReload
    deletes snapshots up to it: of a log whose records are all deleted, a broker that starts knows no producer."""
    lay_out("unknown-producer-id", tmp_path / "it")
    disk = Disk(tmp_path / "it" / "disk-1")
    disk.checkpoint("log-start-offset-checkpoint", "orders-zstd-0", start)
    if start < 300:
        (disk.root / "orders-zstd-0" / f"{300:020}.snapshot").unlink()
        (disk.root / "orders-zstd-0" / f"{0:020}.snapshot").write_bytes(b"")
    (producer, place) = objects("producers", disk.root / "orders-zstd-0", "--now", "2026-11-21T09:00Z")
    assert (producer["state"], place["stateFrom"]) == (state, "log")
    assert bool(producer["remarks"]) == (state == "unknown")
    text = run("producers", disk.root / "orders-zstd-0", "--now", "2026-11-21T09:00Z").stdout
    assert {0: "replays the whole log", 300: "replays nothing"}.get(start, f"from offset {start}") in text


def test_a_producer_of_which_only_a_damaged_batch_is_left(tmp_path: Path) -> None:
    """Its magic is wrong: the checksum shows the producer, but no broker reads the batch."""
    copy = shutil.copytree(FIXTURES / "clean-1" / "payments-0", tmp_path / "ledger-0")
    log = copy / f"{0:020}.log"
    data = bytearray(split(log.read_bytes())[0])
    data[16] ^= 0x80
    log.write_bytes(data)
    for path in copy.iterdir():
        if path != log:
            path.unlink()
    result = run("producers", copy, "--json")
    (row,) = [json.loads(line) for line in result.stdout.splitlines() if '"type":"producer"' in line]
    assert (row["batches"], row["file"]) == (0, str(copy))
