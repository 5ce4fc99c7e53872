"""`kdump verify`: healthy disks have no errors, and each kind of damage is reported with its file and byte."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shlex
import shutil
import subprocess
import sys
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.check.engine import workers
from kdump.check.engine.units import units
from kdump.check.finding import Finding, next_command
from kdump.check.options import Options
from kdump.check.rules.newer_release import NEWER_RELEASE
from kdump.check.rules.timestamps import TIMESTAMP_IN_PAST
from kdump.cli import cli
from kdump.io.errors import went_away
from kdump.io.run import ignore
from kdump.io.shared_counter import SharedCounter
from kdump.log.region import Batch
from kdump.problems import catalogue
from kdump.problems.catalogue import families
from tests import craft
from tests.command import run, unmatched
from tests.conftest import DISKS, FIXTURES, SEED, few, numbers_in, read_regions, sample
from tests.damages import DAMAGES, DISK_PATHS, DOUBTS, Damage, Expected, copy_disk, copy_some
from tests.each_case import each_case
from tests.lookalikes import LOOKALIKES, Lookalike
from tests.restored_disk import RARE, RestoredDisks

KAFKA = DISKS / "kafka-4.3"
HEALTHY = [
    *(KAFKA / name for name in ("clean-0", "clean-1", "clean-2", "live-1", "crash-1", "diverged-1", "diverged-2")),
    DISKS / "kafka-2.8-legacy",
    DISKS / "kafka-4.3-tiered",
]
TRUE_WARNINGS = {("timestamp-in-future", "future"), ("directory-stray", "gone"), ("partition-missing", "large")}
"""The corpus has the partition large-0 only on clean-1: it is too large to keep it three times."""


def verify(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, ["verify", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: str | Path) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
    """Return the exit status, the findings and the summary."""
    code, out, _ = verify("--json", *arguments)
    objects = [json.loads(line) for line in out.splitlines()]
    assert [row["type"] for row in objects] == ["finding"] * (len(objects) - 1) + ["summary"]
    return code, objects[:-1], objects[-1]


def batch_sizes(path: Path) -> dict[int, int]:
    """Return the sizes of the batches in a segment, by position, as far as their lengths are valid."""
    if not path.is_file():
        return {}
    regions = [region for region in read_regions(path) if isinstance(region, Batch)]
    return {region.position: region.size for region in regions}


def is_at(expected: Expected, disk: Path, row: dict[str, Any], sizes: dict[int, int]) -> bool:
    """Return True if a finding is the expected one; in a batch, its position may be that of the wrong bytes."""
    same = (expected.code, expected.severity, str(disk / expected.file)) == (row["code"], row["severity"], row["file"])
    reach = sizes.get(expected.position, 1)
    if expected.code == "snapshot-invalid":
        reach = 10  # the header
    elif expected.code.startswith("kraft-snapshot") or (
        expected.code == "checkpoint-invalid" and "count" in row["message"]
    ):
        return same  # at the end, where bytes are missing
    elif expected.code == "partition-metadata-invalid":
        reach = 100  # the line
    return same and expected.position <= row["position"] < expected.position + reach


@pytest.mark.parametrize("disk", few(HEALTHY, 3), ids=lambda disk: disk.name)
def test_a_healthy_disk(disk: Path) -> None:
    code, findings, summary = rows(disk)
    assert code == 0
    loud = {(row["code"], row["topic"]) for row in findings if row["severity"] != "info"}
    assert loud <= TRUE_WARNINGS
    assert not summary["unread"]
    assert summary["batches"] > 1


@pytest.mark.parametrize(
    "only", ["bytes", "records", "log", "files", "indexes", "snapshots", "checkpoints", "producers"]
)
def test_each_family_alone(only: str) -> None:
    code, findings, _ = rows("--only", only, KAFKA / "crash-1")
    assert code == 0
    wanted = {"bytes", *families(only)}
    assert {catalogue.findings()[row["code"]].family for row in findings} <= wanted


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestoredDisks]:
    root = tmp_path_factory.mktemp("disks")
    yield RestoredDisks(root)
    shutil.rmtree(root)


UNSEEN = {"index-zeros-deleted"}
"""verify does not read files that are being deleted."""


def each_recipe() -> Iterator[Any]:
    """Return the first recipe of each code, and one in 80 of the others; all of them in make test-all."""
    seen = [damage for damage in DAMAGES if damage.name not in UNSEEN]
    first = {damage.code: damage for damage in reversed(seen)}
    others = [damage for damage in seen if damage is not first[damage.code]]
    for damage in [*first.values(), *sample(others, 80, "recipes")]:
        yield pytest.param(damage, id=f"{damage.code}-{damage.name}")


@pytest.mark.sampled
@pytest.mark.parametrize("damage", each_recipe())
def test_each_damage(damage: Damage, disks: RestoredDisks) -> None:
    here, expected = disks.damaged(damage, (RARE, ()))
    disk = here.root
    path = disk / expected.file
    sizes = {} if path.suffix != ".log" else batch_sizes(path)
    limit = ["--max-message-bytes", "1048588"] if damage.code == "size-over-limit" else []
    # In make test, of the damaged topic alone: the others take most of the time.
    directory, _, name = expected.file.rpartition("/")
    topic = ["--topic", re.sub(r"-\d+$", "", directory)] if name and not SEED and re.search(r"-\d+$", directory) else []
    code, findings, _ = rows(*here.directories_of_broker, *limit, *topic)
    findings = [row for row in findings if Path(row["file"]).is_relative_to(disk)]
    loud = [(row["code"], row["severity"], row["file"], row["position"], row["message"]) for row in findings]
    loud = [row for row in loud if row[0] == expected.code or row[1] == "error"]
    assert any(is_at(expected, disk, row, sizes) for row in findings), (expected, loud)
    errors = {row["code"] for row in findings if row["severity"] == "error"}
    assert errors <= {expected.code, *damage.also}
    assert code == (1 if errors else 0)
    at = next(row for row in findings if is_at(expected, disk, row, sizes))
    check_next_command(Finding(**{key: value for key, value in at.items() if key != "type"}))


def check_next_command(finding: Finding) -> None:
    """Run the command that `verify` suggests. It must show something, whatever its verdict."""
    _, command, *arguments = shlex.split(next_command(finding))
    result = run(command, *arguments)
    assert result.stdout, (arguments, result.stderr)


def test_what_to_do_is_written_once_per_code(tmp_path: Path) -> None:
    paths = []
    for name in ("first-0", "second-0", "third-0"):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / TRIMMED.name)
        data = bytearray(TRIMMED.read_bytes())
        data[700] ^= 0x10
        paths[-1].write_bytes(data)
    _, out, _ = verify(*paths, "--ignore", "index-missing")
    assert out.count("  error   crc-mismatch") == 3
    todo = out[out.index("what to do\n") :].splitlines()
    assert todo[1] == "  crc-mismatch (the first)"
    assert todo[2].startswith(f"    do:   {catalogue.findings()['crc-mismatch'].fix[:60]}")
    assert f"kdump salvage {paths[0].parent} " in " ".join(line.strip() for line in todo)
    assert [line for line in todo if "next:" in line] == [f"    next: kdump inspect {paths[0]} --hex --position 482"]
    assert "what to do" not in verify(TRIMMED, "--ignore", "index-missing")[1]


LOCAL = {code.code for code in catalogue.findings().values() if code.family != "remote"}
"""Codes of what files of a disk show."""


def test_every_code_is_provoked() -> None:
    """But what needs a device or a bucket, what tests of its own provoke (test_newer_release.py, test_timestamps.py,
    test_remote_segments.py)."""
    elsewhere = {"unreadable-bytes", NEWER_RELEASE.code, TIMESTAMP_IN_PAST.code, "tier-snapshot-missing"}
    assert LOCAL - elsewhere == {damage.code for damage in DAMAGES}


def test_fixtures_are_sound() -> None:
    code, findings, _ = rows(FIXTURES)
    assert code == 0, findings


# --- The command ------------------------------------------------------------------------------------------------------

TRIMMED = FIXTURES / "clean-1" / "trimmed-0" / f"{0:020}.log"


@pytest.fixture
def flipped(tmp_path: Path) -> Path:
    """A segment with one bit flipped in its second batch."""
    partition = tmp_path / "trimmed-0"
    partition.mkdir()
    data = bytearray(TRIMMED.read_bytes())
    data[700] ^= 0x10
    (partition / TRIMMED.name).write_bytes(data)
    return partition / TRIMMED.name


def test_an_index_entry_with_a_negative_position(tmp_path: Path) -> None:
    """One bit is flipped, which Kafka's own check does not detect. No damage of the log explains it."""
    for suffix in (".log", ".index"):
        shutil.copy(FIXTURES / "clean-1" / "payments-0" / f"{0:020}{suffix}", tmp_path)
    index = tmp_path / f"{0:020}.index"
    data = bytearray(index.read_bytes())
    data[4] ^= 0x80
    index.write_bytes(data)
    status, found, _ = rows(tmp_path)
    assert status == 1
    assert [(row["code"], row["position"]) for row in found if row["file"].endswith(".index")] == [
        ("index-mismatch", 0)
    ]


