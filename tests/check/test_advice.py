"""Checks the sentences of the catalogue and of the incident pages as an operator would follow them: every command
exists with its options, no action loses a replica or a producer's state, and the actions agree with the trials on real
brokers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from kdump.check.catalogue import CATALOGUE
from kdump.check.rules.directories import misnamed
from kdump.cli import cli
from kdump.log.paths import Target
from tests import craft
from tests.command import objects
from tests.conftest import ROOT
from tests.remedies import REMEDIES

TRIALS: dict[str, dict[str, Any]] = {
    row["name"]: row for row in json.loads((ROOT / "docs" / "remedy-trials.json").read_text())
}
TOOLS = "org.apache.kafka.tools."
KNOWN: dict[str, tuple[str, str]] = {
    "kafka-topics.sh": (f"{TOOLS}TopicCommand", "--bootstrap-server --describe --topic"),
    "kafka-configs.sh": ("kafka.admin.ConfigCommand", "--bootstrap-server --alter --topic --add-config"),
    "kafka-consumer-groups.sh": (
        f"{TOOLS}consumer.group.ConsumerGroupCommand",
        "--bootstrap-server --group --topic --reset-offsets --to-offset --to-datetime --from-file --execute --delete",
    ),
    "kafka-delete-records.sh": (f"{TOOLS}DeleteRecordsCommand", "--bootstrap-server --offset-json-file"),
    "kafka-transactions.sh find-hanging": (f"{TOOLS}TransactionsCommand find-hanging", "--bootstrap-server --topic"),
    "kafka-transactions.sh abort": (
        f"{TOOLS}TransactionsCommand abort",
        "--bootstrap-server --topic --partition --start-offset",
    ),
    "kafka-reassign-partitions.sh": (
        f"{TOOLS}reassign.ReassignPartitionsCommand",
        "--bootstrap-server --reassignment-json-file --execute --verify --cancel --replica-alter-log-dirs-throttle",
    ),
    "kafka-features.sh": (
        "org.apache.kafka.tools.FeatureCommand downgrade",
        "--bootstrap-server --release-version --metadata --dry-run",
    ),
    "kafka-cluster.sh": (f"{TOOLS}ClusterTool cluster-id", "--bootstrap-server"),
    "kafka-storage.sh": ("kafka.tools.StorageTool format", "--cluster-id"),
    "kafka-metadata-quorum.sh describe": (
        f"{TOOLS}MetadataQuorumCommand describe",
        "--bootstrap-controller --status --replication",
    ),
}
"""The class behind each script of Kafka 4.3.1, and the options that are used. A test that has Kafka's jars checks
them."""
WORDS = [*(f"{code.code}: {text}" for code in CATALOGUE.values() for text in (code.fix, code.consequence))]
PAGES = sorted((ROOT / "docs" / "incidents").glob("*.md"))


def kafka_commands(text: str) -> list[tuple[str, set[str]]]:
    """Return the Kafka scripts in a text, each with its subcommand and its options up to the end of the command."""
    found = []
    for match in re.finditer(r"(kafka-[a-z-]+\.sh)((?:\s+(?:-{1,2}[a-z][a-z-]*|[^\s`;,)]+))*)", text):
        words = match[2].split()
        taken: list[str] = []
        for word in words:
            taken.append(word.rstrip(".,:;)"))
            if word.endswith((".", ":", ";", ")")):
                break
        subcommands = [word for word in ("find-hanging", "abort", "describe") if word in taken]
        name = " ".join([match[1], *subcommands[:1]])
        found.append((name, {word for word in taken if word.startswith("--")}))
    return found


@pytest.mark.parametrize("text", WORDS, ids=lambda text: text.split(":")[0])
def test_a_command_of_kafka_has_its_options(text: str) -> None:
    for name, options in kafka_commands(text):
        assert options <= set(KNOWN[name][1].split()), name
        assert options & {"--bootstrap-server", "--bootstrap-controller"}, f"{name} does not say where"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_command_of_an_incident_has_its_options(page: Path) -> None:
    for name, options in kafka_commands(page.read_text()):
        assert options <= set(KNOWN[name][1].split()), name


@pytest.mark.jars
@pytest.mark.parametrize("name", KNOWN)
def test_kafka_has_these_options(name: str) -> None:
    command, options = KNOWN[name]
    jars = os.path.join(os.environ["KDUMP_JARS"], "*")
    there = set()
    for words in {tuple(command.split()), tuple(command.split()[:1])}:  # options of the tool, and of its subcommand
        said = subprocess.run(["java", "-cp", jars, *words, "--help"], capture_output=True, text=True, check=False)
        there |= set(re.findall(r"--[a-z][a-z-]*", said.stdout + said.stderr))
    assert set(options.split()) <= there


@pytest.mark.parametrize("text", WORDS, ids=lambda text: text.split(":")[0])
def test_a_command_of_kdump_exists_with_its_options(text: str) -> None:
    assert isinstance(cli, click.Group)
    for match in re.finditer(r"kdump ([a-z][a-z-]+)((?: --[a-z-]+)*)", text):
        command = cli.get_command(click.Context(cli), match[1])
        assert command is not None, match[0]
        there = {option for parameter in command.params for option in parameter.opts}
        assert set(match[2].split()) <= there


@pytest.mark.parametrize("code", CATALOGUE.values(), ids=lambda code: code.code)
def test_no_replica_is_moved_away_that_could_become_the_leader(code: Any) -> None:
    if "move this partition's directory out" in code.fix or "fetches the partition again" in code.fix:
        assert all(word in code.fix for word in ("Leader", "Isr", "Elr", "Otherwise keep the directory"))


@pytest.mark.parametrize("code", CATALOGUE.values(), ids=lambda code: code.code)
def test_no_index_is_deleted_where_recovery_would_truncate(code: Any) -> None:
    """If the .log is damaged, the index is not to be deleted: see the trials damage-index-removed and
    offset-back-index-removed."""
    for sentence in re.split(r"(?<=\.) ", code.fix):
        if "delete the" in sentence and ".index" in sentence and "not delete" not in sentence:
            assert "no damage in the .log files" in code.fix or "back the partition's directory up" in sentence


@pytest.mark.parametrize("code", CATALOGUE.values(), ids=lambda code: code.code)
def test_no_snapshot_is_deleted(code: Any) -> None:
    """Without its snapshot a broker loses track of open transactions: see the trial snapshot-removed."""
    for match in re.finditer(r"(\S+ \S+ )delete [^.]*snapshot", code.fix):
        assert "not" in match[1]


def test_every_remedy_was_tried() -> None:
    assert set(TRIALS) == {remedy.name for remedy in REMEDIES}


@pytest.mark.parametrize(
    "name",
    [
        "torn-index-removed", "tail-index-removed", "zeros-index-removed", "time-index-and-index-removed",
        "epochs-and-index-removed", "segment-renamed", "txn-entry-index-removed", "txn-version-index-removed",
        "snapshot-left", "snapshot-emptied",
    ],
)  # fmt: skip
def test_what_is_advised_mends_the_partition(name: str) -> None:
    assert TRIALS[name]["broker"] == "starts"
    assert TRIALS[name]["left"] == []


def aborted(name: str) -> int:
    """Number of bytes by which the .txnindex grows, because the coordinator aborts the transaction that is open on the
    disk."""
    before, after = TRIALS[name]["sizes"][f"{0:020}.txnindex"]
    return int(after - before)


def test_without_a_snapshot_a_broker_forgets_open_transactions() -> None:
    assert aborted("snapshot-left") == aborted("snapshot-emptied") == 34
    assert aborted("snapshot-removed") == 0
    assert TRIALS["snapshot-removed"]["left"] == ["txn-index-mismatch"]


def test_an_index_that_is_deleted_costs_what_is_behind_damage_in_its_segment() -> None:
    before, after = TRIALS["damage-index-removed"]["sizes"][f"{0:020}.log"]
    assert after < before
    assert "offset-gap" in TRIALS["damage-index-removed"]["left"]


def test_a_segment_that_is_recovered_before_a_gap_costs_the_producers() -> None:
    """This does not happen if the last segment is recovered as well."""
    snapshot = f"{255:020}.snapshot"
    assert TRIALS["old-index-removed"]["sizes"][snapshot] == [286, 286]
    assert TRIALS["gap-index-removed"]["sizes"][snapshot] == [286, 10]
    assert TRIALS["gap-both-removed"]["sizes"][snapshot] == [286, 286]
    for code in CATALOGUE.values():
        if "delete the .index of this segment" in code.fix:
            assert "and of the log's last segment" in code.fix


def test_leader_epochs_come_back_only_with_recovery() -> None:
    assert "0 0" in TRIALS["epochs-and-index-removed"]["epochs"]
    assert "0 0" not in TRIALS["epochs-removed"]["epochs"]


def test_a_last_replica_that_is_moved_away_leads_with_an_empty_log() -> None:
    assert TRIALS["partition-moved-away"]["logEnd"] == 0


def test_unreadable_bytes_stop_a_fetch_and_a_recovery() -> None:
    assert TRIALS["unreadable"]["broker"] == "starts"
    assert TRIALS["unreadable"]["consumed"] == ""
    assert TRIALS["unreadable-recovered"]["broker"] == "exits"


@pytest.mark.parametrize(
    ("name", "stops"),
    [
        (f"{0:020}.log", False), ("-5.log", False), ("+7.index", False), ("abc.log", True), ("abc.index", True),
        ("abc.snapshot", True), ("9223372036854775807.log", False), ("9223372036854775808.log", True), ("-.swap", True),
        ("abc.deleted", False), ("notes.txt", False), ("\u00b2.log", True), ("9" * 5000 + ".log", True),
    ],
)  # fmt: skip
def test_names_that_end_a_startup(name: str, stops: bool) -> None:
    path = f"/disk/t-0/{name}"
    found = list(misnamed(Target(path, None, "t", 0, None, path)))
    assert ["exits" in finding.consequence for finding in found] in ([[True]] if stops else [[], [False]])


@pytest.mark.parametrize("name", ["abc.snapshot", "abc.log", "abc.swap", "abc.txnindex"])
def test_a_name_that_ends_a_startup_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(craft.batch([craft.record(0)]))
    (tmp_path / "t-0" / name).touch()
    rows = objects("verify", tmp_path / "t-0", status=1)
    (wrong,) = [row for row in rows if row.get("severity") == "error"]
    assert (wrong["code"], Path(wrong["file"]).name) == ("file-unknown", name)
    assert "exits" in wrong["consequence"]


STRANGE = re.compile(
    r"\b(sound|anew|behind|beside|nobody|somebody|mind|minds|believes?|told|foretell|(?<!there )(?:is|are) no)\b"
)


@pytest.mark.parametrize("code", CATALOGUE.values(), ids=lambda code: code.code)
def test_plain_english(code: Any) -> None:
    for text in (code.meaning, code.consequence, code.fix, code.unless):
        assert not STRANGE.search(text), STRANGE.search(text)
