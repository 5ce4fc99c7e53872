"""Checks the sentences of the catalogue and of the incident pages as an operator would follow them: every command
exists with its options, no action loses a replica or a producer's state, and the actions agree with the trials on real
brokers."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import pytest

import kdump
from kdump.check.engine.units import units
from kdump.check.finding import Code, Finding, problem_of
from kdump.check.options import Options
from kdump.check.rules.directories import misnamed
from kdump.check.totals import CheckTotals
from kdump.cli import cli
from kdump.incident.explain.catalogue import messages
from kdump.kafka.errors import CorruptRecord, FullIndex, KafkaError
from kdump.log.paths import Target, target
from kdump.problems import catalogue
from kdump.problems.advice import PLACEHOLDER, chosen_texts
from kdump.problems.catalogue import PAST_IT, Action, conditions, fact_clauses
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import startup_failure
from kdump.state.metadata_refusal import Refusal
from tests import craft
from tests.command import objects, run
from tests.conftest import DISKS, FIXTURES, ROOT, few, sample
from tests.damages import DAMAGES, DISK_PATHS, DOUBTS, copy_disk, leave_out_alike
from tests.each_case import each_case
from tests.remedies import REMEDIES
from tools.findings_reference import CHANGES_NOTHING
from tools.incident_trials import INCIDENTS
from tools.trials.cluster import config_command

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TRIALS: dict[str, dict[str, Any]] = {
    row["name"]: row for row in json.loads((ROOT / "docs" / "remedy-trials.json").read_text())
}
INCIDENT_TRIALS: list[dict[str, Any]] = json.loads((ROOT / "docs" / "incident-trials.json").read_text())
TOOLS = "org.apache.kafka.tools."
CONFIGS = "ConfigCommand"
"""Its package depends on the release."""
KNOWN: dict[str, tuple[str, str]] = {
    "kafka-topics.sh": (f"{TOOLS}TopicCommand", "--bootstrap-server --describe --topic"),
    "kafka-configs.sh": (
        CONFIGS,
        "--bootstrap-server --bootstrap-controller --alter --describe --topic --entity-type --entity-name "
        "--entity-default --add-config "
        "--delete-config",
    ),
    "kafka-consumer-groups.sh": (
        f"{TOOLS}consumer.group.ConsumerGroupCommand",
        "--bootstrap-server --group --topic --reset-offsets --to-offset --to-datetime --from-file --execute --dry-run "
        "--delete",
    ),
    "kafka-acls.sh": (f"{TOOLS}AclCommand", "--bootstrap-server --add --allow-principal --operation --topic"),
    "kafka-delegation-tokens.sh": (
        f"{TOOLS}DelegationTokenCommand",
        "--bootstrap-server --command-config --create --max-life-time-period",
    ),
    "kafka-log-dirs.sh": (f"{TOOLS}LogDirsCommand", "--bootstrap-server --describe"),
    "kafka-share-groups.sh": (
        f"{TOOLS}consumer.group.ShareGroupCommand",
        "--bootstrap-server --delete-offsets --group --topic --reset-offsets --to-latest --dry-run --execute",
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
    "kafka-features.sh downgrade": (
        f"{TOOLS}FeatureCommand downgrade",
        "--bootstrap-server --feature --release-version --dry-run",
    ),
    "kafka-features.sh upgrade": (f"{TOOLS}FeatureCommand upgrade", "--bootstrap-server --metadata --release-version"),
    "kafka-leader-election.sh": (
        f"{TOOLS}LeaderElectionCommand",
        "--bootstrap-server --election-type --topic --partition",
    ),
    "kafka-cluster.sh": (f"{TOOLS}ClusterTool cluster-id", "--bootstrap-server"),
    "kafka-storage.sh": ("kafka.tools.StorageTool format", "--cluster-id"),
    "kafka-metadata-quorum.sh describe": (
        f"{TOOLS}MetadataQuorumCommand describe",
        "--bootstrap-controller --status --replication",
    ),
    "kafka-metadata-quorum.sh add-controller": (
        f"{TOOLS}MetadataQuorumCommand add-controller",
        "--bootstrap-controller --command-config",
    ),
    "kafka-metadata-quorum.sh remove-controller": (
        f"{TOOLS}MetadataQuorumCommand remove-controller",
        "--bootstrap-controller --controller-id --controller-directory-id",
    ),
}
"""The class behind each script of Kafka 4.3.1, and the options that are used. A test that has Kafka's jars checks
them."""
SUBCOMMANDS = ("find-hanging", "abort", "describe", "add-controller", "remove-controller", "upgrade", "downgrade")
CODES = [*catalogue.all_problems().values()]
ACTIONS = [(code.code, action) for code in CODES for action in code.actions]
WORDS = [
    f"{code.code}: {text}"
    for code in CODES
    for text in (*(action.do for action in code.actions), code.title, code.consequence, *code.impacts.values())
]
PAGES = sorted((ROOT / "docs" / "incidents").glob("*.md"))


def kafka_commands(text: str) -> list[tuple[str, set[str]]]:
    """Return the Kafka scripts in a text, each with its subcommand and its options up to the end of the command."""
    found = []
    for match in re.finditer(r"(kafka-[a-z-]+\.sh)((?:\s+(?:-{1,2}[a-z][a-z-]*|[^\s`;,)]+))*)", text):
        words = match[2].split()
        taken: list[str] = []
        for word in words:
            if word == "$":  # the next command
                break
            taken.append(word.rstrip(".,:;)"))
            if word.endswith((".", ":", ";", ")")):
                break
        subcommands = [word for word in SUBCOMMANDS if word in taken]
        name = " ".join([match[1], *subcommands[:1]])
        found.append((name, {word for word in taken if word.startswith("--")}))
    return found


@each_case("text", WORDS, ids=lambda text: text.split(":")[0])
def test_a_command_of_kafka_has_its_options(text: str) -> None:
    for name, options in kafka_commands(text):
        assert options <= set(KNOWN[name][1].split()), name
        assert options & {"--bootstrap-server", "--bootstrap-controller"}, f"{name} does not say where"
        assert name != "kafka-transactions.sh find-hanging" or "--topic" in options


@each_case("page", PAGES, ids=lambda page: page.stem)
def test_a_command_of_an_incident_has_its_options(page: Path) -> None:
    for name, options in kafka_commands(page.read_text()):
        assert options <= set(KNOWN[name][1].split()), name


@pytest.mark.jars
@pytest.mark.parametrize("name", KNOWN)
def test_kafka_has_these_options(name: str) -> None:
    command, options = KNOWN[name]
    jars = os.path.join(os.environ["KDUMP_JARS"], "*")
    command = config_command(Path(os.environ["KDUMP_JARS"])) if command == CONFIGS else command
    there = set()
    for words in {tuple(command.split()), tuple(command.split()[:1])}:  # options of the tool, and of its subcommand
        said = subprocess.run(["java", "-cp", jars, *words, "--help"], capture_output=True, text=True, check=False)
        there |= set(re.findall(r"--[a-z][a-z-]*", said.stdout + said.stderr))
    assert set(options.split()) <= there


@each_case("text", [text for text in WORDS if "which kdump does" not in text], ids=lambda text: text.split(":")[0])
def test_a_command_of_kdump_exists_with_its_options(text: str) -> None:
    assert isinstance(cli, click.Group)
    for match in re.finditer(r"kdump ([a-z][a-z-]+)((?: --[a-z-]+)*)", text):
        command = cli.get_command(click.Context(cli), match[1])
        assert command is not None, match[0]
        there = {option for parameter in command.params for option in parameter.opts}
        assert set(match[2].split()) <= there


def test_no_replica_is_moved_away_that_could_become_the_leader() -> None:
    fetches = [action for _, action in ACTIONS if "fetches the partition" in action.do and "move" in action.do]
    assert len(fetches) > 10
    for action in fetches:
        assert all(word in action.do for word in ("Leader", "Isr", "Elr"))
        assert ("intactElsewhere", True) in action.when


def test_no_index_is_deleted_where_recovery_would_truncate() -> None:
    """If the .log is damaged, the index is not to be deleted: see the trials damage-index-removed and
    offset-back-index-removed."""
    deletes = [action for _, action in ACTIONS if re.search(r"[Dd]elete the \.index", action.do)]
    assert len(deletes) > 5
    for action in deletes:
        backed_up = "back the partition's directory up" in action.do or "ack DIR up" in action.do
        assert ("logDamaged", False) in action.when or backed_up, action


@each_case("code, action", ACTIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_condition_is_a_fact_or_a_case_of_the_problem(code: str, action: Action) -> None:
    for fact, _ in action.when:
        assert all(isinstance(clause, str) for clause in fact_clauses(fact))
    assert not re.search(r"\bif (?:it|this|the) ", action.do), "a condition that is a fact"


def test_an_action_is_a_sentence_after_a_condition_and_without_the_one_before() -> None:
    """A condition that is unknown is stated before it, and the action before it may not be shown."""
    every = [*ACTIONS, *((code.code, catalogue.action(text)) for code in CODES for text in code.never)]
    every += [(message.name, action) for message in messages() for action in message.actions]
    for name, action in every:
        assert not re.match(r"(?:Or|Otherwise|Then)\b", action.do), name
        assert not (action.when and re.match(r"If\b", action.do)), name


def test_no_broker_is_stopped_that_is_not_running() -> None:
    for code in CODES:
        texts = Problem(code.code, defaultdict(lambda: "X"), {"running": False}).actions
        assert not [text for text in texts if text.startswith("Stop the")], code.code


def test_every_fact_decides_an_action() -> None:
    declared = tomllib.loads((ROOT / "kdump" / "problems" / "facts.toml").read_text())
    advice = [*(action for _, action in ACTIONS), *(catalogue.action(each) for code in CODES for each in code.never)]
    of_problems = {fact for action in advice for fact, _ in action.when}
    of_messages = {fact for message in messages() for action in message.actions for fact, _ in action.when}
    choosing = {fact for message in messages() for fact, _ in conditions(message.when)}
    assert of_problems | of_messages | choosing == set(declared)


def test_every_phrase_is_used() -> None:
    folder = ROOT / "kdump" / "problems"
    texts = "".join(path.read_text() for path in [*folder.glob("*.toml"), *ROOT.glob("kdump/problems/messages/*.toml")])
    for name in tomllib.loads((folder / "phrases.toml").read_text()):
        assert f"{{{name}}}" in texts, name


@each_case("code", CODES, ids=lambda code: code.code)
def test_no_snapshot_is_deleted(code: Any) -> None:
    """Without its snapshot a broker loses track of open transactions: see the trial snapshot-removed."""
    for match in re.finditer(r"(\S+ \S+ )delete [^.]*snapshot", code.fix):
        assert "not" in match[1]


def test_every_remedy_was_tried() -> None:
    assert set(TRIALS) == {remedy.name for remedy in REMEDIES}


@each_case("name", [incident.name for incident in INCIDENTS])
def test_the_action_that_was_tried_of_an_incident_is_right(name: str) -> None:
    """Done as printed, with a real broker: nothing is left, and nothing else lost."""
    (row,) = [row for row in INCIDENT_TRIALS if row["name"] == name]
    assert (row.get("isFirst", True), row["broker"], row["left"], row["lost"]) == (True, "starts", [], {})
    assert row.get("before", "exits") == "exits"  # without the action
    assert "consumedLog" not in row
    assert "consumedCommittedLog" not in row


METADATA_FILES = (
    "bootstrap.checkpoint",
    "__cluster_metadata-0/00000000000000000000.log",
    "__cluster_metadata-0/00000000000000000200-0000000001.checkpoint",
)
OF_PARTITIONS = re.compile(r"log\.dirs|kafka-(?:topics|consumer-groups)\.sh|kdump salvage")
"""What helps with the replica of a topic. The metadata log is in no topic, and bootstrap.checkpoint in no partition."""


@each_case("file", METADATA_FILES)
def test_no_advice_for_a_replica_is_given_for_metadata(file: str) -> None:
    for code in CODES:
        if code.family in ("bytes", "records"):
            finding = Code(code.code).finding(target(f"/disk/{file}"), message="damaged", offset=5)
            assert not [text for text in finding.actions if OF_PARTITIONS.search(text)], code.code


def test_a_damaged_bootstrap_checkpoint_is_moved_away() -> None:
    finding = Code("crc-mismatch").finding(target("/disk/bootstrap.checkpoint"), message="damaged")
    assert [text.partition(":")[0] for text in finding.actions] == [
        "Move /disk/bootstrap.checkpoint out of the log directory"
    ]


MOST_UNTRIED = 0.1
"""Share of the actions of errors that change something."""


def of_errors() -> dict[str, list[Action]]:
    """Return the actions of errors, by what they do to a stopped broker."""
    errors = [code for code in CODES if code.severity == "error"]
    found: dict[str, list[Action]] = {}
    for action in (each for code in errors for each in (*code.actions, *code.object_actions)):
        found.setdefault(chosen_texts([action._replace(when=())], {"running": False})[0], []).append(action)
    return found


def test_the_trials_of_an_action_exist() -> None:
    recorded = (json.loads(path.read_text()) for path in (ROOT / "docs").glob("*-trials.json"))
    names = {row.get("name") for rows in recorded if isinstance(rows, list) for row in rows}
    trials = {trial for _, action in ACTIONS for trial in action.trials}
    assert trials <= names
    assert {incident.name for incident in INCIDENTS} <= trials


def test_no_more_actions_are_untried() -> None:
    actions = of_errors()
    for do, same in actions.items():
        assert all(bool(one.trials) != bool(one.untried) for one in same), do
    changing = [same for same in actions.values() if not any(one.untried == CHANGES_NOTHING for one in same)]
    untried = [same[0].do for same in changing if not any(one.trials for one in same)]
    assert len(untried) <= MOST_UNTRIED * len(changing)


def test_what_asks_for_nothing_is_marked() -> None:
    """doctor puts it last, and does not read that from its words."""
    assert all(action.nothing == action.do.startswith("Do nothing") for _, action in ACTIONS)


@each_case("row", INCIDENT_TRIALS, ids=lambda row: row["name"])
def test_an_action_that_was_tried_is_the_one_that_was_printed(row: dict[str, Any]) -> None:
    printed = row["action"].lower()
    actions = [each._replace(when=()) for _, each in ACTIONS if row["name"] in each.trials]
    for action in actions:
        words = re.split(r"\{[^}]*\}|\b[A-Z-]{3,}\b", chosen_texts([action], {"running": False})[0])
        if all(part.strip(" .:,").lower() in printed for part in words):
            return
    raise AssertionError(printed)


@each_case(
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
    for code in catalogue.findings().values():
        if "elete the .index of this segment" in code.fix:
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


@each_case("name, stops",
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


@each_case("name", ["abc.snapshot", "abc.log", "abc.swap", "abc.txnindex"])
def test_a_name_that_ends_a_startup_is_an_error(tmp_path: Path, name: str) -> None:
    craft.write_file(tmp_path / "t-0" / f"{0:020}.log", craft.batch([craft.record(0)]))
    (tmp_path / "t-0" / name).touch()
    rows = objects("verify", tmp_path / "t-0", status=1)
    (wrong,) = [row for row in rows if row.get("severity") == "error"]
    assert (wrong["code"], Path(wrong["file"]).name) == ("file-unknown", name)
    assert "exits" in wrong["consequence"]


STRANGE = re.compile(
    r"\b(sound|anew|behind|beside|nobody|somebody|mind|minds|believes?|told|foretell|(?<!there )(?:is|are) no)\b"
)


@each_case("code", CODES, ids=lambda code: code.code)
def test_plain_english(code: Any) -> None:
    for text in (code.meaning, code.consequence, code.fix, code.unless, code.title, *code.titles.values()):
        assert not STRANGE.search(text), STRANGE.search(text)


# --- The actions of findings, with what a finding states filled in ---------------------------------------------------

CHOSEN = {"NEW-DIRECTORY": "out", "SIZE": "1M", "GROUP": "g", "HOST:PORT": "h:1", "MS": "1", "FILE": "f"}
"""Placeholders for what you choose: no finding states it."""


def commands_in(text: str) -> list[list[str]]:
    """Return the words of each kdump command in an action that is to be run as it stands: those with arguments."""
    found = []
    for match in re.finditer(r"kdump [a-z-]+(?: (?:--[a-z-]+(?:=[a-z]+)?|'[^']*'|[^\s()']*[/A-Z0-9][^\s()']*))*", text):
        command = re.sub(r"(?<=[^.])[.,:;](?: .*)?$", "", match[0])
        words = shlex.split(command)[1:]
        if len(words) > 1:
            found.append(words)
    return found


def check_commands(text: str) -> None:
    """Parse the kdump commands in an action as the command line does."""
    assert isinstance(cli, click.Group)
    for name, *words in commands_in(text):
        above = click.Context(cli, **cli.context_settings)
        command = cli.get_command(above, name)
        assert command is not None
        command.make_context(name, [CHOSEN.get(word, word) for word in words], parent=above)


def findings(path: str) -> list[Any]:
    """Return the findings of a whole directory, or of a file."""
    made = units((path,), Options(unreadable=pytest.fail))
    return [finding for unit in made for finding in unit.run(CheckTotals())]


def action(finding: Finding) -> str:
    return ". ".join(finding.actions)


def test_a_finding_and_its_problem_have_the_same_impact() -> None:
    """Also in several cases, in one that problems share, and without an offset."""
    values = {"offsets": "2 offsets", "watermark": 9, "replicas": "no other broker has a replica"}
    place = target("/disk/payments-0/00000000000000000000.log")
    for case in ("", "remote", "truncates+belowWatermark"):
        for offset in (None, 7):
            code = Code("crc-mismatch")
            finding = code.finding(place, message="", offset=offset, case=case, values=values)
            impact = problem_of(finding).impact
            assert impact == finding.consequence == finding.in_case(case, values=values).consequence
            assert "consumers may have read these" in impact or "+" not in case


def placeholders(text: str) -> set[str]:
    return set(PLACEHOLDER.findall(text))


@pytest.mark.sampled
@pytest.mark.parametrize("damage", sample([*DAMAGES, *DOUBTS], 120, "advice"), ids=lambda each: each.name)
def test_an_action_states_what_its_finding_states(damage: Any, tmp_path: Path) -> None:
    source = DISKS / DISK_PATHS[damage.disk]
    root = copy_disk(source, tmp_path / "a disk")
    damage.apply(root)
    leave_out_alike(root, source)
    for finding in findings(str(root)):
        text = action(finding)
        assert problem_of(finding).impact == finding.consequence
        assert not placeholders(text) & finding.values.keys(), text
        left = placeholders(text)
        assert PAST_IT not in left or finding.next_offset is None
        assert left <= {PAST_IT, "TOPIC", "GROUP"}, (finding, text)
        check_commands(text)


@each_case("code", CODES, ids=lambda code: code.code)
def test_an_action_without_a_finding_parses(code: Any) -> None:
    fix = re.sub(r"\{\w+(?::q)?\}", "/a/1", code.fix.replace("{release}", "4.3"))
    check_commands(fix.replace("POSITION", "1").replace("PRODUCER-ID", "1").replace("SEGMENT", "x.log"))


@each_case("topic", ["a b", r"\1", "$(x)", "TOPIC"])
def test_a_name_from_the_disk_is_one_word_of_the_command(topic: str) -> None:
    at = Target(f"/disk/{topic}-0/{0:020}.log", 0, topic, 0)
    finding = Code("crc-mismatch").finding(at, message="", offset=5, next_offset=9)
    text = action(finding)
    assert f"--topic {shlex.quote(f'{topic}:0')} --reset-offsets --to-offset 9 --execute" in text
    assert ["salvage", f"/disk/{topic}-0", "--damaged-records", "--out", "NEW-DIRECTORY"] in commands_in(text)


def test_the_offset_after_a_batch_is_stated_only_if_it_is_certain(tmp_path: Path) -> None:
    made = craft.batch([craft.record(n) for n in range(3)], offset=7)
    segment = tmp_path / "t-0" / f"{7:020}.log"
    segment.parent.mkdir()
    for byte, after in ((len(made) - 1, 10), (26, None)):  # in a record; in lastOffsetDelta, which then is another one
        segment.write_bytes(craft.flip(made, 8 * byte))
        (finding,) = (each for each in findings(str(segment)) if each.code == "crc-mismatch")
        assert finding.next_offset == after
        assert f"--to-offset {after or 'NEXT-OFFSET'} " in action(finding._replace(facts={"exactRepair": False}))


SAVED = {code.code for code in catalogue.findings().values() if "--damaged-records" in code.fix}


@pytest.mark.sampled
@pytest.mark.parametrize(
    "damage",
    sample([each for each in DAMAGES if catalogue.findings()[each.code].family in ("bytes", "records")], 40, "saved"),
    ids=lambda each: each.name,
)
def test_damaged_records_are_advised_where_salvage_recovers_some(damage: Any, tmp_path: Path) -> None:
    root = copy_disk(DISKS / DISK_PATHS[damage.disk], tmp_path / "disk")
    partition = (root / damage.apply(root).file).parent
    out = tmp_path / "out"
    run("salvage", partition, "--damaged-records", "--out", out)
    ledger = out / "ledger.jsonl"
    rows = [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []
    assert {row["code"] for row in rows if row.get("fate") == "recovered"} <= SAVED


@each_case("code", sorted(SAVED))
def test_salvage_recovers_what_is_advised(code: str, tmp_path: Path) -> None:
    """The second of three records is damaged: the first one is recovered."""
    good, bad = craft.record(0, value=b"good"), craft.record(1, value=b"bad")
    records = [good, bad, craft.record(2)]
    if code == "record-malformed":
        records[1] = craft.varint(2) + bad[1:]
    elif code == "offset-delta-invalid":
        records[1] = craft.record(0)
    made = craft.batch(records, **({"recordCount": 2, "lastOffsetDelta": 2} if code == "record-count-mismatch" else {}))
    if code == "crc-mismatch":
        made = made[:-2] + bytes([made[-2] ^ 0xFF, made[-1] ^ 0xFF])
    elif code == "decompression-failed":
        dice = random.Random(1)
        records = [craft.record(n, value=dice.randbytes(1000)) for n in range(300)]
        made = craft.batch(records, "gzip", payload=craft.compress("gzip", b"".join(records))[:-9000])
    segment = craft.write_file(tmp_path / "t-0" / f"{0:020}.log", made)
    assert code in {each.code for each in findings(str(segment))}
    (salvaged,) = kdump.salvage(str(segment.parent), str(tmp_path / "out"), damaged_records=True)
    assert salvaged.records["recovered"] > 0


def test_the_metadata_log_has_its_own_action() -> None:
    at = Target(f"/disk/__cluster_metadata-0/{0:020}.log", 0, "__cluster_metadata", 0)
    for code in ("crc-mismatch", "batch-truncated"):
        text = action(Code(code).finding(at, message="", offset=5))
        assert "ollow the incident page metadata-log" in text
        assert "kafka-consumer-groups.sh" not in text
        assert "kafka-topics.sh" not in text


FETCHING = sorted(
    {code for code, action in ACTIONS if "it fetches the partition again" in action.do} & set(catalogue.findings())
)


@each_case("code", FETCHING)
def test_nothing_is_fetched_from_a_replica_that_does_not_exist(code: str) -> None:
    finding = Code(code).finding(Target("/d/orders-0/00000000000000000000.log", 0, "orders", 0), message="")
    assert "Once another broker is Leader" in action(finding)
    assert "fetches the partition" not in action(finding.given({"intactElsewhere": False}))
    assert "If another replica has" not in action(finding.given({"intactElsewhere": True}))


def test_the_metadata_shows_that_there_is_no_other_replica(tmp_path: Path) -> None:
    disk = copy_disk(DISKS / "kafka-4.3" / "clean-1", tmp_path / "disk")
    for name in ("payments-0", "ledger-0"):
        path = disk / name / "00000000000000000000.log"
        data = bytearray(path.read_bytes())
        data[200] ^= 1
        path.write_bytes(data)
    alone, with_others = (run("verify", disk, "--topic", topic).stdout for topic in ("payments", "ledger"))
    assert "fetches the partition again" not in alone
    assert "another replica" not in alone
    assert "If another replica has these offsets intact, once another broker is Leader" in " ".join(with_others.split())
    assert " Otherwise, write the partition with the damaged batch repaired" in " ".join(with_others.split())


def test_a_damaged_marker_is_named_and_nobody_is_told_to_abort_its_transaction(tmp_path: Path) -> None:
    """It may be a COMMIT, and --damaged-records recovers no marker."""
    disk = copy_disk(FIXTURES / "connect-1", tmp_path / "disk")
    log = disk / "lines-0" / f"{0:020}.log"
    contents = bytearray(log.read_bytes())
    contents[3000] ^= 0x55
    log.write_bytes(contents)
    text = " ".join(run("verify", disk / "lines-0").stdout.split())
    assert "of a transaction marker" in text
    assert "do not abort its transaction: the marker may be a COMMIT" in text
    assert "--damaged-records" not in text
    text = " ".join(run("salvage", disk / "lines-0", "--out", tmp_path / "out").stdout.split())
    assert "a lost marker may be a COMMIT: salvage from a replica that has it" in text


@pytest.mark.parametrize(
    ("number", "skips_to", "command"),
    few(
        [
            (number, skips_to, command)
            for command in ("verify", "doctor", "doctor --json", "explain crc-mismatch --disk")
            for number, skips_to in ((2, "--to-offset 180"), (4, "--to-latest"))[:: 1 if "doctor" in command else -1]
        ],
        2,
    ),
)
def test_a_printed_command_runs_where_a_header_does_not_show_the_next_offset(
    command: str, number: int, skips_to: str, tmp_path: Path
) -> None:
    """The third batch of five, and the last one: their lastOffsetDelta is not believed. (It is higher: of a lower one,
    a broker finds no batch for the index's last entry, and the log ends at its first offset.)"""
    disk = copy_disk(DISKS / "kafka-4.3" / "clean-1", tmp_path / "disk")
    path = disk / "orders-none-0" / f"{0:020}.log"
    data = path.read_bytes()
    at = 8 * sum(map(len, craft.split(data)[:number]))
    path.write_bytes(craft.flip(craft.flip(data, at + 8 * 26 + 1), at + 8 * 70))  # and a bit of a record
    done = run(*command.split(), disk)
    assert f"--topic orders-none:0 --reset-offsets {skips_to} --execute" in " ".join(done.stdout.split())
    assert "NEXT-OFFSET" not in done.stdout


@pytest.mark.parametrize("is_damaged", [False, True])
def test_what_is_known_of_the_log_is_no_condition(is_damaged: bool, tmp_path: Path) -> None:
    disk = copy_disk(DISKS / "kafka-4.3" / "crash-1", tmp_path / "disk")
    (disk / "payments-0" / f"{0:020}.index").unlink()
    log = disk / "payments-0" / f"{0:020}.log"
    log.write_bytes(craft.flip(log.read_bytes(), 8 * 100)) if is_damaged else None
    advice = run("verify", disk).stdout.partition("\n  index-missing\n")[2].partition("\n  next:")[0]
    assert "do:   If " not in advice
    assert ("Back the .log up first" in advice) == is_damaged == ("Do nothing" not in advice)


def test_a_record_that_no_release_applies_was_written_by_none() -> None:
    refused = Refusal("TopicRecord", 16, "", 0, controller="RuntimeException")
    assert refused.by_every_release
    assert not refused._replace(until=(3, 9)).by_every_release
    for code in ("startup-record-refused", "metadata-record-refused"):
        for every in (True, False):
            facts = {"soleVoter": True, "everyRelease": every, "missingElsewhere": False}
            actions = Problem(code, defaultdict(lambda: "X"), facts).actions
            assert any("the release that wrote it" in action for action in actions) != every


def test_a_broker_that_is_no_voter_fetches_the_metadata_again(tmp_path: Path) -> None:
    """It was told to rebuild the metadata of its cluster, as its only voter."""
    for node in (0, 1):
        disk = copy_disk(DISKS / "kafka-4.3" / f"clean-{node}", tmp_path / f"disk-{node}")
        log = disk / f"__cluster_metadata-0/{0:020}.log"
        log.write_bytes(craft.with_metadata_record(log.read_bytes(), b"\x01\x7b\x00\x00"))
        (stop,) = kdump.restart_plan([str(disk)]).allStops
        assert any("fetches the log again" in action for action in stop.actions) == (node == 1)
        assert any("kdump rescue" in action for action in stop.actions) == (node == 0)


@pytest.mark.parametrize("error", [FullIndex("full", "", file="/disk/a-b-0/0.log"), CorruptRecord(0, "damaged")])
def test_a_command_of_a_log_that_cannot_be_loaded_names_its_topic(error: KafkaError) -> None:
    error.file = "/disk/a-b-0/0.log"
    assert re.findall(r"--(?:topic|entity-name) ([\w-]+)", ". ".join(startup_failure(error).actions)) == ["a-b"]


def test_the_first_action_is_the_one_to_do_now() -> None:
    """Before the start, records are saved; what a producer sends is for later."""
    of_log = {"otherUnit": True, "timeIndexWrong": False}
    actions = Problem("startup-retention", defaultdict(lambda: "X"), {**of_log, "ownConfig": False}).actions
    assert actions[0].startswith("Copy the directory elsewhere")
    assert "milliseconds" in actions[-1]


@pytest.mark.parametrize("command", few(["restart-plan", "verify", "doctor"], 1))
def test_a_checkpoint_with_one_flipped_bit_in_its_version_is_written_again(command: str, tmp_path: Path) -> None:
    """It was told to be deleted, with the epochs. A file that has nothing else, or more that is wrong, is not."""
    disk = copy_disk(DISKS / "kafka-4.3" / "clean-1", tmp_path / "disk")
    path = disk / "ledger-0" / "leader-epoch-checkpoint"
    rest = path.read_bytes()[1:]
    each = {b"4" + rest: True, b"p" + rest: True, b"4" + rest + b"x\n": False, b"xyz": False}
    for contents, is_right in each.items():
        path.write_bytes(contents)
        advice = f"Write 0 as the first line of {path}" in " ".join(run(command, disk).stdout.split())
        assert advice == is_right, contents


def test_what_stops_a_startup_and_the_finding_of_the_same_batch_are_one_item(tmp_path: Path) -> None:
    """The startup names the batch, the finding its magic, 16 bytes later."""
    disk = copy_disk(DISKS / "kafka-4.3" / "clean-1", tmp_path / "disk")
    path = disk / "orders-gzip-0" / f"{0:020}.log"
    *before, last = craft.split(path.read_bytes())
    path.write_bytes(b"".join(before) + last[:16] + b"\0" + last[17:])
    items = [each for each in objects("doctor", disk, status=3) if each.get("file") == str(path)]
    assert [(each["code"], each["position"]) for each in items] == [("startup-stops", sum(map(len, before)))]
    assert not any("Truncate" in action for each in items for action in each["actions"])


@each_case("code", sorted({code for code, each in ACTIONS if each.when}))
def test_what_is_unknown_is_asked_once(code: str) -> None:
    """Two actions on which an unknown fact decides had each an "If"."""
    names = {fact for one in catalogue.declaration(code).actions for fact, _ in one.when}
    for fact in names:
        for others in (True, False):
            facts = {**dict.fromkeys(names, others), fact: None}
            text = "; ".join(chosen_texts(catalogue.declaration(code).actions, facts))
            asked = sum(f"f {clause}" in text for clause in fact_clauses(fact) if clause)
            assert asked <= 1, (fact, text)
            assert text.count("Otherwise") <= asked