def test_one_flipped_bit_is_named(flipped: Path) -> None:
    code, findings, summary = rows(flipped)
    assert code == 1
    assert [row["code"] for row in findings if row["severity"] == "error"] == ["crc-mismatch"]
    assert {row["code"]: row["severity"] for row in findings[1:]} == {"sequence-gap": "info", "offset-gap": "info"}
    assert [number for number in numbers_in(findings[0]["message"]) if number in (4, 700)] == [4, 700]  # bit, byte
    assert findings[0]["position"] <= 700 < findings[0]["position"] + findings[0]["size"]
    assert summary["findings"] == {"error": 1, "warning": 0, "info": 2}


def test_quiet_and_report(flipped: Path) -> None:
    assert verify("-q", flipped) == (1, "", "")
    code, out, err = verify(flipped)
    assert (code, err) == (1, "")
    assert out.startswith("DAMAGED: 1 error; 5 offsets missing\n")
    assert "crc-mismatch" in out
    assert "'Record is corrupt'" in out


def test_each_gap_is_in_the_story_of_its_damage(tmp_path: Path) -> None:
    """Damage less than a block apart is one story, which names every gap that it explains. A gap whose damage is not
    shown is shown itself, since the headline counts its offsets; one that no damage explains is none of theirs."""
    batches = [craft.batch([craft.record(0), craft.record(1)], offset=offset) for offset in (0, 2, 4, 6, 8, 10, 20)]
    for damaged in (1, 4):
        batches[damaged] = craft.flip(batches[damaged], 8 * len(batches[damaged]) - 1)
    craft.write_file(tmp_path / "t-0" / f"{0:020}.log", b"".join(batches))
    gaps = ("offsets 2..3 are missing between 1 and 4", "offsets 8..9 are missing between 7 and 10")
    _, out, _ = verify(tmp_path / "t-0")
    assert out.startswith("DAMAGED: 2 errors, 2 warnings; 12 offsets missing\n")
    assert out.count(f"          {', '.join(gaps)}\n") == 1
    assert out.count("  warning offset-gap") == 1
    assert "informational" not in out
    _, out, _ = verify("--ignore", "crc-mismatch", tmp_path / "t-0")
    assert out.count("  info    offset-gap") == out.count(gaps[0]) == 1
    assert re.search(r"first of 2 findings here \(2 offset-gap\), up to byte \d+, offset 8\n", out)


