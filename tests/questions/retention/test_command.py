"""`kdump retention` on the command line."""

from __future__ import annotations

import json
import re
import shutil
import struct
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kdump.all_answers import TYPES
from kdump.kafka.server_properties import read_properties
from tests import command
from tests.command import unmatched
from tests.conftest import DISKS, FIXTURES, numbers_in
from tests.craft import batch, flip, message, one, record, with_metadata_record, wrapper, write_file
from tests.damages import copy_disk
from tests.disks import coordinator, cut, data, marker, partition
from tests.each_case import each_case
from tests.questions.retention.retention_cases import CASES, Case, write
from tests.state.test_groups import int32, segment, short, text
from tests.state.test_metadata import config, topic
from tools.retention_trials import FACTS, outcome

NOW = ("--now", "2026-11-21T08:00")
CLOCK = 1795248000000
CLEAN = FIXTURES / "clean-1"
LOG = f"{0:020}.log"
COMPACT = ("--config", "cleanup.policy=compact")


run = partial(command.run, "retention")
refused = partial(command.refused, "retention")


def told(*args: str | Path, status: int = 0) -> dict[str, list[dict[str, Any]]]:
    result = run(*args, "--json", *NOW)
    assert result.exit_code == status, (result.exit_code, result.stderr)
    found: dict[str, list[dict[str, Any]]] = {"retention": [], "retentionHold": [], "retentionSegment": [], "note": []}
    for line in result.stdout.splitlines():
        said = json.loads(line)
        assert list(said) == ["type", *(key.name for key in TYPES[said["type"]])]
        found[said["type"]].append(said)
    return found


def test_json_has_the_declared_keys_of_every_type() -> None:
    found = told(CLEAN, FIXTURES / "legacy", status=1)
    assert all(found.values())
    assert len(found["retention"]) > 40
    assert not any(each["topic"] == "__cluster_metadata" for each in found["retention"])
    assert any(each["topic"] == "__transaction_state" for each in found["retention"])
    assert [each["hold"] for each in found["retentionHold"] if each["topic"] == "future"] == ["futureTimestamp"]


def test_the_record_of_the_future_is_found_within_its_batch(tmp_path: Path) -> None:
    """The timestamp is two hours ahead, in the third of four records in the second batch; later segments wait for
    it."""
    old, ahead = CLOCK - 30 * 86_400_000, CLOCK + 7_200_000
    stamps = [old, old + 1, ahead, old + 2]
    rows = [record(i, value=b"v", timestamp=stamp - old) for i, stamp in enumerate(stamps)]
    first = one(b"a", 0, baseTimestamp=old, maxTimestamp=old)
    second = batch(rows, offset=1, baseTimestamp=old, maxTimestamp=ahead)
    third = one(b"b", 5, baseTimestamp=old, maxTimestamp=old)
    folder = partition(tmp_path, first + second, third, third[:8].replace(b"\5", b"\6") + third[8:])
    found = told(folder, status=1)
    (hold,) = found["retentionHold"]
    assert hold["hold"] == "futureTimestamp"
    assert (hold["offset"], hold["position"], hold["timestamp"]) == (3, len(first), ahead)
    assert (hold["segments"], hold["until"]) == (3, ahead + 604_800_001)
    assert [each["waitsFor"] for each in found["retentionSegment"]] == [None, 0, 0]
    text = run(folder, *NOW).stdout
    assert text.startswith("payments-0: held by a timestamp in the future; 3 segments")
    assert "2 later segments that are due wait for it" in text
    assert run(folder, *NOW, "--config", "retention.ms=-1").exit_code == 0


def test_a_segment_is_shown_in_its_partition(tmp_path: Path) -> None:
    folder = partition(tmp_path, *cut(20, 40))
    second = sorted(folder.glob("*.log"))[1]
    whole = told(folder, "--config", "retention.bytes=0")
    alone = told(second, "--config", "retention.bytes=0")
    assert alone["retentionSegment"] == [whole["retentionSegment"][1]]
    assert alone["retention"] == whole["retention"]
    assert told(folder, second, "--config", "retention.bytes=0")["retentionSegment"] == whole["retentionSegment"]


