"""The zeros that log.preallocate=true leaves after the last batch: what happens to a broker that becomes the
partition's leader (docs/coordinator-trials.json), and what verify reports about them."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.cli import cli
from kdump.problems import catalogue
from tests.conftest import FIXTURES
from tests.craft import write_file

TRIALS = {
    each["name"]: each["steps"] for each in json.loads((FIXTURES.parent / "docs/coordinator-trials.json").read_text())
}
ZEROS = bytes(1 << 16)
GROUPS, SHARES, TRANSACTIONS, ORDINARY = (
    "__consumer_offsets-0",
    "__share_group_state-0",
    "__transaction_state-0",
    "orders-none-0",
)
KILLED = "preallocated-killed"
FAILED = ("preallocated-killed", "preallocated-stopped")
LOADED = ("plain-killed", "preallocated-rolled", "preallocated-restarted")


def answers(name: str, number: int = 1) -> dict[str, Any]:
    """Return what clients received after the coordinator stopped or, for 2, after the operator's action."""
    return [step for step in TRIALS[name] if step["step"] in ("prepare", "ask")][number]


def tails(name: str) -> dict[str, dict[str, Any]]:
    """Return the partitions of broker 2, the next leader, before the coordinator stopped."""
    steps = [step["step"] for step in TRIALS[name]]
    return TRIALS[name][steps.index("look")]["disks"]["broker-2"]["partitions"]


def zero_padding(disk: Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["verify", "--json", str(disk)])
    return [row for row in map(json.loads, result.stdout.splitlines()) if row.get("code") == "zero-padding"]


