"""`kdump explain`: what it accepts, its exit statuses, and its output for people and programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kdump.incident.explain.catalogue import messages
from kdump.problems import catalogue
from tests.command import refused, run
from tests.conftest import DISKS
from tests.each_case import each_case
from tests.incident.explain.explaining import DOCS, LOGS

CLEAN = DISKS / "kafka-4.3" / "clean-1"
LOG = LOGS / "brokers" / "record-size-0.log"


def objects(*arguments: Any, stdin: bytes | None = None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("explain", *arguments, "--json", stdin=stdin).stdout.splitlines()]


def test_a_log() -> None:
    done = run("explain", LOG, "--disk", CLEAN)
    assert done.exit_code == 0
    first = done.stdout.split("\n\n")[1]
    assert first.startswith("1. ERROR record-size-below-minimum  2 times")
    for label in ("means:", "why:", "impact:", "on disk:", "run:", "do:", "never:", "more:"):
        assert f"\n  {label}" in first
    assert f"kdump verify {CLEAN}/kafkajs-none-0\n" in first
    assert "next startup: loaded without recovery" in first


def test_json() -> None:
    *found, summary = objects(LOG)
    assert {each["type"] for each in found} == {"explanation"}
    assert summary["type"] == "explanationSummary"
    assert (summary["lines"], summary["known"], summary["unknown"]) == (LOG.read_text().count("\n"), 8, 0)
    assert all(each["evidence"] == [] for each in found), "no --disk"
    assert {"name": "partition", "value": "kafkajs-none-0"} in found[0]["parts"]


def test_standard_input() -> None:
    text = LOG.read_bytes()
    assert objects(stdin=text)[0] == objects("-", stdin=text)[0] == objects(LOG)[0]


BARE = "Record size 0 is less than the minimum record overhead (14)"


def test_messages_without_a_level() -> None:
    """As jq or grep -o print them."""
    found, unknown, summary = objects("-", stdin=f"{BARE}\n\nno such message\n\tat kafka.log.Log(Log.scala)\n".encode())
    assert (found["message"], found["line"]) == ("record-size-below-minimum", 1)
    assert (unknown["message"], unknown["line"], unknown["text"]) == (None, 3, "no such message")
    assert (summary["lines"], summary["known"], summary["unknown"]) == (4, 1, 1)


@pytest.mark.parametrize(
    "text", [b"[2026-11-24 10:00:00,000] INFO fine (kafka.log)\nline two\n", b"\0binary\n", b"a\n" * 40_000]
)
def test_lines_that_are_no_messages_are_not_unknown(text: bytes) -> None:
    (summary,) = objects("-", stdin=text)
    assert (summary["known"], summary["unknown"]) == (0, 0)


def test_several_logs(tmp_path: Path) -> None:
    assert "gone.log: no such file" in refused("explain", LOG, tmp_path / "gone.log")
    summaries = [each for each in objects(LOG, LOG) if each["type"] == "explanationSummary"]
    assert [each["source"] for each in summaries] == [str(LOG)] * 2


@each_case("code", catalogue.findings())
def test_a_finding_is_explained_as_in_the_reference(code: str) -> None:
    (found,) = objects(code)
    page = (DOCS / "findings.md").read_text()
    section = page.partition(f"### {code}\n")[2].partition("\n### ")[0]
    first = re.findall(r"^(?: *- Actions?: | {4}- )(.*)\.$", section, re.M)[0]
    if shared := re.match(r"\[shared\]\(#shared-actions\) (\d+)", first):
        first = re.findall(rf"^{shared[1]}\. (.*)\.$", page, re.M)[0]
    assert str(found["meaning"]) in section
    assert str(found["fix"]).startswith(first.partition(" (**untried**")[0])
    if other := re.search(r"^- Impact: as for \[([\w-]+)\]", section, re.M):
        section = page.partition(f"### {other[1]}\n")[2].partition("\n### ")[0]
    assert str(found["consequence"]).replace("{offset}", "N") in section


def test_where_a_disk_has_a_finding() -> None:
    crash = DISKS / "kafka-4.3" / "crash-1"
    text = run("explain", "partition-missing", "--disk", crash).stdout
    assert "large-0 is not in this log directory" in text
    assert "no such finding" in run("explain", "crc-mismatch", "--disk", crash / "payments-0").stdout


@pytest.mark.parametrize(
    ("word", "suggested"),
    [
        ("crc-mismach", "crc-mismatch"),
        ("OutOfOrderSequenceExeption", "OutOfOrderSequenceException"),
        ("UNKNOWN_PRODUCERID", "UNKNOWN_PRODUCER_ID"),
        ("record_size_below_minimum", "record-size-below-minimum"),
        ("xyzzy", "kdump explain --list"),
    ],
)
def test_mistyped_names(word: str, suggested: str) -> None:
    done = run("explain", word)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert suggested in done.stderr
    assert done.stderr.count("\n") == 1


def test_names() -> None:
    full, short = "org.apache.kafka.common.errors.UnknownProducerIdException", "unknown-producer-id"
    assert objects(full) == objects(short) == objects("UNKNOWN_PRODUCER_ID")
    assert len(objects("--list")) == len(messages())


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["no words of kafka"], 2, "no message that kdump knows"),
        ([CLEAN], 2, "is a directory"),
        ([LOG, "--disk", "/nowhere"], 2, "/nowhere"),
        (["--list", "crc-mismatch"], 2, "--list takes no argument"),
        (["crc-mismatch", "--disk", DOCS], 2, "no Kafka log directory"),
    ],
)
def test_errors(arguments: list[Any], status: int, text: str) -> None:
    done = run("explain", *arguments)
    assert done.exit_code == status
    assert text in done.stderr


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_bytes(b"ERROR \x1b[2J\x07happened \xff\xfe (a.B)\nERROR Too many open files\x1b[31m (a.B)\n")
    done = run("explain", log)
    assert done.exit_code == 0
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", done.stdout)
    *_, summary = objects(log)
    assert (summary["known"], summary["unknown"]) == (1, 1)


def test_zone() -> None:
    assert "2026-11-24T08:22:31.717+01:00" in run("explain", LOG, "--tz", "Europe/Berlin").stdout
    assert objects(LOG, "--tz", "Europe/Berlin")[0]["first"] == objects(LOG)[0]["first"] - 3_600_000


@pytest.mark.parametrize("width", [80, 200])
def test_widths(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.render.stdout.Output.width", width)
    lines = run("explain", LOG, "--disk", CLEAN).stdout.splitlines()
    free = [line for line in lines if not re.match(r" {2}(run:| {4}) +(kdump|head|cat|df)", line)]
    longest = max(len(word) for line in free for word in line.split())
    assert max(map(len, free)) <= max(width, longest + 11)
