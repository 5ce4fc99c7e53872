"""The disks of three controllers and of brokers: who can be elected, what that loses, and what doctor makes of it. The
voters are copies of a real controller's disk that end at other offsets."""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest

import kdump
from kdump.incident.doctor.run import DoctorResult
from kdump.questions.restart_plan.answer import STOPPED
from kdump.questions.restart_plan.course import BEFORE
from kdump.questions.restart_plan.replicas import replicas_report
from tests import command
from tests.clock.sitecustomize import EVENING
from tests.conftest import DISKS
from tests.craft import patch, split, with_metadata_record

METADATA = "__cluster_metadata-0"
VOTERS = (0, 3, 4)
REMOVES_UNKNOWN_TOPIC = b"\x01\x09\x00" + b"?" * 16 + b"\x00"
run = partial(command.run, "restart-plan")


def voter(root: Path, node: int, share: float, *, later: float = 1.0, epoch: int = 1, leader: int = 0) -> Path:
    """Return the disk of a voter whose log has this share of the batches, in epoch 2 from the share `later` on, and
    whose quorum-state names a leader."""
    source = DISKS / "kafka-4.3/clean-0"
    root = root / f"voter-{node}"
    (root / METADATA).mkdir(parents=True)
    meta = (source / "meta.properties").read_text().splitlines()
    own = [f"node.id={node}" if line.startswith("node.id") else line for line in meta]
    own = [f"directory.id={'B' * 20}{node}A" if line.startswith("directory.id") else line for line in own]
    (root / "meta.properties").write_text("\n".join(own) + "\n")
    batches = split((source / METADATA / f"{0:020}.log").read_bytes())
    first = round(len(batches) * later)
    batches = [*batches[:first], *(patch(batch, partitionLeaderEpoch=2) for batch in batches[first:])]
    (root / METADATA / f"{0:020}.log").write_bytes(b"".join(batches[: round(len(batches) * share)]))
    voters = [{"voterId": each} for each in VOTERS]
    state = {"clusterId": "", "leaderId": leader, "leaderEpoch": epoch, "votedId": -1, "appliedOffset": 0}
    (root / METADATA / "quorum-state").write_text(json.dumps({**state, "currentVoters": voters, "data_version": 0}))
    return root


def brokers(root: Path) -> list[Path]:
    """Return the disks of two brokers of the same cluster."""
    paths = [Path(shutil.copytree(DISKS / f"kafka-4.3/clean-{node}", root / f"broker-{node}")) for node in (1, 2)]
    for path in paths:
        state = path / METADATA / "quorum-state"
        voters = json.dumps([{"voterId": each} for each in VOTERS])
        state.write_text(re.sub(r'"currentVoters":\[.*?\]', f'"currentVoters":{voters}', state.read_text()))
    return paths


def doctor(*paths: Path) -> DoctorResult:
    """Return what doctor finds right after the disks were made."""
    return kdump.doctor(list(map(str, paths)), kafka_version="4.3", now=EVENING * 1000)


def codes(*paths: Path) -> list[str]:
    """Return what doctor reports of the quorum and of brokers' directories."""
    found = doctor(*paths).items
    of_quorum = [each.code for each in found if each.topic == "__cluster_metadata" and each.code == "replicas-diverge"]
    return of_quorum + [each.code for each in found if each.code.startswith("startup-")]


def test_a_voter_from_an_older_copy_can_elect_a_log_that_lacks_topics(tmp_path: Path) -> None:
    """What only one voter has may have been committed: brokers have it, too."""
    paths = [voter(tmp_path, 0, 1), voter(tmp_path, 3, 0.3), voter(tmp_path, 4, 0.4), *brokers(tmp_path)]
    found = run(*paths, "--kafka-version", "4.3")
    assert found.exit_code == 1
    first, order, *_ = found.stdout.splitlines()
    assert "LOSES METADATA IN THE WRONG ORDER: up to" in first
    assert "STRAY" in first
    assert order == "  start controllers 0, 4 first, alone; when 0 leads the quorum, the other nodes"
    assert "    directories become stray: " in found.stdout
    assert "startup-quorum-loses" in codes(*paths)
    assert "replicas-diverge" not in codes(*paths)


def test_brokers_with_newer_metadata_than_any_voter_make_directories_stray(tmp_path: Path) -> None:
    paths = [voter(tmp_path, 3, 0.3), voter(tmp_path, 4, 0.4), *brokers(tmp_path)]
    made = kdump.restart_cluster(list(map(str, paths)), kafka_version="4.3")
    assert made.summary is not None
    assert (made.summary.electable, made.summary.quorumLosesLeast > 0) == ([4], True)
    assert [log.name for log in made.plans[2].partitions if log.stray] == ["ledger-0"]
    assert made.plans[2].loses
    of_ledger = [event.code for event in made.plans[2].course.events if event.topic == "ledger"]
    assert of_ledger == ["startup-stray"]  # and nothing of what would happen if it were live
    assert replicas_report.own_text([made.plans[2]]) == "; node 2 MAY LOSE DATA by itself"
    assert "startup-stray" in codes(*paths)


