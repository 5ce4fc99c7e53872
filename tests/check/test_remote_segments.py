"""verify --remote: segments in __remote_log_metadata against the objects of a bucket."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import fsspec
import pytest

from kdump.cluster.remote_log import read_remote_log
from kdump.format.kafka_uuid import uuid_text
from kdump.format.message_writer import encode
from kdump.format.schema import load_folder
from kdump.log.remote_files import first_offset
from kdump.log.remote_objects import layout_pattern
from tests import command, disks
from tests.cluster.test_remote_log import DELETED, DELETING, FINISHED, STARTED, TOPIC, change, tiered, write_remote_log
from tests.cluster.test_remote_mount import object_at, segment
from tests.conftest import DISKS, seeded
from tests.craft import batch, record
from tests.damages import copy_disk
from tests.each_case import each_case
from tests.generated_table import check_table
from tests.lookalikes import rolled

ROOT = Path(__file__).parent.parent.parent

SUFFIXES = ("index", "leader_epoch_checkpoint", "log", "snapshot", "timeindex", "txnindex")
FOR_FETCHES = {"index", "timeindex"}
SIZE = 100
PLUGIN = "t-0-{topicId}/{first:020}-{id}.{suffix}"
AIVEN_OBJECTS = ROOT / "tests" / "cluster" / "aiven"


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def found(root: Path, url: str, *options: str, status: int | None = None) -> list[dict[str, Any]]:
    """Return the findings of verify about remote storage."""
    result = command.run("verify", root, "--remote", url, "--only", "remote", "--json", *options)
    if status is not None:
        assert result.exit_code == status, result.output
    rows = [row for row in lines(result.stdout) if row["type"] == "finding"]
    return [row for row in rows if row["code"].startswith("remote-") or row["source"] == url]


def write(
    bucket: Path, number: int, first: int, suffix: str, size: int, name: str = PLUGIN, topic: str = TOPIC
) -> Path:
    path = bucket / name.format(topicId=topic, first=first, id=segment_id(number), suffix=suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return path


def segment_id(number: int) -> str:
    return uuid_text(number.to_bytes(16, "big"))


@each_case("seed", range(40))
def test_names_and_sizes(seed: int, tmp_path: Path) -> None:
    """Compared with a model: each segment in a random state, with random objects."""
    random = seeded(f"remote segments {seed}")
    changes, expected = [], []
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    for number in range(random.randrange(1, 6)):
        first = number * 10
        final = random.choice([STARTED, FINISHED, FINISHED, FINISHED, DELETING, DELETED, None])
        present = {suffix for suffix in SUFFIXES if random.random() < 0.9}
        size = random.choice([SIZE, SIZE, SIZE, 0, SIZE - 1, SIZE + 1])
        for suffix in present:
            write(bucket, number, first, suffix, size if suffix == "log" else 3)
        states = {STARTED: [STARTED], FINISHED: [STARTED, FINISHED], None: []}
        for state in states.get(final, [STARTED, FINISHED, DELETING, DELETED][: (final or 0) + 1]):
            changes.append(change(number, state, first, first + 9, size=SIZE))
        where = (None if final is None else number, first)
        if final == STARTED:
            expected.append(("remote-copy-hangs", "warning", first))
        elif final == DELETING:
            expected.append(("remote-delete-hangs", "warning", first))
        elif final in (DELETED, None):
            expected += [("remote-orphan", "warning", where[1])] if present else []
        elif "log" not in present:
            expected.append(("remote-segment-missing", "error", first))
        else:
            expected += [("remote-segment-size", "error", first)] if size != SIZE else []
            if present != {"log"}:
                expected += [("remote-index-missing", "error", first)] if FOR_FETCHES - present else []
                rest = {*SUFFIXES} - FOR_FETCHES - present
                expected += [("remote-index-missing", "warning", first)] if rest else []
    root = tiered(tmp_path / "disk", *changes)
    rows = found(root, str(bucket), "--quick")
    assert sorted((row["code"], row["severity"], row["offset"]) for row in rows) == sorted(expected)
    assert all((row["topic"], row["partition"], row["source"]) == ("t", 0, str(bucket)) for row in rows)


COPIED = (change(0, STARTED, 0, 9, size=SIZE), change(0, FINISHED))


def whole(bucket: Path, name: str = PLUGIN, suffixes: tuple[str, ...] = SUFFIXES) -> Path:
    for suffix in suffixes:
        write(bucket, 0, 0, suffix, SIZE, name)
    return bucket


def test_objects_of_a_plugin_of_ones_own(tmp_path: Path) -> None:
    more = change(1, STARTED, 10, 19, size=SIZE), change(1, FINISHED)
    root, bucket = tiered(tmp_path / "disk", *COPIED, *more), tmp_path / "bucket"
    path, _ = (write(bucket, n, n * 10, "log", SIZE, "x/{topicId}/p-0/{id}.{suffix}") for n in range(2))
    (bucket / "README").write_text("what else is there")
    pattern = ("--remote-layout", "x/{topicId}/p-{partition}/{segmentId}.log", "--quick")
    assert found(root, str(bucket), *pattern, status=0) == []
    path.unlink()
    (row,) = found(root, str(bucket), *pattern, status=1)
    assert (row["code"], row["offset"]) == ("remote-segment-missing", 0)
    report = command.run("verify", root, "--only", "remote", "--remote", bucket, *pattern).stdout
    assert "1 object more" in report
    assert "README" in report


def test_objects_of_aivens_plugin(tmp_path: Path) -> None:
    """Their names; their bytes are read, as what they were made of, if the manifest is there."""
    (log,) = (AIVEN_OBJECTS / "both").rglob("*.log")
    size = json.loads(log.with_suffix(".rsm-manifest").read_text())["chunkIndex"]["originalFileSize"]
    changes = change(1, STARTED, 0, 19, size=size, epochs=[(0, 0)]), change(1, FINISHED)
    root, bucket = tiered(tmp_path / "disk", *changes), tmp_path / "bucket"
    shutil.copytree(AIVEN_OBJECTS / "both", bucket)
    key = ("--remote-key", str(AIVEN_OBJECTS / "key.pem"))
    assert found(root, str(bucket), status=2) == []
    assert "encrypted for the key pair 'k1'" in command.run("verify", root, "--remote", bucket).output
    everything = ("verify", root, "--remote", bucket, *key, "--json")
    rows = [row for row in lines(command.run(*everything).stdout) if row.get("source") == str(bucket)]
    made_up = ["txn-index-mismatch", "index-mismatch", "time-index-mismatch", "remote-segment-overlap"]
    assert [row["code"] for row in rows] == made_up
    path = next(bucket.rglob("*.log"))
    whole = path.read_bytes()
    data = bytearray(whole)
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    rows = [row for row in lines(command.run(*everything).stdout) if row.get("source") == str(bucket)]
    assert "unreadable-bytes" in {row["code"] for row in rows}
    assert {row["offset"] for row in rows if row["code"] == "crc-mismatch"} <= {0, 5, 10, 15}
    path.write_bytes(whole)
    for suffix, why in ((".indexes", "offset: its bytes do not match"), (".rsm-manifest", "not a manifest")):
        part = path.with_suffix(suffix)
        content = part.read_bytes()
        part.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        rows = [row for row in lines(command.run(*everything).stdout) if row.get("code") == "remote-index-missing"]
        assert [(row["severity"], row["offset"]) for row in rows] == [("error", 0)], rows
        assert why in rows[0]["message"]
        part.write_bytes(content)
    path.with_suffix(".rsm-manifest").unlink()
    (row,) = found(root, str(bucket), "--quick", status=1)
    assert row["code"] == "remote-index-missing"
    assert "the manifest of offsets 0..19" in row["message"]


def test_only_some_partitions(tmp_path: Path) -> None:
    root, bucket = tiered(tmp_path / "disk", *COPIED), whole(tmp_path / "bucket")
    for partition in (0, 1):
        write(bucket, 7, 70, "log", SIZE, PLUGIN.replace("t-0", f"t-{partition}"))
    for options, expected in (((), {0, 1}), (("--partition", "0"), {0})):
        rows = found(root, str(bucket), *options)
        assert {row["partition"] for row in rows if row["code"] == "remote-orphan"} == expected


def test_a_url_is_a_bucket(tmp_path: Path) -> None:
    root, bucket = tiered(tmp_path / "disk", *COPIED), whole(tmp_path / "bucket")
    store = fsspec.filesystem("memory")
    for path in bucket.rglob("*.*"):
        if path.is_file():
            store.pipe(f"/bucket-of-test/{path.relative_to(bucket)}", path.read_bytes())
    assert found(root, "memory://bucket-of-test", "--quick", status=0) == []
    store.rm(f"/bucket-of-test/t-0-{TOPIC}/{0:020}-{segment_id(0)}.log")
    (row,) = found(root, "memory://bucket-of-test", "--quick", status=1)
    assert (row["code"], row["file"]) == ("remote-segment-missing", f"memory://bucket-of-test/t-0-{TOPIC}")
    store.rm("/bucket-of-test", recursive=True)


def test_a_topic_that_the_cluster_does_not_have(tmp_path: Path) -> None:
    root, bucket = tiered(tmp_path / "disk", *COPIED), whole(tmp_path / "bucket")
    write(bucket, 7, 0, "log", SIZE, topic=uuid_text(b"Z" * 16))
    (row,) = found(root, str(bucket), "--quick", status=0)
    assert (row["code"], row["actual"]) == ("remote-orphan", SIZE)
    assert "the cluster has no topic with the ID" in row["message"]


def test_what_is_there_is_unknown_without_its_metadata(tmp_path: Path) -> None:
    """An object is no orphan, and nothing is complete, where the log that would name it is not on the disks."""
    root, bucket = tiered(tmp_path / "disk", *COPIED), whole(tmp_path / "bucket")
    shutil.rmtree(root / "__remote_log_metadata-0")
    result = command.run("verify", root, "--only", "remote", "--remote", bucket, "--quick")
    assert result.exit_code in (1, 2)
    assert "remote-orphan" not in result.stdout
    assert "which objects are orphans, is unknown" in " ".join(result.output.split())


@each_case("where", ["empty", "another cluster's", "layout", "partly listed"])
def test_a_wrong_url_shows_nothing_missing_and_no_orphan(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If not one object of the segments that the metadata states is there, none is called missing, and those of
    another cluster are not called orphans, which one may delete."""
    root, bucket = tiered(tmp_path / "disk", *COPIED), tmp_path / "bucket"
    bucket.mkdir()
    if where == "another cluster's":
        write(bucket, 7, 0, "log", SIZE, topic=uuid_text(b"Z" * 16))
    elif where != "empty":
        whole(bucket, PLUGIN if where == "partly listed" else f"more/{PLUGIN}.gz")
    reason = "not one object of the 1 segment that __remote_log_metadata states is here"
    if where == "partly listed":
        monkeypatch.setattr("kdump.log.remote_objects.MAX_OBJECTS", 1)
        (bucket / f"t-0-{TOPIC}" / f"{0:020}-{segment_id(0)}.index").rename(bucket / "other")
        reason = "only its first 1 objects of segments were listed"
    for options in (("--quick",), ()):
        result = command.run("verify", root, "--only", "remote", "--remote", bucket, *options)
        assert result.exit_code == 2, result.output
        assert reason in " ".join(result.output.split())
        assert not [row for row in found(root, str(bucket), *options) if row["code"].startswith("remote-")]
    doctor = command.run("doctor", root, "--remote", bucket)
    assert reason in " ".join(doctor.output.split())
    assert "kafka-delete-records" not in doctor.output
    (root / "t-0" / f"{0:020}.log").unlink()
    shown = command.run("ls", root / "t-0", "--remote", bucket)
    assert (reason in " ".join(shown.stderr.split()), shown.exit_code) == (True, 2)