@pytest.mark.parametrize(
    ("now", "state", "status", "against"),
    [("2026-11-21T08:00", "openTransaction", 0, False), ("2026-11-21T09:00", "openTransaction", 1, True)],
)
def test_an_open_transaction_holds_the_cleaner_when_it_is_old(
    tmp_path: Path, now: str, state: str, status: int, against: bool
) -> None:
    """The last transaction of payments-0 has no marker; the log is truncated after it."""
    folder = partition(tmp_path, *cut(40, 75))
    result = run(folder, *COMPACT, "--json", "--now", now)
    assert result.exit_code == status
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    (hold,) = (row for row in rows if row["type"] == "retentionHold")
    assert (hold["hold"], hold["isAgainstPolicy"], hold["producerId"], hold["offset"]) == (state, against, 11, 114)
    assert (hold["fix"] is not None) == against
    segments = [row for row in rows if row["type"] == "retentionSegment"]
    assert [row["compaction"] for row in segments] == ["dirty", "uncleanable", "uncleanable"]
    assert [row["uncleanableBecause"] for row in segments] == [[], ["lastStableOffset"], ["active"]]


def test_a_hanging_transaction_is_one(tmp_path: Path) -> None:
    log = data(0, 5) + marker(1, 5), data(2, 6), data(3, 7, transactional=False)
    partition(tmp_path, *log, name="t-0")
    shutil.copytree(CLEAN / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    coordinator(tmp_path, ("tx", 5, 0, "CompleteCommit", {}))
    found = told(tmp_path, "--topic", "t", *COMPACT, status=1)
    assert [each["hold"] for each in found["retentionHold"]] == ["hangingTransaction"]
    assert "abort --topic t --partition 0 --start-offset 2" in found["retentionHold"][0]["fix"]


def test_checkpoints_count(tmp_path: Path) -> None:
    for name in ("users-0", "trimmed-0", "__cluster_metadata-0"):
        shutil.copytree(CLEAN / name, tmp_path / name)
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nusers 0 254\n")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\ntrimmed 0 17\n")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n2\nusers 0 255\ntrimmed 0 50\n")
    users, trimmed = (told(tmp_path / name)["retention"][0] for name in ("users-0", "trimmed-0"))
    assert (users["firstDirtyOffset"], users["wouldClean"], users["cleanBytes"]) == (254, False, 1778)
    assert (users["markers"], users["tombstones"], users["cleanupPolicy"]) == (2, 0, "compact")
    assert trimmed["logStartOffset"] == 17
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nusers 0 999\n")
    reset = told(tmp_path / "users-0")["retention"][0]
    assert (reset["firstDirtyOffset"], reset["wouldClean"]) == (0, True)
    assert numbers_in(reset["resetBecause"]) == [999, reset["logEndOffset"]]
    assert reset["resetBecause"] in " ".join(run(tmp_path / "users-0", *NOW).stdout.split())


def test_tombstones_and_their_horizons(tmp_path: Path) -> None:
    """There is no horizon, one that has passed, or one in the future; --headers does not read them."""
    dead = [record(0, b"k", None), record(1, b"l", b"v"), record(2, b"m", None)]
    stamped = {"attributes": 0x40, "maxTimestamp": CLOCK - 5}
    log = batch(dead, offset=0, maxTimestamp=CLOCK - 5)
    log += batch(dead, offset=3, baseTimestamp=CLOCK, **stamped)
    log += batch(dead[:1], offset=6, baseTimestamp=CLOCK + 1, **stamped)
    folder = partition(tmp_path, log, one(b"x", 7))
    (found,) = told(folder, *COMPACT)["retention"]
    assert (found["tombstones"], found["tombstonesDue"], found["tombstonesUnstamped"]) == (5, 2, 2)
    assert found["nextDeleteHorizonMs"] == CLOCK + 1
    text = run(folder, *COMPACT, *NOW).stdout
    assert [5, 0, 2] in [
        numbers_in(line)[:3] for line in text.splitlines()
    ]  # tombstones, markers, and how many are due
    (found,) = told(folder, *COMPACT, "--headers")["retention"]
    assert found["tombstones"] is None
    (found,) = told(folder)["retention"]
    assert (found["tombstones"], found["markers"], found["wouldClean"]) == (None, None, None)


