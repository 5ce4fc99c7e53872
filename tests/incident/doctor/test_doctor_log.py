"""`kdump doctor --log`: the messages of a broker's log are on the page once each, with what the disks show."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.incident.doctor.answer import Item, Page, Question
from kdump.incident.doctor.run import Doctor, DoctorQuery
from kdump.incident.explain.answer import Explanation
from kdump.incident.explain.log_entries import SEVERE
from kdump.incident.explain.run import explain_log
from kdump.io.run import PLAIN_RUN, Run
from tests.command import run
from tests.conftest import DISKS, FIXTURES, few
from tests.craft import with_metadata_record, write_file
from tests.damages import ALIKE
from tests.incident.doctor.test_command import incident
from tests.incident.explain.explaining import LOGS
from tests.incident.explain.test_explain_disk import LATER, QUICK, SILENT, Case, damaged
from tests.test_many_partitions import CALLS

CLEAN = DISKS / "kafka-4.3" / "clean-1"
SMALL = FIXTURES / "clean-2"
"""For tests in which nothing of the log is on the disk."""
NOW = ("--now", "2026-11-24T09:00Z")
AT = 1_795_510_800_000
RECORD_SIZE = LOGS / "brokers" / "record-size-0.log"


def answers(*arguments: Any, stdin: bytes | None = None) -> list[dict[str, Any]]:
    result = run("doctor", *arguments, *NOW, "--json", stdin=stdin)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert found[-1]["type"] == "doctor", result.stderr
    return found


def items_in(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items in the order of the page."""
    return sorted((each for each in found if each["type"] == "doctorItem"), key=lambda each: int(each["priority"]))


def question_in(found: list[dict[str, Any]]) -> dict[str, Any]:
    (question,) = [each for each in found if each.get("question") == "log" and each["type"] == "doctorQuestion"]
    return question


def lines_of(item: dict[str, Any], log: Path) -> list[str]:
    """Return the evidence of an item that is from the log."""
    return [each for each in item["evidence"] if each.startswith(f"{log} line ") or " of messages in the log" in each]


def on_a_smaller_disk(name: str, tmp_path: Path) -> Case:
    """Return a case without the largest partitions, and those that are like others, unless the damage is in them."""
    case = damaged(name, tmp_path)
    changed = {each.file.partition("/")[0] for each in case.expected}
    for place in Path(case.paths[0]).iterdir():
        if place.name.startswith((*ALIKE, "clicks-", "large-")) and place.name not in changed:
            shutil.rmtree(place)
    return case


# --- The logs of real brokers, with their disks -----------------------------------------------------------------------

OF_CLUSTER = ("meta-cluster-id",)
"""Disks that are valid, and of another cluster: only the log shows it."""
OTHER_LOG = (*SILENT, "snapshot-sequence", "future-beside", "directory-stray", "cleaner")
"""Logs in which no error is about the damage."""


WHOLE = ("recovery", "partition-metadata", "small-files")
"""Of QUICK: with these, a missing partition would be as bad as the cause."""


@pytest.mark.parametrize(
    "name",
    [
        *few((name for name in QUICK if name != "recovery"), 1),
        *(pytest.param(name, marks=pytest.mark.every_disk) for name in ("recovery", *LATER)),
    ],
)
def test_the_first_item_is_the_cause_and_nothing_is_there_twice(name: str, tmp_path: Path) -> None:
    case = damaged(name, tmp_path) if name in (*WHOLE, *LATER) else on_a_smaller_disk(name, tmp_path)
    found = answers(*case.paths, "--log", case.log)
    items = items_in(found)
    # What the smaller disk lacks, and what retention deletes, would be lost, which comes before what stops a startup.
    first = next(each for each in items if each["code"] not in ("startup-missing", "startup-retention"))
    severe = [each for each in explain_log(str(case.log)) if isinstance(each, Explanation) and each.level in SEVERE]
    errors = [each for each in severe if each.level != "WARN"]
    if name in OF_CLUSTER:
        assert first["code"] == "cluster-id-inconsistent"
    elif name not in OTHER_LOG:
        about = {f"{path}/{each.file}" for path in case.paths for each in case.expected}
        about |= {str(Path(path).parent) for path in about}
        assert {first["file"], str(Path(first["file"]).parent)} & about, first
        if errors and name != "small-files":  # the error there is about an index, which is not lost records
            assert f" line {errors[0].line}: " in "".join(lines_of(first, case.log))
    # Each message is evidence of one item, or an item.
    lines = re.findall(rf"{re.escape(str(case.log))} line (\d+): ", "".join(str(each["evidence"]) for each in items))
    assert sorted(map(int, lines)) == sorted(each.line for each in severe)
    # The other items are those of a page without the log.
    others = [each for each in items if each["question"] != "log"]
    plain = items_in(answers(*case.paths))
    for each in others:
        each["evidence"] = [text for text in each["evidence"] if text not in lines_of(each, case.log)]

    def key(item: dict[str, Any]) -> str:
        return json.dumps(item | {"priority": None})

    assert sorted(map(key, others)) == sorted(map(key, plain))
    question = question_in(found)
    assert (question["items"], question["unread"]) == (len(items) - len(others), [])