def test_fail_on_and_ignore(flipped: Path) -> None:
    assert verify("--ignore", "crc-mismatch", flipped)[0] == 0
    assert verify(KAFKA / "crash-1")[0] == 0
    assert verify("--fail-on", "warning", KAFKA / "crash-1")[0] == 1
    assert verify("--fail-on", "info", KAFKA / "clean-1" / "payments-0")[0] == 1


def test_topic(tmp_path: Path) -> None:
    """The findings are those of the whole disk for these topics; the files around the partitions are still read."""
    disk = shutil.copytree(KAFKA / "clean-1", tmp_path / "disk")
    for name in ("payments-0", "orders-none-0"):
        log = disk / name / "00000000000000000000.log"
        data = bytearray(log.read_bytes())
        data[-1] ^= 1
        log.write_bytes(data)
    (disk / "recovery-point-offset-checkpoint").write_bytes(b"0\n2\npayments 0 100000\norders-none 0 100000\n")
    everything = rows("--info", disk)[1]
    for topics in (("payments",), ("pay*", "orders-????"), ("*",)):
        wanted = [argument for topic in topics for argument in ("--topic", topic)]
        names = [row["topic"] for row in rows("--info", *wanted, disk)[1]]
        of = [row["topic"] for row in everything if row["topic"] is not None]
        expected = [name for name in of if any(fnmatchcase(name, topic) for topic in topics)]
        assert names == expected
        assert "payments" in names
    code, _, err = verify("--topic", "paymentS", disk)
    assert (code, unmatched(err)) == (2, ["--topic paymentS"])
    assert verify("--topic", "orders-gzip", disk)[0] == 0


