"""The first line of an answer reports what is missing and what was not read, whatever its severity."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import make_dataclass
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.check.finding import Code, Finding
from kdump.check.totals import CheckTotals, MissingTotals
from kdump.log.paths import target
from kdump.problems import catalogue
from kdump.render.stdout import Output
from kdump.spark.scan_answer import FleetSummary, ReplicaDifference, ScannedUnits
from kdump.spark.scan_command import ScanReport
from kdump.tables.small_tables import finding_of, row_of
from tests import craft
from tests.command import objects, run
from tests.conftest import FIXTURES, ROOT, numbers_in, segment
from tests.each_case import each_case
from tests.unread import NOBODY, answers

FIRST = f"{0:020}.log"
DATA, MARKER = 0x10, 0x20


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A healthy disk of a broker with an unclean shutdown."""
    shutil.copytree(FIXTURES / "disk-1", tmp_path / "disk")
    (tmp_path / "disk" / ".kafka_cleanshutdown").unlink(missing_ok=True)
    return tmp_path / "disk"


def test_the_counts_of_a_subclass_are_added_however_its_types_are_written() -> None:
    """make_dataclass keeps a type; `from __future__ import annotations` makes a string of it."""
    more = make_dataclass("Counts", [("more", int, 0), ("first", int | None, None)], bases=(CheckTotals,))
    total = more(files=1, more=2, first=3)
    total.add(more(files=10, more=20, first=30))
    assert (total.files, total.more, total.first) == (11, 22, 3)


def headline(*arguments: str | Path) -> str:
    return run("verify", *arguments).stdout.splitlines()[0]


def without(log: Path, *numbers: int) -> None:
    """Remove some batches of the log, and the indexes, which would reveal it."""
    batches = craft.split(log.read_bytes())
    log.write_bytes(b"".join(batch for number, batch in enumerate(batches) if number not in numbers))
    for ending in (".index", ".timeindex", ".txnindex"):
        log.with_suffix(ending).unlink(missing_ok=True)


def test_a_healthy_disk(disk: Path) -> None:
    assert "missing" not in headline(disk)
    assert "not read" not in headline(disk)


@pytest.mark.parametrize("numbers", [(1,), (2, 3), (4,), (3, 4)])
def test_records_that_are_gone(disk: Path, numbers: tuple[int, ...]) -> None:
    """They are missing within a log that is not compacted, or at its end according to the checkpoints."""
    without(disk / "orders-none-0" / FIRST, *numbers)
    said = headline(disk)
    assert said.startswith("INCOMPLETE: ")
    assert f"{60 * len(numbers)} offsets missing" in said


def test_records_that_compaction_has_removed(disk: Path) -> None:
    assert "missing" not in headline(disk / "users-0")


def test_a_marker_that_is_gone(disk: Path) -> None:
    log = disk / "payments-0" / FIRST
    markers = [n for n, batch in enumerate(craft.split(log.read_bytes())) if batch[22] & MARKER]
    without(log, markers[-1])
    (disk / "payments-0" / f"{120:020}.snapshot").unlink(missing_ok=True)
    said = headline(disk, "--ignore", "snapshot-mismatch")
    assert "INCOMPLETE" in said
    assert "missing" in said


def test_a_transaction_that_hangs(tmp_path: Path) -> None:
    """Nothing else is missing: the marker was never written."""
    log = tmp_path / "t-0" / FIRST
    log.parent.mkdir()
    begun = craft.batch(
        [craft.record(0)],
        producerId=7,
        producerEpoch=0,
        baseSequence=0,
        attributes=DATA,
        baseTimestamp=1000,
        maxTimestamp=1000,
    )
    later = craft.batch([craft.record(0)], baseOffset=1, baseTimestamp=10_000_000, maxTimestamp=10_000_000)
    log.write_bytes(begun + later)
    assert "1 transaction without a marker" in headline(log.parent, "--ignore", "index-missing")


def test_the_rows_of_a_table_add_up_like_the_findings(disk: Path) -> None:
    """A scan counts what is missing by the rows of the table findings, which have texts for numbers."""
    without(disk / "orders-none-0" / FIRST, 1, 4)
    of_findings, of_rows = MissingTotals(), MissingTotals()
    for finding in kdump.verify(disk):
        if isinstance(finding, Finding):
            of_findings.add(finding)
            of_rows.add(finding_of(row_of(finding)))
    assert (of_rows, of_rows.gaps, of_rows.offsets) == (of_findings, 60, 120)


def test_verify_and_restart_plan_agree_on_a_torn_tail(disk: Path) -> None:
    """Both report the offsets below the high watermark that are lost at startup."""
    log = disk / "orders-none-0" / FIRST
    os.truncate(log, log.stat().st_size - 10)
    every = objects("restart-plan", disk, status=1)
    planned = [each for each in every if each["type"] == "restartPartition" and each["topic"] == "orders-none"]
    assert [(each["highWatermark"], each["logEndOffset"], each["acknowledged"]) for each in planned] == [(300, 240, 60)]
    found = [each for each in objects("verify", disk) if each.get("topic") == "orders-none"]
    (torn,) = [each for each in found if each["code"] == "batch-truncated"]
    assert (torn["severity"], torn["offset"]) == ("warning", 240)
    assert numbers_in(torn["consequence"]) == [60, 300]
    mark = [each for each in found if Path(each["file"]).name == "replication-offset-checkpoint"]
    assert [(each["code"], each["expected"], each["actual"]) for each in mark] == [("checkpoint-beyond-log", 240, 300)]
    assert "60 offsets missing" in headline(disk)


