"""kdump rescue: a cluster's metadata from the copies on its disks. docs/rescue-trials.json has what real clusters did
with the result."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.all_answers import TYPES
from kdump.cluster.metadata_files import metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.cluster.metadata_refusals import refusals
from kdump.format.batch_writer import new_batch
from kdump.format.control_record import KEY, ControlRecordKey
from kdump.format.kafka_release import parse_release
from kdump.format.kafka_uuid import uuid_text
from kdump.format.known_releases import newest
from kdump.format.message_writer import encode
from kdump.format.metadata_record import metadata_record_value
from kdump.format.schema import load
from kdump.kafka.config_def import config_exception
from kdump.kafka.quorum_state import check_quorum_state, quorum_state
from kdump.log import output_directory
from kdump.questions.rescue.answer import Rescue, RescueError, RescueRecord
from kdump.questions.rescue.numbers import MORE_EPOCHS, MORE_OFFSETS
from kdump.questions.rescue.rescuer import NewController
from kdump.questions.rescue.run import CopyRescuer, rescue
from kdump.state.as_of import AsOf
from kdump.state.metadata_image import MetadataImage
from tests import command
from tests.conftest import DISKS, ROOT
from tests.craft import flip, write_file
from tests.each_case import each_case
from tests.state.test_image_records import image_of, state
from tests.test_memory import MEASURE
from tools import metadata_trials
from tools.metadata_trials import IDS, Case, base

LOG = "__cluster_metadata-0"
CLUSTER = "FN96DRb6S3GeSIQS03itlw"
RELEASE = newest()
TRIALS = ROOT / "docs" / "rescue-trials.json"
CASES = {case.name: case for case in metadata_trials.cases(RELEASE)}
EACH = 25
"""Every so manieth mutated log is rescued."""
REAL = ROOT / "build" / "corpus" / "releases"


def leader(node: int, epoch: int, offset: int, voters: tuple[int, ...] = (1, 2, 3)) -> bytes:
    """Return the batch with which a leader begins an epoch."""
    values = {**load("LeaderChangeMessage").struct(0).default(), "leaderId": node}
    values["voters"] = [{"voterId": each} for each in voters]
    key = KEY.struct.pack(*ControlRecordKey(0, 2))
    return new_batch(offset, epoch, 1000, [(key, encode(load("LeaderChangeMessage"), 0, values))], is_control=True)


def named(record: str, **values: Any) -> bytes:
    return metadata_record_value(record, 0, values)


def topic(name: str, letter: str) -> bytes:
    return named("TopicRecord", name=name, topicId=IDS[letter])


def partition(letter: str, number: int = 0, **values: Any) -> bytes:
    """Return the record of a partition of a topic; its leader epoch is 5."""
    numbers = {"topicId": IDS[letter], "partitionId": number, "leader": 11, "leaderEpoch": 5}
    return metadata_record_value("PartitionRecord", 1, {**numbers, "replicas": [11], "isr": [11], **values})


LEVEL = named("FeatureLevelRecord", name="metadata.version", featureLevel=25)
UNKNOWN_TOPIC = named("RemoveTopicRecord", topicId=IDS["Z"])


def log_of(*epochs: tuple[int, list[bytes]], start: int = 0) -> bytes:
    """Return a log of these epochs; each begins with the record of its leader, and has a batch for each value."""
    data, offset = b"", start
    for epoch, values in epochs:
        data += leader(1, epoch, offset)
        offset += 1
        for value in values:
            data += new_batch(offset, epoch, 1000 + offset, [(None, value)])
            offset += 1
    return data


def disk(path: Path, node: int, log: bytes | None, cluster: str = CLUSTER, epoch: int = 1, directory: str = "") -> Path:
    """Return a log directory of a node with this metadata log, if any."""
    path.mkdir(parents=True)
    meta = f"#\nnode.id={node}\ndirectory.id={directory or IDS['DEFGT'[node % 5]]}\nversion=1\ncluster.id={cluster}\n"
    (path / "meta.properties").write_text(meta)
    if log is not None:
        write_file(path / LOG / f"{0:020}.log", log)
        state = {"clusterId": "", "leaderId": 1, "leaderEpoch": epoch, "votedId": -1, "appliedOffset": 0}
        state |= {"currentVoters": [{"voterId": 1}], "data_version": 0}
        (path / LOG / "quorum-state").write_text(json.dumps(state))
    return path


def of_snapshot(made: Rescue) -> MetadataImage:
    """Return the image that a node of the rescued cluster loads."""
    assert made.controllers[0].directory is not None
    return image_of(metadata_files(os.path.join(made.controllers[0].directory, LOG)))


def fates(made: Rescue) -> list[tuple[str, int | None, int | None]]:
    return [(each.fate, each.offset, each.lastOffset) for each in made.records]


def hashes(*paths: Path) -> dict[str, str]:
    files = [each for path in paths for each in sorted(path.rglob("*")) if each.is_file()]
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


def tiles(records: list[RescueRecord], end: int) -> bool:
    """Return whether the lines of the copy that is used cover its offsets in order."""
    position = 0
    for each in records:
        if each.fate == "otherHistory" or each.offset is None:
            continue
        if each.offset != position or each.lastOffset is None:
            return False
        position = each.lastOffset + 1
    return position == end


def test_every_fatal_record_is_left_out(tmp_path: Path) -> None:
    """What is written of a mutated log has no record that a node refuses, and what is left out is what it refuses."""
    for number, name in enumerate([*CASES][3::EACH]):
        folder = tmp_path / str(number)
        disk(folder / "disk", 1, None)
        metadata_trials.write(CASES[name], folder / "disk" / LOG, RELEASE)
        before = replay_metadata(metadata_files(str(folder / "disk" / LOG)))
        known = parse_release("4.4.0")
        request = {"controllers": (NewController(1, "host", 9093),), "kafka_version": known}
        if "metadata.version" not in before.features:
            with pytest.raises(RescueError, match=r"has no metadata\.version"):
                rescue(str(folder / "disk"), out=str(folder / "out"), **request)
            assert not (folder / "out").exists()
            continue
        made = rescue(str(folder / "disk"), out=str(folder / "out"), **request)
        after = of_snapshot(made)
        assert not refusals(after, known), name
        assert not after.problems, name
        configs = [each for topic in before.topics.values() for each in topic.configs.items()]
        are_invalid = any(config_exception(*each, known) for each in configs)
        assert (bool(refusals(before, known)) or are_invalid) == bool(made.summary.leftOut), name
        assert tiles(made.records, before.end_offset), name


@pytest.mark.every_disk
def test_a_copy_is_replayed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay with which copies are compared leaves out what a second one, by the rules of the release, does."""
    names, first, again = [*CASES][1::EACH], CopyRescuer._first_replay, 0
    for name, release in product(names, (None, parse_release("4.4.0"), parse_release("3.9.1"))):
        place = disk(tmp_path / f"{name} {release}", 1, None)
        metadata_trials.write(CASES[name], place / LOG, RELEASE)
        request = {"controllers": (NewController(1, "host", 9093),), "kafka_version": release}
        made: list[Any] = []
        for kept in (lambda rescuer, made=made: made.append(first(rescuer)) or made[-1], lambda rescuer: None):
            monkeypatch.setattr(CopyRescuer, "_first_replay", kept)
            try:
                answer = rescue(str(place), **request)
                made.append([answer.summary, answer.copies, answer.ledger, answer.steps])
            except RescueError as error:
                made.append(str(error))
        assert made[-2] == made[-1], (name, release)
        again += made[0] is None
    assert again < len(names)