def test_baseline(flipped: Path, tmp_path: Path) -> None:
    accepted = tmp_path / "accepted.jsonl"
    accepted.write_text(verify("--json", flipped)[1])
    code, findings, summary = rows("--baseline", accepted, flipped)
    assert (code, findings, summary["known"]) == (0, [], 3)
    data = bytearray(flipped.read_bytes())
    data[100] ^= 1
    flipped.write_bytes(data)
    code, findings, summary = rows("--baseline", accepted, flipped)
    assert code == 1
    assert [(row["code"], row["offset"]) for row in findings if row["severity"] == "error"] == [("crc-mismatch", 0)]
    for wrong in ("no json\n", '{"type":"summary"}\n', '{"type":"partition","topic":"t"}\n', "[]\n", ""):
        accepted.write_text(wrong)
        code, out, err = verify("--baseline", accepted, flipped)
        assert (code, out, err.count("\n")) == (2, "", 1), wrong
        assert ("line 1" if wrong else "empty") in err
    accepted.write_text(verify("--json", KAFKA / "clean-1" / "payments-0", "--crc")[1].splitlines()[-1])
    assert verify("--baseline", accepted, flipped)[0] == 1


@pytest.mark.parametrize("option", ["--only", "--ignore"])
@pytest.mark.parametrize("value", ["", ",", " , "])
def test_no_family_is_not_every_family(option: str, value: str, flipped: Path) -> None:
    code, out, err = verify(option, value, flipped)
    assert (code, out) == (2, "")
    assert option in err