def test_keys_that_do_not_fit_the_cleaners_map(tmp_path: Path) -> None:
    """Of four keys, three fit: the cleaner stops before the batch with the fourth."""
    rows = [(b"a", 0), (b"b", 1), (b"a", 2), (b"c", 3), (b"d", 4), (b"a", 5)]
    log = b"".join(batch([record(0, key, b"v")], offset=offset) for key, offset in rows)
    folder = partition(tmp_path, log, one(b"x", 6))
    (found,) = told(folder, *COMPACT, "--keys")["retention"]
    assert (found["keys"], found["keysFit"], found["cleanedRecords"], found["droppedRecords"]) == (4, True, 6, 2)
    small = ("--config", f"log.cleaner.dedupe.buffer.size={24 * 3}", "--config", "log.cleaner.io.buffer.load.factor=1")
    (found,) = told(folder, *COMPACT, "--keys", *small)["retention"]
    assert (found["keys"], found["keysFit"], found["droppedRecords"]) == (3, False, 1)
    text = run(folder, *COMPACT, "--keys", *small, *NOW).stdout
    assert "remove 1 of 6 records" in text
    assert "several cleanings are needed" in text
    (found,) = told(folder, *COMPACT)["retention"]
    assert (found["keys"], found["droppedRecords"]) == (None, None)


def test_what_an_aborted_transaction_wrote_is_dropped(tmp_path: Path) -> None:
    """And its keys do not replace earlier records."""
    mine = batch([record(0, b"a", b"v")], offset=0)
    theirs = batch([record(0, b"a", b"w")], offset=1, attributes=0x10, producerId=5, producerEpoch=0, baseSequence=0)
    for commit, dropped in ((True, 1), (False, 1)):
        name = f"t{commit}-0"
        folder = partition(tmp_path, mine + theirs + marker(2, 5, commit=commit), one(b"x", 3), name=name)
        (found,) = told(folder, *COMPACT, "--keys")["retention"]
        assert (found["keys"], found["droppedRecords"], found["cleanedRecords"]) == (1, dropped, 3)
        sizes = [len(record(0, b"a", value)) for value in (b"v", b"w")]
        assert found["droppedBytes"] == sizes[0 if commit else 1]


def test_damage_that_the_cleaner_cannot_read(tmp_path: Path) -> None:
    parts = [one(b"a" * 50, n) for n in range(4)]
    broken = flip(parts[0] + parts[1], 8 * (len(parts[0]) + 10))  # the length of the second batch
    folder = partition(tmp_path, parts[0] + parts[1], parts[2], parts[3])
    (folder / LOG).write_bytes(broken)
    found = told(folder, *COMPACT, status=1)
    (hold,) = found["retentionHold"]
    assert (hold["hold"], hold["position"], hold["file"]) == ("damage", len(parts[0]), str(folder / LOG))
    # A wrong checksum alone does not stop the cleaner.
    (folder / LOG).write_bytes(flip(parts[0] + parts[1], 8 * (len(parts[0]) + 70)))
    assert told(folder, *COMPACT)["retentionHold"] == []
    assert told(folder)["retentionHold"] == []


def test_a_record_above_the_largest_decompressed_size(tmp_path: Path) -> None:
    """From 4.4 on, the cleaner fails at a compressed record above it; one that is not compressed does not count."""
    for codec, kind in (("gzip", 0), ("none", 0), ("gzip", 1)):
        log = one(b"v" * 10, 0) + one(b"v" * 1000, 1, codec)
        if kind:
            log = wrapper(1, [message(1, b"v" * 1000, offset=1)], offset=1)
        folder = partition(tmp_path, log, one(b"x", 2), name=f"{codec}{kind}-0")
        # Without the offset and the size before a message, or the varint before a record.
        size = len(message(1, b"v" * 1000)) - 12 if kind else len(record(0, None, b"v" * 1000)) - 2
        for limit, version, is_held in ((size, "4.4", False), (size - 1, "4.4", codec == "gzip"), (1, "4.3", False)):
            limited = ("--config", f"max.decompressed.message.bytes={limit}", "--kafka-version", version)
            holds = told(folder, *COMPACT, *limited, status=int(is_held))["retentionHold"]
            assert len(holds) == is_held, (codec, kind, limit, version)
            if is_held:
                assert (holds[0]["hold"], holds[0]["segments"]) == ("recordTooLarge", 1)
                assert f"{size} bytes" in holds[0]["message"]
                assert "max.decompressed.message.bytes" in holds[0]["fix"]


