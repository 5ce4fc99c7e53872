"""`kdump doctor`: it is never milder than what it is composed of, its commands run, and it can be ended at any time."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.all_answers import TYPES
from kdump.cluster.metadata_copies import MetadataCopies
from kdump.format.iso_time import iso
from kdump.incident.doctor import disk_space, startup
from kdump.incident.doctor import run as doctor_run
from kdump.incident.doctor.answer import Item, Page, Priority, Question
from kdump.incident.doctor.causes import TWICE
from kdump.incident.doctor.damage import DamageExamination
from kdump.incident.doctor.examination import Examination, OutOfTime, TimeLimit
from kdump.incident.doctor.replicas import ReplicasExamination
from kdump.incident.doctor.report import DoctorReport
from kdump.incident.doctor.run import Doctor, DoctorQuery
from kdump.io.errors import SourceError
from kdump.io.run import PLAIN_RUN, Run
from kdump.problems import catalogue
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import RestartPlan
from kdump.questions.restart_plan.run import RestartQuery
from kdump.questions.space.disks import FileSystem
from kdump.render.stdout import Output
from tests.command import objects, refused, run
from tests.conftest import DISKS, FIXTURES, ROOT, SEED, few, sample, seeded
from tests.craft import batch, flip, one, record, write_file
from tests.damages import DAMAGES, DISK_PATHS, DOUBTS, aged, copy_disk, copy_some, leave_out_alike
from tests.disks import partition
from tests.each_case import each_case
from tests.questions.restart_plan.restart_damages import chosen
from tests.questions.restart_plan.restart_recipe import second
from tests.restored_disk import RestoredDisks
from tests.state import test_metadata as metadata
from tests.state.test_cluster import feature
from tests.state.test_groups import commit
from tests.test_printed_commands import SUPPLIED
from tests.test_streams import wait_for
from tests.test_verdicts import leave_out_the_unchanged
from tools import first_screens, incident_trials
from tools.incident import INCIDENTS, lay_out
from tools.incident.disk import Disk, change_metadata, leave_out
from tools.incident.registry import BASES
from tools.trials import startup_incidents

LONG = re.compile(r"   more |\s*(?:(?:kdump|kafka-[a-z-]+\.sh) \S+ .*|\S+)$")
"""What is not broken, so that it can be copied: a command, or a word, on a line of its own."""
DISK, NOW = FIXTURES / "disk-1", ("--now", "2026-11-21T09:00Z")
AT = 1_795_251_600_000
"""2026-11-21T09:00Z in epoch ms."""
ZERO = f"{0:020}"


def answers(*arguments: Any) -> list[dict[str, Any]]:
    """Return the objects of a run, whatever its exit status."""
    result = run("doctor", *arguments, "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert found[-1]["type"] == "doctor", result.stderr
    assert found[-1]["status"] == result.exit_code
    for each in found:
        assert list(each) == ["type", *(key.name for key in TYPES[each["type"]])]
    return found


def items_in(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in found if each["type"] == "doctorItem"]


def question_in(found: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    (question,) = [each for each in found if each["type"] == "doctorQuestion" and each["question"] == name]
    return question


def damaged(root: Path, partition: str = "orders-none-0", at: int = 11206) -> Path:
    """Flip a bit in a record of a copy of a disk."""
    log = root / partition / f"{ZERO}.log"
    log.write_bytes(flip(log.read_bytes(), 8 * at))
    return root


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DISK, tmp_path / "disk"))


# --- It is never milder than restart-plan and verify ------------------------------------------------------------------


def brokers(roots: Sequence[Path]) -> int:
    """Return how many brokers the directories are of, by their IDs."""
    text = [(root / "meta.properties").read_text("latin-1") for root in roots if (root / "meta.properties").is_file()]
    return len({tuple(re.findall(r"^(?:cluster|node|broker)\.id=.*", each, re.MULTILINE)) for each in text})


BYTES = {each.code for each in catalogue.findings().values() if each.family == "bytes"}


def touched(finding: dict[str, Any], findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the finding and the damaged bytes that touch it, one after the other: they have one cause."""
    same = [each for each in findings if each["file"] == finding["file"] and {each["code"], finding["code"]} <= BYTES]
    chain = [finding]
    for each in chain:
        end = each["position"] + each["size"]
        chain += [
            one
            for one in same
            if one not in chain and (one["position"] == end or one["position"] + one["size"] == each["position"])
        ]
    return chain


def covers(cause: dict[str, Any], finding: dict[str, Any], touching: set[int]) -> bool:
    """Return True if the catalogue lets an item, or a finding that has one, cover another finding that is in the same
    bytes, in a file or directory that it is all about, or in its segment if its code covers that there."""
    declared = catalogue.declaration(cause["code"]) if cause.get("question") != "log" else None
    if declared is None or cause["file"] is None:
        return False
    if finding["code"] in declared.covers_here:
        return bool(os.path.splitext(cause["file"])[0] == os.path.splitext(finding["file"])[0])
    codes = {each.split("] ")[-1] for each in declared.covers}
    if cause["file"] != finding["file"]:
        same = (cause["topic"], cause["partition"]) == (finding["topic"], finding["partition"])
        is_inside = finding["file"].startswith(cause["file"] + "/") or (same and finding["partition"] is not None)
        # That one is found in either of two log directories.
        is_twice = finding["code"] == TWICE and Path(cause["file"]).name == Path(finding["file"]).name
        is_named = "*" in codes and any(each.startswith(finding["file"] + " ") for each in cause.get("evidence", ()))
        return is_named or (finding["code"] in codes and (is_inside or is_twice))
    at = cause["position"]
    in_header = at is None or any(position - 61 < at <= position for position in touching)
    return in_header and bool({finding["code"], "*"} & codes)


def milder(roots: Sequence[Path]) -> str:
    """Return what restart-plan or verify reports that no item is about; empty if nothing."""
    found = answers(*roots, *NOW)
    items, page = items_in(found), found[-1]
    about = {(each["code"], each["topic"], each["partition"]) for each in items}
    files = {each["file"] for each in items if each["code"] in ("startup-stops", "startup-offline")}
    try:
        plan = kdump.restart_plan(list(map(str, roots)))
    except SourceError:
        plan = None
    if plan is not None and brokers(roots) < 2:
        if plan.status == 3 and (page["verdict"], page["status"]) != ("stops", 3):
            return f"it does not start: {page}"
        if plan.status and not page["status"]:
            return f"restart-plan exits with {plan.status}: {page}"
        for stop in plan.allStops:
            if stop.file not in files:
                return f"no item about {stop}"
        for each in plan.partitions:
            state = "missing" if each.missing else "stray" if each.stray else "loses" if each.loses else ""
            if state and (f"startup-{state}", each.topic, each.partition) not in about:
                return f"no item: {each.name} {state}"
            if state and page["verdict"] not in ("stops", "loses"):
                return f"{each.name} {state}: {page}"
    check = run("verify", *roots, "--json")
    found = [each for each in map(json.loads, check.stdout.splitlines()) if each["type"] == "finding"]
    has_item = [
        each for each in found if (each["code"], each["topic"], each["partition"]) in about or each["file"] in files
    ]
    causes, left = [*items, *has_item], [each for each in found if each not in has_item]
    for cause in causes:  # what is covered covers what follows from it
        now = [each for each in left if covers(cause, each, {one["position"] for one in touched(each, found)})]
        causes += now
        left = [each for each in left if each not in now]
    for finding in (each for each in left if each["severity"] == "error"):
        return f"no item about {finding}"
    if check.exit_code > page["status"] or (check.exit_code == 2 and page["status"] == 1):
        return f"verify exits with {check.exit_code}, doctor with {page['status']}"
    return ""


RECIPES = [*DAMAGES, *DOUBTS]
STARTUPS = [each for each in chosen() if not hasattr(each, "code")]


@pytest.mark.sampled
@pytest.mark.parametrize("damage", sample(RECIPES, 200, "doctor"), ids=lambda each: each.name)
def test_it_is_never_milder(damage: Any, tmp_path: Path) -> None:
    source = DISKS / DISK_PATHS[damage.disk]
    root = copy_disk(source, tmp_path / "disk")
    damage.apply(root)
    leave_out_the_unchanged(root, source)
    others = [path for path in tmp_path.iterdir() if path.is_dir() and path != root]
    assert not milder(sorted([root, *others]))


@pytest.mark.sampled
@pytest.mark.parametrize("recipe", sample(STARTUPS, 300, "doctor of startups"), ids=lambda each: each.name)
def test_it_is_never_milder_about_startups(recipe: Any, tmp_path: Path) -> None:
    source = DISKS / DISK_PATHS[recipe.disk]
    root = copy_disk(source, tmp_path / "disk")
    with suppress(PermissionError):
        node = recipe.node(root)
        leave_out_alike(root, source)
        assert not milder([Path(each) for each in node.paths if Path(each).exists()])


# --- Its commands -----------------------------------------------------------------------------------------------------

STATUSES = {
    "verify": (0, 1),
    "restart-plan": (1, 3),
    "transactions": (0,),
    "groups": (0,),
    "cluster": (0,),
    "retention": (0, 1),
    "inspect": (0,),
    "diff": (1,),
    "ls": (0,),
    "space": (0,),
    "rescue": (0, 1),
    "registry": (0,),
    "connect": (0,),
}
"""What a command exits with that shows more of an item. verify: 0 for a warning."""


def incident(name: str, directory: Path) -> list[Path]:
    lay_out(name, directory)
    return sorted(directory.iterdir())


