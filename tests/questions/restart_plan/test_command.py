"""`kdump restart-plan` on the command line, and the rules that it replays, one by one."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.all_answers import TYPES
from kdump.check.options import Options
from kdump.io.errors import SourceError
from kdump.kafka import checkpoint_file
from kdump.kafka.leader_epoch_file_cache import EpochEntry, LeaderEpochFileCache
from kdump.kafka.offset_index import OffsetIndex
from kdump.log.live_files import SeenDirectory
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import PartitionPlan, startup_failure
from kdump.questions.restart_plan.log_loading import log_manager
from kdump.questions.restart_plan.log_loading.log_manager import LogManager, parse_name
from kdump.questions.restart_plan.node.access_rights import broker_rights
from tests import command, craft
from tests.conftest import DISKS, FIXTURES, sample
from tests.damages import copy_some
from tests.each_case import each_case
from tools.incident import lay_out
from tools.incident.disk import Disk

ZERO = f"{0:020}"
FIRST = ZERO + ".log"
DISK = FIXTURES / "clean-2"


run = partial(command.run, "restart-plan")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A writable copy of a broker's log directory."""
    return Path(shutil.copytree(DISK, tmp_path / "broker-2"))


@pytest.fixture
def crashed(disk: Path) -> Path:
    (disk / ".kafka_cleanshutdown").unlink()
    return disk


def ledger(root: Path) -> PartitionPlan:
    return next(each for each in kdump.restart_plan([str(root)]).partitions if each.topic == "ledger")


def put(root: Path, *batches: bytes, name: str = FIRST) -> None:
    (root / "ledger-0" / name).write_bytes(b"".join(batches))


def own(root: Path) -> list[bytes]:
    return craft.split((root / "ledger-0" / FIRST).read_bytes())


# --- the command ---


def test_clean() -> None:
    result = run(DISK)
    assert result.exit_code == 0
    assert "STARTS normally after a clean shutdown; loading the logs loses nothing" in result.stdout
    assert "assumed" in result.stdout