def test_a_cause_that_the_page_states_is_one_thing_to_do(tmp_path: Path) -> None:
    case = on_a_smaller_disk("record-size-0", tmp_path)
    text = run("doctor", *case.paths, "--log", case.log, *NOW).stdout
    first = text.split("\n2. ")[1].split("\n3. ")[0]  # after what the smaller disk lacks
    assert f"{case.log} line 310: ERROR, 2 times, 2026-11-24T08:22:38.922Z to 2026-11-24T08:22:38.924Z: " in first
    assert "[record-size-below-minimum]" not in text


def test_a_message_without_an_item_has_what_explain_finds(tmp_path: Path) -> None:
    found = answers(CLEAN, "--log", RECORD_SIZE)
    first = next(
        each for each in items_in(found) if each["code"] == "record-size-below-minimum"
    )  # the disk has been repaired
    (explained,) = [
        each
        for each in kdump.explain(RECORD_SIZE, disk=str(CLEAN))
        if isinstance(each, Explanation) and each.message == "record-size-below-minimum"
    ]
    assert (first["question"], first["code"], first["severity"]) == ("log", explained.message, "error")
    assert (first["topic"], first["partition"]) == ("kafkajs-none", 0)
    assert first["commands"] == explained.commands
    assert (first["actions"], first["never"]) == ([explained.action], [explained.never])
    texts = [each.shown for each in explained.evidence if each.kind != "startup"]  # a question of its own
    assert first["evidence"][1:] == texts
    assert "verify finds no damage" in texts[-1]
    assert first["file"] == f"{CLEAN}/kafkajs-none-0/{0:020}.log"


# --- What does not belong together ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    few(
        [
            ("kafkajs-none-0", "elsewhere-7"),
            (f"kafkajs-none-0/{0:020}.log", f"kafkajs-none-0/{9:020}.log"),
            ("kafkajs-none-0", "orders-none-0"),
        ],
        1,
    ),
    ids=["another disk", "another segment", "another partition"],
)
def test_damage_of_another_place_is_not_the_cause(old: str, new: str, tmp_path: Path) -> None:
    case = on_a_smaller_disk("record-size-0", tmp_path)
    log = tmp_path / "server.log"
    log.write_text(case.log.read_text().replace(old, new))
    found = answers(*case.paths, "--log", log)
    items = items_in(found)
    assert not [each for each in items if each["question"] != "log" and lines_of(each, log)]
    (item,) = [each for each in items if each["code"] == "record-size-below-minimum"]
    assert "evidence of what other" not in question_in(found)["answer"]
    said = question_in(found)["notExamined"]
    if "elsewhere" in new:
        assert said == [f"{log} names 1 partition, and none is on these disks: it may be another broker's log"]
        assert "elsewhere-7: no directory on this disk" in item["evidence"]
        page = run("doctor", *case.paths, "--log", log, *NOW).stdout
        assert f"  log: {said[0]}\n" in page.split("not examined\n")[1].split("\n\n")[0] + "\n"
    else:
        assert said == []


def test_with_the_disks_of_several_brokers_the_path_decides(tmp_path: Path) -> None:
    case = on_a_smaller_disk("record-size-0", tmp_path)
    other = Path(shutil.copytree(DISKS / "kafka-4.3" / "clean-2", tmp_path / "disk-2"))
    log = tmp_path / "server.log"
    log.write_text(case.log.read_text().replace("/srv/kafka/disk-1", "/srv/kafka/disk-2"))
    of_own = [each for each in items_in(answers(*case.paths, other, "--log", case.log)) if lines_of(each, case.log)]
    of_other = [each for each in items_in(answers(*case.paths, other, "--log", log)) if lines_of(each, log)]
    assert of_own[0]["code"] == "startup-stops"
    assert {each["question"] for each in of_other} == {"log"}