def test_the_tail_of_a_leader_that_was_not_elected_again_is_no_loss(tmp_path: Path) -> None:
    paths = [voter(tmp_path, node, 0.95, later=0.9, epoch=2) for node in (0, 3)] + [voter(tmp_path, 4, 1.0, leader=4)]
    found = run(*paths, "--kafka-version", "4.3")
    assert "LOSES NOTHING that may have been committed; controller 0 or 3 is elected" in found.stdout.splitlines()[0]
    assert found.exit_code == 0
    assert not {"replicas-diverge", "startup-quorum-loses"} & set(codes(*paths))


def test_a_voter_that_was_not_given_and_led_later_does_not_vote_for_an_older_log(tmp_path: Path) -> None:
    paths = [voter(tmp_path, 3, 0.95, later=0.9, epoch=2), voter(tmp_path, 4, 0.92)]
    assert kdump.restart_cluster(list(map(str, paths)), kafka_version="4.3").summary.electable == [3]  # type: ignore[union-attr]


@pytest.mark.parametrize(("formatted", "electable", "loses"), [((3,), [0, 4], False), ((3, 4), [0, 3, 4], True)])
def test_a_formatted_disk_of_a_static_voter_is_an_empty_log(
    formatted: tuple[int, ...], electable: list[int], loses: bool, tmp_path: Path
) -> None:
    paths = [voter(tmp_path, node, 1) for node in VOTERS]
    for node in formatted:
        shutil.rmtree(tmp_path / f"voter-{node}" / METADATA)
    made = kdump.restart_cluster(list(map(str, paths)), kafka_version="4.3").summary
    assert made is not None
    assert (sorted(made.electable), made.quorumLoses > 0, made.hasQuorum) == (electable, loses, True)


def test_without_a_majority_the_first_line_says_so(tmp_path: Path) -> None:
    """Voter 3 exits, and the disk of voter 4 is that of a node that does not start either."""
    paths = [voter(tmp_path, node, 1) for node in VOTERS]
    for path in paths[1:]:
        (path / METADATA / "leader-epoch-checkpoint").write_text("0\n1\nzero 0\n")
    found = run(*paths, "--kafka-version", "4.3")
    assert "NO CONTROLLER IS ELECTED: 1 of 3 voters can take part, and 2 are needed" in found.stdout.splitlines()[0]
    (lost,) = [each for each in doctor(*paths).items if each.code == "startup-quorum-lost"]
    assert [action.split(" ", 1)[0] for action in lost.actions] == ["Correct", "Alternatively,"]


def test_a_node_halts_at_no_record_that_the_leaders_log_replaces(tmp_path: Path) -> None:
    """What was predicted of it alone is no event of its startup either."""
    paths = [voter(tmp_path, node, 0.95, later=0.9, epoch=2) for node in (0, 3)] + [voter(tmp_path, 4, 1.0, leader=4)]
    log = paths[2] / METADATA / f"{0:020}.log"
    log.write_bytes(with_metadata_record(log.read_bytes(), REMOVES_UNKNOWN_TOPIC))
    assert [stop.code for stop in kdump.restart_plan([str(paths[2])]).stops] == ["startup-record-refused"]
    made = kdump.restart_cluster(list(map(str, paths)), kafka_version="4.3").plans[4]
    assert (made.allStops, made.verdict != STOPPED) == ([], True)
    assert not [event for event in made.course.events if event.phase == BEFORE]


def test_the_line_of_a_node_does_not_state_that_disks_are_missing_that_were_given() -> None:
    texts = doctor(*(DISKS / f"kafka-4.3/clean-{node}" for node in (0, 1, 2))).questions[0].byBroker
    assert [text for text in texts if "what follows is in the plan of the nodes together" in text]
    assert not [text for text in texts if "were not given" in text]


def test_what_the_only_voters_truncated_log_lacks_becomes_stray(tmp_path: Path) -> None:
    """One flipped bit, and no topic is before it."""
    disk = Path(shutil.copytree(DISKS / "kafka-4.3-tiered/disk", tmp_path / "disk"))
    log = disk / METADATA / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    batches = split(bytes(data))
    position = len(b"".join(batches[:2]))
    data[position + 70] ^= 1
    log.write_bytes(bytes(data))
    for path in (disk / METADATA).glob("*.checkpoint"):
        path.unlink()
    plan = kdump.restart_plan([str(disk)])
    assert plan.verdict != STOPPED
    live = [each for each in plan.logs if not each.state]
    assert live
    assert all(each.stray for each in live)
    assert {each.actions[0][:26] for each in live} == {"Put the metadata log back "}, "no topic was deleted"
    assert plan.status == 1
    lost = doctor(disk).items[0]
    assert (lost.code, lost.actions[0][:41]) == ("startup-loses", "Write the log with the damaged batch repa")
    command.run("salvage", disk / METADATA, "--damaged-records", "--out", tmp_path / "out")
    shutil.copytree(tmp_path / "out" / METADATA, disk / METADATA, dirs_exist_ok=True)
    assert not any(each.stray or each.loses for each in kdump.restart_plan([str(disk)]).logs)