AS_NOBODY = """
import os, sys
from click.testing import CliRunner
from kdump.cli import cli, main
CliRunner().invoke(cli, sys.argv[1:])  # imports all that it takes, which another user may not be allowed to read
if os.geteuid() == 0:
    os.setuid(65534)
main()
"""


def as_nobody(*arguments: str | Path, status: int = 2) -> str:
    """Return the output of a command for a user who does not own the files. The process drops its permissions after it
    has started."""
    command = [sys.executable, "-c", AS_NOBODY, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture
def open_disk(disk: Path) -> Iterator[Path]:
    """A copy of the disk that every user can read. It is not in pytest's directory, to which another session removes
    access when it starts."""
    with tempfile.TemporaryDirectory(prefix="kdump-") as place:
        opened = shutil.copytree(disk, Path(place) / "disk")
        Path(place).chmod(0o755)
        if os.geteuid() == 0:  # the user who runs restart-plan stands for the broker's user, and must own its files
            for path in (opened, *opened.rglob("*")):
                os.chown(path, NOBODY, -1)
        yield opened


def test_the_broker_cannot_read_it_either(open_disk: Path) -> None:
    """If the broker's own user cannot read a file, this is not missing from the answer of restart-plan: it is the
    answer."""
    log = open_disk / "payments-0" / FIRST
    log.chmod(0)
    said = as_nobody("restart-plan", open_disk, status=3)
    assert "DOES NOT START: " in said.splitlines()[0]
    assert str(log) in said


def test_markers_in_what_was_not_read_are_not_missing(open_disk: Path) -> None:
    """Neither are offsets, nor the states in a snapshot or of a coordinator: no rule draws conclusions across unread
    bytes."""
    logs = [log for part in ("payments-0", "users-0") for log in sorted((open_disk / part).glob("*.log"))]
    names = [str(log.relative_to(open_disk)) for log in logs]
    for answer in answers(["transactions", str(open_disk)], open_disk, names)[1:]:
        assert "no marker" not in answer.stdout, answer.name
    for answer in answers(["verify", str(open_disk)], open_disk, names)[1:]:
        assert answer.first.startswith("NOT ALL WAS READ"), answer.name
        assert "missing" not in answer.first, answer.name


def test_files_whose_content_seemed_to_be_missing(open_disk: Path) -> None:
    (index,) = open_disk.glob("payments-0/*.txnindex")
    names = [str(index.relative_to(open_disk)), "payments-0/partition.metadata", "meta.properties"]
    _, *found = answers(["verify", str(open_disk)], open_disk, names)
    assert [each.name for each in found] == names
    for each in found:
        assert (each.status, each.first.endswith("1 path not read")) == (2, True), each


@pytest.mark.parametrize("gone", ["", ".index .timeindex", ".log", ".log .index .timeindex", "*"])
def test_a_log_that_is_empty_or_gone(gone: str, disk: Path) -> None:
    """The segment's name has its end, and the checkpoint where that was. Without a segment, the broker starts again."""
    log = disk / "orders-none-0" / FIRST
    for path in log.parent.iterdir():
        if gone == "*" or path.suffix in gone.split():
            path.unlink()
        elif path.suffix in (".log", ".index", ".timeindex"):
            path.write_bytes(b"")
    said = headline(disk)
    assert said.startswith("INCOMPLETE: ")
    assert "300 offsets missing" in said
    assert "300 offsets missing" in headline(log.parent)


@pytest.mark.parametrize(
    ("empty", "start", "end"),
    [([0], 0, 0), ([300], 0, 300), ([0, 300], 0, 300), ([], 0, 0), ([], 300, 300), (["full", 700], 0, 700)],
)
def test_the_end_of_a_log_whose_last_segment_is_empty(empty: list[int | str], start: int, end: int, disk: Path) -> None:
    """It is the base offset of that segment, or of the one that the broker creates (LogLoader.recoverLog); verify and
    restart-plan agree. A high watermark above it is reported."""
    path = disk / "orders-none-0"
    for file in path.iterdir():
        if file.suffix in (".log", ".index", ".timeindex", ".snapshot") and "full" not in empty:
            file.unlink()
    for base in empty:
        if base != "full":
            (path / f"{base:020}.log").write_bytes(b"")
    (disk / "log-start-offset-checkpoint").write_text(f"0\n1\norders-none 0 {start}\n")
    for mark in (end, end + 1):
        (disk / "replication-offset-checkpoint").write_text(f"0\n1\norders-none 0 {mark}\n")
        rows = [row for row in objects("verify", disk, status=0) if row.get("code") == "checkpoint-beyond-log"]
        found = [row for row in rows if row["topic"] == "orders-none" and "replication" in row["message"]]
        assert [(row["expected"], row["actual"]) for row in found] == ([(end, mark)] if mark > end else [])
    plans = [json.loads(line) for line in run("restart-plan", "--json", disk).stdout.splitlines()]
    plans = [each for each in plans if each["type"] == "restartPartition"]
    (plan,) = [each for each in plans if each["topic"] == "orders-none"]
    assert plan["logEndOffset"] == end


# Sums and wording.


def of_each_kind() -> dict[str, Path]:
    roots = (FIXTURES / "clean-1", FIXTURES / "disk-1")
    files = [path for root in roots for path in sorted(root.rglob("*")) if path.is_file() and path.stat().st_size]
    return {path.suffix or path.name: path for path in files}


@pytest.mark.parametrize("path", of_each_kind().values(), ids=of_each_kind())
def test_what_was_checked_has_all_bytes_of_the_file(path: Path) -> None:
    """The bytes for an index include those of the segment that it is compared with."""
    summary = objects("verify", "--json", path)[-1]
    compared = path.with_suffix(".log") if path.suffix in (".index", ".timeindex") else path
    files = {path, compared}
    assert (summary["files"], summary["bytes"]) == (len(files), sum(file.stat().st_size for file in files))


def test_records_that_a_header_claims_are_not_counted(tmp_path: Path) -> None:
    log = tmp_path / "t-0" / FIRST
    log.parent.mkdir()
    log.write_bytes(craft.one(b"a", 0) + craft.batch([craft.record(0)], baseOffset=1, recordCount=1_000_000_000))
    summary = objects("verify", log, status=1)[-1]
    assert (summary["batches"], summary["records"]) == (2, 1)


@pytest.mark.parametrize("sizes", [(160,) * 9, (1, 160, 160, 200), (5, 255, 256), (1,)])
def test_the_median_is_within_what_stats_says(sizes: tuple[int, ...], tmp_path: Path) -> None:
    log = tmp_path / "t-0" / FIRST
    log.parent.mkdir()
    log.write_bytes(b"".join(craft.one(bytes(size), number) for number, size in enumerate(sizes)))
    middle = sorted(len(batch) for batch in craft.split(log.read_bytes()))[(len(sizes) - 1) // 2]
    line = next(line for line in run("stats", log).stdout.splitlines() if line.startswith("  bytes  "))
    words = line.partition("median ")[2].partition(",")[0].replace("bytes", "").split(" to ")
    low, high = int(words[0]), int(words[-1])
    assert low <= middle <= high


def test_a_timestamp_before_minus_one(tmp_path: Path) -> None:
    log = craft.write_file(
        tmp_path / "t-0" / FIRST, craft.batch([craft.record(0)], baseTimestamp=-5000, maxTimestamp=7)
    )
    (wrong,) = [each for each in objects("verify", log, status=1) if each.get("code") == "timestamp-mismatch"]
    assert (wrong["position"], wrong["actual"], numbers_in(wrong["message"])) == (0, 7, [7, -5000])


@each_case("code", catalogue.findings())
def test_no_consequence_without_its_offset(code: str) -> None:
    """The sentence is complete whether or not an offset is known."""
    at = target(str(segment("clean-1/payments-0")))
    for offset in (None, 12):
        text = Code(code).finding(at, message="", offset=offset).consequence
        assert "?" not in text
        assert "{" not in text
        assert ("12" in text) == (offset is not None and "{offset}" in catalogue.findings()[code].consequence)


def test_a_scan_names_what_is_missing_on_disks_and_where_replicas_differ() -> None:
    """Its counts are those of the summary: only the worst findings are passed to the report."""
    numbers = ("partitions", "bytes", "batches", "records", "damagedBatches", "damagedRecords", "replicaDifferences")
    nothing: dict[str, Any] = dict.fromkeys(FleetSummary._fields, ()) | dict.fromkeys(numbers, 0)
    differing = ReplicaDifference(None, "a", 0, "diverged", "warning", 1, 2, [None], ["x"], [0], [2], 2, [2], "why")
    found = {"error": 0, "warning": 3, "info": 4}
    nothing |= {"findings": found, "units": ScannedUnits(5, 0, 6, 0), "replicas": [differing], "files": 9, "out": "x"}
    stream = io.TextIOWrapper(io.BytesIO())
    gap = Code("offset-gap").finding(target("a-0/0.log"), message="", expected=5, actual=7)
    report = ScanReport(Output(stream=stream), timezone.utc)
    report.write(FleetSummary(**nothing), [("a-0", [gap])], Counter({"zeros": 4}))
    stream.seek(0)
    text = " ".join(stream.read().split())
    assert text.startswith(
        "INCOMPLETE: 3 warnings in 1 of 11 places; 2 offsets missing, REPLICAS DIFFER at 1 range of offsets (2 records "
        "that a replica truncates or lacks)"
    )
    assert "informational: 4 zeros (show with --info)" in text