def test_the_state_is_that_of_the_copy(tmp_path: Path) -> None:
    metadata_trials.write(Case("all", base(RELEASE)), tmp_path / "disk" / LOG, RELEASE)
    disk_ = tmp_path / "disk"
    meta = f"version=1\nnode.id=3000\ncluster.id={CLUSTER}\ndirectory.id={IDS['D']}\n"
    (disk_ / "meta.properties").write_text(meta)
    controllers = (NewController(1, "host", 9093),)
    made = rescue(str(disk_), out=str(tmp_path / "out"), controllers=controllers)
    was, now = state(image_of(metadata_files(str(disk_ / LOG)))), state(of_snapshot(made))
    assert now.pop("next")[0] > was.pop("next")[0]
    raised = [(each.leaderEpoch, old.leaderEpoch) for each, old in zip(_partitions(now), _partitions(was))]
    assert raised
    assert all(new == old + MORE_EPOCHS for new, old in raised)
    for each in (was, now):
        del each["topics"]
    assert now == was


def _partitions(found: dict[str, Any]) -> list[Any]:
    return [each for _, _, partitions in found["topics"].values() for each in partitions.values()]


def test_what_depends_on_a_record_that_is_left_out(tmp_path: Path) -> None:
    values = [
        LEVEL,
        topic("t", "T"),
        partition("T"),
        topic("t", "U"),
        partition("U"),
        partition("U", 1),
        topic("v", "V"),
    ]
    made = rescue(str(disk(tmp_path / "d", 1, log_of((1, values)))))
    left_out = [each for each in made.records if each.fate != "kept"]
    assert [(each.fate, each.offset, each.lastOffset, each.because) for each in left_out] == [
        ("leftOut", 4, 4, None),
        ("dependent", 5, 6, 4),
    ]
    assert left_out[0].dependents == 2
    assert "different ID than before" in left_out[0].reason
    assert (made.summary.leftOut, made.summary.dependents, made.summary.topics) == (1, 2, 2)
    assert tiles(made.records, 8)