def test_json_keys_and_order() -> None:
    result = run(DISK, "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["type"] for each in found] == ["restartPartition"] * 2 + ["restartDirectory", "restartPlan"]
    for each in found:
        assert list(each) == ["type", *(key.name for key in TYPES[each["type"]])]
    assert found[-1]["verdict"] == "clean"


def test_statuses(crashed: Path) -> None:
    assert run(crashed, "-q").exit_code == 0
    whole = (crashed / "ledger-0" / FIRST).read_bytes()
    (crashed / "ledger-0" / FIRST).write_bytes(craft.flip(whole, 8 * (len(whole) - 50)))
    lost = run(crashed)
    assert lost.exit_code == 1
    assert "LOSES RECORDS of 1 partition" in lost.stdout
    assert f"cp -a --sparse=always {crashed}/ledger-0" in lost.stdout
    (crashed / "lost+found").mkdir()
    stopped = run(crashed)
    assert stopped.exit_code == 3
    assert stopped.stdout.startswith(f"{crashed}: DOES NOT START")
    assert run(crashed / "ledger-0").exit_code == 2
    assert run(crashed / "nothing").exit_code == 2
    assert run(crashed, "-q", "--json").exit_code == 2
    several = run(FIXTURES)
    assert (several.exit_code, several.stdout) == (2, "")
    assert "pass those of one broker" in several.stderr


def test_a_torn_tail_may_have_been_acknowledged(crashed: Path) -> None:
    batches = own(crashed)
    torn = craft.batch([craft.record(value=b"never finished")], offset=65)[:50]
    put(crashed, *batches, torn)
    found = ledger(crashed)
    assert (found.logEndOffset, found.bytesCut, found.loses) == (65, 50, False)
    assert run(crashed).exit_code == 1
    (event,) = [each for each in kdump.restart_plan([str(crashed)]).course.losses if each.phase == "loading"]
    assert event.loss is not None
    assert (event.loss.certainty, event.loss.records, event.problem.case) == ("may", None, "torn")


def test_below_the_high_watermark_it_is_one(crashed: Path) -> None:
    put(crashed, *own(crashed)[:-1])
    found = ledger(crashed)
    assert (found.logEndOffset, found.highWatermark, found.acknowledged, found.loses) == (50, 65, 15, True)


def test_sound_batches_behind_a_bad_one(crashed: Path) -> None:
    first, *rest = own(crashed)
    put(crashed, craft.flip(first, 8 * 80), *rest)
    (cut,) = ledger(crashed).cuts
    assert (cut.kind, cut.position, cut.batches, cut.damagedBatches) == ("truncated", 0, len(rest), 1)
    assert cut.soundBytes == sum(map(len, rest))
    assert (cut.offset, cut.lastOffset) == (0, 64)


def test_topics_are_chosen(disk: Path) -> None:
    found = kdump.restart_plan([str(disk)], is_selected=lambda topic: topic == "ledger")
    assert [each.name for each in found.partitions] == ["ledger-0"]
    assert "ledger" not in run(disk, "--topic", "nothing", "--all").stdout


def test_nothing_is_written_and_read_only_will_do(crashed: Path) -> None:
    before = {path: path.read_bytes() for path in crashed.rglob("*") if path.is_file()}
    for path in [crashed, *crashed.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        for options in ([], ["--json"], ["--full", "--all"], ["-q"]):
            assert run(crashed, *options).exit_code == 0
        assert {path: path.read_bytes() for path in crashed.rglob("*") if path.is_file()} == before
    finally:
        for path in [crashed, *crashed.rglob("*")]:
            path.chmod(0o755)


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(crashed: Path) -> None:
    for name in (f"{70:020}.log", f"{70:020}.index", f"{70:020}.snapshot", "leader-epoch-checkpoint.tmp"):
        os.mkfifo(crashed / "ledger-0" / name)
    (crashed / "recovery-point-offset-checkpoint").unlink()
    os.mkfifo(crashed / "recovery-point-offset-checkpoint")
    assert run(crashed).exit_code == 2
    assert ledger(crashed).logEndOffset == 65


def test_control_characters_do_not_reach_a_terminal(disk: Path) -> None:
    (disk / "evil\x1b[31m").mkdir()
    (disk / "meta.properties").write_text("version=\x1b[2J\n")
    for options in ([], ["--full", "--all"], ["--json"]):
        assert "\x1b" not in run(disk, *options).stdout


def test_a_broker_that_runs(crashed: Path) -> None:
    with (crashed / ".lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        (warning,) = kdump.restart_plan([str(crashed)]).directories[0].warnings
    assert f"process {os.getpid()} holds" in warning
    assert not kdump.restart_plan([str(crashed)]).directories[0].warnings


def test_strays(disk: Path) -> None:
    (disk / "ledger-0" / "partition.metadata").unlink()
    found = ledger(disk)
    assert "partition.metadata" in found.stray
    assert "topic_id: " in found.remedy
    assert run(disk).exit_code == 1
    assert "deleted" not in found.remedy
    shutil.copytree(DISK / "ledger-0", disk / "ledger-7")
    said = run(disk).stdout
    assert "MAKES all 2 partitions STRAY" in said
    (seven,) = [each for each in kdump.restart_plan([str(disk)]).partitions if each.partition == 7]
    assert {"ledger", "7"} <= set(seven.stray.split())
    assert "partition.metadata" not in seven.stray


def test_the_topic_id_of_a_recreated_topic_is_not_replaced(disk: Path) -> None:
    """Its old log must not become part of the new topic: the remedy applies only if the topic was never deleted, which
    a log of the metadata shows that still has its first record."""
    path = disk / "ledger-0" / "partition.metadata"
    path.write_text("version: 0\ntopic_id: pP1dXJ1nQGmUFh2wsbRm4Q")
    assert ledger(disk).remedy.startswith("Write the lines 'version: 0'")
    check = command.run("verify", disk, "--topic", "ledger").stdout
    assert "do:   Write the file with the topic ID of the metadata: it is damaged" in check
    log = disk / "__cluster_metadata-0" / f"{0:020}.log"
    shutil.copy(FIXTURES / "clean-1" / log.parent.name / f"{327:020}-0000000001.checkpoint", log.parent)
    later = [each for each in craft.split(log.read_bytes()) if int.from_bytes(each[:8], "big") >= 327]
    log.with_name(f"{327:020}.log").write_bytes(b"".join(later))
    for name in log.parent.glob(f"{0:020}.*"):
        name.unlink()
    remedy = ledger(disk).remedy
    assert (
        remedy.index("If a topic with its ID was deleted, do nothing")
        < remedy.index("Otherwise, write the lines")
        < remedy.index("topic_id: ")
    )


def test_the_metadata_snapshot_covers_what_is_lost_below_its_end(tmp_path: Path) -> None:
    """The node empties the log and starts again at the end of the snapshot: only later offsets are lost."""
    lay_out("metadata-log", tmp_path / "incident")
    disk = tmp_path / "incident" / "disk-1"
    options = ("--topic", "__cluster_metadata")
    lost = run(disk, *options)
    assert lost.exit_code == 1
    assert "starts at offset 327" in lost.stdout
    assert "offsets 282..326 are covered" in lost.stdout
    assert "offsets 327..328 are lost" in lost.stdout
    os.truncate(disk / "__cluster_metadata-0" / FIRST, Disk(disk).batches("__cluster_metadata-0")[-1][0])
    covered = run(disk, *options)
    assert covered.exit_code == 0
    assert "nothing is lost" in covered.stdout
    assert "282..326" not in covered.stdout


# --- two directories ---


def second(disk: Path, **changes: str) -> Path:
    """Add another log directory of the same broker, without partitions."""
    other = disk.with_name("second")
    other.mkdir()
    text = (disk / "meta.properties").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("directory.id")]
    for name, value in changes.items():
        lines = [line for line in lines if not line.startswith(name.replace("_", "."))] + [
            f"{name.replace('_', '.')}={value}"
        ]
    (other / "meta.properties").write_text("\n".join([*lines, "directory.id=SECONDpABlNgsHloSKd7mg"]))
    (other / ".kafka_cleanshutdown").touch()
    (other / "log-start-offset-checkpoint").write_text("0\n0\n")
    return other


@pytest.mark.parametrize("changes", [{"node_id": "7"}, {"cluster_id": "other"}])
def test_directories_of_two_brokers(disk: Path, changes: dict[str, str]) -> None:
    found = kdump.restart_plan([str(disk), str(second(disk, **changes))])
    assert found.verdict == "stopped"
    assert found.allStops[0].file.endswith("second/meta.properties")


def test_a_new_disk_and_a_copy_of_partitions(disk: Path) -> None:
    empty = disk.with_name("empty")
    empty.mkdir()
    assert run(empty).exit_code == 2
    found = kdump.restart_plan([str(disk), str(empty)])
    assert (found.verdict, found.allStops[0].file) == ("stopped", f"{empty}/meta.properties")
    copy = run(FIXTURES / "diverged-1")
    assert (copy.exit_code, copy.stdout) == (2, "")
    assert str(FIXTURES / "diverged-1") in copy.stderr


def test_one_of_two_goes_offline(disk: Path) -> None:
    other = second(disk)
    shutil.move(disk / "ledger-0", other / "ledger-0")
    (other / "ledger-0" / "leader-epoch-checkpoint").write_text("7\n0\n")
    found = kdump.restart_plan([str(disk), str(other)], kafka_version="4.3")
    assert (found.verdict, found.offline, found.status) == ("degraded", [str(other)], 1)
    found = kdump.restart_plan([str(disk), str(other)])  # no release writes version 7
    assert (found.verdict, found.offline, found.status) == ("degraded", [str(other)], 1)


# --- the rules ---


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", ("orders", 0, "")),
        ("a-b-12", ("a-b", 12, "")),
        ("-0", None),
        ("orders", None),
        ("orders-x", None),
        ("orders-", None),
        ("lost+found", None),
        (".Trash-1000", (".Trash", 1000, "")),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", ("orders", 0, "delete")),
        ("orders-0.x-future", ("orders", 0, "future")),
        ("orders-0-stray", None),
        ("orders-0.bak", None),
        ("orders-99999999999", None),
    ],
)
def test_names_of_directories(name: str, parsed: Any) -> None:
    """LocalLog.parseTopicPartitionName."""
    assert parse_name(name) == parsed


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", None),
        ("0\n", None),
        ("0\n1\na 0 5\n", None),
        ("0\n1\na 0 5", None),
        ("0\r\n1\r\na 0 5\r\n", None),
        ("1\n0\n", False),
        ("zero\n0\n", False),
        ("0\nzero\n", False),
        ("0\n2\na 0 5\n", False),
        ("0\n1\na 0\n", False),
        ("0\n1\n\n", False),
        ("0\n1\na 0 five\n", True),
        ("0\n1\na zero 5\n", True),
        ("0\n1\na 0 99999999999999999999\n", True),
    ],
)
def test_offset_checkpoints(tmp_path: Path, text: str, wrong: bool | None) -> None:
    """CheckpointFile.read: a missing file is valid, and a number that does not parse is not an IOException."""
    path = craft.write_file(tmp_path / "x", text.encode())
    if wrong is None:
        assert checkpoint_file.offsets(str(path)) == ({("a", 0): 5} if "a" in text else {})
    else:
        with pytest.raises(checkpoint_file.BadLine) as error:
            checkpoint_file.offsets(str(path))
        assert error.value.is_number is wrong