USUAL = (
    *("group-offsets-went-back", "group-offsets-removed", "group-offsets-unusable"),
    *("transaction-open", "broker-fenced"),
)
"""Items of fixtures/disk-1, whatever the incident."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", few(sorted(INCIDENTS), 4))
def test_each_command_of_an_incident_runs(name: str, tmp_path: Path) -> None:
    """Each shows more, with the exit status of its kind; and so it does for all items of an entry. `make test` runs
    each command once for each kind of item; those of the usual items, at one incident in 15."""
    ran = set()
    with_usual = name in sample(sorted(INCIDENTS), 15, "usual items")
    now = NOW if name not in BASES else ("--now", "2026-11-28T09:00Z")  # after all that is on their disks
    for item in items_in(answers(*incident(name, tmp_path / "disks"), *now)):
        assert item["commands"]
        assert item["title"]
        assert item["evidence"]
        assert item["actions"]
        assert item["never"], item["code"]
        for line in (*item["commands"], item["commandForAll"]):
            if not line or (item["code"] in USUAL and not with_usual):
                continue
            program, command, *arguments = shlex.split(line)
            kind = line if SEED else (item["code"], command, line == item["commandForAll"])
            if kind in ran:
                continue
            ran.add(kind)
            result = run(command, *(SUPPLIED.get(each, each) for each in arguments))
            assert program == "kdump"
            assert result.exit_code in STATUSES[command], (line, result.stderr)
            if command == "verify" and item["severity"] == "error":
                assert result.exit_code == 1
            assert result.stdout


def test_what_happened_to_committed_offsets(tmp_path: Path) -> None:
    """Reset, removed, and below the log start offset: each names its group and its record."""
    found = items_in(answers(*incident("offsets-reset", tmp_path / "disks"), *NOW))
    by_code = {(each["code"], each["group"]): each for each in found if each["group"]}
    assert by_code.keys() == {
        ("group-offsets-went-back", "group-classic"),
        ("group-offsets-went-back", "group-consumer"),
        ("group-offsets-removed", "group-classic"),
        ("group-offsets-unusable", "tx-group"),
    }
    removed = by_code["group-offsets-removed", "group-classic"]
    (text,) = removed["evidence"]
    time = re.fullmatch(r"payments-0: offset 120, removed at (\S+Z) by offset 89 of __consumer_offsets", text)
    assert time
    day = date.fromisoformat(time[1][:10])
    for days, priority in ((1, Priority.DEGRADED), (8, Priority.OLD)):
        at = f"{day + timedelta(days)}T00:00Z"
        later = items_in(answers(*sorted((tmp_path / "disks").iterdir()), "--now", at))
        found = [each for each in later if each["code"] in ("group-offsets-went-back", "group-offsets-removed")]
        assert {each["priority"] for each in found} == {priority}


@pytest.mark.parametrize("again", [None, 40, 100, 120])
@pytest.mark.parametrize("days", [1, 8])
def test_a_removed_offset_counts_although_the_group_has_committed_again(
    again: int | None, days: int, tmp_path: Path
) -> None:
    """For a week, or for as long as it has not caught up: it may have read records again, or skipped some."""
    steps = [commit("g", "t", 0, 100), commit("g", "t", 0, None), commit("g", "u", 0, 1)]
    steps += [] if again is None else [commit("g", "t", 0, again)]
    time = 1_790_000_000_000
    log = [
        batch([record(key=key, value=value)], offset=number, baseTimestamp=time, maxTimestamp=time)
        for number, (key, value) in enumerate(steps)
    ]
    write_file(tmp_path / "__consumer_offsets-0" / f"{0:020}.log", b"".join(log))
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    at = iso(time + days * 86_400_000)
    codes = [each["code"] for each in items_in(answers(tmp_path, "--now", at)) if each["group"] == "g"]
    assert codes == ["group-offsets-removed"] * (days == 1 or again is None or again < 100)


def test_what_belongs_to_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker at work deletes what it has renamed."""
    paths = incident("disk-full-now", tmp_path / "disks")
    (item,) = (each for each in items_in(answers(*paths, *NOW)) if each["code"] == "space-leftovers")
    monkeypatch.setattr("kdump.log.lock_holder.lock_holder", lambda path: 4711)
    (at_work,) = (each for each in items_in(answers(*paths, *NOW)) if each["code"] == "space-leftovers")
    assert "deleted" not in at_work["title"]
    assert re.search(r"[\d.]+ KiB deleted \(.deleted\) and 1.0 MiB that is not Kafka's \(java_pid4711", item["title"])
    assert item["file"].endswith(".hprof")


@pytest.mark.parametrize(
    ("free", "code"),
    [(0, "disk-full"), (9, "disk-full"), (10, "disk-nearly-full"), (49, "disk-nearly-full"), (50, None)],
)
def test_a_full_file_system(free: int, code: str | None, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = FileSystem(1, "/var/lib", "ext4", "/dev/sdb", 1000 << 20, 0, free << 20, 0)
    monkeypatch.setattr(disk_space, "file_system_of", lambda directory: system)
    found = {each["code"]: each for each in items_in(answers(disk, *NOW))}
    assert found.keys() & {"disk-full", "disk-nearly-full"} == ({code} if code else set())
    if code:
        assert f"of {1000} MiB are free" in found[code]["title"].replace("1,000", "1000").replace(".0 MiB", " MiB")
        assert found[code]["commands"] == [f"kdump space {disk}"]
        assert found[code]["priority"] == (Priority.STOPS if code == "disk-full" else Priority.DEGRADED)


def test_what_fills_a_full_file_system_comes_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before groups that are behind, and after the file system itself."""
    system = FileSystem(1, "/var/lib", "ext4", "/dev/sdb", 1000 << 20, 0, 0, 0)
    paths = incident("disk-full-now", tmp_path / "disks")
    before = {each["code"]: each["priority"] for each in items_in(answers(*paths, *NOW))}
    assert before["space-leftovers"] == Priority.OLD
    monkeypatch.setattr(disk_space, "file_system_of", lambda directory: system)
    found = items_in(answers(*paths, *NOW))
    codes = [each["code"] for each in sorted(found, key=lambda each: each["priority"])]
    early = [code for code in codes if code in ("disk-full", "space-leftovers") or code.startswith("retention-")]
    assert early[0] == "disk-full"
    assert codes[: len(early)] == early


def test_the_startup_of_each_broker_has_a_line() -> None:
    paths = [FIXTURES / "clean-2", FIXTURES / "disk-1"]
    lines = run("doctor", *paths, *NOW).stdout.splitlines()
    (first,) = (number for number, line in enumerate(lines) if line.startswith("  startup "))
    for line, path in zip(lines[first:], paths[::-1]):  # in the order of the nodes' IDs
        assert f"{path}: starts after a clean shutdown" in line
    (question,) = (each for each in answers(*paths, *NOW) if each.get("question") == "startup" and "answer" in each)
    assert question["answer"].count("starts after a clean shutdown") == 2


def test_a_missing_partition_is_one_item(disk: Path) -> None:
    """The startup and verify both find it."""
    name = "payments-0"
    shutil.rmtree(disk / name)
    found = items_in(answers(disk, *NOW))
    assert [each["code"] for each in found if (each["topic"], each["partition"]) == ("payments", 0)] == [
        "startup-missing"
    ]


def test_what_never_to_do_is_stated_once(disk: Path) -> None:
    shutil.rmtree(disk / "payments-0")
    shutil.rmtree(disk / "orders-zstd-0")
    text = run("doctor", disk, *NOW).stdout
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("never ")]
    stated = [line for line in lines if "as in" not in line]
    assert len(stated) == len({*stated})
    for entry in text.split("\n\n"):
        if re.match(r"\d+\. ", entry):
            assert "   never    " in entry


def test_the_file_system_of_a_copy_is_not_the_brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result((4096, 4096, 1000, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    shutil.copytree(FIXTURES / "clean-1" / "payments-0", tmp_path / "copy" / "payments-0")
    assert "disk-full" not in {each["code"] for each in items_in(answers(tmp_path / "copy", *NOW))}
    (tmp_path / "copy" / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    assert "has no free space" in str([each["title"] for each in items_in(answers(tmp_path / "copy", *NOW))])


@pytest.mark.parametrize(
    ("name", "code", "position", "offset"),
    [
        ("flipped-bit-before-recovery", "startup-loses", 11006, 120),  # whether it may be started
        ("record-size-0", "startup-stops", 27501, None),
        ("stuck-consumer", "record-count-mismatch", 1701, 60),  # the poison pill
        ("hanging-transaction", "transaction-hanging", 12430, 114),  # why read_committed hangs
        ("diverged-replicas", "replicas-diverge", None, 50),  # where replicas part
        ("future-timestamp", "retention-futureTimestamp", 0, 0),  # what fills the disk
    ],
)
def test_the_first_item_is_the_incident(
    name: str, code: str, position: int | None, offset: int | None, tmp_path: Path
) -> None:
    items = items_in(answers(*incident(name, tmp_path / "disks"), *NOW))
    found = next(each for each in items if each["code"] == code)
    assert (found["position"], found["offset"]) == (position, offset)
    assert found["priority"] == min(each["priority"] for each in items if each["code"] not in USUAL)


def test_one_advice_for_zeros_where_a_batch_should_begin(tmp_path: Path) -> None:
    """Nothing follows them: to delete an .index is enough. Before a batch, its records are to be saved first."""
    (disk,) = incident("record-size-0", tmp_path / "disks")
    log = Path(disk) / "orders-none-0" / f"{0:020}.log"
    message = f"Found record size 0 smaller than minimum record overhead (14) in file {log}."
    commands: list[tuple[str, ...]] = [("restart-plan", disk), ("doctor", disk), ("explain", message, "--disk", disk)]
    short = f"Back {log.parent} up and delete the .index of the last segment"
    for command in (*commands, ("verify", disk)):
        assert short in " ".join(run(*command).stdout.split()), command
    log.write_bytes(log.read_bytes() + one(b"value", 300))
    for command in commands:
        shown = " ".join(run(*command).stdout.split())
        assert f"Back {log.parent} up, do not delete it, and save its valid batches" in shown
        assert short not in shown, command


def test_no_group_is_moved_above_where_the_next_startup_ends_the_log(tmp_path: Path) -> None:
    """The log ends at 240 then, and not after the damaged batch; ls counts its records, and says so."""
    (disk,) = incident("torn-tail", tmp_path / "disks")
    shown = run("verify", disk).stdout
    assert "crc-mismatch" in shown
    assert "--to-offset" not in shown
    assert "DAMAGED: a damaged batch of 60 records at byte 21980" in run("ls", disk).stdout


def test_what_a_startup_loses_of_groups_is_said(tmp_path: Path) -> None:
    """Offsets that a group has committed above the new end of a log, and committed offsets themselves."""
    damage = next(each for each in DAMAGES if each.name == "index-past-the-end")
    root = copy_disk(DISKS / DISK_PATHS[damage.disk], tmp_path / "disk")
    damage.apply(root)
    assert "; 1 with offsets above the new end of a log" in question_in(answers(aged(root)), "groups")["answer"]
    offsets = copy_some(DISKS / "kafka-4.3" / "crash-1", tmp_path / "offsets", "__consumer_offsets-0")
    log = offsets / "__consumer_offsets-0" / f"{ZERO}.log"
    log.write_bytes(flip(log.read_bytes(), 8 * (log.stat().st_size - 30)))
    (item,) = [each for each in items_in(answers(aged(offsets))) if each["code"] == "startup-loses"]
    assert item["title"] == "a startup loses committed offsets of consumer groups"
    assert "groups continue at older offsets" in item["impact"]


def test_each_finding_has_what_not_to_do() -> None:
    assert all(code.never for code in catalogue.findings().values())


def test_the_poison_pill_in_two_commands(tmp_path: Path) -> None:
    """The second command is the first one that the item names: it shows the bytes of the batch."""
    items = items_in(answers(*incident("stuck-consumer", tmp_path / "disks"), *NOW))
    (line,) = [each["commands"][0] for each in items if each["code"] == "record-count-mismatch"]
    shown = run(*shlex.split(line)[1:]).stdout
    assert "recordCount" in shown
    assert "1701" in shown


def test_what_happened_to_the_offsets_of_a_group(disk: Path) -> None:
    (item,) = [
        each
        for each in items_in(answers(disk, *NOW))
        if each["code"] == "group-offsets-went-back" and each["group"] == "group-classic"
    ]
    assert item["evidence"][0].startswith("orders-zstd-0: from 300 to 42 at 2026-11-21T07:58:41.074Z, by offset 42 of ")
    history = run(*shlex.split(item["commands"][0])[1:], "--json").stdout.splitlines()
    assert [line for line in history if '{"name":"offset","old":300,"new":42}' in line]


# --- The page ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("node", "state"), [(1, b"\1\0"), (1, b"\0\1"), (2, b"\1\0")])
def test_a_broker_that_is_starting_leads_nothing_yet(
    node: int, state: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs, and the metadata still have it fenced, or in a controlled shutdown; what only another broker can lead is
    offline."""
    monkeypatch.setattr("kdump.log.lock_holder.lock_holder", lambda path: 4711)
    root = tmp_path / "disk"
    said = [
        metadata.broker(1, "D").replace(b"\x01\x01\0\0\0", b"\x01\x01\0" + state),
        metadata.topic("t", "T"),
        metadata.partition("T", 0, [node], leader=-1),
    ]
    write_file(root / "__cluster_metadata-0" / f"{0:020}.log", metadata.log(said))
    write_file(root / "meta.properties", b"version=1\nnode.id=1\ncluster.id=k2xrTMYLRJGYFaSRS_Wf6w\n")
    rows = items_in(answers(root))
    offline = [each["severity"] for each in rows if each["code"] == "partition-offline"]
    assert offline == (["error"] if node == 2 else [])


@pytest.mark.parametrize("ran", [True, False])
def test_a_broker_that_has_started_since_led_nothing_in_the_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, ran: bool
) -> None:
    """It starts or stops after it was first asked whether it runs: the page has one answer."""
    held = iter([ran])
    monkeypatch.setattr("kdump.log.lock_holder.lock_holder", lambda path: 4711 if next(held, not ran) else None)
    root = tmp_path / "disk"
    said = [metadata.broker(1, "D"), metadata.topic("t", "T"), metadata.partition("T", 0, [1], leader=-1)]
    write_file(root / "__cluster_metadata-0" / f"{0:020}.log", metadata.log(said))
    write_file(root / "meta.properties", b"version=1\nnode.id=1\ncluster.id=k2xrTMYLRJGYFaSRS_Wf6w\n")
    shown, *found = answers(root)
    assert shown["process"] == (4711 if ran else None)
    offline = [each["severity"] for each in items_in(found) if each["code"] == "partition-offline"]
    assert offline == (["error"] if ran else [])