def test_later_records_about_the_same(tmp_path: Path) -> None:
    change = metadata_record_value("PartitionChangeRecord", 0, {"partitionId": 0, "topicId": IDS["T"], "leader": -1})
    values = [LEVEL, topic("t", "T"), partition("T"), change, change]
    path = str(disk(tmp_path / "d", 1, log_of((1, values))))
    made = rescue(path, leave_out=frozenset((4,)))
    (left_out,) = [each for each in made.records if each.fate != "kept"]
    assert (left_out.about, left_out.later, left_out.reason) == (f"partition 0 of topic {IDS['T']}", 1, "--leave-out")


def test_an_aborted_transaction_is_not_kept(tmp_path: Path) -> None:
    begin, abort = named("BeginTransactionRecord"), named("AbortTransactionRecord")
    values = [LEVEL, begin, topic("t", "T"), abort, topic("u", "U"), begin, topic("v", "V")]
    path = str(disk(tmp_path / "d", 1, log_of((1, values))))
    made = rescue(path, out=str(tmp_path / "out"))
    assert set(of_snapshot(made).topics) == {"u"}
    assert fates(made) == [("kept", 0, 1), ("uncommitted", 2, 3), ("kept", 4, 5), ("uncommitted", 6, 7)]


def test_copies_that_diverge(tmp_path: Path) -> None:
    """The later epoch counts, as in an election; what the other copy has after the divergence is named."""
    shared = (1, [LEVEL, topic("t", "T")])
    longer = disk(tmp_path / "longer", 1, log_of((1, [*shared[1], topic("u", "U"), topic("v", "V"), topic("w", "W")])))
    later = disk(tmp_path / "later", 2, log_of(shared, (2, [topic("x", "X")])))
    behind = disk(tmp_path / "behind", 3, log_of(shared))
    made = rescue([str(each) for each in (longer, later, behind)], out=str(tmp_path / "out"))
    found = {
        Path(each.path).name: (each.state, each.sameUntil, each.ownOffsets, each.ownEpochs) for each in made.copies
    }
    assert found == {"longer": ("diverges", 3, 3, (1,)), "later": ("used", 5, 0, ()), "behind": ("behind", 3, 0, ())}
    assert set(of_snapshot(made).topics) == {"t", "x"}
    assert [each.file for each in made.records if each.fate == "otherHistory"] == [str(longer)]
    assert made.summary.committedOffset == 3, "which two of three voters have"
    for path, expected in ((later, 3), (longer, None)):  # a later leader wrote records; or nothing shows it
        summary = json.loads(command.run("cluster", path, "--json").stdout.splitlines()[0])
        assert rescue(str(path)).summary.committedOffset == summary["committedOffset"] == expected
    chosen = rescue([str(longer), str(later)], copy=str(longer))
    assert (chosen.summary.topics, chosen.summary.leaderEpoch) == (4, 1)