def test_epochs() -> None:
    cache = LeaderEpochFileCache()
    cache.load([EpochEntry(0, 0), EpochEntry(1, 60), EpochEntry(2, 50)])
    assert cache.entries == [EpochEntry(0, 0), EpochEntry(2, 50)]
    cache.assign(3, 70)
    cache.assign(3, 80)
    assert cache.entries[-1] == EpochEntry(3, 70)
    cache.truncate_from_end(70)
    cache.truncate_from_start(55)
    assert cache.entries == [EpochEntry(2, 55)]


def test_index_lookup() -> None:
    """AbstractIndex.largestLowerBoundSlotFor, with and without zeros after the entries."""
    rows = b"".join(struct.pack(">ii", 10 * i, 100 * i) for i in range(1, 3000))
    index = OffsetIndex(1000, rows)
    assert index.last_offset == 1000 + 29990
    for target, entry in ((1005, (1000, 0)), (1010, (1010, 100)), (1019, (1010, 100)), (99999, (30990, 299900))):
        assert index.lookup(target) == entry
    assert OffsetIndex(1000, rows + bytes(8)).last_offset == 1000
    assert OffsetIndex(1000).lookup(5) == (1000, 0)


def test_a_segment_with_offsets_too_far_from_its_name_is_split(crashed: Path) -> None:
    """LocalLog.splitOverflowedSegment: each part goes on where the one before it ended."""
    first = own(crashed)[0]
    offsets = [0, (1 << 31) - 1, (1 << 31) + 900, (1 << 33) - 5]
    put(crashed, *(offset.to_bytes(8, "big") + first[8:] for offset in offsets))
    plan = ledger(crashed)
    assert [(step.kind, step.offset) for step in plan.steps if step.kind in ("split", "create")] == [
        ("split", offsets[1]),
        ("create", offsets[1]),
        ("create", offsets[3]),
    ]
    assert plan.logEndOffset == (1 << 33) - 5 + int.from_bytes(first[23:27], "big") + 1