def test_metadata_of_a_stopped_node_are_those_of_the_time_at_which_it_stopped(tmp_path: Path) -> None:
    """The other brokers may have elected a leader since."""
    root = tmp_path / "disk"
    said = [metadata.broker(1, "D"), metadata.topic("t", "T"), metadata.partition("T", 0, [2], leader=-1)]
    write_file(root / "__cluster_metadata-0" / f"{0:020}.log", metadata.log(said))
    write_file(root / "meta.properties", b"version=1\nnode.id=1\ncluster.id=k2xrTMYLRJGYFaSRS_Wf6w\n")
    rows = items_in(answers(root))
    assert [each["severity"] for each in rows if each["code"] == "partition-offline"] == ["warning"]


@pytest.mark.parametrize(
    ("said", "snapshot", "state"),
    [
        (
            [feature("metadata.version", 25), metadata.config(4, "one", "a", "1")],
            b"",
            "has a record that nodes cannot apply",
        ),
        # Kafka up to 3.6, as meta.properties has no directory.id, applies it.
        ([metadata.config(4, "one", "a", "1")], b"", "has what is not known here"),
        ([metadata.framed(100, b"\0")], b"", "has what is not known here"),
        ([metadata.framed(100, b"\0"), metadata.config(4, "one", "a", "1")], b"damaged", "is damaged"),
    ],
)
def test_what_is_wrong_with_the_metadata_is_the_problem_that_is_named(
    said: list[bytes], snapshot: bytes, state: str, tmp_path: Path
) -> None:
    """Not another one, nor what only another release than the disk's refuses."""
    root = tmp_path / "disk"
    write_file(root / "__cluster_metadata-0" / f"{0:020}.log", metadata.log([metadata.topic("t", "T"), *said]))
    write_file(root / "meta.properties", b"version=1\nnode.id=1\ncluster.id=k2xrTMYLRJGYFaSRS_Wf6w\n")
    if snapshot:
        write_file(root / "__cluster_metadata-0" / f"{9:020}-0000000001.checkpoint", snapshot)
    (text, *_) = question_in(answers(root), "replicas")["notExamined"]
    assert text.startswith(f"the metadata {state}, so it may be out of date: ")
    assert ("not a valid snapshot" in text) == bool(snapshot)


