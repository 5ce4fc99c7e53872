"""Who else has a replica of what is lost here: restart-plan, verify and doctor say it from the metadata on the disk."""

from __future__ import annotations

from pathlib import Path

from kdump.cluster.metadata_log import read_metadata
from kdump.state.other_replicas import OtherReplicas, other_replicas, who_has_it
from tests.command import objects, run
from tests.conftest import FIXTURES
from tests.each_case import each_case
from tools.incident import lay_out

ALONE = "by the metadata on the disk no other broker has a replica"


@each_case(
    "brokers, in_sync, text",
    [
        ((), (), ALONE),
        ((2,), (), "broker 2 has a replica, not in sync"),
        ((2,), (2,), "broker 2 has a replica, in sync"),
        ((2, 3), (2, 3), "brokers 2 and 3 have replicas, in sync"),
        ((2, 3, 4), (3,), "brokers 2, 3 and 4 have replicas (in sync: 3)"),
    ],
)
def test_text(brokers: tuple[int, ...], in_sync: tuple[int, ...], text: str) -> None:
    assert who_has_it(OtherReplicas(brokers, in_sync)) == text


def test_what_the_metadata_states() -> None:
    metadata = read_metadata(str(FIXTURES / "disk-1"))
    assert other_replicas(metadata, "orders-none", 0, 1) == OtherReplicas((), (), may_lead=True)
    found = other_replicas(metadata, "ledger", 0, 1)
    assert found is not None
    assert found.brokers == (2,)
    assert other_replicas(metadata, "ledger", 0, 7) is None, "not a replica of that broker"
    assert other_replicas(metadata, "no-such-topic", 0, 1) is None
    assert other_replicas(None, "ledger", 0, 1) is None
    assert who_has_it(None) == "another replica may have it"


def test_the_commands_say_that_there_is_no_other_replica(tmp_path: Path) -> None:
    """A truncation of the only replica is final: nothing may say that another one may have the records."""
    lay_out("flipped-bit-before-recovery", tmp_path / "disks")
    (disk,) = (tmp_path / "disks").iterdir()
    for command in ("restart-plan", "verify", "doctor"):
        text = " ".join(run(command, disk).stdout.split())
        assert ALONE in text, command
        assert "another replica may have" not in text, command
    plans = [each for each in objects("restart-plan", disk, status=1) if each["type"] == "restartPartition"]
    assert {each["topic"]: each["otherReplicas"] for each in plans}["orders-none"] == []


def test_without_metadata_another_replica_may_have_it(tmp_path: Path) -> None:
    lay_out("flipped-bit-before-recovery", tmp_path / "disks")
    (disk,) = (tmp_path / "disks").iterdir()
    for each in (disk / "__cluster_metadata-0").iterdir():
        each.unlink()
    (disk / "__cluster_metadata-0").rmdir()
    assert "another replica may have it" in run("restart-plan", disk).stdout