def test_offsets_that_go_back_empty_the_segment(crashed: Path) -> None:
    """An index entry is due after 4096 bytes: there, recovery reads an offset below the last one."""
    big = [craft.batch([craft.record(value=bytes(5000))], offset=offset) for offset in (0, 1, 2, 1, 3)]
    put(crashed, *big)
    found = ledger(crashed)
    assert (found.logEndOffset, found.bytesCut) == (0, sum(map(len, big)))
    assert found.cuts[0].batches == 5


def test_a_clean_start_leaves_damage_where_it_is(disk: Path) -> None:
    *rest, last = own(disk)
    put(disk, *rest, craft.overwrite(last, 8, struct.pack(">i", 1 << 30)))
    (cut,) = ledger(disk).cuts
    assert (cut.kind, cut.position) == ("hidden", sum(map(len, rest)))
    put(disk, *rest, last, b"0123456789")
    found = ledger(disk)
    assert found.losesOnlyNew
    assert found.logEndIfRecovered == found.logEndOffset == 65
    result = run(disk)
    assert result.exit_code == 1
    assert "LOSES NEW RECORDS of 1 partition" in result.stdout


@pytest.mark.parametrize(
    ("text", "kind"),
    [("", "exit"), ("garbage\n", "offline"), ("version: x\n", "offline"), ("version: 0\ntopic_id: x\n", "exit")],
)
def test_partition_metadata(tmp_path: Path, text: str, kind: str) -> None:
    path = tmp_path / "partition.metadata"
    path.write_text(text)
    with pytest.raises(checkpoint_file.BadLine) as error:
        checkpoint_file.topic_id(str(path))
    assert startup_failure(error.value).kind == kind