def test_a_record_whose_length_has_more_bytes_than_needed(tmp_path: Path) -> None:
    """Its length, 63 bytes, takes one byte, but is written in two, which Kafka reads as well."""
    body = record(0, None, b"v" * 57)[1:]
    assert len(body) == 63
    padded = b"\xfe\x00" + body
    folder = partition(tmp_path, batch([padded], "gzip"), one(b"x", 1))
    for limit, is_held in ((63, False), (62, True)):
        limited = ("--config", f"max.decompressed.message.bytes={limit}", "--kafka-version", "4.4")
        holds = told(folder, *COMPACT, *limited, status=int(is_held))["retentionHold"]
        assert ["63 bytes" in each["message"] for each in holds] == [True] * is_held


def test_the_high_watermark_of_several_replicas(tmp_path: Path) -> None:
    """Without metadata, it is unknown whether there is only one replica."""
    folder = partition(tmp_path, *cut(40))
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\npayments 0 60\n")
    found = told(folder, "--config", "retention.ms=1", status=1)
    assert [each["deletion"] for each in found["retentionSegment"]] == ["held", "held"]
    assert [each["hold"] for each in found["retentionHold"]] == ["highWatermark"]
    assert [each["offset"] for each in found["retentionHold"]] == [60]
    shutil.copytree(CLEAN / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    found = told(folder, "--config", "retention.ms=1")
    assert [each["deletion"] for each in found["retentionSegment"]] == ["now", "now"]


def test_directories_that_are_no_logs_any_more(tmp_path: Path) -> None:
    for state, status in (("delete", 0), ("stray", 1)):
        folder = shutil.copytree(CLEAN / "payments-0", tmp_path / state / f"payments-0.{'0' * 32}-{state}")
        found = told(tmp_path / state, status=status)
        assert [each["state"] for each in found["retention"]] == [state]
        assert [each["hold"] for each in found["retentionHold"]] == ["stray"] * status
        assert run(folder, *NOW).exit_code == status
        assert run(tmp_path / state, *NOW).exit_code == status


def test_a_replica_that_is_being_moved(tmp_path: Path) -> None:
    for name in ("users", "payments"):
        shutil.copytree(CLEAN / f"{name}-0", tmp_path / f"{name}-0.{'0' * 32}-future")
    found = told(tmp_path, "--metadata", CLEAN, "--config", "retention.ms=0")
    assert [each["state"] for each in found["retention"]] == ["future", "future"]
    assert [each["deletion"] for each in found["retentionSegment"]] == ["now", "kept", "kept"]
    assert [each["wouldClean"] for each in found["retention"]] == [None, None]
    assert "is being moved here" in run(tmp_path, "--list", "--metadata", CLEAN, *NOW).stdout


def test_metadata_that_is_damaged_is_told(tmp_path: Path) -> None:
    for name in ("payments-0", "__cluster_metadata-0"):
        shutil.copytree(CLEAN / name, tmp_path / name)
    log = tmp_path / "__cluster_metadata-0" / LOG
    log.write_bytes(flip(log.read_bytes(), 8 * (log.stat().st_size - 100)))
    notes = told(tmp_path / "payments-0")["note"]
    assert [each["message"].split(",")[0] for each in notes] == ["the metadata could not be read completely"]


def test_the_cleaner_can_be_off() -> None:
    found = told(CLEAN / "users-0", "--config", "log.cleaner.enable=false", status=1)
    assert [each["hold"] for each in found["retentionHold"]] == ["cleanerDisabled"]
    assert found["retention"][0]["wouldClean"] is False


def test_metadata_from_elsewhere(tmp_path: Path) -> None:
    shutil.copytree(CLEAN / "users-0", tmp_path / "users-0")
    (alone,) = told(tmp_path / "users-0")["retention"]
    assert (alone["isConfigKnown"], alone["settings"]["cleanup.policy"]["source"]) == (False, "assumed")
    (known,) = told(tmp_path / "users-0", "--metadata", CLEAN)["retention"]
    assert known["settings"]["cleanup.policy"] == {"value": "compact", "source": "topic"}
    assert run(tmp_path / "users-0", "--metadata", tmp_path / "none").exit_code == 2
    assert "defaults are assumed" in run(tmp_path / "users-0").stderr


def test_what_is_no_answer(tmp_path: Path) -> None:
    for wrong in (
        ["--config", "retention.ms"],
        ["--config", "no.such=1"],
        ["--holds", "--list"],
        ["--now", "soon"],
        ["--columns", "none"],
        ["--properties", str(tmp_path / "none")],
        ["--topic", "nothing"],
    ):
        assert run(CLEAN, *wrong).exit_code == 2, wrong
    assert run(tmp_path / "none").exit_code == 2
    empty = tmp_path / "payments-0"
    write_file(empty / LOG, b"")
    assert run(empty, *NOW).exit_code == 0
    assert run(empty, *NOW, *COMPACT).exit_code == 0
    metadata = run(CLEAN / "__cluster_metadata-0", *NOW)
    assert "snapshots" in metadata.stderr
    (empty / LOG).unlink()
    (empty / LOG).mkdir()
    assert run(empty, *NOW).exit_code == 2


def test_tables(tmp_path: Path) -> None:
    rows = run(CLEAN, *NOW, "--columns", "topic,verdict,settings").stdout
    assert "future" in rows
    holds = run(CLEAN, *NOW, "--holds")
    assert holds.exit_code == 1
    assert "futureTimestamp" in holds.stdout
    assert len(run(CLEAN, *NOW, "--list").stdout.splitlines()) > len(rows.splitlines())
    assert run(CLEAN, "--tz", "+02:00", *NOW, "--topic", "future").stdout.count("+02:00") == 3


def test_a_tier(tmp_path: Path) -> None:
    """According to the broker's own __remote_log_metadata, remote storage has the offsets below those of the active
    segment."""
    source, disk = DISKS / "kafka-4.3-tiered" / "disk", tmp_path / "disk"
    shutil.copytree(source, disk)
    for path in (disk, *disk.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (found,) = told(disk / "tiered-0")["retention"]
    assert (found["settings"]["local.retention.bytes"], found["settings"]["remote.storage.enable"]["value"]) == (
        {"value": 1, "source": "topic"},
        True,
    )
    short = ("--config", "local.retention.ms=1")
    late = run(disk / "tiered-0", "--now", "2026-11-22", *short)
    assert "the next check rolls the active segment, which is deleted once remote storage has it" in late.stdout
    # As if the last copied segment were still here, and then one that was not copied.
    active = next(disk.glob("tiered-0/*215209.log"))
    for base in (162793, 215209):
        (active.parent / f"{base:020}.log").write_bytes(one(b"v", base))
    (active.parent / f"{215210:020}.log").write_bytes(one(b"v", 215210))
    result = run(disk / "tiered-0", "--json", "--now", "2026-11-22", *short)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    segments = [row for row in rows if row["type"] == "retentionSegment"]
    assert [(row["deletion"], row["blockedBy"]) for row in segments][:2] == [("now", None), ("held", "tier")]
    (hold,) = (row for row in rows if row["type"] == "retentionHold")
    assert (hold["hold"], hold["offset"], result.exit_code) == ("tier", 215208, 1)
    assert "limited" not in hold["message"]
    rate = "remote.log.manager.copy.max.bytes.per.second"
    (log,) = disk.glob("__cluster_metadata-0/*.log")
    log.write_bytes(with_metadata_record(log.read_bytes(), config(4, "1", rate, "1000")))
    limited = run(disk / "tiered-0", "--json", "--now", "2026-11-22", *short).stdout
    assert f"the broker's copies are limited by {rate}=1000" in limited
    lag = ("--config", "remote.copy.lag.ms=3600000")
    for version, is_lag in (("4.4", True), ("4.3", False)):
        result = run(disk / "tiered-0", "--json", "--now", "2026-11-22", *short, *lag, "--kafka-version", version)
        assert ("remote.copy.lag.ms=3600000 or remote.copy.lag.bytes=-1" in result.stdout) is is_lag
    shutil.rmtree(disk / "__remote_log_metadata-0")
    result = run(disk / "tiered-0", "--json", "--now", "2026-11-22", *short)
    assert (json.loads(result.stdout.splitlines()[0])["deletion"], result.exit_code) == ("unknown", 2)


@pytest.mark.parametrize("names", [["clean-1"], pytest.param(["*-[12]"], marks=pytest.mark.every_disk)], ids=" ".join)
def test_what_the_disks_hold(names: list[str]) -> None:
    """The brokers that wrote them ran with log.retention.ms=-1."""
    paths = [path for name in names for path in (DISKS / "kafka-4.3").glob(name)]
    found = told(*paths, status=1)
    held = {(each["topic"], each["hold"]) for each in found["retentionHold"]}
    assert held == {("future", "futureTimestamp")}
    assert told(*paths, "--config", "log.retention.ms=-1")["retentionHold"] == []
    sessions = [each for each in found["retention"] if each["topic"] == "sessions"]
    assert [each["firstDirtyOffset"] for each in sessions[:1]] == [254]


TRIALS = json.loads((FIXTURES.parent / "docs" / "retention-trials.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_real_broker_did(case: Case, tmp_path: Path) -> None:
    """The segments that were deleted, and how far the cleaner got, according to docs/retention-trials.json, are as
    predicted."""
    (trial,) = (each for each in TRIALS if each["name"] == case.name)
    made = case.make(CLOCK)
    write(tmp_path / "t-0", made)
    (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    for name, offset in (("cleaner-offset", made.cleaned), ("log-start-offset", made.log_start)):
        if offset is not None:
            (tmp_path / f"{name}-checkpoint").write_text(f"0\n1\nt 0 {offset}\n")
    configs = [f"--config={name}={value}" for name, value in case.configs.items()] + ["--kafka-version=4.4"]
    result = run(tmp_path / "t-0", "--json", "--keys", "--now", str(CLOCK + 60_000), *configs)
    rows = [json.loads(line) for line in result.stdout.splitlines() if '"note"' not in line]
    said = outcome(rows)
    assert {name: said[name] for name in FACTS} == {name: trial["broker"][name] for name in FACTS}
    assert result.exit_code == trial["kdump"]["exit"]


def test_every_trial_is_as_predicted() -> None:
    assert [each["name"] for each in TRIALS] == [case.name for case in CASES]
    assert [each["name"] for each in TRIALS if not each["agrees"]] == []


# --- what could not be considered ---


def test_checkpoints_that_cannot_be_read(tmp_path: Path) -> None:
    disk = Path(shutil.copytree(CLEAN, tmp_path / "clean-1"))
    path = disk / "log-start-offset-checkpoint"
    path.write_text("0\n1\nusers 0 many\n")
    notes = told(disk, "--topic", "users")["note"]
    assert len(notes) == 1
    assert notes[0]["message"].startswith("log-start-offset-checkpoint, byte 4: ")
    with path.open("ab") as file:
        file.truncate(20 << 30)
    result = run(disk, "--topic", "users", *NOW)
    assert str(path) in result.stderr
    assert result.exit_code == 2


def test_metadata_that_cannot_be_read_is_told_with_its_reason(tmp_path: Path) -> None:
    disk = Path(shutil.copytree(CLEAN, tmp_path / "clean-1"))
    for path in (disk / "__cluster_metadata-0").glob("*.log"):
        path.unlink()
        path.mkdir()
    for path in (disk / "__cluster_metadata-0").glob("*.checkpoint"):
        path.write_bytes(path.read_bytes()[:100])
    said = " ".join(run(disk, "--topic", "users", *NOW).stderr.split())
    assert "the topic's configs are not here" in said
    assert "the metadata could not be read completely" in said


def test_nothing_there_is_said_once(tmp_path: Path) -> None:
    assert run(tmp_path / "gone").stderr.count("kdump:") == 1
    shutil.copytree(CLEAN / "users-0", tmp_path / "users-0", ignore=shutil.ignore_patterns("*.log"))
    shutil.copy(FIXTURES / "clean-2" / "meta.properties", tmp_path)
    assert "no partition with a segment" in run(tmp_path).stderr
    assert unmatched(run(CLEAN, "--topic", "nobody").stderr) == ["--topic nobody"]


def test_lines_of_properties_end_as_in_java(tmp_path: Path) -> None:
    path = write_file(tmp_path / "server.properties", "# Å log.retention.ms=1\nlog.retention.bytes=5\r\n".encode())
    assert read_properties(str(path)).values == {"log.retention.bytes": "5"}


@pytest.mark.parametrize(
    "text", ["retention.ms=", "retention.ms=1_000", "log.retention.hours=x", "log.cleaner.enable=yes"]
)
def test_a_config_of_the_command_line_is_never_passed_over(text: str) -> None:
    assert "is not a valid value" in refused(CLEAN / "users-0", "--config", text, *NOW)


# --- Paused work, and state that must stay ----------------------------------------------------------------------------


def moved(root: Path) -> tuple[Path, Path]:
    """Return two log directories of one broker; payments-0, all of which is due, is moved from the first to the
    second."""
    for name in ("a", "b"):
        log = [data(offset, -1) for offset in range(3)]
        partition(root / name, *log, name="payments-0" if name == "a" else FUTURE_NAME)
        (root / name / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    partition(root / "a", data(0, -1), data(1, -1), name="other-0")
    return root / "a", root / "b"


FUTURE_NAME = f"payments-0.{'0' * 32}-future"


def lines(name: str, *arguments: Path | str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in command.run(name, *arguments, "--json").stdout.splitlines()]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_partition_that_is_moved_is_neither_deleted_nor_compacted(reverse: bool, tmp_path: Path) -> None:
    """Neither it nor its future replica; another partition, and a broker without cleaner threads, go on."""
    paths = moved(tmp_path)[:: -1 if reverse else 1]
    for extra, held in (((), True), (("--config", "log.cleaner.enable=false"), False)):
        found = lines("retention", *paths, *extra)
        due = {
            (each["topic"], each["state"]): each["deletableSegments"] for each in found if each["type"] == "retention"
        }
        assert due == {("other", ""): 2, ("payments", ""): 0 if held else 3, ("payments", "future"): 0 if held else 3}
        moves = [each for each in found if each.get("hold") == "move"]
        assert [each["keeps"] for each in moves] == ["deletion"] * (2 if held else 0)
        assert all(each["file"].endswith(FUTURE_NAME) for each in moves)
    found = lines("retention", *paths, *COMPACT, "--config", "min.cleanable.dirty.ratio=0")
    assert {each["topic"]: each["wouldClean"] for each in found if each.get("state") == ""} == {
        "other": True,
        "payments": False,
    }
    assert "held by the move to another log directory" in run(*paths).stdout
    steps = [each for each in lines("space", *paths) if each.get("step") == "retentionDue"]
    assert [each["files"] for each in steps] == [1], "the active segment is not counted"


def test_a_directory_that_its_running_broker_does_not_list_is_offline(tmp_path: Path) -> None:
    """crash-1 was killed, so the newest metadata has it unfenced; clean-1 is fenced: its next startup decides."""
    for name, is_offline in (("crash-1", True), ("clean-1", False)):
        root = copy_disk(DISKS / f"kafka-4.3/{name}", tmp_path / name)
        late = ("--now", "2027-01-01T00:00:00Z")
        assert any(each.get("deletableSegments") for each in lines("retention", root, *late))
        meta = root / "meta.properties"
        meta.write_text(re.sub("directory.id=.*", "directory.id=SECONDpABlNgsHloSKd7mg", meta.read_text()))
        found = lines("retention", root, *late)
        live = [each for each in found if each.get("state") == ""]
        assert any(each.get("hold") == "directoryOffline" for each in found) == is_offline
        assert any(each["deletableSegments"] or each["wouldClean"] for each in live) != is_offline
        steps = [each for each in lines("space", root, *late) if each.get("step") == "retentionDue"]
        assert bool(steps) != is_offline


STATE_NAMES = (
    *("__consumer_offsets", "__transaction_state", "_schemas", "connect-offsets", "mm2-offsets.A.internal"),
    *("connect-configs", "team.connect-status", "mm2-offset-syncs.A.internal", "A.checkpoints.internal"),
)


@each_case("name", (*STATE_NAMES, "orders", "connections", "my-connector-data"))
def test_state_that_must_stay_is_not_deleted_silently(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("disk")
    partition(root, data(0, -1), data(1, -1), name=f"{name}-0")
    for policy in ("delete", "compact", "compact,delete"):
        config = f"--config=cleanup.policy={policy}"
        (found,) = (each for each in lines("retention", root, config) if each["type"] == "retention")
        loses = name in STATE_NAMES and "delete" in policy
        assert (found["stateLostAt"] is not None) == loses
        assert ("ERROR: cleanup.policy" in run(root, config).stdout) == loses
        assert found["stateLostBefore"] is None
        forever = lines("retention", root, config, "--config=retention.ms=-1")
        assert [each["stateLostAt"] for each in forever if each["type"] == "retention"] == [None]


@each_case("name", (*STATE_NAMES, "orders", "connections", "my-connector-data"))
def test_state_that_was_deleted_is_named_when_nothing_is_left(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for kept in (0, 2):
        root = tmp_path_factory.mktemp("disk")
        folder = root / f"{name}-0"
        folder.mkdir()
        (folder / f"{3:020}.log").write_bytes(b"".join(data(3 + number, -1) for number in range(kept)))
        for policy in ("delete", "compact", "compact,delete"):
            config = f"--config=cleanup.policy={policy}"
            for more in ((), ("--config=retention.ms=-1",)):
                (found,) = (each for each in lines("retention", root, config, *more) if each["type"] == "retention")
                loses = name in STATE_NAMES and "delete" in policy
                assert found["stateLostBefore"] == (3 if loses else None)
                assert ("offsets 0..2 are gone" in run(root, config, *more).stdout) == loses


TIME = struct.pack(">q", 1_795_000_000_000)
STORES: dict[str, tuple[bytes, str, str, bool]] = {
    "a key-value store": (b"k", "app-s-changelog", "delete", True),
    "one that is also compacted": (b"k", "app-s-changelog", "compact,delete", True),
    "one that is compacted": (b"k", "app-s-changelog", "compact", False),
    "a buffer of suppress": (b"k" + TIME, "app-s-changelog", "delete", True),
    "a window store": (b"k" + TIME + bytes(4), "app-s-changelog", "compact,delete", False),
    "a window store of a join": (b"k" + TIME + b"\0\0\0\1", "app-s-changelog", "delete", False),
    "a session store": (b"k" + TIME + TIME, "app-s-changelog", "compact,delete", False),
    "a repartition topic": (b"k", "app-s-repartition", "delete", False),
}


@each_case("store", STORES)
def test_changelogs_of_streams(store: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Streams itself has old windows deleted. Others may call their topics so: it sets message.timestamp.type."""
    key, name, policy, loses = STORES[store]
    for by_streams, shown in ((True, True), (False, True), (True, False)):
        root = tmp_path_factory.mktemp("disk")
        steps = [topic(name, "A"), config(2, name, "cleanup.policy", policy)]
        steps += [config(2, name, "message.timestamp.type", "CreateTime")] if by_streams else []
        partition(root, b"".join(one(each, number) for number, each in enumerate(steps)), name="__cluster_metadata-0")
        body = record(key=key, value=b"v") if shown else record(value=b"v")
        partition(root, batch([body]), name=f"{name}-0")
        (found,) = (
            each for each in lines("retention", root) if each.get("topic") == name and each["type"] == "retention"
        )
        assert (found["stateLostAt"] is not None) == (loses and by_streams and shown), (by_streams, shown)
        assert any("no record here shows" in note for note in found["notes"]) == (
            "changelog" in name and "delete" in policy and by_streams and not shown
        )


def test_doctor_reports_a_changelog_that_is_deleted(tmp_path: Path) -> None:
    steps = [topic("app-s-changelog", "A"), config(2, "app-s-changelog", "cleanup.policy", "delete")]
    steps += [config(2, "app-s-changelog", "message.timestamp.type", "CreateTime")]
    partition(tmp_path, b"".join(one(each, number) for number, each in enumerate(steps)), name="__cluster_metadata-0")
    partition(tmp_path, batch([record(key=b"k", value=b"v")]), name="app-s-changelog-0")
    assert "retention deletes state stores of Kafka Streams from " in command.run("doctor", tmp_path).stdout


@each_case("share", range(4))
def test_the_snapshot_that_holds_the_pruning_is_named(share: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of share partitions that all have a snapshot, and all but one a newer one: that one, whatever updates follow."""

    def key(kind: int, number: int) -> bytes:
        return short(kind) + text("g") + b"T" * 16 + int32(number)

    whole = short(0) + int32(1) * 3 + bytes(24) + b"\x01\0"
    update = short(0) + int32(1) + int32(4) + b"\xff" * 8 + b"\x01" + b"\x01\x00\x04" + int32(3)
    steps = [(key(0, number), whole) for number in range(4)]
    steps += [(key(0, number), whole) for number in range(4) if number != share] + [(key(1, share), update)]
    root = tmp_path_factory.mktemp("disk")
    partition(root, segment(*steps), name="__share_group_state-0")
    holds = [each for each in lines("retention", root, "--config=cleanup.policy=delete") if each.get("hold")]
    assert [(each["hold"], each["offset"]) for each in holds] == [("shareSnapshot", share)]
    assert f"-{share} at offset {share}: " in holds[0]["message"]
