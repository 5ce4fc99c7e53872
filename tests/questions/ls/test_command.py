"""`kdump ls`: its output for real disks is compared with the other commands, kafka-dump-log and the files."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.all_answers import TYPES
from kdump.cli import cli
from kdump.cluster import partition_summary
from kdump.log import live_files
from kdump.questions.ls import rows as ls_rows
from tests import craft
from tests.command import run, unmatched
from tests.conftest import DISKS, FIXTURES, numbers_in

HEALTHY = [
    *(DISKS / "kafka-4.3" / name for name in ("clean-0", "clean-1", "clean-2", "crash-1", "live-1")),
    *(DISKS / "kafka-4.3" / name for name in ("diverged-1", "diverged-2")),
    DISKS / "kafka-2.8-legacy",
    DISKS / "kafka-4.3-tiered" / "disk",
]


def ls(*arguments: str | Path, command: str = "ls") -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, [command, *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.stdout, result.stderr


def objects(*arguments: str | Path, code: int = 0) -> list[dict[str, Any]]:
    status, out, err = ls("--json", *arguments)
    assert status == code, err
    found = [json.loads(line) for line in out.splitlines()]
    for each in found:
        assert [key for key in each if key != "type"] == [key.name for key in TYPES[each["type"]]]
    return found


def of_type(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each for each in found if each["type"] == name]


def test_a_filter_counts_for_each_kind_of_path() -> None:
    disk = FIXTURES / "clean-1"
    named = [disk / "users-0", disk / "payments-0", disk / "sessions-0" / "00000000000000000000.log"]
    code, out, err = ls(*named, "--topic", "users")
    assert (code, err) == (0, "")
    assert "users-0" in out
    assert not re.search("payments|sessions", out)
    for paths in ([disk], named):
        assert unmatched(ls(*paths, "--topic", "nobody")[2]) == ["--topic nobody"]


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    assert ls(tmp_path / "gone")[::2] == (2, f"kdump: {tmp_path}/gone: no such file or directory\n")


# --- Real disks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("disk", HEALTHY, ids=lambda disk: disk.name)
def test_a_healthy_disk(disk: Path) -> None:
    """Totals equal those of verify; checkpoints and sizes equal those of the files."""
    found = objects(disk)
    directory, rows = found[0], of_type(found, "partitionLog")
    assert len(rows) == len(found) - 1
    summary = json.loads(CliRunner().invoke(cli, ["verify", "--crc", "--json", str(disk)]).stdout.splitlines()[-1])
    assert len(rows) == summary["partitions"]
    assert sum(row["segments"] for row in rows) == summary["files"]
    assert sum(row["size"] for row in rows) == summary["bytes"]
    assert sum(row["batches"] for row in rows) == summary["batches"]
    if disk.name != "kafka-2.8-legacy":
        assert sum(row["records"] for row in rows) == summary["records"]
    live = [row for row in rows if row["state"] == "live"]
    assert (directory["partitions"], directory["size"]) == (len(live), sum(row["size"] for row in live))
    assert not any(row["damage"] or row["errors"] or row["partial"] for row in rows)
    assert not directory["broken"] + directory["unknown"] + directory["otherFiles"]

    noted: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for name in ("log-start-offset", "replication-offset", "recovery-point-offset"):
        path = disk / f"{name}-checkpoint"
        for line in path.read_text().splitlines()[2:] if path.exists() else ():
            topic, partition, offset = line.split()
            noted[name][(topic, int(partition))] = int(offset)
    for row in rows:
        path = Path(row["partitionDirectory"])
        files = [file for file in path.iterdir() if file.is_file()]
        assert row["size"] + row["besideSize"] + row["deletedSize"] + row["unfinishedSize"] == sum(
            file.stat().st_size for file in files
        )
        assert row["onDisk"] == sum(file.stat().st_blocks * 512 for file in files)
        key = (row["topic"], row["partition"])
        is_live = row["state"] == "live"
        assert row["highWatermark"] == (noted["replication-offset"].get(key) if is_live else None)
        assert row["recoveryPoint"] == (noted["recovery-point-offset"].get(key) if is_live else None)
        first = min(int(file.name[:20]) for file in files if file.name.endswith(".log"))
        assert row["logStartOffset"] == (noted["log-start-offset"].get(key, first) if is_live else first)
        assert row["offsets"] == row["logEndOffset"] - row["logStartOffset"]
        if directory["cleanShutdown"] and is_live and key in noted["recovery-point-offset"]:
            assert row["logEndOffset"] == row["recoveryPoint"], "all had been flushed"
    assert directory["cleanShutdown"] == (
        (disk / ".kafka_cleanshutdown").exists() if (disk / "replication-offset-checkpoint").exists() else None
    )
    properties = (
        dict(re.findall(r"^([\w.]+)=(.*)$", (disk / "meta.properties").read_text(), re.MULTILINE))
        if (disk / "meta.properties").exists()
        else {}
    )
    assert directory["clusterId"] == properties.get("cluster.id")
    assert directory["directoryId"] == properties.get("directory.id")
    assert directory["nodeId"] == properties.get("node.id", properties.get("broker.id"))


def test_rows_add_up() -> None:
    disk = HEALTHY[3]
    rows = [row for row in of_type(objects(disk), "partitionLog") if row["state"] == "live"]
    topics = {row["topic"]: row for row in of_type(objects(disk, "--by", "topic"), "topicLogs")}
    segments = of_type(objects(disk, "--segments"), "logSegment")
    assert set(topics) == {row["topic"] for row in rows}
    for row in rows:
        assert topics[row["topic"]]["records"] == row["records"]
        own = [each for each in segments if each["topic"] == row["topic"] and "-delete" not in each["file"]]
        assert len(own) == row["segments"]
        assert sum(each["records"] for each in own) == row["records"]
        assert max(each["newestTimestamp"] or 0 for each in own) == (row["newestTimestamp"] or 0)


def test_what_is_unusual_about_a_disk() -> None:
    crashed = objects(HEALTHY[3])[0]
    assert [(each["name"].partition(".")[0], each["state"]) for each in crashed["notLive"]] == [("gone-0", "delete")]
    assert crashed["cleanShutdown"] is False
    code, out, err = ls(HEALTHY[3])
    assert (code, err) == (0, "")
    assert "no clean shutdown: the broker is running or has crashed" in out
    assert "gone-0 (delete)" in out
    live = of_type(objects(HEALTHY[4], "--topic", "prealloc"), "partitionLog")[0]
    assert (live["padding"], live["damage"], live["logEndOffset"]) == (1045922, None, 30)
    tiered = of_type(objects(HEALTHY[8], "--topic", "tiered"), "partitionLog")[0]
    assert (tiered["logStartOffset"], tiered["localLogStartOffset"]) == (110377, 215209)
    assert tiered["deletedSize"] > 4_000_000
    assert "on this disk from 215209 on; 4.0 MiB .deleted" in ls(HEALTHY[8])[1]
    assert "no clean shutdown" not in ls(HEALTHY[0])[1]  # a controller's


# --- Selecting --------------------------------------------------------------------------------------------------------


def names(*arguments: str | Path) -> list[str]:
    return [Path(row["partitionDirectory"]).name for row in of_type(objects(*arguments), "partitionLog")]


CLEAN = FIXTURES / "clean-1"


def test_topics() -> None:
    assert names(CLEAN, "--topic", "orders-*") == [
        f"orders-{codec}-0" for codec in ("gzip", "lz4", "none", "snappy", "zstd")
    ]
    assert names(CLEAN, "--topic", "users", "--topic", "/^sess/") == ["sessions-0", "users-0"]
    assert ls(CLEAN, "--topic", "order")[0] == 2
    assert names(CLEAN, "--internal") == [
        f"__{topic}-0" for topic in ("cluster_metadata", "consumer_offsets", "share_group_state", "transaction_state")
    ]
    assert set(names(CLEAN, "--no-internal")) | set(names(CLEAN, "--internal")) == set(names(CLEAN))
    assert ls(CLEAN, "--topic", "/(/")[0] == 2


def test_order() -> None:
    rows = of_type(objects(CLEAN), "partitionLog")
    by_name = {Path(row["partitionDirectory"]).name: row for row in rows}
    for sort, key, largest in (
        ("size", "size", True),
        ("segments", "segments", True),
        ("offsets", "offsets", True),
        ("newest", "newestTimestamp", True),
        ("oldest", "oldestTimestamp", False),
    ):
        found = [by_name[name][key] for name in names(CLEAN, "--sort", sort)]
        assert len(found) == len(rows)
        known = [value for value in found if value is not None]
        assert known == sorted(known, reverse=largest), sort
        assert names(CLEAN, "--sort", sort, "--reverse") == names(CLEAN, "--sort", sort)[::-1]
    assert names(CLEAN, "--sort", "size", "-n", "2") == names(CLEAN, "--sort", "size")[:2]
    assert "2 of 29 shown" in ls(CLEAN, "-n", "2")[1]


def test_partitions_by_number(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        shutil.copytree(CLEAN / "acks0-0", tmp_path / f"acks0-{number}")
    assert names(tmp_path) == ["acks0-1", "acks0-9", "acks0-10"]


def test_no_more_is_read_than_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = partition_summary.read_segment

    def counting(facts: Any, **options: Any) -> None:
        read.append(facts.segment.log.path)
        real(facts, **options)

    monkeypatch.setattr(partition_summary, "read_segment", counting)
    monkeypatch.setattr(ls_rows, "read_segment", counting)
    for arguments, count in (
        (["--sort", "size", "-n", "2"], 2),
        (["-n", "1", "--segments"], 1),
        (["--sort", "newest", "-n", "1"], 31),
    ):
        read.clear()
        assert ls(CLEAN, *arguments)[0] == 0
        assert len(read) == count, arguments


# --- Paths ------------------------------------------------------------------------------------------------------------


def test_the_same_directory_by_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CLEAN)
    assert len(objects(".")) == len(objects(CLEAN)) == len(objects(f"{CLEAN}/")) == 30
    assert len(of_type(objects(FIXTURES), "logDirectory")) == len([p for p in FIXTURES.iterdir() if p.is_dir()])


def test_a_partition_and_a_segment() -> None:
    found = objects(CLEAN / "users-0")
    assert [each["type"] for each in found] == ["logSegment", "logSegment", "partitionLog"]
    assert [each["baseOffset"] for each in found[:2]] == [0, 254]
    assert found[2]["logEndOffset"] == 255
    assert objects(CLEAN / "users-0" / f"{254:020}.log")[0] == found[1]
    assert of_type(objects(CLEAN / "users-0", "--by", "partition"), "partitionLog")[0]["records"] == 18
    ledger = objects(FIXTURES / "clean-2" / "ledger-0")
    assert ledger[0]["beside"] == ["index", "timeindex"]
    assert (ledger[1]["highWatermark"], ledger[1]["recoveryPoint"]) == (65, 65), "from the directory around it"


def test_what_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "absent", tmp_path / "empty", CLEAN / "orders-gzip-0" / f"{0:020}.index", "-"):
        code, out, err = ls(path)
        assert (code, out) == (2, "")
        assert err.startswith("kdump: ")
    code, out, err = ls(tmp_path / "absent", CLEAN / "acks0-0")
    assert code == 2
    assert "19" in out, "the others are shown"
    (tmp_path / "dbus-1").mkdir()
    (tmp_path / "dbus-1" / "session.conf").write_text("")
    assert "dbus" not in ls(tmp_path)[1]


def test_bad_usage() -> None:
    for arguments in (
        ["--segments", "--by", "topic"],
        ["--segments", "--sort", "segments"],
        ["--json", "--columns", "name"],
        ["--columns", "nonsense"],
        ["--sort", "nonsense"],
        ["-n", "0"],
    ):
        assert ls(CLEAN, *arguments)[0] == 2, arguments
    assert ls()[0] == 2


def test_columns() -> None:
    code, out, _ = ls(CLEAN, "--columns", "name,onDisk,partial,notes", "--topic", "users", "--tz", "+01:00")
    assert code == 0
    assert out.splitlines()[-2].split() == ["partition", "onDisk", "partial", "notes"]
    assert "08:58:30.454+01:00" in ls(CLEAN, "--topic", "users", "--tz", "+01:00")[1]


# --- Damage, and a disk in use ----------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The log directory of a broker after a clean shutdown."""
    return Path(shutil.copytree(FIXTURES / "clean-2", tmp_path / "clean-2"))