def test_numbers_above_everything(tmp_path: Path) -> None:
    """Also above a quorum-state and a broker epoch that are newer than every copy."""
    one = disk(tmp_path / "one", 1, log_of((1, [LEVEL])), epoch=7)
    two = disk(tmp_path / "two", 2, log_of((1, [LEVEL])), epoch=5000)
    (two / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":77777777}')
    made = rescue([str(one), str(two)], out=str(tmp_path / "out"))
    assert made.summary.newEpoch == 5000 + MORE_EPOCHS
    assert made.summary.newOffset == 77777777 + MORE_OFFSETS
    for controller in made.controllers:
        assert controller.directory is not None
        folder = os.path.join(controller.directory, LOG)
        assert quorum_state(folder).epoch == made.summary.newEpoch
        check_quorum_state(os.path.join(folder, "quorum-state"), parse_release("3.9"))
        name = f"{made.summary.newOffset:020}"
        assert {f"{name}-{made.summary.newEpoch:010}.checkpoint", f"{name}.log"} < set(os.listdir(folder))


def test_a_broker_epoch_above_32_bits(tmp_path: Path) -> None:
    path = disk(tmp_path / "d", 1, log_of((1, [LEVEL, topic("t", "T"), partition("T")])))
    (path / ".kafka_cleanshutdown").write_text(json.dumps({"version": 0, "brokerEpoch": 1 << 40}))
    assert rescue(str(path)).summary.newOffset == (1 << 40) + MORE_OFFSETS
    (path / ".kafka_cleanshutdown").write_text(json.dumps({"version": 0, "brokerEpoch": (1 << 63) - 1}))
    with pytest.raises(RescueError, match="no room"):
        rescue(str(path))


def test_a_leader_epoch_on_a_disk_is_higher(tmp_path: Path) -> None:
    path = disk(tmp_path / "d", 1, log_of((1, [LEVEL, topic("t", "T"), partition("T")])))
    write_file(path / "t-0" / f"{0:020}.log", b"")
    (path / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n123456 9\n")
    made = rescue(str(path), out=str(tmp_path / "out"))
    assert of_snapshot(made).topics["t"].partitions[0].leaderEpoch == 123456 + MORE_EPOCHS


def test_controllers_by_name(tmp_path: Path) -> None:
    path = disk(tmp_path / "d", 1, log_of((1, [LEVEL])))
    controllers = (NewController(1, "one", 9093), NewController(9, "::1", 9094))
    made = rescue(str(path), out=str(tmp_path / "out"), controllers=controllers)
    found = {each.nodeId: (each.endpoint, each.found) for each in made.controllers}
    assert found == {1: ("one:9093", str(path)), 9: ("::1:9094", None)}
    folder = tmp_path / "out" / "controller-9"
    assert quorum_state(str(folder / LOG)).voters == (1, 9)
    text = (folder / "meta.properties").read_text()
    assert f"node.id=9\ndirectory.id={made.controllers[1].directoryId}\nversion=1\ncluster.id={CLUSTER}\n" in text
    assert {"voters", "directory.id of controller 9"} <= {each.what for each in made.inventions}


def test_a_dynamic_quorum_has_its_voters(tmp_path: Path) -> None:
    source = ROOT / "build" / "corpus" / "releases" / "4.4.0-kraft"
    assert DISKS.exists()
    assert source.exists()
    voters = {**load("VotersRecord").struct(0).default()}
    voters["voters"] = [
        {
            "voterId": 1,
            "voterDirectoryId": IDS["E"],
            "endpoints": [{"name": "INTERNAL", "host": "one", "port": 9093}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
    ]
    log = leader(1, 1, 0)
    for offset, (kind, name, values) in enumerate(
        [(5, "KRaftVersionRecord", {"version": 0, "kRaftVersion": 1}), (6, "VotersRecord", voters)], 1
    ):
        key = KEY.struct.pack(*ControlRecordKey(0, kind))
        log += new_batch(offset, 1, 1000, [(key, encode(load(name), 0, values))], is_control=True)
    log += new_batch(3, 1, 1000, [(None, LEVEL)])
    path = disk(tmp_path / "d", 1, log, directory=IDS["E"])
    made = rescue(str(path), out=str(tmp_path / "out"))
    image = of_snapshot(made)
    assert (image.kraft_version, list(image.voters)) == (1, [1])
    assert (image.voters[1].voterDirectoryId, image.voters[1].endpoints[0][:3]) == (IDS["E"], ("INTERNAL", "one", 9093))
    state_file = tmp_path / "out" / "controller-1" / LOG / "quorum-state"
    assert json.loads(state_file.read_text())["data_version"] == 1


@pytest.mark.every_disk
@each_case("name", ["4.4.0-kraft", "4.3.1-kraft", "4.0.0-kraft", "3.9.1-kraft", "3.6.2-kraft", "3.3.2-kraft"])
def test_the_only_controller_of_a_real_cluster_is_lost(name: str, tmp_path: Path) -> None:
    """The broker's copy has its topics; its own records stay what they are."""
    shutil.copytree(REAL / name / "crash", tmp_path / "disk")
    before = hashes(tmp_path / "disk")
    made = rescue(str(tmp_path / "disk"), out=str(tmp_path / "out"))
    assert hashes(tmp_path / "disk") == before
    was, now = image_of(metadata_files(str(tmp_path / "disk" / LOG))), of_snapshot(made)
    assert {each.id for each in now.topics.values()} == {each.id for each in was.topics.values()}
    assert now.brokers == was.brokers
    assert [each.found for each in made.controllers] == [None]
    # Retention deletes records of years ago.
    plan = command.objects("restart-plan", made.controllers[0].directory or "", tmp_path / "disk", status=1)
    assert not [each for each in plan if each.get("isStray")]


def _of_zookeeper(path: Path) -> Path:
    path.mkdir()
    (path / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n")
    return path


def refused(root: Path) -> dict[str, tuple[list[Path | str], str]]:
    """Return arguments for which nothing is written, and what the message says."""
    log = log_of((1, [LEVEL, topic("t", "T"), topic("u", "U")]))
    good = disk(root / "good", 1, log)
    damaged = disk(root / "damaged", 1, flip(log, 8 * len(log_of((1, [LEVEL]))) + 600))
    (root / "empty").mkdir()
    (root / "exists" / "file").mkdir(parents=True)
    numbers = log_of((1, [LEVEL, named("ProducerIdsRecord", brokerId=1, brokerEpoch=1, nextProducerId=2**63 - 9)]))
    old = metadata_record_value("FeatureLevelRecord", 0, {"name": "group.version", "featureLevel": 1})
    return {
        "no Kafka files": ([root / "empty"], "no Kafka"),
        "missing": ([good, root / "missing"], "missing"),
        "clusters": ([good, disk(root / "other", 2, log, cluster="x" * 22)], "of different clusters"),
        "no copy": ([disk(root / "none", 1, None)], "no copy of the metadata log"),
        "ZooKeeper": ([_of_zookeeper(root / "zookeeper")], "a broker with ZooKeeper"),
        "damaged": ([damaged], "damaged from offset 2 on, with valid records after that"),
        "exists": ([good, "--out", root / "exists"], "exists and is not empty"),
        "inside": ([good, "--out", good / "out"], "refusing to write"),
        "after the end": ([good, "--as-of", "99"], "ends at offset 4"),
        "no such record": ([good, "--leave-out", "99"], "no metadata record at this offset"),
        "no such copy": ([good, "--copy", root / "empty"], "--copy"),
        "no voters": ([disk(root / "voters", 11, b"".join([log[len(leader(1, 1, 0)) :]]))], "records are missing"),
        "largest epoch": ([disk(root / "epoch", 1, log_of((2**31 - 1, [LEVEL])))], "leader epoch on these disks"),
        "largest producer ID": ([disk(root / "ids", 1, numbers)], "producer ID on these disks"),
        "no level": ([disk(root / "level", 1, log_of((1, [old])))], "has no metadata.version"),
    }


def test_nothing_is_written_when_it_is_refused(tmp_path: Path) -> None:
    for name, (arguments, message) in refused(tmp_path).items():
        out = [] if "--out" in arguments else ["--out", tmp_path / "out"]
        result = command.run("rescue", *arguments, *out)
        assert result.exit_code == 2, (name, result.stdout)
        assert message in result.stderr or name == "no voters", (name, result.stderr)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("kdump: as of ")]
        assert len(lines) == 1 or name in ("no Kafka files", "missing"), (name, result.stderr)
        assert not (tmp_path / "out").exists()
        assert not list(tmp_path.glob("*.kdump-part"))


def test_a_torn_end_is_no_damage(tmp_path: Path) -> None:
    """A node that was killed may have written half a batch, which it truncates when it starts."""
    log = log_of((1, [LEVEL, topic("t", "T"), topic("u", "U")]))
    made = rescue(str(disk(tmp_path / "d", 1, log[:-9])), out=str(tmp_path / "out"))
    assert set(of_snapshot(made).topics) == {"t"}
    assert any("torn" in each for each in made.summary.notes)
    assert (made.summary.damagedOffset, made.records[-1].fate) == (3, "damaged")
    assert command.run("rescue", tmp_path / "d", "--dry-run").exit_code == 1


def test_a_copy_that_cannot_be_read(tmp_path: Path) -> None:
    """It may be the newest one: nothing is written."""
    good = disk(tmp_path / "good", 1, log_of((1, [LEVEL])))
    bad = disk(tmp_path / "bad", 2, log_of((1, [LEVEL, topic("t", "T")])))
    (bad / LOG / f"{0:020}.log").unlink()
    (bad / LOG / f"{0:020}.log").symlink_to(f"{0:020}.log")  # too many levels of links
    result = command.run("rescue", good, bad, "--out", tmp_path / "out")
    assert (result.exit_code, os.path.exists(tmp_path / "out")) == (2, False), result.stderr


def test_another_copy_is_damaged(tmp_path: Path) -> None:
    """It may have more than the one that is used."""
    records = [LEVEL, topic("t", "T"), partition("T")]
    data, whole = log_of((1, [*records, topic("u", "U")])), log_of((1, records))
    damaged = disk(tmp_path / "d", 1, flip(data, 8 * len(log_of((1, records[:2]))) - 1))
    made = rescue([str(damaged), str(disk(tmp_path / "e", 2, whole))])
    assert [(each.state, each.endOffset) for each in made.copies] == [("damaged", 2), ("used", 4)]
    assert (made.records[-1].fate, made.records[-1].offset, made.is_whole) == ("otherHistory", 2, False)


def test_the_state_before_the_damage(tmp_path: Path) -> None:
    log = log_of((1, [LEVEL, topic("t", "T"), topic("u", "U"), topic("v", "V")]))
    path = disk(tmp_path / "d", 1, flip(log, 8 * len(log_of((1, [LEVEL, topic("t", "T")]))) + 600))
    made = rescue(str(path), out=str(tmp_path / "out"), as_of=AsOf(offset=2))
    assert set(of_snapshot(made).topics) == {"t"}


def test_the_state_of_a_moment(tmp_path: Path) -> None:
    path = str(disk(tmp_path / "d", 1, log_of((1, [LEVEL, topic("t", "T"), topic("u", "U")]))))
    for number, moment in enumerate((AsOf(offset=2), AsOf(time=1002))):
        made = rescue(path, out=str(tmp_path / f"out-{number}"), as_of=moment)
        assert set(of_snapshot(made).topics) == {"t"}
        assert made.records[-1].fate == "afterMoment"
        assert made.summary.newOffset > 4


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = disk(tmp_path / "d", 1, log_of((1, [LEVEL])))

    def full(path: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(output_directory, "sync_file_system", full)
    result = command.run("rescue", path, "--out", tmp_path / "out")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert os.strerror(errno.ENOSPC) in result.stderr
    assert os.listdir(tmp_path) == ["d"]


def test_a_running_node_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kdump.questions.rescue import rescuer

    path = disk(tmp_path / "d", 1, log_of((1, [LEVEL])))
    monkeypatch.setattr(rescuer, "lock_holder", lambda directory: 4711)
    result = command.run("rescue", path, "--out", tmp_path / "out")
    assert (result.exit_code, "process 4711" in result.stderr) == (2, True)
    assert command.run("rescue", path, "--while-running", "--out", tmp_path / "out").exit_code == 0


def test_a_newer_release_is_refused_without_a_name(tmp_path: Path) -> None:
    path = disk(tmp_path / "d", 1, log_of((1, [LEVEL, b"\x01\x7b\x00\x00", topic("t", "T")])))
    with pytest.raises(RescueError, match="newer than"):
        rescue(str(path))
    made = rescue(str(path), kafka_version=parse_release("4.4"))
    assert (made.summary.leftOut, made.summary.topics) == (1, 1)


def test_a_bundle_has_no_secrets(tmp_path: Path) -> None:
    """They are left out, and named; of equal copies, that of a disk is used."""
    user = named("UserScramCredentialRecord", name="ann", mechanism=1, salt=b"salt", storedKey=b"key", iterations=4096)
    secrets = [
        named("ConfigRecord", resourceType=4, resourceName="", name="ssl.keystore.password", value="secret"),
        named("DelegationTokenRecord", owner="User:ann", tokenId="token", requester="User:ann"),
    ]
    plain = named("ConfigRecord", resourceType=2, resourceName="t", name="retention.ms", value="7")
    records = [LEVEL, user, *secrets, topic("t", "T"), partition("T"), plain]
    path, packed = disk(tmp_path / "d", 1, log_of((1, records))), tmp_path / "d.tar"
    command.run("bundle", path, "--out", tmp_path / "d.dir", "--tar", packed, "--quiet")
    found = command.objects("rescue", packed, "--out", tmp_path / "out", status=1)
    left = [each for each in found if each["type"] == "rescueRecord" and each["fate"] == "leftOut"]
    assert [each["record"] for each in left] == ["UserScramCredentialRecord", "ConfigRecord", "DelegationTokenRecord"]
    assert {each["reason"] for each in left} == {"its secret is not in the bundle"}
    commands = [each["command"] for each in found if each["type"] == "rescueStep"]
    assert f"mv {path}/{LOG} {path}{LOG}.before-rescue && " in commands[3]
    image = image_of(metadata_files(str(tmp_path / "out" / "controller-1" / LOG)))
    assert (image.scram, image.tokens, image.topics["t"].configs) == ({}, {}, {"retention.ms": "7"})
    other = disk(tmp_path / "other", 2, log_of((1, records)))
    [summary] = command.objects("rescue", packed, other, "--dry-run")[:1]
    assert (summary["source"], summary["leftOut"]) == (str(other), 0)


@each_case("option", ["--redact", "--no-internal"])
def test_a_bundle_that_lacks_something_is_refused(option: str, tmp_path: Path) -> None:
    path = disk(tmp_path / "d", 1, log_of((1, [LEVEL, topic("t", "T"), partition("T")])))
    command.run("bundle", path, "--out", tmp_path / "b", option, "--quiet")
    result = command.run("rescue", tmp_path / "b", "--dry-run")
    assert (result.exit_code, "the bundle" in result.stderr) == (2, True)


def test_json_and_report(tmp_path: Path) -> None:
    path = disk(tmp_path / "d", 1, log_of((1, [LEVEL, UNKNOWN_TOPIC, topic("t", "T"), partition("T")])))
    found = command.objects("rescue", path, "--out", tmp_path / "out", status=1, types=TYPES)
    assert {each["type"] for each in found} == {
        *("rescueSummary", "rescueCopy", "rescueRecord", "rescueInvention", "rescueController", "rescueStep")
    }
    ledger = [json.loads(line) for line in (tmp_path / "out" / "ledger.jsonl").read_text().splitlines()]
    assert ledger == [each for each in found if each["type"] in ("rescueRecord", "rescueInvention")]
    result = command.run("rescue", path, "--dry-run")
    assert result.exit_code == 1
    assert result.stdout.startswith("NOTHING WRITTEN (--dry-run): ")
    assert "1 record LEFT OUT" in " ".join(result.stdout.split())
    for arguments in (["--dry-run", "--out", "x"], []):
        assert command.run("rescue", path, *arguments).exit_code == 2


@each_case("text", ["1", "1@host", "x@host:1", "1@host:0", "1@host:65536", "1@::1:9", f"{2**31}@host:9", "1@h:9 "])
def test_a_controller_that_is_none(text: str, tmp_path: Path) -> None:
    result = command.run("rescue", tmp_path, "--dry-run", "--controller", text)
    assert (result.exit_code, "is not a controller" in result.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.every_disk
def test_memory(tmp_path: Path) -> None:
    """20,000 partitions and 200,000 records; 200,000 and 2,000,000 take less than 250 MiB."""
    path, out = disk(tmp_path / "d", 1, b""), tmp_path / "peak"
    uuids = [uuid_text(bytes([each]) * 16) for each in range(65, 165)]
    lists = {"replicas": [1, 2, 3], "isr": [1, 2, 3], "directories": uuids[:3]}
    offset = 1
    with (path / LOG / f"{0:020}.log").open("wb") as file:

        def write(values: list[bytes]) -> None:
            nonlocal offset
            file.write(new_batch(offset, 1, 1000 + offset, [(None, each) for each in values]))
            offset += len(values)

        file.write(leader(1, 1, 0))
        write([LEVEL])
        for number, each in enumerate(uuids):
            values = {"topicId": each, "leader": 1, **lists}
            write([named("TopicRecord", name=f"topic-{number}", topicId=each)])
            for name, version, times in (("PartitionRecord", 1, 1), ("PartitionChangeRecord", 0, 9)):
                record = metadata_record_value(name, version, {**values, "partitionId": 0})
                for _ in range(times):
                    write([record[:3] + each.to_bytes(4, "big") + record[7:] for each in range(200)])
    arguments = [sys.executable, "-m", "kdump", "rescue", path, "--out", tmp_path / "out", "--quiet"]
    subprocess.run([sys.executable, "-IS", "-c", MEASURE, out, *arguments], check=True, cwd=ROOT)
    status, peak = map(int, out.read_text().split())
    assert (status, offset) == (0, 200_102)
    assert peak < 100 * 1024, f"{peak} KiB"


def test_real_clusters_went_on() -> None:
    trials = json.loads(TRIALS.read_text())
    assert len(trials) >= 70
    assert not [each["name"] for each in trials if each["differences"]]
    assert all(each["works"] for each in trials)


def test_a_backup_is_not_what_a_node_starts_with(tmp_path: Path) -> None:
    """Commands for the copy of a log directory would leave the log directory as it is."""
    good = disk(tmp_path / "disk", 1, log_of((1, [LEVEL, topic("t", "T")])), directory=IDS["E"])
    shutil.copytree(good, tmp_path / "before" / "disk")
    for paths in ((good, tmp_path / "before"), (tmp_path,)):
        result = command.run("rescue", *paths, "--dry-run")
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{good}: a copy of {tmp_path}/before/disk, or that of this one; pass one of them" in result.stderr


def test_the_path_may_be_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hidden directory in log.dirs would keep a broker from starting."""
    here = disk(tmp_path / "disk", 1, log_of((1, [LEVEL])))
    monkeypatch.chdir(here)
    made = rescue(".", out=str(tmp_path / "out"))
    (moved,) = (each.command for each in made.steps if each.command and "before-rescue" in each.command)
    assert f"{here}__cluster_metadata-0.before-rescue" in moved


def test_a_controller_that_was_formatted_anew(tmp_path: Path) -> None:
    """Its state has no topics; a broker has then made their directories stray."""
    path = disk(tmp_path / "disk", 11, log_of((1, [LEVEL])))
    stray = path / f"t-0.{'0' * 32}-stray"
    stray.mkdir()
    (stray / "partition.metadata").write_text(f"version: 0\ntopic_id: {IDS['T']}\n")
    made = rescue(str(path))
    assert made.summary.notUsed == 1
    assert not made.is_whole
    assert "--from-data --with-stray" in " ".join(made.summary.notes)
    assert "1 partition directory NOT IN IT" in command.run("rescue", path, "--dry-run").stdout
    found = command.objects("doctor", path, status=1)
    item = next(each for each in found if each.get("code") == "startup-without-metadata")
    assert item["severity"] == "error"
    assert any("rescue" in each and "--with-stray" in each for each in item["commands"])


def test_a_controller_that_was_no_voter_is_named(tmp_path: Path) -> None:
    path = disk(tmp_path / "disk", 1, log_of((1, [LEVEL])))
    request = {"controllers": (NewController(7, "h", 9093),)}
    (note,) = rescue(str(path), **request).summary.notes
    assert note.startswith("controller 7 was no voter before (voters: 1, 2, 3)")


def test_a_partition_that_is_newer_than_the_copy(tmp_path: Path) -> None:
    path = disk(tmp_path / "disk", 1, log_of((1, [LEVEL, topic("t", "T"), partition("T")])))
    for number in (0, 1):
        (path / f"t-{number}").mkdir()
        (path / f"t-{number}" / "partition.metadata").write_text(f"version: 0\ntopic_id: {IDS['T']}\n")
    made = rescue(str(path))
    assert made.summary.notUsed == 1
    assert f"{path}/t-1" in made.summary.notes[0]


def test_a_directory_that_no_broker_reads_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """lost+found, which only root may list."""
    disk(tmp_path / "data", 1, log_of((1, [LEVEL])))
    (tmp_path / "lost+found").mkdir()
    listed = os.scandir

    def scandir(path: Any) -> Any:
        if os.path.basename(path) == "lost+found":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert command.run("rescue", tmp_path, "--dry-run").stdout.startswith("NOTHING WRITTEN (--dry-run)")
    (made,) = command.objects("bundle", tmp_path, "--out", tmp_path.parent / f"{tmp_path.name}.bundle")
    assert made["unread"] == 0


def lab(root: Path, *gone: int) -> list[str]:
    """Return the disks of a controller and two brokers, some without their replica of ledger-0."""
    paths = [shutil.copytree(DISKS / f"kafka-4.3/clean-{node}", root / str(node)) for node in range(3)]
    for node in gone:
        shutil.rmtree(root / str(node) / "ledger-0")
        for path in (root / str(node)).glob("re*-offset-checkpoint"):
            lines = [line for line in path.read_text().splitlines()[2:] if not line.startswith("ledger ")]
            path.write_text("\n".join(["0", str(len(lines)), *lines]) + "\n")
    return list(map(str, paths))


def test_a_replica_of_which_its_broker_has_nothing_does_not_lead(tmp_path: Path) -> None:
    """The state names broker 2 as the only eligible leader of ledger-0, and only broker 1 has records: it leads, and
    the first start loses nothing of it, as restart-plan says of the same disks."""
    paths = lab(tmp_path, 2)
    made = rescue(paths, out=str(tmp_path / "out"))
    (charge,) = [each for each in made.inventions if each.what == "ledger-0"]
    assert (charge.was, charge.now) == ("leader -1, ISR [], ELR [2]", "leader 1, ISR [1], ELR []")
    partition = of_snapshot(made).topics["ledger"].partitions[0]
    assert (partition.leader, partition.isr, partition.eligibleLeaderReplicas) == (1, (1,), ())
    # An unclean election can still give it to broker 2, if that one starts first.
    assert (made.summary.losesAtStart, made.summary.losesLeast) == (70, 0)
    assert made.firstStart is not None
    assert made.firstStart.order[0] == 1
    plan = kdump.restart_cluster([str(tmp_path / "out/controller-0"), *paths[1:]]).summary
    assert plan is not None
    assert (plan.worstLost, plan.lost, plan.startOrder[0]) == (70, 0, 1)


def test_what_the_first_start_loses_comes_before_what_is_rescued(tmp_path: Path) -> None:
    paths = lab(tmp_path)
    found = command.run("rescue", *paths, "--out", tmp_path / "out")
    first, second, *_ = found.stdout.splitlines()
    assert first.startswith(
        "THE FIRST START LOSES RECORDS: up to 20 offsets: ledger-0 on broker 1 is truncated from 70"
    )
    assert second.startswith("RESCUED: ")
    assert found.exit_code == 1
    assert "start broker 1 first, and when it leads its partitions, " in found.stdout
    plan = kdump.restart_cluster([str(tmp_path / "out/controller-0"), *paths[1:]]).summary
    assert plan is not None
    assert (plan.worstLost, plan.lost) == (20, 15)