def test_jobs_say_the_same() -> None:
    code, out, _ = verify("--json", KAFKA / "clean-1")
    words = ["-m", "kdump", "verify", "--json", "--jobs", "2", "--max-rate", "1GB/s"]
    command = [sys.executable, *words, str(KAFKA / "clean-1")]
    side_by_side = subprocess.run(command, capture_output=True, text=True, check=False)
    assert side_by_side.returncode == code
    assert side_by_side.stdout.splitlines()[:-1] == out.splitlines()[:-1]
    ours, theirs = (json.loads(text.splitlines()[-1]) for text in (out, side_by_side.stdout))
    assert ours | {"seconds": 0} == theirs | {"seconds": 0}


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize("command", ["verify", "report"])
def test_what_a_worker_that_ends_was_to_read_is_read_by_this_process(
    command: str, is_slow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel kills what needs too much memory."""
    disk = copy_some(FIXTURES / "disk-1", tmp_path / "disk", "payments-0", "users-0", "ledger-0")

    def made(name: str, jobs: str) -> Any:
        return run(command, disk, *(("--json",) if command == "verify" else ("--out", tmp_path / name)), "--jobs", jobs)

    expected = made("one.html", "1")
    monkeypatch.setattr(workers, "worker_context", lambda: multiprocessing.get_context("fork"))
    monkeypatch.setattr(workers, "_begin", lambda *given: os._exit(9))
    submit = ProcessPoolExecutor.submit

    def submit_and_wait(pool: ProcessPoolExecutor, work: Any, *given: Any) -> Future[Any]:
        """The next is submitted after the worker has ended."""
        future = submit(pool, work, *given)
        if is_slow:
            wait([future])
        return future

    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit_and_wait)
    found = made("two.html", "2")
    assert found.output.count("the worker process that read it ended") == 1
    assert found.exit_code == expected.exit_code
    if command == "verify":
        assert found.stdout.splitlines()[:-1] == expected.stdout.splitlines()[:-1]


def test_jobs_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disks of a rescue system are read-only or full: then a single process does all the work."""

    def full(*_arguments: object, **_named: object) -> None:
        raise FileNotFoundError("No usable temporary directory found")

    expected = verify("--json", KAFKA / "clean-1")
    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    found = verify("--json", "--jobs", "2", KAFKA / "clean-1")
    assert found[0] == expected[0]
    assert found[1].splitlines()[:-1] == expected[1].splitlines()[:-1]


def test_many_findings_of_a_job_go_through_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the same in the same order, and the file is deleted afterwards."""
    batches = craft.split(TRIMMED.read_bytes())
    broken = craft.write_file(
        tmp_path / "trimmed-0" / TRIMMED.name, b"".join(craft.flip(batch, 8 * 70) for batch in batches)
    )
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(workers, "_directory", str(spool))
    monkeypatch.setattr(workers, "_counter", SharedCounter(multiprocessing.get_context()))
    found = []
    for held in (1000, 3):
        monkeypatch.setattr(workers, "MAX_HELD", held)
        (unit,) = units((str(broken.parent),), Options(unreadable=ignore))
        (first, path, totals), _ = workers.in_worker(workers._check, unit)
        assert len(first) >= min(held, len(batches))
        assert bool(path) == (held == 3)
        found.append((list(workers._findings(first, path)), totals))
        assert not list(spool.iterdir())
    assert found[0] == found[1]
    assert len(found[0][0]) > 3


def test_crc_finds_what_holds_no_batch(tmp_path: Path) -> None:
    data = TRIMMED.read_bytes()
    torn = craft.write_file(tmp_path / TRIMMED.name, data[:1000] + b"junk" * 100 + data[1000:-5])
    code, findings, _ = rows("--crc", torn)
    assert code == 1
    assert {row["code"] for row in findings} >= {"crc-mismatch", "batch-truncated"}


def test_crc_finds_the_flipped_bit_of_a_base_offset_that_no_checksum_covers(tmp_path: Path) -> None:
    data = bytearray(TRIMMED.read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second + 4] ^= 0x20
    code, findings, _ = rows("--crc", craft.write_file(tmp_path / TRIMMED.name, bytes(data)))
    assert (code, [(row["code"], row["position"]) for row in findings]) == (1, [("offset-not-monotonic", second)])
    assert rows("--crc", "--only", "bytes", tmp_path / TRIMMED.name)[:2] == (0, [])


def test_bad_usage(tmp_path: Path) -> None:
    for arguments in (
        ["--crc", "--only", "records", str(TRIMMED)],
        ["--only", "nonsense", str(TRIMMED)],
        ["--ignore", "nonsense", str(TRIMMED)],
        ["-q", "--json", str(TRIMMED)],
        [],
        ["--list", str(TRIMMED)],
    ):
        assert verify(*arguments)[0] == 2, arguments
    assert verify(tmp_path)[0] == 2
    assert verify(tmp_path / "absent")[0] == 2


def test_list() -> None:
    code, out, _ = verify("--list")
    assert code == 0
    assert all(name in out for name in catalogue.findings())
    assert [json.loads(line)["code"] for line in verify("--list", "--json")[1].splitlines()] == list(
        catalogue.findings()
    )


def test_the_page_of_findings_is_current() -> None:
    from tools.findings_reference import page

    assert (FIXTURES.parent / "docs" / "findings.md").read_text() == page()


def test_the_page_of_the_other_problems_is_current() -> None:
    from tools.problems_reference import page

    assert (FIXTURES.parent / "docs" / "problems.md").read_text() == page()


def test_nothing_is_written(disks: RestoredDisks) -> None:
    disk = disks.get("clean-1").root
    before = sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in disk.rglob("*"))
    assert verify(disk)[0] == 0
    assert sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in disk.rglob("*")) == before


def test_a_segment_that_goes_away_is_noted(disks: RestoredDisks, monkeypatch: pytest.MonkeyPatch) -> None:
    from kdump.check.engine import workers

    gone = disks.get("clean-1", whole=True).root / "clicks-0" / f"{11263:020}.log"
    real = workers.careful_source

    def open_source(path: str) -> Any:
        if path == str(gone) and gone.exists():
            gone.unlink()
        return real(path)

    monkeypatch.setattr(workers, "careful_source", open_source)
    code, _, summary = rows("--only", "log", gone.parent)
    assert code == 0
    assert summary["notes"] == [went_away(str(gone))]


def test_a_warning_of_many_partitions_is_told_once_for_each_impact() -> None:
    code, out, _ = verify(FIXTURES)
    assert code == 0
    assert out.count("warning index-missing") == 2
    assert out.count("partitions\n  warning index-missing") == 2
    assert out.count("the segment has no .index\n") == out.count("the segment has no .timeindex\n") == 1


@pytest.mark.sampled
@pytest.mark.parametrize("twin", sample(LOOKALIKES, 40, "twins"), ids=lambda twin: twin.code)
def test_each_lookalike(twin: Lookalike, disks: RestoredDisks) -> None:
    disk = disks.get(twin.disk, whole=True).root
    twin.change(disk)
    code, findings, _ = rows(disk)
    errors = [(row["code"], row["file"], row["message"]) for row in findings if row["severity"] == "error"]
    assert (code, errors) == (0, [])
    usual = catalogue.findings()[twin.code].severity
    place = disk / twin.path
    fired = [row for row in findings if row["code"] == twin.code and row["severity"] == usual]
    assert not [row["message"] for row in fired if Path(row["file"]).is_relative_to(place)]


def test_every_code_has_a_lookalike() -> None:
    assert {twin.code for twin in LOOKALIKES} == LOCAL


# --- What real brokers did --------------------------------------------------------------------------------------------

TRIALS = json.loads((FIXTURES.parent / "docs" / "broker-trials.json").read_text())
UNMINDED = {"starts normally", "reads everything", "not tried", None}


def test_every_recipe_was_tried_with_a_real_broker() -> None:
    assert {trial["name"] for trial in TRIALS} == {damage.name for damage in [*DAMAGES, *DOUBTS]}


@each_case("code", sorted(LOCAL - {"unreadable-bytes"}))
def test_an_error_is_minded_by_a_broker_or_a_consumer(code: str) -> None:
    """And damage that affects neither, in any variant, is at most a warning."""
    said = {trial.get(who) for trial in TRIALS if trial["code"] == code for who in ("broker", "consumer")}
    said |= {trial.get("consumerCommitted") for trial in TRIALS if trial["code"] == code}
    if catalogue.findings()[code].severity == "error":
        assert said - UNMINDED


@pytest.mark.parametrize("file", ["meta.properties", "inner-0/00000000000000000000.log"])
def test_a_segment_in_a_log_directory(tmp_path: Path, file: str) -> None:
    """It may also be a partition directory in which there is another one."""
    log = FIXTURES / "disk-1" / "users-0" / "00000000000000000000.log"
    (tmp_path / file).parent.mkdir(exist_ok=True)
    shutil.copy(log if file.endswith(".log") else FIXTURES / "disk-1" / file, tmp_path / file)
    shutil.copy(log, tmp_path)
    result = CliRunner().invoke(cli, ["verify", "--json", "--only", "files,checkpoints", str(tmp_path)])
    found = [json.loads(line) for line in result.stdout.splitlines()]
    unknown = [(each["severity"], each["file"]) for each in found if each.get("code") == "file-unknown"]
    assert unknown == [("warning", str(tmp_path / log.name))]


@pytest.mark.parametrize("command", ["verify", "transactions", "producers"])
def test_an_abort_marker_at_the_largest_offset(tmp_path: Path, command: str) -> None:
    """The last stable offset after it does not fit in 64 bits."""
    last = 2**63 - 1
    fields = {"producerId": last, "producerEpoch": 0}
    data = craft.one(b"v", last - 1, attributes=0x10, baseSequence=0, **fields)
    marker = craft.record(key=bytes(4), value=bytes(6))
    data += craft.batch([marker], offset=last, attributes=0x30, **fields)
    (tmp_path / f"{last - 1:020}.log").write_bytes(data)
    result = CliRunner().invoke(cli, [command, str(tmp_path)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info


def test_totals_say_what_they_leave_out(tmp_path: Path) -> None:
    """The records of damaged batches are not counted: no total without them looks like that of the whole."""
    three = [craft.record(n) for n in range(3)]
    batches = [craft.batch(three, offset=3 * n) for n in range(5)]
    batches[1] = craft.flip(batches[1], 8 * 65)  # the checksum
    batches[2] = craft.batch(three, offset=6, recordCount=2)  # one record too many
    batches[3] = craft.batch(three, offset=9, recordCount=9000)  # no room for so many
    segment = craft.write_file(tmp_path / "t-0" / f"{0:020}.log", b"".join(batches))
    _, out, _ = verify(segment.parent)
    assert "5 batches, 6 records in valid batches (3 damaged batches state 5 more)" in " ".join(out.split())
    result = run("doctor", segment.parent, "--now", "2026-11-22T09:00Z")
    assert "6 records in valid batches (3 damaged batches state 5 more)" in " ".join(result.stdout.split())
    summary = json.loads(run("verify", segment.parent, "--json").stdout.splitlines()[-1])
    assert {key: summary[key] for key in ("batches", "records", "damagedBatches", "damagedRecords")} == {
        "batches": 5,
        "records": 6,
        "damagedBatches": 3,
        "damagedRecords": 5,
    }
    segment.write_bytes(craft.wrapper(1, [craft.message(1, b"inner")], "zstd") + craft.message(1, b"v", offset=1))
    for only in ((), ("--only", "bytes")):
        summary = json.loads(run("verify", segment.parent, "--json", *only).stdout.splitlines()[-1])
        assert (summary["records"], summary["damagedBatches"]) == (1, 1), only
    segment.write_bytes(craft.batch(three))
    assert "3 records" in verify(segment.parent)[1]
    assert "valid batches" not in verify(segment.parent)[1]


def test_small_files_and_indexes_as_a_broker_uses_them(tmp_path: Path) -> None:
    """The zero topic ID is no topic ID; a broker never deletes an empty last segment, and takes a negative
    position in an index for 0."""
    disk = copy_disk(DISKS / DISK_PATHS["clean-1"], tmp_path / "disk")
    home = disk / "orders-none-0"
    (home / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n")
    with open(home / f"{0:020}.index", "r+b") as file:
        file.seek(-4, 2)
        file.write(b"\xa0\xac\x43\xa0")
    for suffix in (".log", ".index", ".timeindex"):
        (disk / "ledger-0" / f"{0:020}{suffix}").write_bytes(bytes(0 if suffix == ".log" else 240))
    _, found, _ = rows(disk)
    severities = {(Path(each["file"]).name, each["code"]): each["severity"] for each in found}
    assert severities[("partition.metadata", "partition-metadata-invalid")] == "error"
    assert severities[(f"{0:020}.index", "index-mismatch")] == "warning"
    assert severities[(f"{0:020}.timeindex", "index-padding")] == "warning"


def test_a_time_index_of_zeros_has_one_effect(tmp_path: Path) -> None:
    """Retention then uses timestamp 0 (see report-time-index-zeros in restart-trials.json), and not the time at which
    the segment was modified, as without any entry."""
    disk = copy_disk(DISKS / DISK_PATHS["clean-1"], tmp_path / "disk")
    path = disk / "clicks-0" / f"{0:020}.timeindex"
    path.write_bytes(bytes(path.stat().st_size))
    _, found, _ = rows(disk / "clicks-0")
    assert [(each["code"], each["severity"]) for each in found] == [("index-padding", "error")]
    path.write_bytes(b"")
    _, found, _ = rows(disk / "clicks-0")
    assert [(each["code"], each["severity"]) for each in found] == [("time-index-mismatch", "warning")]


def test_indexes_whose_segment_was_deleted_by_hand(tmp_path: Path) -> None:
    """A broker renames a .log before its indexes (LogSegment.changeFileSuffixes): indexes that are not empty, without a
    .log or .log.deleted, show that records are gone. See report-temporary-files-cleaned in restart-trials.json."""
    disk = copy_disk(DISKS / DISK_PATHS["crash-1"], tmp_path / "disk")
    home = disk / "clicks-0"
    first, second = sorted(home.glob("*.log"))[:2]
    first.unlink()
    second.rename(f"{second}.deleted")
    _, found, _ = rows(home)
    orphans = [(each["offset"], each["severity"]) for each in found if each["code"] == "index-orphan"]
    assert orphans == [(0, "error"), (11263, "warning"), (11263, "warning")]
    plan = run("restart-plan", disk, "--topic", "clicks").stdout
    assert "clicks-0: the .log files of 1 segment from offset 0 on are gone already: only indexes are left" in plan


def test_findings_of_one_code_with_other_impacts_are_not_told_as_one() -> None:
    """A missing .index is a recovery, a missing .timeindex is not."""
    text = " ".join(run("verify", FIXTURES / "clean-1").stdout.split())
    assert "10 partitions warning index-missing the segment has no .timeindex" in text
    assert "19 partitions warning index-missing the segment has no .index" in text
    assert "impact: at startup the broker recovers the segment" in text


def test_the_batch_after_a_damaged_header_shows_where_consumers_continue(tmp_path: Path) -> None:
    log = shutil.copytree(FIXTURES / "disk-1", tmp_path / "disk") / "orders-none-0" / f"{0:020}.log"
    contents = bytearray(log.read_bytes())
    second = 12 + int.from_bytes(contents[8:12], "big")
    third = second + 12 + int.from_bytes(contents[second + 8 : second + 12], "big")
    contents[second + 60] ^= 3  # recordCount
    log.write_bytes(contents)
    text = " ".join(run("verify", log.parent).stdout.split())
    assert f"--to-offset {int.from_bytes(contents[third : third + 8], 'big')} --execute" in text


def test_a_directory_of_a_topic_that_was_created_again(tmp_path: Path) -> None:
    """Its topic ID is that of no damaged file, if the metadata log has created a topic with it."""
    disk = Path(shutil.copytree(FIXTURES / "disk-1", tmp_path / "disk"))
    own = "liMA9LxMQ--HijOETPGlaw"
    (disk / "payments-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {own}")

    def severities() -> list[str]:
        lines = map(json.loads, run("verify", disk, "--json").stdout.splitlines())
        return [each["severity"] for each in lines if each.get("code") == "partition-metadata-invalid"]

    assert severities() == ["error"]
    data, stored = max((disk / "__cluster_metadata-0").glob("*.log")), urlsafe_b64decode(own + "==")
    for record in (b"\x01\x02\x00\x09payments" + stored + b"\x00", b"\x01\x09\x00" + stored + b"\x00"):
        data.write_bytes(craft.with_metadata_record(data.read_bytes(), record))
    assert severities() == ["warning"]
    assert "with its ID was deleted" not in run("verify", disk).stdout
    found = map(json.loads, run("doctor", disk, "--json").stdout.splitlines())
    (stray,) = (each for each in found if each.get("code") == "startup-stray")
    assert (stray["severity"], stray["actions"][0][:10]) == ("warning", "Do nothing")
    shutil.copy(disk / "ledger-0" / "partition.metadata", disk / "payments-0")
    assert severities() == ["error"], "the ID of another topic that is there"