def test_a_healthy_disk_has_a_short_page(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what was examined, and what was not. (The metadata of this disk has another broker that is fenced.)"""
    monkeypatch.setattr(ReplicasExamination, "_brokers", lambda self, metadata: None)
    for topic in ("future", "__consumer_offsets"):
        leave_out(disk, topic, 0)
    result = run("doctor", disk, "--now", "2026-11-21T07:59Z")
    assert result.exit_code == 0, result.stdout
    assert "NOTHING TO DO in what was examined" in result.stdout
    assert len(result.stdout.splitlines()) < 16
    assert "groups: there is no __consumer_offsets on these disks" in result.stdout
    assert "everything was read" in result.stdout


def test_items_are_in_order_and_entries_are_counted(disk: Path) -> None:
    text = run("doctor", damaged(disk), *NOW).stdout
    objects_found = items_in(answers(disk, *NOW))
    numbers = [int(found) for found in re.findall(r"^(\d+)\. (?:error|warning)", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    severities = re.findall(r"^\d+\. (error|warning)", text, re.MULTILINE)
    assert severities == sorted(severities)
    assert len(numbers) <= len(objects_found)
    assert f"{len(numbers)} THINGS TO DO" in text


def test_similar_items_are_one_entry_and_the_others_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """However many groups were reset, and however many files stop a startup, it is a page."""
    report = DoctorReport(Output())
    question = Question("groups")
    on = Examination(question, report.add, PLAIN_RUN, TimeLimit(60), AT, 0)
    for number in range(1000):
        on.item(8, "warning", "group-offsets-went-back", "disk", "they were reset", group=f"g-{number}")
        on.item(1, "error", "startup-stops", "disk", f"byte {number}", file=f"disk/f-{number}", commands=("kdump x",))
    report.add(Page("act", "no", True, False, 1, 1000, 1000, [], 0.0))
    report.output.flush()
    text = capsys.readouterr().out
    assert len(text.splitlines()) < 60
    assert "group g-0, group g-1, group g-2, group g-3, group g-4 and 995 more: they were reset" in text
    assert "\n11. error: 990 more items [startup-stops]: f-10, f-11, f-12, f-13, f-14 and 985 more\n" in text


def test_an_action_says_of_which_item_it_is_unless_it_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A word of the sentence is not the name: they expire once a group has been empty."""
    report = DoctorReport(Output())
    on = Examination(Question("groups"), report.add, PLAIN_RUN, TimeLimit(60), AT, 0)
    for group in ("has", "other"):
        values = {"count": "2 committed offsets were", "GROUP": group, "at": "orders:0", "to": 7}
        on.report(Problem("group-offsets-removed", values, {"committedAgain": False}), "disk", group=group)
    report.add(Page("act", "no", True, False, 1, 1, 1, [], 0.0))
    report.output.flush()
    text = capsys.readouterr().out
    assert re.findall(r"^   do +(.*?) (?:with|stopped)", text, re.MULTILINE) == ["group has: Compare", "With the group"]


@pytest.mark.parametrize("width", [80, 200])
def test_commands_are_never_wrapped(width: int, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.render.stdout.Output.width", width)
    lines = run("doctor", damaged(disk), *NOW).stdout.splitlines()
    shown = [line.split(maxsplit=1)[1] for line in lines if line.startswith("   more ")]
    assert len(shown) > 3
    named = {each for item in items_in(answers(disk, *NOW)) for each in (*item["commands"], item["commandForAll"])}
    assert set(shown) <= named
    long = [line for line in lines if len(line) > width and not LONG.match(line)]
    assert long == []


def test_names_cannot_draw_on_the_terminal(tmp_path: Path) -> None:
    root = Path(shutil.copytree(DISK, tmp_path / "a\x1b[31m\nb"))
    text = run("doctor", damaged(root), *NOW).stdout
    assert "\x1b" not in text
    assert "orders-none-0" in text


def test_a_broker_that_runs(disk: Path) -> None:
    (disk / ".lock").touch()
    with (disk / ".lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        result = run("doctor", disk, *NOW)
        found = answers(disk, *NOW)
    assert found[0]["process"] == os.getpid()
    assert f"A BROKER IS RUNNING on it (process {os.getpid()})" in result.stdout
    assert not [each for each in items_in(found) if each["code"].startswith("startup-")]


def test_what_retention_deletes_of_a_running_broker_is_no_loss_of_a_restart(disk: Path) -> None:
    """It was told not to be restarted, because of records that it deletes at its next check in any case."""
    later = ("--now", "2026-12-24T09:00Z")
    assert answers(disk, *later)[-1]["verdict"] == "loses"
    (disk / ".lock").touch()
    with (disk / ".lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        *found, page = answers(disk, *later)
    assert page["verdict"] == "act"
    assert "startup-retention" not in {each["code"] for each in items_in(found)}


@pytest.mark.parametrize("what", ["missing", "stray", "loses"])
def test_what_a_broker_at_work_has_changed_since_is_not_concluded(
    what: str, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic is created, deleted or written to between the reading of the metadata and of its directory."""
    ledger, elsewhere = disk / "ledger-0", disk.parent / "elsewhere"
    log = ledger / f"{0:020}.log"
    whole = log.read_bytes()
    if what == "missing":
        ledger.rename(elsewhere)
    elif what == "stray":
        text = (ledger / "partition.metadata").read_text()
        (ledger / "partition.metadata").write_text(re.sub("topic_id: .*", "topic_id: AAAAAAAAQACAAAAAAAAAAA", text))
    else:
        (disk / ".kafka_cleanshutdown").unlink(missing_ok=True)
        log.write_bytes(whole[:-10])
        os.utime(log, (1, 1))
    predict = startup.predict_startup

    def codes(change: Callable[[], object]) -> list[str]:
        def predicted(query: RestartQuery) -> RestartPlan:
            def found(plan: object) -> None:
                if getattr(plan, "topic", "") == "ledger":
                    change()
                query.run.found(plan)

            plan = predict(replace(query, run=replace(query.run, found=found), options=None))
            events = [(each, each.loss) for each in plan.course.events]  # as if no other broker had a replica
            plan.course.events = [
                each._replace(loss=loss and loss._replace(certainty="certain")) for each, loss in events
            ]
            return plan

        monkeypatch.setattr(startup, "predict_startup", predicted)
        with (disk / ".lock").open("w") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            found = answers(disk, *NOW)
        texts = [each for each in question_in(found, "startup")["notExamined"] if "changed while" in each]
        mine = [each["code"] for each in items_in(found) if each["code"] == f"startup-{what}"]
        assert bool(mine) != bool(texts)
        assert (found[-1]["losesWithinHour"], found[-1]["verdict"]) == (("certain", "loses") if mine else ("no", "act"))
        return mine

    assert codes(lambda: None)
    changes: dict[str, Callable[[], object]] = {
        "missing": lambda: elsewhere.rename(ledger),
        "stray": lambda: ledger.rename(elsewhere),
        "loses": lambda: log.write_bytes(whole),
    }
    assert not codes(changes[what])


def test_a_broker_whose_time_was_over_does_not_lose_what_another_one_does(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path(shutil.copytree(FIXTURES / "disk-1", tmp_path / "other"))
    shutil.rmtree(disk / "ledger-0")
    predict = startup.predict_startup

    def predicted(query: RestartQuery) -> RestartPlan:
        if str(other) in query.paths:
            raise OutOfTime
        return predict(query)

    monkeypatch.setattr(startup, "predict_startup", predicted)
    found = answers(disk, other, *NOW)
    assert question_in(found, "startup")["answer"].endswith(f"; {other}: not predicted")
    assert found[-1]["verdict"] == "loses"


def test_the_startup_of_another_release(tmp_path: Path) -> None:
    """--kafka-version is passed on: what another release refuses, deletes and changes, and in the commands, too."""
    root = Path(shutil.copytree(FIXTURES / "state-1", tmp_path / "disk"))
    found = answers(root, *NOW, "--kafka-version", "3.9-kraft")
    plan = kdump.restart_plan([str(root)], kafka_version="3.9-kraft")
    assert plan.change is not None
    stop = plan.allStops[-1]
    by_code = {each["code"]: each for each in items_in(found) if each["question"] == "startup"}
    assert stop.message in by_code["startup-stops"]["title"]
    assert shlex.split(by_code["startup-stops"]["commands"][0])[-2:] == ["--kafka-version", "3.9-kraft"]
    told = " ".join(by_code["startup-other-release"]["evidence"])
    assert all(each in told for each in (*plan.change.rewrites, *plan.change.wayBack))
    assert "Kafka 3.9" in question_in(found, "startup")["answer"]
    assert "Kafka 4.3, because" in question_in(answers(root, *NOW), "startup")["answer"]


def test_metadata_that_grows_is_read_again(disk: Path) -> None:
    copies = MetadataCopies()
    first = copies.replayed(str(disk))
    assert first is not None
    assert copies.replayed(str(disk)) is first
    log = max((disk / "__cluster_metadata-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-1])
    second = copies.replayed(str(disk))
    assert second is not None
    assert second.end_offset < first.end_offset


def test_files_that_go_away_meanwhile(disk: Path) -> None:
    """Retention deletes segments and topics are deleted while it runs: nothing of that is damage or unread."""
    before = {(each["code"], each["topic"], each["partition"]) for each in items_in(answers(disk, *NOW))}
    places = sorted(each for each in disk.iterdir() if each.is_dir() and not each.name.startswith("__"))
    found: list[Any] = []

    def progress(_size: int) -> None:
        if places:
            place = places.pop()
            if len(places) % 2:
                shutil.copytree(place, place.with_name(f"{place.name}.{'a' * 32}-delete"))
            topic, _, number = place.name.rpartition("-")
            leave_out(disk, topic, int(number))

    doctor = Doctor(DoctorQuery([str(disk)], now=AT), found.append, Run(more=progress))
    doctor.run()
    page = doctor.page()
    assert not places
    assert page.unread == []
    before.add(("space-leftovers", None, None))  # the directories of the deleted topics
    assert {(each.code, each.topic, each.partition) for each in found if isinstance(each, Item)} <= before
    assert page.verdict in ("act", "nothing")


def test_paths_that_are_not_there(disk: Path, tmp_path: Path) -> None:
    nothing = run("doctor", tmp_path / "nowhere")
    assert (nothing.exit_code, nothing.stdout) == (2, "") or "NOT ALL WAS READ" in nothing.stdout
    assert "nowhere" in nothing.stderr + nothing.stdout
    (tmp_path / "file").write_text("not mounted")
    assert "not a directory; pass" in refused("doctor", tmp_path / "file")
    for log in (disk / "orders-none-0" / f"{ZERO}.log", Path(__file__)):  # not one that failed, but a mistake
        assert "not a directory; pass" in refused("doctor", disk, log)
        assert "not a directory; pass" in refused("restart-plan", disk, log)
    (tmp_path / "link").symlink_to(disk)
    for other in ("nowhere", "file", "link"):  # a log directory that failed, or is two, for its broker
        both = run("doctor", disk, tmp_path / other, *NOW)
        assert both.exit_code == run("restart-plan", disk, tmp_path / other).exit_code, other
        assert other in both.stdout


def test_two_log_directories_of_a_broker(tmp_path: Path) -> None:
    (tmp_path / "disks").mkdir()
    root = Path(shutil.copytree(DISK, tmp_path / "disks" / "one"))
    other = second(root, "orders-none-0", "orders-zstd-0")
    found = answers(root, other, *NOW)
    assert not [each for each in found if each.get("question") == "divergence"]
    assert [each["path"] for each in found if each["type"] == "doctorDisk"] == [str(root), str(other)]
    assert question_in(found, "startup")["isComplete"]
    assert answers(tmp_path / "disks", *NOW)[-1]["verdict"] == found[-1]["verdict"]


@pytest.mark.every_disk
def test_a_copy_of_a_log_directory(tmp_path: Path) -> None:
    """It is said first, and its transactions and schema IDs are not counted again."""
    (tmp_path / "disks").mkdir()
    root = Path(shutil.copytree(DISK, tmp_path / "disks" / "one"))
    backup = Path(shutil.copytree(DISK, tmp_path / "disks" / "one-backup"))
    own, *more = answers(root, *NOW)
    assert own["copyOf"] is None
    for given in ((root, backup), (backup, root), (tmp_path / "disks",)):
        found = answers(*given, *NOW)
        assert {each["path"]: each["copyOf"] for each in found if each["type"] == "doctorDisk"} == {
            str(root): None,
            str(backup): str(root),
        }
        for name in ("transactions", "replicas"):
            assert question_in(found, name)["answer"] == question_in(more, name)["answer"]
    (_, line, *_) = run("doctor", root, backup, *NOW).stdout.splitlines()
    assert line.startswith(f"  {backup}: A COPY of {root}, or that of this one")
    whole = question_in(more, "transactions")["answer"]
    shutil.rmtree(root / "payments-0")
    assert question_in(answers(root, *NOW), "transactions")["answer"] != whole
    assert question_in(answers(root, backup, *NOW), "transactions")["answer"] == whole


# --- It says at any time what it knows --------------------------------------------------------------------------------


class Ended(BaseException):
    """Stands for a signal."""


def ended_at(root: Path, number: int) -> tuple[list[Any], Page, bool]:
    """Return the answers and the page of an examination that ends at its progress report with this number; and whether
    it ended before its end."""
    found: list[Any] = []
    count = 0

    def progress(_size: int) -> None:
        nonlocal count
        count += 1
        if count == number:
            raise Ended

    doctor = Doctor(DoctorQuery([str(root)], now=AT), found.append, Run(more=progress))
    try:
        doctor.run()
    except Ended:
        return found, doctor.page(interrupted=True), True
    return found, doctor.page(), False


def test_what_is_known_when_it_ends(disk: Path) -> None:
    """Whenever it ends, each question is answered or said to be open, and no item is there that a whole run has not."""
    whole, page, _ = ended_at(damaged(disk), 0)
    items = {(each.code, each.topic, each.partition, each.position) for each in whole if isinstance(each, Item)}
    assert page.verdict == "loses" or page.errors
    number, was_ended = 1, True
    while was_ended:
        found, page, was_ended = ended_at(disk, number)
        questions = [each for each in found if isinstance(each, Question)]
        assert len(questions) == 6
        assert {
            (each.code, each.topic, each.partition, each.position) for each in found if isinstance(each, Item)
        } <= items
        left = [each for each in questions if not each.isComplete]
        assert was_ended == any("the run was ended" in text for each in left for text in each.notExamined)
        assert page.isComplete <= (not left)
        number += max(1, number // 3)
    assert number > 20


class StoppedClock:
    """A clock that is over after it was asked so many times."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self) -> float:
        self.count -= 1
        return 0.0 if self.count > 0 else 1e9


def within(root: Path, count: int, monkeypatch: pytest.MonkeyPatch, little: int) -> tuple[list[Any], Page]:
    """Examine a disk within a time that is over after a clock was asked so many times, for each question."""
    monkeypatch.setattr("kdump.incident.doctor.damage.LITTLE", little)
    monkeypatch.setattr(doctor_run, "TimeLimit", lambda seconds: TimeLimit(seconds, StoppedClock(count)))
    found: list[Any] = []
    doctor = Doctor(DoctorQuery([str(root)], now=AT), found.append)
    doctor.run()
    return found, doctor.page()


@pytest.mark.parametrize("little", few([0, 1 << 30], 1), ids=["in-passes", "in-one-go"])
def test_what_was_not_read_leads_to_no_conclusion(little: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the time is over, there is no damage that a whole check does not find, and what is left is counted."""
    root = copy_disk(DISKS / DISK_PATHS["clean-1"], tmp_path / "disk")
    for place in root.iterdir():
        if place.is_dir() and not place.name.startswith(("__", "orders-none", "payments", "users")):
            shutil.rmtree(place)
    damaged(root)
    index = root / "payments-0" / f"{ZERO}.index"
    index.write_bytes(b"\1" * 8 + index.read_bytes())
    whole, _ = within(root, 1 << 40, monkeypatch, 1 << 30)
    known = {(each.code, each.topic, each.partition) for each in whole if isinstance(each, Item)}
    known |= {("damaged-headers", each.topic, each.partition) for each in whole if isinstance(each, Item)}
    known |= {("partition-missing", topic, number) for code, topic, number in known if code == "startup-missing"}
    size = sum(path.stat().st_size for path in root.glob("*/*.log"))
    count, left = 2, 1
    while left:
        found, page = within(root, count, monkeypatch, little)
        (damage,) = [each for each in found if isinstance(each, Question) and each.question == "damage"]
        assert {(each.code, each.topic, each.partition) for each in found if isinstance(each, Item)} <= known, count
        left = damage.partitionsLeft
        assert damage.isComplete == (not left)
        assert 0 <= damage.bytesLeft <= size
        assert bool(damage.bytesLeft) <= bool(left)
        assert page.isComplete <= damage.isComplete
        count += max(1, count // 2)
    assert count > 5
    of_damage = [
        {
            each
            for each in some
            if isinstance(each, Item) and each.question == "damage" and each.code != "partition-missing"
        }
        for some in (whole, found)  # where the time was over, the startup may not have named the missing partitions
    ]
    assert of_damage[0] == of_damage[1]


def test_passes_come_to_the_same_result(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is too large for one go: newest segments are checked twice, and reported and counted once."""
    damaged(disk)
    results = []
    for little in (0, 1 << 30):
        found, page = within(disk, 1 << 40, monkeypatch, little)
        (damage,) = [each for each in found if isinstance(each, Question) and each.question == "damage"]
        items = {each for each in found if isinstance(each, Item)}
        results.append((items, page.errors, page.warnings, damage.answer))
    assert results[0] == results[1]


def test_headers_come_first(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the headers show is reported even if there is no time to check it; partitions with damage are checked
    first."""
    with (disk / "users-0" / f"{ZERO}.log").open("r+b") as file:
        file.seek(8)
        file.write(b"\0\0\0\0")
    order: list[str] = []
    check = DamageExamination._check

    def noted(self: DamageExamination, unit: Any, on: Any, name: str = "") -> bool:
        order.append(os.path.basename(unit.name))
        return check(self, unit, on, name)

    monkeypatch.setattr(DamageExamination, "_check", noted)
    within(disk, 1 << 40, monkeypatch, 0)
    assert order[1] == "users-0"  # after the files at the root
    monkeypatch.setattr(DamageExamination, "_thoroughly", lambda self, units: None)
    monkeypatch.setattr(DamageExamination, "_newest_segments", lambda self, parts: None)
    found, _ = within(disk, 1 << 40, monkeypatch, 0)
    assert [each.topic for each in found if isinstance(each, Item) and each.code == "damaged-headers"] == ["users"]


def test_no_time_at_all(disk: Path) -> None:
    result = run("doctor", damaged(disk), *NOW, "--budget", "0s")
    assert "not examined" in result.stdout
    assert "kdump verify reads everything" in result.stdout


def reads_a_log(pid: int) -> bool:
    with suppress(FileNotFoundError):  # a file that it has closed
        return any(os.readlink(each).endswith(".log") for each in Path(f"/proc/{pid}/fd").iterdir())
    return False


@pytest.mark.sampled
@pytest.mark.parametrize("form", ["json", "table"])
@pytest.mark.parametrize("number", few([signal.SIGINT, signal.SIGTERM], 1), ids=["interrupt", "terminate"])
def test_a_signal_at_a_random_time(form: str, number: signal.Signals, disk: Path) -> None:
    """It says what it knows in whole lines, and what it did not examine; then it ends by the signal."""
    damaged(disk)
    dice = seeded(f"doctor {form} {number}")
    command = ["env", "--default-signal", sys.executable, "-m", "kdump", "doctor", str(disk), *NOW, "--format", form]
    for _ in sample(range(2), 4):
        with subprocess.Popen(
            [*command, "--max-rate", "30KB/s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as started:
            wait_for(lambda: reads_a_log(started.pid))
            time.sleep(dice.uniform(0, 0.8))
            started.send_signal(number)
            page, said = started.communicate(timeout=30)
        lines = page.splitlines(keepends=True)
        assert lines
        assert all(line.endswith("\n") for line in lines)
        assert started.returncode in (130, -number, 1), said
        if started.returncode == 1:  # it was faster
            continue
        assert "Traceback" not in said
        if form == "json":
            *_, last = map(json.loads, lines)
            assert (last["type"], last["interrupted"], last["isComplete"]) == ("doctor", True, False)
        else:
            is_ended = any(
                line.endswith(": the run was ended\n") for line in lines
            )  # or else it came after the last one
            assert ("ENDED BY A SIGNAL: this is what was known by then\n" in lines) == is_ended


def test_declared_answers(disk: Path) -> None:
    types = {each["type"] for each in objects("doctor", damaged(disk), *NOW, status=1, types=TYPES)}
    assert types == {"doctorDisk", "doctorItem", "doctorLargest", "doctorQuestion", "doctor"}


def test_options() -> None:
    assert "is not a duration" in run("doctor", DISK, "--budget", "soon").stderr


def test_remote_storage_is_not_examined(tmp_path: Path) -> None:
    """No disk shows whether remote storage has the segments of a tiered topic, and doctor does not say that everything
    was read. Nor of the partition alone."""
    disks = incident("missing-remote-segment", tmp_path / "disks")
    (alone,) = (tmp_path / "disks").rglob("tiered-0")
    for paths in (disks, [alone]):
        found = answers(*paths, *NOW)
        (damage,) = [each for each in found if each["type"] == "doctorQuestion" and each["question"] == "damage"]
        assert damage["notExamined"] == [
            "1 partition has older offsets that are not on these disks: tiered-0 110377..215208 (in remote storage)"
        ]
        assert not damage["isComplete"]


@pytest.mark.parametrize("topic_id", ["", "pP1dXJ1nQGmUFh2wsbRm4Q"], ids=["unknown", "deleted"])
def test_a_stray_directory_is_judged_as_space_does(topic_id: str, disk: Path) -> None:
    stray = shutil.copytree(disk / "orders-none-0", disk / f"lost-0.{'b' * 32}-stray")
    (stray / "partition.metadata").unlink(missing_ok=True)
    if topic_id:
        (stray / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    (item,) = (each for each in items_in(answers(disk, *NOW)) if each["code"] == "directory-stray")
    (action,) = item["actions"]
    texts = [
        each["text"]
        for each in map(json.loads, run("space", disk, *NOW, "--need", "1G", "--json").stdout.splitlines())
        if each["type"] in ("spaceStep", "spaceKept") and str(stray) in (each.get("path"), *each.get("paths", ()))
    ]
    assert len(texts) == 1
    why = texts[0].removeprefix("stray directory: ").removeprefix("not offered: ").partition("; copy it elsewhere")[0]
    assert why in action
    assert action.startswith("Remove it as kdump space" if topic_id else "Keep it: ")


def test_the_copy_of_the_later_leader_is_named(tmp_path: Path) -> None:
    roots = incident("diverged-replicas", tmp_path / "disks")
    found = {each["code"]: each for each in items_in(answers(*roots, *NOW))}["replicas-diverge"]
    diff = run("diff", *(root / "ledger-0" for root in roots)).stdout
    assert "B has the log of the later leader (epoch 2)" in diff
    later = f"the log of the later leader from there on (leader epoch 2): {roots[1] / 'ledger-0'}"
    assert later in found["evidence"]
    assert f"Save what {roots[0] / 'ledger-0'} has from offset" in found["actions"][0]
    assert f"the later leader's log, {roots[1] / 'ledger-0'}" in found["actions"][0]


def test_a_topic_that_was_created_again_is_no_replica(tmp_path: Path) -> None:
    """While it was deleted, one broker was down: its directory has the ID of the deleted one."""
    roots = incident("diverged-replicas", tmp_path / "disks")
    for number, root in enumerate(roots):
        text = f"version: 0\ntopic_id: {str(number) * 21}A\n"
        (root / "ledger-0" / "partition.metadata").write_text(text)
    assert "replicas-diverge" not in {each["code"] for each in items_in(answers(*roots, *NOW))}
    (roots[0] / "ledger-0" / "partition.metadata").unlink()
    assert "replicas-diverge" in {each["code"] for each in items_in(answers(*roots, *NOW))}


def test_a_throttle_of_replication_is_named(tmp_path: Path) -> None:
    """That of a replica that is not in sync, if a list has it, or its leader, and the broker has a rate."""
    for number, (rates, expected) in enumerate(
        (({}, []), ({"follower": "2"}, ["follower"]), ({"follower": "2", "leader": ""}, ["leader", "follower"]))
    ):
        steps = [metadata.topic("t", "A"), metadata.partition("A", 0, [1, 2])]
        steps.append(metadata.change("A", 0, isr=metadata.numbers([1])))
        for role, listed in (("leader", "*"), ("follower", "1:1, 0:2")):
            steps.append(metadata.config(2, "t", f"{role}.replication.throttled.replicas", listed))
        for role, broker in rates.items():
            steps.append(metadata.config(4, broker, f"{role}.replication.throttled.rate", "9"))
        folder = tmp_path / str(number)
        partition(folder, b"".join(map(one, steps, range(len(steps)))), name="__cluster_metadata-0")
        (found,) = (
            each for each in objects("doctor", folder, status=1) if each.get("code") == "partition-under-replicated"
        )
        limits = [f"{role}.replication.throttled.rate=9" in found["evidence"][0] for role in ("leader", "follower")]
        assert limits == [role in expected for role in ("leader", "follower")], rates
        assert any("Raise the throttle" in each for each in found["actions"]) == bool(expected)


def test_the_clusters_are_told_apart(disk: Path, tmp_path: Path) -> None:
    """Each has partitions of __consumer_offsets with equal names, which are no replicas of each other."""
    other = shutil.copytree(disk, tmp_path / "other")
    ids = (other / "meta.properties").read_text()
    (other / "meta.properties").write_text(re.sub(r"cluster\.id=.*", "cluster.id=" + "x" * 22, ids))
    shutil.rmtree(other / "__cluster_metadata-0")
    one, both = answers(disk), answers(disk, other)
    assert "divergence" not in {each.get("question") for each in both}
    assert len([each for each in items_in(one) if each["question"] == "groups"]) == len(
        {(each["title"], each["group"]) for each in items_in(both) if each["question"] == "groups"}
    )
    _, _, lag = question_in(one, "groups")["answer"].partition("; ")
    assert question_in(both, "groups")["answer"].count(lag) == 2
    assert question_in(both, "replicas")["answer"].endswith(question_in(one, "replicas")["answer"])


def test_whether_another_broker_has_what_is_damaged_decides(tmp_path: Path) -> None:
    """The copy of the other broker is read there: intact, it is fetched; damaged, too, what is here is saved."""
    roots = [shutil.copytree(FIXTURES / name, tmp_path / name) for name in ("diverged-1", "diverged-2")]
    logs = [root / "ledger-0" / f"{0:020}.log" for root in roots]
    logs[1].write_bytes(_damaged(logs[1]))
    (found,) = (each for each in items_in(answers(*roots, *NOW)) if each["code"] == "crc-mismatch")
    assert [action.split(".")[0] for action in found["actions"]] == ["Stop the broker"]
    assert f"{roots[0] / 'ledger-0'} has these offsets intact" in found["evidence"]
    logs[0].write_bytes(_damaged(logs[0]))
    both = [each for each in items_in(answers(*roots, *NOW)) if each["code"] == "crc-mismatch"]
    assert [each["actions"][0].startswith("If another replica") for each in both] == [True, True]


def _damaged(path: Path) -> bytes:
    data = bytearray(path.read_bytes())
    data[300:304] = b"\xff\x00\xff\x00"
    return bytes(data)


@pytest.mark.sampled
@pytest.mark.parametrize("name", sample([*first_screens.NAMES], 4, "screens"))
def test_the_first_screen(name: str) -> None:
    """It has the verdict, at most one line of what was not examined, what not to do, the first item and its first
    action, within 80 columns and 24 lines."""
    section = first_screens.section(name)
    page = (ROOT / "docs" / "first-screens.md").read_text()
    assert (section in page) is (name in first_screens.NAMES[: first_screens.SHOWN])
    shown = section.split("```text\n")[1]
    assert re.match(r"[A-Z\d][^\n]+(\n  [^\n]+)?(\nnot examined: [^\n]+(\n  [^\n]+)*)?\n\n1\. ", shown)
    assert re.search(r"\n   never    .*\n   do       ", shown, re.DOTALL)
    first = shown.partition("\n   do       ")[0]
    assert "   evidence" not in first
    assert re.search(r"\b(\d+ things?|\d+ THINGS?)\s+(?:to|TO)\s+(?:do|DO)", shown), "how many there are"
    assert [line for line in shown.splitlines() if len(line) > 80 and not LONG.match(line)] == []


def test_an_incomplete_batch_that_may_have_been_acknowledged_comes_first(disk: Path) -> None:
    """As restart-plan has it, and before what retention deletes as it is configured."""
    log = disk / "orders-none-0" / f"{ZERO}.log"
    log.write_bytes(log.read_bytes()[:-500])
    (disk / ".kafka_cleanshutdown").unlink()
    Disk(disk).checkpoint("replication-offset-checkpoint", "orders-none-0", 240)
    first, *others = items_in(answers(disk, "--now", "2027-01-01T00:00Z"))
    assert (first["code"], first["severity"], first["priority"]) == ("startup-loses", "warning", Priority.LOSES)
    assert (first["topic"], first["partition"]) == ("orders-none", 0)
    assert any("an incomplete one of 60 records" in text for text in first["evidence"])
    assert "startup-retention" in {each["code"] for each in others}
    assert "batch-truncated" not in {each["code"] for each in others}


def test_topics_are_not_stray_by_metadata_that_the_node_refuses(disk: Path) -> None:
    """The record of a topic is missing: the node halts at its first partition, and makes nothing stray."""
    change_metadata(Disk(disk), lambda _, value: b"\x01\x14\x00\x00" if b"orders-none" in value else value)
    properties = disk.parent / "server.properties"
    properties.write_text(f"process.roles=broker,controller\nnode.id=1\nlog.dirs={disk}\n")
    codes = [each["code"] for each in items_in(answers(disk, "--properties", properties, *NOW))]
    assert codes[0] == "startup-stops"
    assert "startup-stray" not in codes


def test_a_broker_with_another_cluster_id_than_its_topics(tmp_path: Path) -> None:
    """Two clusters do not give a topic the same ID: with other topics, they are two clusters."""
    roots = [Path(shutil.copytree(FIXTURES / "disk-1", tmp_path / f"disk-{number}")) for number in (1, 2)]
    meta = (roots[1] / "meta.properties").read_text().replace("node.id=1", "node.id=2")
    (roots[1] / "meta.properties").write_text(
        re.sub(r"(cluster|directory)\.id=.*", lambda m: f"{m[1]}.id={'y' * 22}", meta)
    )
    (wrong,) = (each for each in items_in(answers(*roots, *NOW)) if each["code"] == "startup-cluster-id-wrong")
    assert wrong["priority"] == Priority.STOPS
    assert {f"{root}: cluster.id" in "".join(wrong["evidence"]) for root in roots} == {True}
    for number, path in enumerate(sorted(roots[1].glob("*/partition.metadata"))):
        path.write_text(f"version: 0\ntopic_id: {number:021}A\n")
    for root in roots:  # the same in every cluster
        text = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"
        (root / "__cluster_metadata-0" / "partition.metadata").write_text(text)
    for path in [*(roots[1] / "__cluster_metadata-0").glob("0*")]:  # its topics would be those of the other
        path.unlink()
    codes = {each["code"] for each in items_in(answers(*roots, *NOW))}
    assert "startup-cluster-id-wrong" not in codes


@pytest.mark.parametrize(
    ("configs", "priority"), [({}, 1), ({"retention.ms": "-1"}, 4), ({"cleanup.policy": "compact"}, 4)]
)
def test_timestamps_in_seconds_lose_records_where_retention_applies(
    tmp_path: Path, configs: dict[str, str], priority: int
) -> None:
    root = tmp_path / "disk"
    time = AT // 1000
    log = write_file(root / "t-0" / f"{ZERO}.log", batch([record(value=b"v")], baseTimestamp=time, maxTimestamp=time))
    os.utime(log, (time, time))
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=FN96DRb6S3GeSIQS03itlw\n")
    values = [metadata.topic("t", "t"), *(metadata.config(2, "t", *each) for each in configs.items())]
    write_file(root / "__cluster_metadata-0" / f"{ZERO}.log", metadata.log(values))
    code = "startup-retention" if priority == 1 else "timestamp-in-past"
    (item,) = [each for each in items_in(answers(root, *NOW)) if each["code"] == code]
    assert item["priority"] == priority
    assert any("milliseconds" in action for action in item["actions"])


def test_state_that_retention_deletes_by_the_nodes_file(tmp_path: Path) -> None:
    """The command and the function find the same server.properties; the budget ends the reading."""
    root = tmp_path / "disk"
    partition(root, batch([record(value=b"v")], baseTimestamp=AT, maxTimestamp=AT), name="_schemas-0")
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=FN96DRb6S3GeSIQS03itlw\n")
    values = [metadata.topic("_schemas", "t"), metadata.config(2, "_schemas", "cleanup.policy", "delete")]
    write_file(root / "__cluster_metadata-0" / f"{ZERO}.log", metadata.log(values))
    (tmp_path / "server.properties").write_text(f"node.id=1\nlog.dirs={root}\nlog.retention.hours=1\n")
    (shown,) = [each for each in items_in(answers(root, *NOW)) if each["code"] == "state-topic-deleted"]
    assert shown["evidence"][0].startswith("retention.ms=3600000,")
    found = kdump.doctor([str(root)], now=AT)
    assert [each.evidence for each in found.items if each.code == "state-topic-deleted"] == [(*shown["evidence"],)]
    late = kdump.doctor([str(root)], now=AT, budget=0)
    assert "state-topic-deleted" not in {each.code for each in late.items}
    assert not next(each for each in late.questions if each.question == "replicas").isComplete


CLUSTER_DISKS = DISKS / "kafka-4.3"
"""The disks of a cluster: clean-0 is that of its only controller."""


def test_the_cluster_id_of_the_controller_is_right(tmp_path: Path) -> None:
    controller, broker = (copy_disk(CLUSTER_DISKS / f"clean-{node}", tmp_path / f"disk-{node}") for node in (0, 1))
    meta = broker / "meta.properties"
    right = re.findall(r"cluster\.id=(\S+)", meta.read_text())[0]
    meta.write_text(meta.read_text().replace(right, "y" * 22))
    found = answers(controller, broker, *NOW)
    (wrong,) = (each for each in items_in(found) if each["code"] == "startup-cluster-id-wrong")
    assert f"{broker}: NEVER REGISTERS (INCONSISTENT_CLUSTER_ID); starts" in question_in(found, "startup")["answer"]
    assert wrong["actions"] == [
        f"While the node is stopped, set cluster.id={right}, which its controller has, in {meta}"
    ]


@pytest.mark.parametrize(
    ("lost", "given", "is_reported"), few([(True, (0, 1), True), (False, (0, 1), False), (True, (0,), False)], 1)
)
def test_the_only_controller_without_a_metadata_log_starts_a_new_cluster(
    lost: bool, given: tuple[int, ...], is_reported: bool, tmp_path: Path
) -> None:
    """The incident lost-controller of docs/incident-trials.json."""
    nodes = [copy_disk(CLUSTER_DISKS / f"clean-{node}", tmp_path / f"disk-{node}") for node in (0, 1)]
    if lost:
        shutil.rmtree(nodes[0] / "__cluster_metadata-0")
    found = answers(*(nodes[node] for node in given), *NOW)
    ordered = sorted(items_in(found), key=lambda each: (int(each["priority"]), each["severity"] != "error"))
    codes = [each["code"] for each in ordered]
    assert codes[:1] == ["startup-controller-empty"] if is_reported else "startup-controller-empty" not in codes
    if is_reported:
        assert found[-1]["verdict"] == doctor_run.LOSES


@pytest.mark.parametrize("empty", [1, 2])
def test_a_majority_of_controllers_without_a_metadata_log_starts_a_new_cluster(empty: int, tmp_path: Path) -> None:
    disks = []
    for number, node in enumerate((0, 11, 12, 1)):
        disks.append(copy_disk(CLUSTER_DISKS / f"clean-{int(node == 1)}", tmp_path / f"disk-{node}"))
        meta = disks[-1] / "meta.properties"
        meta.write_text(re.sub("node.id=0", f"node.id={node}", meta.read_text()))
        state = disks[-1] / "__cluster_metadata-0" / "quorum-state"
        voters = '{"voterId":0},{"voterId":11},{"voterId":12}'
        state.write_text(state.read_text().replace('{"voterId":0}', voters))
        if number < empty:
            shutil.rmtree(state.parent)
    items = sorted(items_in(answers(*disks, *NOW)), key=lambda each: int(each["priority"]))
    titles = [each["title"] for each in items if each["code"] == "startup-controller-empty"]
    assert [title.partition(" are a majority")[0] for title in titles] == ["controllers 0 and 11"][: empty - 1]
    first = min(items, key=lambda each: (int(each["priority"]), each["severity"] != "error"))
    assert (first["code"] == "startup-controller-empty") == bool(titles)


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_replica_is_one_item(clean: bool, tmp_path: Path) -> None:
    """It does not diverge, and what to do depends on the other disk: it has what is damaged. See the incidents
    flipped-bit-replica and flipped-bit-replica-unclean of docs/incident-trials.json."""
    nodes = [copy_disk(CLUSTER_DISKS / f"clean-{node}", tmp_path / f"disk-{node}") for node in range(3)]
    disk = Disk(nodes[1])
    incident_trials.flipped_bit_of_replica(disk) if clean else incident_trials.flipped_bit_of_replica_unclean(disk)
    errors = {each["code"]: each for each in items_in(answers(*nodes, *NOW)) if each["severity"] == "error"}
    assert [*errors] == (["crc-mismatch"] if clean else ["startup-loses", "startup-order"])
    first = errors["crc-mismatch" if clean else "startup-loses"]["actions"][0]
    starts = "Once another broker is Leader" if clean else "Start the broker once another one that has them"
    assert first.startswith(starts)


def test_what_replicas_lose_in_any_order_is_saved_first(tmp_path: Path) -> None:
    paths = [CLUSTER_DISKS / f"clean-{node}" for node in range(3)]
    items = items_in(answers(*paths, *NOW))
    (order,) = [each for each in items if each["code"] == "startup-order"]
    assert order["evidence"][0].startswith("ledger-0: ")
    assert "replicas-diverge" not in str(items)  # the same cause
    diff = shlex.join(["kdump", "diff", *map(str, paths)])
    assert order["actions"][0] == f"Before any start, save what the replicas lose: {diff} states the commands"


def test_the_offsets_of_a_group_are_set_by_a_command_that_runs(tmp_path: Path) -> None:
    (root,) = incident("offsets-reset", tmp_path / "disks")
    (unusable,) = [each for each in items_in(answers(root, *NOW)) if each["code"] == "group-offsets-unusable"]
    reset = "--group tx-group --topic orders-none:0 --reset-offsets --to-offset 120 --dry-run"
    assert reset in unusable["actions"][0]


def test_a_damaged_metadata_log_is_not_treated_as_a_replica(tmp_path: Path) -> None:
    root = copy_disk(CLUSTER_DISKS / "clean-1", tmp_path / "disk")
    log = root / "__cluster_metadata-0" / f"{ZERO}.log"
    Disk(root).flip(log, log.stat().st_size // 2)
    (losing,) = [each for each in items_in(answers(root, *NOW)) if each["code"] == "startup-loses"]
    assert losing["actions"][0].startswith("Write the log with the damaged batch repaired")
    assert "kafka-topics.sh" not in str(losing["actions"])


ONE_FILE = (
    *(startup_incidents.file_name, startup_incidents.checkpoint_unreadable),
    *(startup_incidents.checkpoint_is_directory, startup_incidents.start_checkpoint_unreadable),
    *(startup_incidents.node_id_wrong, startup_incidents.index_beyond_log),
    *(startup_incidents.metadata_snapshot_short, startup_incidents.topic_id_wrong),
    *(startup_incidents.epochs_unreadable, startup_incidents.topic_id_unreadable),
    *(startup_incidents.txn_index_invalid, startup_incidents.meta_without_cluster),
    *(startup_incidents.quorum_state_unreadable, startup_incidents.bootstrap_unreadable),
)


@pytest.mark.parametrize("damage", few(ONE_FILE, 2), ids=lambda each: each.__name__)
def test_a_file_that_stops_a_startup_is_one_item(damage: Any, tmp_path: Path) -> None:
    """What verify finds in it is the same cause. Each was tried: docs/incident-trials.json."""
    root = copy_disk(CLUSTER_DISKS / "clean-1", tmp_path / "disk")
    damage(Disk(root))
    errors = [each for each in items_in(answers(root, *NOW)) if each["severity"] == "error"]
    assert [each["code"] for each in errors if each["code"] != "partition-offline"] in (
        ["startup-stops"],
        ["startup-offline"],
        ["startup-loses"],
        ["startup-stray"],
    )
    assert "partition-offline" not in str(errors) or "meta" in damage.__name__
    assert not any(f"move {root} out" in action for each in errors for action in each["actions"])


def test_no_log_directory_is_moved_for_its_bootstrap_checkpoint(tmp_path: Path) -> None:
    root = copy_disk(CLUSTER_DISKS / "clean-1", tmp_path / "disk")
    startup_incidents.bootstrap_unreadable(Disk(root))
    (wrong,) = [each for each in objects("verify", root, status=1) if each.get("code") == "crc-mismatch"]
    assert "out of log.dirs" not in str(wrong)


def test_an_empty_directory_that_becomes_stray_loses_nothing(tmp_path: Path) -> None:
    """A broker was killed before it had written the partition.metadata of a partition that it was creating."""
    root = Path(shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk"))
    for path in (root / "ledger-0").iterdir():
        path.unlink()
    for suffix, size in (("log", 0), ("index", 65536), ("timeindex", 65532)):
        (root / "ledger-0" / f"{0:020}.{suffix}").write_bytes(bytes(size))
    found = answers(root, *NOW)
    (item,) = (each for each in items_in(found) if each["code"] == "startup-stray")
    assert (item["severity"], item["partition"]) == ("warning", 0)
    assert kdump.restart_plan([str(root)]).losesWithinHour == "no"
    # After that start and a clean shutdown, which does not close the logs of stray directories.
    (root / "ledger-0").rename(root / f"ledger-0.{'0' * 32}-stray")
    (root / ".kafka_cleanshutdown").touch()
    rows = objects("reindex", root, "--topic", "ledger")
    assert {each["status"] for row in rows if row["type"] == "reindex" for each in row["indexes"]} == {
        "legal",
        "notNeeded",
    }


ONE_CAUSE = {
    "start-line": "startup-checkpoint-emptied",
    "recovery-line": "startup-checkpoint-emptied",
    "meta-directory-id": "startup-directory-id-unregistered",
    "metadata-unknown-topic-clean-1": "startup-record-left-out",
    "partition-metadata-lost": "startup-stray",
    "time-index-zeros-clean": "startup-retention",
}
"""Damage that both a startup and a rule of verify find, which had two items, with other advice in each."""


@pytest.mark.sampled
@each_case(
    "damage",
    sample([each for each in DAMAGES if each.name in ONE_CAUSE], 4, "one cause"),
    ids=lambda damage: damage.name,
)
def test_what_a_startup_and_a_rule_find_is_one_item(damage: Any, tmp_path: Path) -> None:
    root = copy_disk(DISKS / DISK_PATHS[damage.disk], tmp_path / "disk")
    before = {(item.code, item.name) for item in kdump.doctor(aged(root)).items}
    damage.apply(root)
    found = [item for item in kdump.doctor(aged(root)).items if (item.code, item.name) not in before]
    assert [item.code for item in found] == [ONE_CAUSE[damage.name]]
    assert found[0].severity == "error" or found[0].actions[0].startswith("Rebuild the .timeindex")


SAME_CAUSE = {
    **dict.fromkeys(("torn-clean", "tail-clean", "last-batch-cut", "junk-clean"), "startup-loses"),
    **dict.fromkeys(("base-offset-negative", "start-beyond", "replication-beyond"), "startup-loses"),
    **dict.fromkeys(("offset-back", "index-past-the-end"), "startup-loses"),  # with the offsets of a group
    "time-index-lost": "startup-retention",
    "name-above-first-offset": "startup-loses",
    "length-negative": "startup-stops",
    "offset-too-far-clean": "segment-name-mismatch",
    "offset-too-far-crash": "segment-name-mismatch",
    "epoch-falls-clean": "leader-epoch-decreased",
    "directory-stray": "directory-stray",
}
"""Damage of one cause, about which two or three questions, or rules, had an item each."""
WITH_MORE = ("meta-", "two-directories", "wrapper-")
"""Damage that has consequences of its own: for retention, or for all partitions."""


@pytest.mark.sampled
def test_one_cause_is_one_item(tmp_path: Path) -> None:
    disks, before = RestoredDisks(tmp_path), dict[Path, set[Any]]()
    others = {each.name for each in sample(DAMAGES, 72, "one cause") if not each.name.startswith(WITH_MORE)}
    same = sample(SAME_CAUSE, 7, "same cause")
    for damage in [each for each in DAMAGES if each.name in {*same, *others}]:
        disk = disks.damaged(damage)[0]
        root = disk.root
        found = {(each.code, each.name) for each in kdump.doctor(aged(root)).items}
        if root not in before:
            disk.restore()
            before[root] = {(each.code, each.name) for each in kdump.doctor(aged(root)).items}
        codes = {code for code, name in found - before[root] if not code.endswith("-missing") or name.startswith("/")}
        assert len(codes) <= 1, (damage.name, codes)
        assert damage.name not in SAME_CAUSE or codes == {SAME_CAUSE[damage.name]}, damage.name


def test_the_rules_of_an_index_have_one_item_and_none_beside_that_of_its_log(tmp_path: Path) -> None:
    """The rules of an index had an item each; and entries that lead to no batch one besides that of the damaged log."""
    root = copy_some(DISKS / "kafka-4.3" / "clean-1", tmp_path / "disk", "orders-none-0")
    before = {each.code for each in kdump.doctor(aged(root)).items}
    index, log = (root / "orders-none-0" / f"{ZERO}.{suffix}" for suffix in ("timeindex", "log"))
    entries = index.read_bytes()
    index.write_bytes(entries[12:24] + entries[:12] + entries[24:] + b"end")
    assert {each.code for each in kdump.doctor(aged(root)).items} - before == {"time-index-not-sorted"}
    index.write_bytes(entries)
    data = log.read_bytes()
    log.write_bytes(data[:7000] + bytes(30) + data[7000:])
    found = {each.code for each in kdump.doctor(aged(root)).items} - before
    assert found == {"startup-loses"}  # the damaged batch, with the bytes after it that end the log


def test_what_has_another_cause_is_an_item_of_its_own(tmp_path: Path) -> None:
    """What an item covers in one place of a partition was covered in all of it."""
    root = copy_some(DISKS / "kafka-4.3" / "crash-1", tmp_path / "disk", "orders-none-0")
    log = root / "orders-none-0" / f"{ZERO}.log"
    data = log.read_bytes()
    log.write_bytes(flip(flip(data, 8 * 7000), 8 * 20000))  # recovery truncates it at the first
    index = log.with_suffix(".index")
    entries = index.read_bytes()[8:]
    for position in (0, 61):  # below both, which an entry's offset shows
        index.write_bytes(struct.pack(">ii", 50, position) + entries)
        items = kdump.doctor(aged(root)).items
        found = {(each.code, each.position, each.offset) for each in items if each.name == "orders-none-0"}
        assert {each for each in found if each[0] != "timestamp-in-future"} == {
            ("startup-loses", 5599, 60),
            ("crc-mismatch", 16539, 180),
        }, position  # recovery rebuilds the index
    (root / ".kafka_cleanshutdown").touch()
    items = kdump.doctor(aged(root)).items
    assert ("index-mismatch", 0, 50) in {(each.code, each.position, each.offset) for each in items}
    log.write_bytes(data)
    (root / ".kafka_cleanshutdown").unlink()
    assert "index-mismatch" in {each.code for each in kdump.doctor(aged(root)).items}


def test_a_file_is_renamed_only_if_its_name_is_wrong(tmp_path: Path) -> None:
    """Where the segment before ends, the name of the next one is right, and the base offset of its batch is not."""
    root = copy_some(DISKS / "kafka-4.3" / "clean-1", tmp_path / "disk", "users-0")
    log = root / "users-0" / f"{254:020}.log"
    data = log.read_bytes()
    for bit in (56, 32):  # 254 becomes 126, below the name, or is far above it
        log.write_bytes(flip(data, bit))
        texts = [text for each in kdump.doctor(aged(root)).items if each.name == "users-0" for text in each.actions]
        assert texts
        assert not [text for text in texts if "Name a renamed file" in text]


KNOWN = ("epoch-falls-clean", "name-above-first-offset", "txn-size", "txn-index-lost", "gzip-garbage", "recovery-line")


@pytest.mark.sampled
@each_case(
    "damage", sample([each for each in DAMAGES if each.name in KNOWN], 3, "known"), ids=lambda damage: damage.name
)
def test_what_the_disk_shows_is_no_condition(damage: Any, tmp_path: Path) -> None:
    """Whether the .log is damaged, the payload too large for kdump, the shutdown clean."""
    root = copy_disk(DISKS / DISK_PATHS[damage.disk], tmp_path / "disk")
    damage.apply(root)
    for item in kdump.doctor(aged(root)).items:
        if item.code == damage.code:
            assert not [text for text in item.actions if text.startswith("If ")]
    shown = run("verify", root).stdout.partition("what to do")[2]
    shown = shown.partition(f"\n  {damage.code}")[2].partition("\n    next:")[0]
    assert "do:" in shown
    assert "do:   If " not in shown


def test_what_needs_nothing_is_background(tmp_path: Path) -> None:
    """A missing .index that the broker rebuilds does not stand above a stuck consumer; what a deleted topic leaves is
    one item."""
    root = copy_disk(DISKS / "kafka-4.3" / "crash-1", tmp_path / "disk")
    (root / "payments-0" / f"{0:020}.index").unlink()
    codes = [item.code for item in kdump.doctor(aged(root)).items]
    assert "space-leftovers" not in codes
    assert codes.index("transaction-open") < codes.index("index-missing")


def test_a_deleted_topic_needs_no_metadata_log_back() -> None:
    """Without topics in the metadata, a stray directory was both to be left and to have the metadata put back."""
    facts = {"metadataLost": True, "strayDeleted": False, "ofDeleted": True, "assigned": False}
    values = dict.fromkeys(("path", "directory", "topic", "id", "partition", "newId"), "x")
    (action,) = Problem("startup-stray-with-other-id", values, facts).actions
    assert action.startswith("Do nothing")