def row_of(disk: Path, topic: str = "ledger", code: int = 0) -> dict[str, Any]:
    return of_type(objects(disk, "--topic", topic, code=code), "partitionLog")[0]


def test_a_torn_end(disk: Path) -> None:
    """It is damage if a startup does not truncate it, and only mentioned if it does."""
    log = disk / "ledger-0" / f"{0:020}.log"
    last = craft.split(log.read_bytes())[-1]
    log.write_bytes(log.read_bytes()[:-10])
    assert numbers_in(row_of(disk)["damage"]) == [len(last) - 10]
    code, out, err = ls(disk)
    assert (code, err.count("kdump verify")) == (0, 1)
    assert "high watermark above the log end; DAMAGED" in out
    (disk / ".kafka_cleanshutdown").unlink()
    assert (row_of(disk)["damage"], row_of(disk)["torn"] > 0) == (None, True)
    assert ls(disk)[2] == ""
    (disk / "ledger-0" / f"{65:020}.log").write_bytes(b"")
    assert row_of(disk)["damage"].endswith(f" {0:020}.log"), "not the last segment"


def test_damaged_small_files(disk: Path) -> None:
    (disk / "meta.properties").write_bytes(b"\xff\x00 nonsense\n")
    (disk / "replication-offset-checkpoint").write_text("0\n2\nledger 0 65\n")
    (disk / "recovery-point-offset-checkpoint").write_text("0\n1\n\x1b[31m 0 65\n")
    (disk / "lost+found").mkdir()
    (disk / "x\x1b[31m").mkdir()
    directory = objects(disk)[0]
    assert sorted(directory["broken"]) == ["meta.properties", "replication-offset-checkpoint"]
    assert directory["unknown"] == ["lost+found", "x\x1b[31m"]
    assert directory["absent"] == [], "a topic cannot have that name"
    code, out, err = ls(disk)
    assert code == 0
    assert "\x1b" not in out + err
    assert "not named topic-partition: lost+found, x\\x1b[31m" in out
    assert "damaged or unreadable: " in out
    assert row_of(disk)["highWatermark"] is None, "a broker uses nothing of such a checkpoint"