@pytest.mark.sampled
def test_every_byte_of_the_last_batch_cut_off(crashed: Path) -> None:
    """Whatever the end of a segment, recovery keeps complete batches."""
    whole = (crashed / "ledger-0" / FIRST).read_bytes()
    batches = own(crashed)
    ends = [sum(map(len, batches[:number])) for number in range(len(batches) + 1)]
    for size in sample(range(0, len(whole), 37), 7, "cut off"):
        put(crashed, whole[:size])
        found = ledger(crashed)
        left = max(end for end in ends if end <= size)
        assert size - found.bytesCut == left
        assert not any(cut.batches for cut in found.cuts)


# --- files and directories in each other's place, and unreadable ones ---


def test_a_long_line_of_garbage_is_cut_short(disk: Path) -> None:
    (disk / "ledger-0" / "leader-epoch-checkpoint").write_text("x" * 5000)
    assert len(kdump.restart_plan([str(disk)]).allStops[0].message) < 200


@pytest.mark.parametrize(
    ("change", "exception"),
    [
        (lambda text: text + "\0" * 64, None),
        (lambda text: re.sub(r'("data_version":\d)', r"\1.0", text), None),
        (lambda text: text.replace("leaderEpoch", "aeon"), "RuntimeException"),
        (lambda text: re.sub(r'("leaderEpoch":)(\d+)', r'\1"\2"', text), "NumberFormatException"),
        (lambda text: re.sub(r'("votedId":)-?\d+', r"\1 2147483648", text), "NumberFormatException"),
        (lambda text: re.sub(r'("data_version":)\d', r"\1 1e999", text), "IllegalStateException"),
        (lambda text: text.replace("data_version", "version"), "UncheckedIOException IOException"),
        (lambda text: text[:20], "UncheckedIOException JsonEOFException"),
        (lambda text: text.replace(":", "="), "UncheckedIOException JsonParseException"),
        (lambda text: "", "UncheckedIOException EOFException"),
    ],
)
def test_quorum_state(disk: Path, change: Callable[[str], str], exception: str | None) -> None:
    path = disk / "__cluster_metadata-0" / "quorum-state"
    path.write_text(change(path.read_text()))
    found = [re.findall(r"\w+Exception\b", stop.exception) for stop in kdump.restart_plan([str(disk)]).allStops]
    assert found == ([] if exception is None else [exception.split()])
    codes = {getattr(each, "code", "") for each in kdump.verify([str(path.parent)])}
    assert exception is None or "quorum-state-invalid" in codes


