"""The controller quorum in restart-plan: voters, what a node is among them, and disks that `kafka-storage format` made
for a dynamic quorum (KIP-853)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import kdump
from kdump.cluster.disks import Disks
from kdump.questions.restart_plan.answer import CLEAN, STOPPED, DirectoryPlan, PartitionPlan, QuorumVoter, RemovedBytes
from kdump.questions.restart_plan.node.quorum import metadata_after, quorum_warnings, read_quorum, sole_voter_stop
from kdump.state.metadata_image import MetadataImage, QuorumLeader, Voter
from kdump.state.metadata_problem import Kind, MetadataProblem
from tests import command
from tests.conftest import FIXTURES

OWN, OTHER = "yOs7EGq-SHmE9VUF0LhreQ", "iAgH5VBLppbNjuKAyjYpcA"
STANDALONE = FIXTURES / "standalone"


def directory(path: Path, node: int = 1) -> DirectoryPlan:
    return DirectoryPlan(str(path), None, metadataLogDir=True, nodeId=node, directoryId=OWN)


def log(path: Path, epoch: int = 3, **state: object) -> PartitionPlan:
    folder = path / "__cluster_metadata-0"
    folder.mkdir(exist_ok=True)
    if state:
        (folder / "quorum-state").write_text(json.dumps(state))
    found = PartitionPlan("__cluster_metadata", 0, str(folder), str(path), "", clean=False)
    found.lastEpoch = epoch
    return found


def image(*voters: Voter, version: int = 1) -> MetadataImage:
    return MetadataImage(voters={each.voterId: each for each in voters}, kraft_version=version)


THREE = image(Voter(1, OWN), Voter(2, OTHER), Voter(3, "NC0LDPpABlNgsHloSKd7mg"))
NOBODY = {"leaderId": -1, "votedId": -1, "data_version": 1}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({}, ("unattached", 3)),
        (NOBODY | {"leaderEpoch": 3, "leaderId": 2}, ("follower", 3)),
        (NOBODY | {"leaderEpoch": 5, "leaderId": 1}, ("resigned", 5)),
        (NOBODY | {"leaderEpoch": 5, "votedId": 1, "votedDirectoryId": OWN}, ("candidate", 5)),
        (NOBODY | {"leaderEpoch": 5, "votedId": 1, "votedDirectoryId": OTHER}, ("unattached", 5)),
        (NOBODY | {"leaderEpoch": 5, "leaderId": 9}, ("unattached", 5)),
        (NOBODY | {"leaderEpoch": 2, "leaderId": 2}, ("unattached", 3)),
    ],
)
def test_the_state_in_which_a_voter_starts(state: dict[str, object], expected: tuple[str, int], tmp_path: Path) -> None:
    found = read_quorum(directory(tmp_path), log(tmp_path, **state), THREE)
    assert (found.state, found.epoch) == expected
    assert (found.isVoter, found.majority, found.kraftVersion) == (True, 2, 1)


def test_another_directory_is_no_voter(tmp_path: Path) -> None:
    found = read_quorum(directory(tmp_path), log(tmp_path), image(Voter(1, OTHER)))
    assert (found.isVoter, found.hasOtherDirectory, found.state) == (False, True, "unattached")
    assert quorum_warnings(found, directory(tmp_path), None, is_controller=True) == []
    stop = sole_voter_stop(found, directory(tmp_path))
    assert stop is not None
    assert "never finishes its startup" in stop.message
    several = found._replace(voters=[*found.voters, QuorumVoter(2, OTHER)])
    assert sole_voter_stop(several, directory(tmp_path)) is None
    (warning,) = quorum_warnings(several, directory(tmp_path), None, is_controller=True)
    assert "add-controller" in warning.sentence


def test_static_voters_have_no_directories(tmp_path: Path) -> None:
    voters = [{"voterId": 1}, {"voterId": 2}]
    plan = log(tmp_path, leaderId=2, leaderEpoch=3, votedId=-1, currentVoters=voters, data_version=0)
    found = read_quorum(directory(tmp_path), plan, None)
    assert ([each.voterId for each in found.voters], found.isVoter, found.state) == ([1, 2], True, "follower")


def test_a_controller_that_is_no_voter(tmp_path: Path) -> None:
    found = read_quorum(directory(tmp_path, node=4), log(tmp_path), THREE)
    assert found.isVoter is False
    assert quorum_warnings(found, directory(tmp_path, node=4), THREE, is_controller=True)
    assert not quorum_warnings(found, directory(tmp_path, node=4), THREE, is_controller=False)


def test_a_leader_that_has_lost_quorum_state(tmp_path: Path) -> None:
    led = MetadataImage(voters=THREE.voters, kraft_version=1, leader=QuorumLeader(1, 3))
    found = read_quorum(directory(tmp_path), log(tmp_path), led)
    (warning,) = quorum_warnings(found, directory(tmp_path), led, is_controller=True)
    assert "inconsistent with current leader" in warning.title


def test_a_disk_formatted_with_standalone_starts() -> None:
    """Its only snapshot, which ends at offset 0, has voters and no other record."""
    plan = kdump.restart_plan([str(STANDALONE)])
    assert (plan.verdict, plan.status) == (CLEAN, 0)
    assert plan.quorum is not None
    assert (plan.quorum.state, plan.quorum.kraftVersion) == ("leader", 1)
    shown = command.run("restart-plan", STANDALONE).stdout
    assert shown.startswith(
        f"{STANDALONE}: STARTS normally; nothing is lost, and nothing within an hour; records are not"
    )
    assert "kraft.version 1, one voter" in shown
    assert "segment created\n" in shown
    assert "clean shutdown" not in shown


def test_the_same_disk_with_another_directory_id(tmp_path: Path) -> None:
    root = Path(shutil.copytree(STANDALONE, tmp_path / "disk"))
    meta = root / "meta.properties"
    meta.write_text(meta.read_text().replace(OWN, OTHER))
    plan = kdump.restart_plan([str(root)])
    assert plan.quorum is not None
    assert plan.quorum.hasOtherDirectory
    assert (plan.verdict, plan.status) == (STOPPED, 3)


@pytest.mark.parametrize("gap", [5, None])
def test_only_what_ended_the_replay_goes_with_the_end_of_the_log(
    gap: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot that was skipped is in doubt for ever, also if zeros are cut, which end no replay."""
    skipped, torn = MetadataProblem(Kind.SKIPPED, "no snapshot"), MetadataProblem(Kind.DAMAGED, "torn", 5)
    read = MetadataImage(end_offset=5, gap=gap, problems=[skipped, torn] if gap else [skipped])
    plan, disks = log(tmp_path), Disks(())
    plan.logEndOffset, plan.cuts = 5, [RemovedBytes("truncated", "log", 0, 9)]
    monkeypatch.setattr(disks.copies, "replayed", lambda path: read)
    left = metadata_after(plan, disks)
    assert left is not None
    assert left.problems == [skipped]