@pytest.mark.parametrize(
    "exception",
    [
        "RuntimeException: Unable to replay FenceBrokerRecord(id=99): no broker registration found for that id",
        "IllegalStateException: Tried to fence broker 99, but that broker was not registered.",
    ],
)
def test_each_exception_of_a_refused_record_is_of_its_item(exception: str, tmp_path: Path) -> None:
    """Two classes of a controller refuse it, each with a text of its own, and either may end the process."""
    disk = Path(shutil.copytree(DISKS / "kafka-4.3" / "clean-0", tmp_path / "disk"))
    metadata = disk / f"__cluster_metadata-0/{0:020}.log"
    metadata.write_bytes(with_metadata_record(metadata.read_bytes(), b"\1\7\0" + struct.pack(">iqB", 99, 1, 0)))
    log = tmp_path / "server.log"
    fault = "Encountered fatal fault: Unable to apply the record"
    log.write_text(f"[2026-11-24 08:22:38,922] ERROR {fault} (a.B)\njava.lang.{exception}\n\tat a.B.c(B.java:1)\n")
    (stop,) = (each for each in items_in(answers(disk, "--log", log)) if each["code"] == "startup-stops")
    assert lines_of(stop, log)


def test_a_message_about_another_transaction_is_not_of_the_item(tmp_path: Path) -> None:
    """The ID of the other one is in most titles."""
    disks = incident("hanging-transaction", tmp_path / "disks")
    (hanging,) = (each for each in items_in(answers(*disks)) if each["code"] == "transaction-hanging")
    own = re.findall(r"transaction of (\S+):", hanging["title"])[0]
    log = tmp_path / "server.log"
    for name in (own, "a"):
        skipped = (
            f"Couldn't find leader endpoint for partitions Set(x) while trying to send transaction markers for {name}"
        )
        log.write_text(
            f"[2026-11-24 08:22:38,922] WARN {skipped}, these partitions are likely deleted already and hence can be "
            "skipped (a.B)\n"
        )
        (hanging,) = (each for each in items_in(answers(*disks, "--log", log)) if each["code"] == hanging["code"])
        assert bool(lines_of(hanging, log)) == (name == own)


# --- What is not read, or not known -----------------------------------------------------------------------------------


def test_a_log_that_cannot_be_read_is_said_first(tmp_path: Path) -> None:
    missing = tmp_path / "gone.log"
    result = run("doctor", SMALL, "--log", missing, "--log", RECORD_SIZE, "--log", tmp_path, *NOW)
    assert result.exit_code == 2
    page = result.stdout
    assert page.startswith(f"NOT ALL WAS READ: not read: {missing}: ")
    assert f"\nNOT ALL WAS READ\n  not read: {missing}: " in page
    assert f"  not read: {tmp_path}: " in page
    assert "[record-size-below-minimum]" in result.stdout, "the other one is read"