def test_offsets_are_looked_for_in_the_epochs_of_the_log(tmp_path: Path) -> None:
    """The only segment with offsets 0..9 is of epoch 1, and the leader's log has them in epoch 2."""
    both = [change(0, STARTED, 0, 9, size=SIZE, epochs=[(1, 0)]), change(0, FINISHED)]
    root, bucket = tiered(tmp_path / "disk", *both), whole(tmp_path / "bucket")
    (root / "t-0" / f"{0:020}.log").unlink()
    for epoch, codes in ((1, []), (2, ["offsets-unreadable"])):
        (root / "t-0" / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")
        rows = lines(command.run("verify", root, "--only", "remote", "--remote", bucket, "--quick", "--json").stdout)
        assert [row["code"] for row in rows if row.get("code") == "offsets-unreadable"] == codes


def unreadable(root: Path, bucket: Path) -> set[str]:
    """Return the offsets that verify, doctor and ls state as unreadable."""
    remote = ("--remote", bucket, "--json")
    rows = [
        *lines(command.run("verify", root, "--quick", *remote).stdout),
        *lines(command.run("doctor", root, *remote).stdout),
    ]
    texts = [row.get("message") or row["title"] for row in rows if row.get("code") == "offsets-unreadable"]
    listed = [row for row in lines(command.run("ls", root, "--json").stdout) if row.get("topic") == "t"]
    listed_offsets = [f"{each['first']}..{each['last']}" for row in listed for each in row["unreadableOffsets"] or ()]
    return {*(text.split()[1] for text in texts), *listed_offsets}


@pytest.mark.parametrize("checkpointed", [True, False])
def test_a_log_start_offset_that_is_a_minute_old(
    checkpointed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remote retention has deleted 0..9 since; kafka-delete-records.sh 10..19, which were never copied, of which only
    a broker at work lets nobody know for a minute. Offsets between those that are there are missing all the same."""
    gone = [change(0, state, 0, 9, size=SIZE) for state in (STARTED, FINISHED, DELETING, DELETED)]
    bucket = tmp_path / "bucket"
    write(bucket, 9, 0, "log", SIZE)
    for name, first, expected in (("expired", 10, []), ("deleted", 20, ["10..19"]), ("missing", 30, ["20..29"])):
        root = tiered(tmp_path / name, *gone)
        if checkpointed:
            (root / "log-start-offset-checkpoint").write_text("0\n1\nt 0 0\n")
        if name == "missing":
            both = change(1, STARTED, 10, 19, size=SIZE), change(1, FINISHED)
            write_remote_log(root, *gone, *both)
            for suffix in SUFFIXES:
                write(bucket, 1, 10, suffix, SIZE)
        for base in range(0, first, 10):
            (root / "t-0" / f"{base:020}.log").unlink()
        for is_at_work in (False, True):
            monkeypatch.setattr("kdump.cluster.remote_log.is_running", lambda path, it=is_at_work: it)
            shown = [] if is_at_work and name == "deleted" else expected
            assert unreadable(root, bucket) == set(shown), (name, is_at_work)


def test_objects_that_expire_while_they_are_read(broker: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment whose indexes had just been deleted lacked their last entries. Whoever else deletes them is noted."""
    disk, bucket = broker
    (log,) = disk.glob("__remote_log_metadata-*/*.log")
    stated = next(iter(read_remote_log([str(log.parent)], 1).segments.values()))
    second = next(each for each in stated.values() if each.first == 162793)
    update = {
        "remoteLogSegmentId": {
            "topicIdPartition": {"name": "tiered", "id": second.place[0], "partition": 0},
            "id": second.id,
        },
        "brokerId": 1,
        "eventTimestampMs": second.time,
        "customMetadata": None,
        "remoteLogSegmentState": DELETING,
    }
    value = bytes([1, 1, 0]) + encode(load_folder("storage")["RemoteLogSegmentMetadataUpdateRecord"], 0, update)
    for is_stated in (False, True):
        whole = {path: path.read_bytes() for path in bucket.rglob(f"*{second.first}-*")}

        def expire(source: Any, is_stated: bool = is_stated) -> int | None:
            if str(second.first) not in source.name:
                return first_offset(source)
            if is_stated:
                log.write_bytes(log.read_bytes() + batch([record(value=value)], offset=second.record + 100))
            for path in bucket.rglob(f"*{second.first}-*"):
                path.unlink()
            return first_offset(source)

        monkeypatch.setattr("kdump.check.engine.remote_check.first_offset", expire)
        result = command.run("verify", disk, "--remote", bucket, "--json")
        rows = [row for row in lines(result.stdout) if row["type"] == "finding" and row["severity"] != "info"]
        assert rows == []
        assert ("deleted during this run" in result.output) != is_stated
        for path, content in whole.items():
            path.write_bytes(content)


def test_a_transaction_index_is_compared(tmp_path: Path) -> None:
    """Each segment with an aborted transaction was said to have none."""
    disk, bucket = tmp_path / "disk", tmp_path / "bucket"
    log = disks.data(0, 7, count=3) + disks.marker(3, 7, commit=False)
    folder = disks.partition(tmp_path / "made", log)
    root = tiered(disk, change(0, STARTED, 0, 3, size=len(log)), change(0, FINISHED))
    for suffix in SUFFIXES:
        made = folder / f"{0:020}.{suffix}"
        path = write(bucket, 0, 0, suffix, 0)
        path.write_bytes(made.read_bytes() if made.exists() else b"")

    def codes() -> set[str]:
        rows = lines(command.run("verify", root, "--remote", bucket, "--json").stdout)
        return {row["code"] for row in rows if "txn" in row.get("code", "")}

    assert codes() == set()
    path = next(bucket.rglob("*.txnindex"))
    path.write_bytes(disks.txn_index((7, 1, 3, 4)))
    assert codes() == {"txn-index-mismatch"}
    path.unlink()
    assert codes() == {"txn-index-mismatch"}


@pytest.mark.parametrize(
    ("copies", "superseded", "lacks"),
    [
        ([(0, 9), (0, 19)], {0}, []),
        ([(0, 19), (0, 9)], {0}, [(10, 19)]),  # one segment begins at an offset
        ([(0, 9), (10, 19), (5, 29)], {1}, []),
        ([(10, 19), (20, 29), (0, 29)], {0, 1}, []),
        ([(10, 19), (20, 29), (0, 25)], set(), []),  # not the highest offset
        ([(0, 29), (10, 19)], set(), [(20, 29)]),
    ],
)
def test_a_segment_that_a_later_leader_copied_again(
    copies: list[tuple[int, int]], superseded: set[int], lacks: list[tuple[int, int]], tmp_path: Path
) -> None:
    """No broker reads it (RemoteLogLeaderEpochState), so nothing follows from its loss."""
    changes = []
    for number, (first, last) in enumerate(copies):
        changes += [change(number, STARTED, first, last, epochs=[(0, first)]), change(number, FINISHED)]
    root, bucket = tiered(tmp_path / "disk", *changes), tmp_path / "bucket"
    write(bucket, 0, copies[0][0], "index", SIZE)
    rows = {row["message"].split("segment, ")[1][:22]: row for row in found(root, str(bucket), "--quick")}
    assert {segment_id(number) for number in superseded} == {
        each for each, row in rows.items() if (row["severity"], row["consequence"][:7]) == ("warning", "nothing")
    }
    assert len(rows) == len(copies)
    remote = read_remote_log([str(root / "__remote_log_metadata-0")], 1)
    assert remote.lacks(TOPIC, 0, 0, max(last for _, last in copies) + 1) == lacks


@pytest.fixture
def broker(tmp_path: Path) -> tuple[Path, Path]:
    """The disk and the bucket of a real broker."""
    shutil.copytree(DISKS / "kafka-4.3-tiered", tmp_path / "broker")
    return tmp_path / "broker" / "disk", tmp_path / "broker" / "tier"


def verified(disk: Path, bucket: Path) -> list[dict[str, Any]]:
    """Return all errors and warnings."""
    rows = lines(command.run("verify", disk, "--remote", bucket, "--json").stdout)
    return [row for row in rows if row["type"] == "finding" and row["severity"] != "info"]


@pytest.mark.sampled
def test_objects_are_read_as_local_segments_are(broker: tuple[Path, Path]) -> None:
    disk, bucket = broker
    assert verified(disk, bucket) == []
    first, second = sorted(bucket.rglob("*.log"))
    data = bytearray(second.read_bytes())
    data[5000] ^= 1
    second.write_bytes(data)
    (row,) = verified(disk, bucket)
    assert (row["code"], row["file"], row["topic"], row["partition"]) == ("crc-mismatch", str(second), "tiered", 0)
    first.with_suffix(".index").write_bytes(bytes(504))
    assert {row["code"] for row in verified(disk, bucket) if row["file"].endswith(".index")}


def test_the_advice_on_a_damaged_object_is_not_that_of_a_local_file(broker: tuple[Path, Path]) -> None:
    """No broker loads, recovers or truncates it, and no follower fetches it: it is put back, or written again."""
    disk, bucket = broker
    _, path = sorted(bucket.rglob("*.log"))
    whole = path.read_bytes()
    at = 2 * 16_377
    damages = [
        (path, whole[:5000] + b"!" + whole[5001:], {"crc-mismatch"}),
        (path, whole[:40_000] + bytes(20_000) + whole[60_000:], {"crc-mismatch", "junk-bytes", "zero-padding"}),
        (path, whole[: at + 8] + b"\xff" + whole[at + 9 :], {"batch-length-invalid"}),
        (path, whole[: at + 16] + b"\x09" + whole[at + 17 :], {"magic-unknown"}),
    ]
    for suffix, codes in ((".index", {"index-not-sorted", "index-padding"}), (".timeindex", {"index-padding"})):
        index = path.with_suffix(suffix).read_bytes()
        half = len(index) // 24 * 12
        damages.append((path.with_suffix(suffix), index[:half] + bytes(len(index) - half), codes))
    of_local = re.compile("log.dirs|salvage|recover|follower|truncate|Stop the|log cleaner")
    for file, data, codes in damages:
        before = file.read_bytes()
        file.write_bytes(data)
        assert {row["code"] for row in verified(disk, bucket)} == codes
        shown = " ".join(command.run("verify", disk, "--remote", bucket).stdout.split())
        assert ("Put the whole object back" if file is path else "Write the indexes again") in shown
        assert not of_local.search(shown), of_local.search(shown)
        file.write_bytes(before)
    assert "names and sizes of their objects were compared" in command.run("doctor", disk, "--remote", bucket).stdout


def test_what_a_broker_refuses_or_ignores(broker: tuple[Path, Path]) -> None:
    """As real consumers found it: an index of a wrong size stops them, more bytes after the segment do not."""
    disk, bucket = broker
    first, second = sorted(bucket.rglob("*.log"))
    whole_second = second.read_bytes()
    second.write_bytes(whole_second + b"more than a header, and none" * 9)
    (row,) = verified(disk, bucket)
    assert (row["code"], row["severity"], row["offset"]) == ("remote-segment-size", "warning", 162793)
    assert "consumers read the whole segment" in row["consequence"]
    whole = first.read_bytes()
    for rest, offset in ((whole[:-16377], 161974), (whole[16377:-16377], 110377)):
        first.write_bytes(rest)  # a consumer skips to where it begins, or stops there
        (row,) = (
            row for row in verified(disk, bucket) if row["code"] == "remote-segment-size" and row["severity"] == "error"
        )
        assert row["offset"] == offset
    first.write_bytes(whole + whole_second)
    (row,) = (row for row in verified(disk, bucket) if row["code"] == "remote-segment-size" and row["offset"] == 110377)
    assert "reads records of another segment" in row["consequence"]
    first.write_bytes(whole)
    second.write_bytes(whole + whole_second[:-16377])  # a consumer gets what it has from its first offset on
    (row,) = (row for row in verified(disk, bucket) if row["code"] == "remote-segment-size")
    assert (row["severity"], row["offset"]) == ("error", 214390)
    size = len(whole_second)
    second.write_bytes((whole + whole_second)[16377 * 2 :][: size - size % 16377] + bytes(size % 16377))
    rows = [row for row in verified(disk, bucket) if row["code"] == "remote-segment-mismatch"]  # the same size
    assert [162793 < row["offset"] < 215208 for row in rows] == [True]
    second.write_bytes(whole_second)
    for suffix, code in ((".index", "index-size-invalid"), (".timeindex", "time-index-size-invalid")):
        path = first.with_suffix(suffix)
        data = path.read_bytes()
        path.write_bytes(data[:-1])
        (row,) = (row for row in verified(disk, bucket) if row["code"] == code)
        assert (row["severity"], row["offset"], row["file"]) == ("error", 110377, str(path))
        assert "reaches offset 110377 gets UNKNOWN_SERVER_ERROR" in row["consequence"]
        path.write_bytes(data)


STATED = {
    "intact": [],
    "copies": [("remote-orphan", 0), ("remote-orphan", 10)],
    "overlapping": [("remote-segment-overlap", 5), ("remote-segment-overlap", 10)],
    "other bytes than here": [("remote-segment-overlap", 0), ("remote-segment-overlap", 10)],
    "hole": [("offset-gap", 10)],
    "gap": [("offsets-unreadable", 10)],
    "gap without a replica": [("offsets-unreadable", 10)],
    "ends below the local log": [("offsets-unreadable", 15)],
    "another epoch": [("offsets-unreadable", 0)],
}


@each_case("what", STATED)
def test_offsets_that_several_objects_have_or_none(what: str, tmp_path: Path) -> None:
    """Of two segments, 0..9 and 10..19, with local segments from 20 on."""
    first, second, here = (0, 9), (10, 19), tmp_path / "disk" / "t-0"
    segments = {1: (*first, segment(1, *first)), 2: (*second, segment(1, *second))}
    if what == "overlapping":
        segments[3] = 5, 14, segment(3, 5, 14)
    if what == "hole":
        segments = {1: (0, 19, segment(1, *first) + segment(1, 15, 19))}
    if what.startswith("gap"):
        segments[2] = 15, 19, segment(1, 15, 19)
    if what == "ends below the local log":
        segments[2] = 10, 14, segment(1, 10, 14)
    changes, bucket = [], tmp_path / "bucket"
    for number, (low, high, data) in segments.items():
        epoch = 7 if what == "another epoch" and number == 1 else 0
        changes += [change(number, STARTED, low, high, size=len(data), epochs=[(epoch, low)]), change(number, FINISHED)]
        path = object_at(bucket, number, low)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    root = tiered(tmp_path / "disk", *changes)
    if what == "copies":
        shutil.copytree(path.parent, bucket / "copy" / path.parent.name)
    (here / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (root / "log-start-offset-checkpoint").write_text("0\n1\nt 0 0\n")
    for base in () if what == "other bytes than here" else (0, 10):
        (here / f"{base:020}.log").unlink()
        (here / f"{base:020}.snapshot").unlink()
    if what == "gap without a replica":
        shutil.rmtree(here)
    only = ("--only", "remote,bytes,offsets", "--json")
    rows = lines(command.run("verify", root, "--remote", bucket, *only).stdout)
    assert [(row["code"], row["offset"]) for row in rows if row.get("severity") in ("error", "warning")] == STATED[what]


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("{topic}/{name}.log", "{name} is not a field"),
        ("{topic}/{partition}.log", "it has no {topicId} and no {segmentId}"),
    ],
)
def test_a_pattern_that_names_no_segment(pattern: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=problem.replace("{", r"\{")):
        layout_pattern(pattern)
    assert problem in command.refused("verify", tmp_path, "--remote", tmp_path, "--remote-layout", pattern)
    assert "--quick needs --remote" in command.refused("verify", tmp_path, "--quick")


def test_real_consumers_stop_where_it_is_predicted() -> None:
    """What tools/remote_trials.py recorded of a real broker with changed buckets."""
    trials = json.loads((ROOT / "docs" / "remote-trials.json").read_text())
    waits = []
    for trial in trials:
        assert trial["predicted"] == trial["firstNotRead"]
        assert trial["afterPuttingItBack"] in (None, 260000)
        if trial["firstNotRead"] != 260000 and not trial["consumer"]:
            waits.append(trial["name"])
    text = (
        f"[remote-trials.json](remote-trials.json): in all {len(trials)} trials the consumer stopped at the predicted "
        f"offset. It waits for ever, without an error, after {', '.join(waits)}.\n"
    )
    many = json.loads((ROOT / "docs" / "bucket-trials.json").read_text())
    assert many["otherwise"] == []
    kinds, aiven = {**many["kinds"], **many["aiven"]}, sum(many["aiven"].values())
    assert many["changes"] == sum(many["kinds"].values()) + aiven
    of_aiven = f", {aiven} of them to a bucket of Aiven's plugin" if aiven else ""
    text += (
        f"[bucket-trials.json](bucket-trials.json): so it did after {many['changes']} random changes of {len(kinds)} "
        f"kinds{of_aiven} (tools/bucket_trials.py).\n"
    )
    hour = json.loads((ROOT / "docs" / "remote-at-work.json").read_text())
    assert [each["command"] for each in hour["failures"]] == ["stats --remote"]
    text += (
        f"[remote-at-work.json](remote-at-work.json): next to a broker that copied segments and deleted them for "
        f"{hour['minutes']:.0f} minutes, doctor and verify with `--remote` found nothing in {hour['rounds']} rounds "
        "(stats once missed an object that had just expired).\n"
    )
    check_table(ROOT / "docs" / "remote.md", "remote-trials.json", text)


def test_a_segment_that_is_never_copied(tmp_path: Path) -> None:
    """RemoteLogManager.copyLogSegment needs the producer snapshot at its end. What is in remote storage needs none."""
    root = copy_disk(DISKS / "kafka-4.3-tiered" / "disk", tmp_path / "disk")
    shown = ("verify", root, "--only", "snapshots")
    snapshot = rolled(root)
    snapshot.with_name(f"{215209:020}.snapshot").unlink()  # at the end of one that was copied
    assert command.objects(*shown)[:-1] == []
    snapshot.unlink()
    (finding,) = command.objects(*shown)[:-1]
    assert (finding["code"], finding["severity"], finding["offset"]) == ("tier-snapshot-missing", "warning", 215209)
    assert finding["file"].endswith(f"tiered-0/{215209:020}.log")
    assert (command.run("verify", root / "tiered-0", "--only", "snapshots").stdout.count(snapshot.name)) == 1
    held = ("retention", root, "--now", "2026-11-22", "--config", "local.retention.ms=1")
    (hold,) = (row for row in command.objects(*held, status=1) if row["type"] == "retentionHold")
    assert snapshot.name in hold["message"]
    assert "delete the .index of this segment" in hold["fix"]  # it has no other replica
    shutil.rmtree(root / "__remote_log_metadata-0")
    assert command.objects(*shown)[:-1] == []  # whether it was copied is unknown