def committed(partition: Path) -> Iterator[tuple[Any, ...]]:
    for row in map(json.loads, CliRunner().invoke(cli, ["groups", "--json", str(partition)]).stdout.splitlines()):
        if row["type"] == "groupOffset":
            yield row["groupId"], row["topic"], row["partition"], row["offset"]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return a log directory with an unclean shutdown, whose active segments end with zeros."""
    for name in (GROUPS, SHARES, TRANSACTIONS, ORDINARY):
        shutil.copytree(FIXTURES / "clean-1" / name, tmp_path / "disk" / name)
        with max((tmp_path / "disk" / name).glob("0*.log")).open("ab") as log:
            log.write(ZEROS)
    return tmp_path / "disk"


# --- What the brokers did ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAILED)
def test_groups_are_lost_with_their_coordinator(name: str) -> None:
    before, after = answers(name, 0)["clients"], answers(name)
    assert before["committed offset"] == "60"
    assert after["clients"]["leader of __consumer_offsets"] == "2"
    for question in ("committed offset", "commit of an offset", "share group"):
        assert "TimeoutException" in after["clients"][question]
    assert after["clients"]["member of the group"] == "0 records"
    said = "\n".join(after["log"]["broker-2"])
    assert "Failed to load metadata from __consumer_offsets-1" in said
    assert "Failed to load metadata from __share_group_state-0" in said


@pytest.mark.parametrize("name", FAILED)
def test_transactions_are_not(name: str) -> None:
    before, after = answers(name, 0)["clients"], answers(name)
    for question in ("transaction ended", "transaction open", "read orders", "read users"):
        assert after["clients"][question] == before[question]
    assert any("Error loading transactions" in line for line in after["log"]["broker-2"])
    (end,) = [step for step in TRIALS[name] if step["step"] == "end"]
    assert end["clients"] == {"commit of the open transaction": "done"}


@pytest.mark.parametrize(("name", "number"), [(name, 1) for name in LOADED] + [(name, 2) for name in FAILED])
def test_a_replica_without_zeros_is_loaded(name: str, number: int) -> None:
    before, after = answers(name, 0)["clients"], answers(name, number)
    for question in ("committed offset", "commit of an offset", "transaction ended", "read orders", "read users"):
        assert after["clients"][question] == before[question]
    for question in ("member of the group", "share group"):  # it takes some more records until the segments are rolled
        assert int(after["clients"][question].split()[0]) >= int(before[question].split()[0]) > 0
    assert not [line for lines in after["log"].values() for line in lines if "ERROR" in line]


def test_the_cleaner_minds_no_zeros() -> None:
    """Consumers and followers ignore them too: what they read is checked in the other tests."""
    looks = [step["disks"] for steps in TRIALS.values() for step in steps if "disks" in step]
    assert all(disk["cleaned"] > 0 for look in looks for disk in look.values())
    logged = [
        line for steps in TRIALS.values() for step in steps for lines in step.get("log", {}).values() for line in lines
    ]
    assert not [line for line in logged if "Clean" in line]


# --- What verify says -------------------------------------------------------------------------------------------------


def test_what_a_new_leader_cannot_load_is_a_warning(disk: Path) -> None:
    found = {Path(row["file"]).parent.name: row for row in zero_padding(disk)}
    assert {name: row["severity"] for name, row in found.items()} == {
        name: "warning" if name in (GROUPS, SHARES) else "info" for name in (GROUPS, SHARES, TRANSACTIONS, ORDINARY)
    }
    log = "\n".join(answers(KILLED)["log"]["broker-2"])
    for name, quote in (
        (GROUPS, "Record size 0 is less than the minimum record overhead (14)"),
        (SHARES, "Record size 0 is less than the minimum record overhead (14)"),
        (TRANSACTIONS, "Error loading transactions"),
    ):
        assert f"'{quote}'" in found[name]["consequence"]
        assert quote in log
    assert "KAFKA-20841" not in found[ORDINARY]["consequence"]


def test_what_was_warned_of_on_the_running_broker_is_what_it_then_could_not_load() -> None:
    log = "\n".join(answers(KILLED)["log"]["broker-2"])
    warned = {name for name, tail in tails(KILLED).items() if tail["severity"] == "warning"}
    assert warned == set(re.findall(r"Failed to load metadata from (\S+) ", log)) >= {"__share_group_state-0"}
    assert all(tail["zeros"] > 0 and tail["severity"] in ("info", "warning") for tail in tails(KILLED).values())
    for name in LOADED:
        assert not [tail for tail in tails(name).values() if tail["severity"] == "warning"]


def test_nothing_else_is_minded_on_a_running_broker() -> None:
    looks = [step["disks"] for steps in TRIALS.values() for step in steps if "disks" in step]
    minded = {each for look in looks for disk in look.values() for each in disk["findings"] if "info " not in each}
    assert minded == {"warning zero-padding"}


@pytest.mark.parametrize("state", ["future", "stray", "delete"])
def test_a_replica_that_no_broker_serves_is_not_loaded(disk: Path, state: str) -> None:
    (disk / GROUPS).rename(disk / f"{GROUPS}.{'0' * 32}-{state}")
    assert {row["severity"] for row in zero_padding(disk) if row["topic"] == "__consumer_offsets"} == {"info"}


def test_a_segment_without_batches_is_not_loaded(disk: Path) -> None:
    """This is the third partition of __consumer_offsets, to which no group belongs."""
    log = "\n".join(answers(KILLED)["log"]["broker-2"])
    assert tails(KILLED)["__consumer_offsets-2"]["bytes"] == tails(KILLED)["__consumer_offsets-2"]["zeros"]
    assert "Finished loading of metadata from __consumer_offsets-2" in log
    write_file(disk / GROUPS / f"{0:020}.log", ZEROS)
    assert [row["severity"] for row in zero_padding(disk / GROUPS)] == ["info"]


def test_after_a_clean_shutdown_zeros_are_damage(disk: Path) -> None:
    (disk / ".kafka_cleanshutdown").touch()
    assert {row["severity"] for row in zero_padding(disk)} == {"error"}


def test_the_committed_offsets_are_on_the_disk_meanwhile(disk: Path) -> None:
    partitions = disk / GROUPS, FIXTURES / "clean-1" / GROUPS
    tailed, plain = (list(committed(at)) for at in partitions)
    assert tailed == plain
    assert ("group-classic", "orders-zstd", 0, 42) in tailed
    assert "kdump groups shows them" in catalogue.findings()["zero-padding"].fix


def test_the_catalogue_names_the_remedy_that_was_tried() -> None:
    code = catalogue.findings()["zero-padding"]
    settings = [step["step"] for step in TRIALS["preallocated-stopped"]]
    assert settings.index("set false") < settings.index("restart 2") < settings.index("restart 3")
    assert "one after another, with log.preallocate=false; then elect the preferred leaders" in code.fix
    assert [step["step"] for step in TRIALS["preallocated-rolled"]][:2] == ["prepare", "roll"]
    assert "set preallocate=false on the topic and lower its segment.ms" in code.fix
    assert "__consumer_offsets and __share_group_state" in code.unless