def test_left_overs(disk: Path) -> None:
    partition = disk / "ledger-0"
    (partition / f"{0:020}.log.deleted").write_bytes(bytes(1000))
    (partition / f"{0:020}.log.cleaned").write_bytes(bytes(2000))
    craft.write_file(disk / "remote-log-index-cache" / "x.index", bytes(3000))
    directory = objects(disk)[0]
    assert (directory["deletedSize"], directory["unfinishedSize"], directory["remoteCacheSize"]) == (1000, 2000, 3000)
    assert "1000 bytes .deleted; 2.0 KiB that a startup deletes" in ls(disk)[1]


def test_a_segment_that_goes_away(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = disk / "ledger-0" / f"{0:020}.log"
    real = live_files.careful_source

    def careful_source(path: str) -> Any:
        if path == str(gone):
            gone.unlink(missing_ok=True)
        return real(path)

    monkeypatch.setattr(live_files, "careful_source", careful_source)
    row = row_of(disk)
    assert (row["segments"], row["errors"], row["logEndOffset"], row["records"]) == (0, [], None, 0)
    assert of_type(objects(disk, "--segments", "--topic", "ledger"), "logSegment") == []


def test_what_cannot_be_read(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pread

    def pread(fd: int, count: int, position: int) -> bytes:
        if os.readlink(f"/proc/self/fd/{fd}").endswith(f"ledger-0/{0:020}.log"):
            raise OSError(5, "Input/output error")
        return real(fd, count, position)

    monkeypatch.setattr(os, "pread", pread)
    found = objects(disk, code=2)
    rows = {row["topic"]: row for row in of_type(found, "partitionLog")}
    assert "Input/output error" in rows["ledger"]["errors"][0]
    assert [rows["ledger"][key] for key in ("partial", "logEndOffset", "records")] == [True, None, None]
    assert rows["__cluster_metadata"]["records"] == 376
    code, out, err = ls(disk)
    assert code == 2
    assert "UNREADABLE" in out
    assert err.count("Input/output error") == 1


def test_a_directory_that_cannot_be_read(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = str(disk / "ledger-0")

    def refuse(real: Any) -> Any:
        def listing(path: Any = ".") -> Any:
            if os.fspath(path) == closed:
                raise PermissionError(13, "Permission denied", closed)
            return real(path)

        return listing

    monkeypatch.setattr(os, "listdir", refuse(os.listdir))
    monkeypatch.setattr(os, "scandir", refuse(os.scandir))
    code, out, err = ls(disk)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"kdump: {closed}: Permission denied, because it is owned by ")
    assert "UNREADABLE" in out
    assert "376" in out, "the other partition is shown"


def test_a_file_that_grows_is_not_torn(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = disk / "ledger-0" / f"{0:020}.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:-10])
    real = partition_summary.summarize_headers

    def read_headers(*arguments: Any, **options: Any) -> Any:
        found = real(*arguments, **options)
        log.write_bytes(whole)
        return found

    monkeypatch.setattr(partition_summary, "summarize_headers", read_headers)
    monkeypatch.setattr(partition_summary.FileSource, "grown", lambda self: 10)
    assert (row_of(disk)["damage"], row_of(disk)["torn"]) == (None, 0)


def test_nothing_is_written(disk: Path) -> None:
    before = sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in disk.rglob("*"))
    for path in disk.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert ls(disk, "--quick")[0] == ls(disk)[0] == 0
    assert sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in disk.rglob("*")) == before
    for path in disk.rglob("*"):
        path.chmod(0o755)


# --- inspect ----------------------------------------------------------------------------------------------------------


def test_inspect_of_a_log_directory() -> None:
    for options in ([], ["--json"], ["--full"], ["--tz", "+02:00"], ["--format", "table"], ["--format", "json"]):
        same = ["--json"] if options == ["--format", "json"] else [] if options == ["--format", "table"] else options
        assert ls(CLEAN, *options, command="inspect") == ls(CLEAN, *same)
    for options in (
        ["-n", "1"],
        ["--records"],
        ["--hex", "-n", "9"],
        ["--offset", "3"],
        ["--last", "1"],
        ["-f", "%o\\n"],
    ):
        out = ls(CLEAN, *options, command="inspect")[1]
        assert "no meta.properties" not in out
        assert out
    assert ls(CLEAN / "users-0", command="inspect")[1].startswith(str(CLEAN / "users-0" / f"{0:020}.log:"))
    assert ls(FIXTURES, "--json", command="inspect")[1].startswith('{"type":"batch"'), "above log directories"


INDEXES = ("ledger-0/00000000000000000000.index", "ledger-0/00000000000000000000.timeindex")


def test_a_pipe_that_was_found_is_not_opened(tmp_path: Path) -> None:
    """It has the name of a segment or of a small file. Opening it would wait forever for a writer, or here until a
    signal ends the process."""
    disk = shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk")
    shutil.rmtree(disk / "__cluster_metadata-0")
    for name in ("meta.properties", "ledger-0/00000000000000000000.log", "ledger-0/partition.metadata", *INDEXES):
        (disk / name).unlink(missing_ok=True)
        os.mkfifo(disk / name)
    shutil.copytree(FIXTURES / "clean-2" / "ledger-0", disk / "other-0")
    for name in INDEXES:
        (disk / name.replace("ledger", "other")).unlink()
        os.mkfifo(disk / name.replace("ledger", "other"))
    for line in ("ls", "ls --quick", "inspect", "inspect --offset 60", "groups", "cluster", "verify"):
        command, *options = line.split()
        for path in (disk, disk / "ledger-0"):
            signal.alarm(30)
            status, out, err = ls(path, *options, command=command)
            signal.alarm(0)
            assert status in (0, 1, 2)
            if command in ("inspect", "verify") or (path == disk and command == "ls"):
                text = " ".join((out + err).split())  # a long path wraps the line
                assert "not a file" in text, (command, path, out, err)


def test_sorted_by_size_it_shows_what_is_occupied(tmp_path: Path) -> None:
    """An index is preallocated: 10 MiB long, it occupies next to nothing."""
    partition = shutil.copytree(CLEAN / "users-0", tmp_path / "users-0")
    with open(partition / f"{0:020}.index", "wb") as file:
        file.truncate(10 << 20)
    for arguments in ((), ("--by", "topic")):
        text = run("ls", tmp_path, "--sort", "size", *arguments).stdout
        header, row = (re.split(" {2,}", line.strip()) for line in text.splitlines()[-2:])
        shown = dict(zip(header, row))
        assert shown["others"].startswith("10.0 MiB")
        assert shown["onDisk"].endswith(("KiB", "bytes"))
        assert "onDisk" not in run("ls", tmp_path, *arguments).stdout