def test_damaged_gzip_is_said(tmp_path: Path) -> None:
    log = tmp_path / "server.log.gz"
    data = gzip.compress(RECORD_SIZE.read_bytes())
    log.write_bytes(data[: len(data) // 2])
    found = answers(SMALL, "--log", log)
    assert found[-1]["status"] == 2
    assert str(log) in found[-1]["unread"][0]


def test_unknown_messages_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("".join(f"[2026-11-24 08:22:38,{number}] WARN Flux {number} (a.B)\n" for number in range(100, 103)))
    found = answers(SMALL, "--log", log)
    assert question_in(found)["notExamined"] == [f"3 messages above INFO are not known: kdump explain {log}"]
    assert not question_in(found)["isComplete"]
    log.write_text("nothing\n")
    assert question_in(answers(SMALL, "--log", log))["isComplete"]


def test_no_time() -> None:
    found = answers(SMALL, "--log", RECORD_SIZE, "--budget", "0s")
    (said,) = question_in(found)["notExamined"]
    assert said == f"the time was over before the end of {RECORD_SIZE}: run kdump explain {RECORD_SIZE}"


def test_no_time_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the log says is on the page, and that it was not looked up."""
    monkeypatch.setattr("kdump.incident.doctor.run.Doctor._read_logs", _read_slowly)
    found = kdump.doctor([str(SMALL)], now=AT, logs=[RECORD_SIZE])
    question = found.questions[-1]
    assert question.notExamined[0].startswith("the time was over: 2 kinds of messages not looked up on the disks; run ")
    assert f"kdump explain {RECORD_SIZE} --disk {SMALL}" in question.notExamined[0]
    assert [len(each.evidence) for each in found.items if each.question == "log"] == [1, 1]


def _read_slowly(doctor: Doctor, disks: Any, question: Question) -> None:
    doctor._log.read(question, kdump.incident.doctor.run.TimeLimit(60), PLAIN_RUN)
    doctor._reading = 3600


@pytest.mark.every_disk
def test_what_the_log_says_is_known_when_the_run_ends(tmp_path: Path) -> None:
    """Whenever it ends, the messages are items, or the page says that the log was not read."""
    case = on_a_smaller_disk("record-size-0", tmp_path)
    number, count, ended = 1, 0, True
    while ended:
        found: list[Any] = []
        left = number

        def progress(_size: int) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        doctor = Doctor(DoctorQuery(case.paths, now=AT, logs=[str(case.log)]), found.append, Run(more=progress))
        try:
            doctor.run()
            ended = False
        except KeyboardInterrupt:
            pass
        page = doctor.page(interrupted=ended)
        assert isinstance(page, Page)
        (question,) = [each for each in found if isinstance(each, Question) and each.question == "log"]
        lines = re.findall(r"record-size-0\.log line (\d+)", "".join(str(x.evidence) for x in found if type(x) is Item))
        assert sorted(map(int, lines)) == ([] if number == 1 else [44, 310])
        assert ended == any("the run was ended" in each for each in question.notExamined)
        number += max(1, number // 3)
        count += 1
    assert count > 8


# --- Input and output -------------------------------------------------------------------------------------------------


def test_standard_input_and_compressed_logs(tmp_path: Path) -> None:
    packed = write_file(tmp_path / "server.log.gz", gzip.compress(RECORD_SIZE.read_bytes()))

    def codes(found: list[dict[str, Any]]) -> list[str]:
        return [each["code"] for each in items_in(found) if each["question"] == "log"]

    expected = codes(answers(SMALL, "--log", RECORD_SIZE))
    assert expected == ["record-size-below-minimum", "node-not-reachable"]
    assert codes(answers(SMALL, "--log", packed)) == expected
    assert codes(answers(SMALL, "--log", "-", stdin=RECORD_SIZE.read_bytes())) == expected
    twice = run("doctor", SMALL, "--log", "-", "--log", "-")
    assert (twice.exit_code, "only once" in twice.stderr) == (2, True)


def test_the_time_zone() -> None:
    text = run("doctor", SMALL, "--log", RECORD_SIZE, *NOW, "--tz", "Europe/Berlin").stdout
    assert "2026-11-24T08:22:38.922+01:00" in text


def test_a_hostile_log_is_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.incident.explain.grouping.MAX_GROUPS", 500)
    log = tmp_path / "server.log"
    text = "[2026-11-24 08:22:38,922] ERROR Found record size 0 smaller than minimum record overhead (14) in file "
    lines = (f"{text}/d/x\x1b[31m-{number}/{0:020}.log. (a.B)\n" for number in range(600))
    log.write_text(
        "".join(lines) + f"{text}{'/d' * 5000} (a.B)\n" + "".join(f"{text}/d/y-{n}/0.log (a.B)\n" for n in range(900))
    )
    result = run("doctor", SMALL, "--log", log, *NOW)
    assert "\x1b" not in result.stdout
    assert len(result.stdout.splitlines()) < 120
    assert "record-size-below-minimum" in result.stdout


def test_nothing_is_listed_or_read_again_for_a_log(tmp_path: Path) -> None:
    """The partitions are listed once, and the metadata is read once, with a log as without one."""
    left_out = shutil.ignore_patterns(*(f"{name}*" for name in ALIKE), "clicks-*", "large-*")
    disk = Path(shutil.copytree(CLEAN, tmp_path / "disk", ignore=left_out))
    log = tmp_path / "server.log"
    names = sorted(each.name for each in disk.iterdir() if re.fullmatch(r"[a-z][\w-]*-\d", each.name))[:10]
    text = "[2026-11-24 08:22:38,922] ERROR Found record size 0 smaller than minimum record overhead (14) in file "
    lines = [f"{text}/data/disk/{name}/{0:020}.log. (a.B)\n" for name in names]
    log.write_text("".join(lines) + RECORD_SIZE.read_text())
    for place in (disk, *(each for each in disk.iterdir() if each.is_dir())):
        os.utime(place, (1, 1))  # a directory that changed just now is not trusted
    seen, often, roots = [], [], []
    for arguments in ([], ["--log", log]):
        with CALLS.count():
            run("doctor", disk, *arguments, *NOW)
        listed = {path: number for path, number in CALLS.listed.items() if path.startswith(str(disk))}
        seen_again = listed.pop(f"{disk}/__cluster_metadata-0")  # to see whether a broker has written to it
        roots.append(listed.pop(str(disk)))  # for the log start offsets of the partitions that the log names
        opened = {path: number for path, number in CALLS.opened.items() if "__cluster_metadata-0/0" in path}
        seen.append((listed, opened))
        often.append(seen_again)
    assert seen[0] == seen[1]
    assert len(seen[0][1]) > 1
    assert often[1] <= often[0] + 1
    assert roots[1] <= roots[0] + 1
    assert len(names) == 10