def test_what_kdump_has_no_right_to_read_is_no_verdict(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker runs as another user: a meta.properties that only kdump cannot open does not stop it."""

    def refuse(path: str, *args: Any, **named: Any) -> Any:
        if path.endswith("meta.properties"):
            raise SourceError(f"{path}: Permission denied")
        return source(path, *args, **named)

    source = checkpoint_file.open_source
    monkeypatch.setattr(checkpoint_file, "open_source", refuse)
    plan = kdump.restart_plan([str(disk)])
    assert (plan.allStops, plan.status) == ([], 2)
    assert plan.unread == [f"{disk / 'meta.properties'}: Permission denied"]
    result = run(disk)
    assert result.exit_code == 2
    assert "unreadable files may change this" in " ".join(result.output.split())


@pytest.mark.parametrize("name", [ZERO + ".index", f"{65:020}.snapshot", ZERO + ".txnindex"])
def test_huge_sparse_files_are_not_read(disk: Path, name: str) -> None:
    path = disk / "ledger-0" / name
    with path.open("ab") as file:
        file.truncate(20 << 30)
    plan = kdump.restart_plan([str(disk)])
    assert plan.status == 2
    assert [text.partition(":")[0] for text in plan.unread] == [str(path)]


def test_what_goes_with_deleted_segments_is_not_called_sound(crashed: Path) -> None:
    """Their checksums are not verified."""
    first, *rest = own(crashed)
    put(crashed, craft.flip(first, 8 * (len(first) - 2)))
    put(crashed, *rest[:-1], craft.flip(rest[-1], 8 * (len(rest[-1]) - 2)), name=f"{50:020}.log")
    (crashed / f"ledger-0/{50:020}.index").touch()  # otherwise it is recovered for its own reasons
    (crashed / "recovery-point-offset-checkpoint").unlink()
    said = run(crashed).output
    assert "VALID" not in said
    assert re.search(r"\(.*from headers alone\) (is|are) lost with", said)


def test_a_plan_that_is_made_again_has_its_warnings_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_manager, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(log_manager, "is_changing", lambda path, identities: True)
    manager = LogManager([], Options(now=0), lambda topic: True, broker_rights([]))
    attempts: list[int] = []

    def act(plan: PartitionPlan, seen: SeenDirectory) -> None:
        attempts.append(len(attempts))
        plan.problems.append(Problem("startup-running", {"process": 1, "file": ".lock"}))
        plan.newer.append("a newer version")
        if len(attempts) < 3:
            plan.unread.append("it is being written")

    made = manager._planned(PartitionPlan("a", 0, str(tmp_path), str(tmp_path), "", False), act, None)
    assert (len(attempts), len(made.problems), made.newer) == (3, 1, ["a newer version"])


@pytest.mark.parametrize(
    ("disk", "release", "way_down"),
    [
        (
            "disk-1",
            "4.2",
            "no way back to Kafka 4.2: the controllers refuse to lower metadata.version, because 4.3-IV0",
        ),
        (
            "disk-1",
            "3.6",
            "no way back to Kafka 3.6: the controllers refuse to lower metadata.version, because 4.3-IV0",
        ),
        (
            "disk-2",
            "4.0",
            "kafka-features.sh --bootstrap-server HOST:PORT downgrade --feature metadata.version=25. Keep",
        ),
        (
            "disk-2",
            "3.9",
            "no way back to Kafka 3.9: the controllers refuse to lower metadata.version, because 4.0-IV1",
        ),
    ],
)
def test_the_way_down_to_an_older_release(disk: str, release: str, way_down: str, tmp_path: Path) -> None:
    """A controller lowers metadata.version unless a level in between changed the metadata (didMetadataChange)."""
    lay_out("downgrade", tmp_path / "it")
    result = run("restart-plan", tmp_path / "it" / disk, "--kafka-version", release)
    assert result.exit_code == 3
    assert way_down in result.stdout


@each_case(
    "attributes, exception",
    [
        (4, "InvalidRecordException: Invalid wrapper compressionType found in legacy deep record iterator 0"),
        (5, "IllegalArgumentException: Unknown compression type id: 5"),
    ],
)
def test_a_wrong_magic_before_an_open_transaction(attributes: int, exception: str, tmp_path: Path) -> None:
    """The loaded log looks for the first unstable offset, and has to decompress the batch before it."""
    disk = shutil.copytree(FIXTURES / "crash-1", tmp_path / "disk")
    path = disk / "payments-0" / FIRST
    data = bytearray(path.read_bytes())
    batches = craft.split(bytes(data))
    number = [craft.BATCH_HEADER.read(each).baseOffset for each in batches].index(112)
    position = sum(map(len, batches[:number]))
    data[position + 16 : position + 18] = bytes((0, attributes))
    path.write_bytes(data)
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).touch()
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        shutil.copy(DISK / name, disk)
    plan = kdump.restart_plan([str(disk)], kafka_version="4.3.1")
    assert [stop.exception for each in plan.partitions for stop in each.stops] == [exception]


def test_a_snapshot_that_a_swap_replaces_is_written_again(crashed: Path) -> None:
    home = crashed / "ledger-0"
    first = own(crashed)
    middle = len(first) // 2
    base = craft.BATCH_HEADER.read(first[middle]).baseOffset
    parts = {0: b"".join(first[:middle]), base: b"".join(first[middle:])}
    for path in home.glob("*.snapshot"):
        path.unlink()
    for offset, data in parts.items():
        for suffix in ("", ".swap"):
            (home / f"{offset:020}.log{suffix}").write_bytes(data)
    (home / f"{base:020}.snapshot").write_bytes(b"replaced")
    (crashed / "recovery-point-offset-checkpoint").write_text(f"0\n1\nledger 0 {base}\n")
    written = [Path(step.file).name for step in ledger(crashed).steps if step.kind == "write"]
    assert f"{base:020}.snapshot" in written


def test_a_time_index_of_zeros_is_named(tmp_path: Path) -> None:
    """Retention takes its last entry for the largest timestamp; where it is rebuilt, or not used, nothing is said."""
    for change, is_named in (("", False), ("zeros", True), ("unclean", False), ("index", False)):
        disk = copy_some(DISKS / "kafka-4.3" / "clean-1", tmp_path / f"disk{change}", "orders-lz4-0", "__cluster_m*")
        path = min(disk.glob("orders-lz4-0/*.timeindex"))
        if change:
            path.write_bytes(path.read_bytes() + bytes(120))
        if change == "unclean":
            (disk / ".kafka_cleanshutdown").unlink()
            (disk / "recovery-point-offset-checkpoint").write_text("0\n0\n")
        elif change == "index":
            path.with_suffix(".index").unlink()
        shown = command.run("restart-plan", disk, "--topic", "orders-lz4").stdout
        assert ("orders-lz4-0: the .timeindex of 1 segment" in shown) == is_named, (change, shown)
        assert ("records of 1970" in " ".join(shown.split())) == is_named


def test_a_broker_that_was_only_formatted_has_nothing_to_lose(tmp_path: Path) -> None:
    """It has no metadata log, and no partition that could become stray."""
    ids = "cluster.id=1XCKK2DPQn2a3F8keJNp3w\nnode.id=4\ndirectory.id=6OWZ40mpGt0cV9GaNA2vcA\n"
    (tmp_path / "meta.properties").write_text(f"version=1\n{ids}")
    found = kdump.restart_plan([str(tmp_path)])
    assert (found.withoutMetadata, found.status) == (True, 0)
