"""Numbers of records that commands print, where headers state what cannot be true."""

from __future__ import annotations

import json as jsonl
import re
import shutil
from pathlib import Path

import pytest

from tests.broker_at_work import disk
from tests.command import run
from tests.conftest import FIXTURES, sample
from tests.craft import flip, patch, split, write_file
from tests.each_case import each_case
from tools.trials.working import commands

CLAIM = 1_000_000_007
FALSE = re.compile(r"\b[1-9]\d?,?000,?000,?\d{3}\b")
"""One claim, or the sum of several."""
STATED = re.compile(r'recordCount"?:? ?(is )?\d+|"actual":\d+')
"""Where a header's field is shown as such."""
NAMES = [name for name, _ in commands([Path("d1")], Path("out")) if name not in ("scan", "verify --jobs 2")]
RUNS = [(name, json) for name in NAMES for json in (True, False) if json or name.split()[0] not in ("inspect", "carve")]
"""The tables of batches have the header's field in the column `records`."""


@pytest.fixture(scope="module")
def claiming(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory in which the header of every second batch states far too many records."""
    root = disk(tmp_path_factory.mktemp("claims"))
    for path in root.glob("[!_]*/*.log"):
        parts = split(path.read_bytes())
        odd = [patch(part, recordCount=CLAIM) if number % 2 else part for number, part in enumerate(parts)]
        path.write_bytes(b"".join(odd))
    (root / ".kafka_cleanshutdown").unlink(missing_ok=True)
    return root


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "json"), sample(RUNS, 24, "record counts"))
def test_a_claim_is_not_counted(name: str, json: bool, claiming: Path, tmp_path: Path) -> None:
    command, *arguments = dict(commands([claiming], tmp_path))[name]
    result = run(command, *(each for each in arguments if json or each != "--json"))
    written = [path.read_text() for path in tmp_path.glob("*.html")]
    for text in (result.stdout, result.stderr, *written):
        assert not FALSE.search(STATED.sub("", text)), FALSE.findall(STATED.sub("", text))


SAYS = re.compile(r"record-count-mismatch|recordCount (is )?-?\d|are not counted")
UNCONCERNED = {
    *("cluster", "groups", "restart-plan", "reindex", "reindex --out", "scan", "space", "space, text"),
    "verify --jobs 2",
}
"""Commands whose answers do not depend on the number of records in this log. (diff compares the log with itself.)"""


@pytest.fixture(scope="module")
def impossible(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return partitions by the record count that the header of the second batch states. The batch is part of a
    transaction."""
    found = {}
    for count in (CLAIM, -5):
        found[count] = tmp_path_factory.mktemp("impossible") / "payments-0"
        shutil.copytree(FIXTURES / "clean-1/payments-0", found[count])
        path = found[count] / f"{0:020}.log"
        first, second, *rest = split(path.read_bytes())
        path.write_bytes(first + patch(second, recordCount=count) + b"".join(rest))
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("count", [CLAIM, -5])
@pytest.mark.parametrize("name", sample([name for name in NAMES if name not in UNCONCERNED], 12, "impossible counts"))
def test_an_answer_that_lacks_records_says_so(
    name: str, count: int, impossible: dict[int, Path], tmp_path: Path
) -> None:
    """In its first line, a note, a finding or a problem line; and the exit status is that of its contract."""
    command, *arguments = dict(commands([impossible[count]], tmp_path))[name]
    for given in (arguments, [each for each in arguments if each != "--json"]):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        result = run(command, *given)
        said = result.stdout + result.stderr + "".join(path.read_text() for path in tmp_path.glob("*.html"))
        assert SAYS.search(said), said
        assert result.exit_code == (1 if command in ("verify", "salvage", "doctor") else 0), said


@each_case("fields", [{"recordCount": CLAIM}, {"recordCount": -5}, {"baseOffset": -7}])
def test_the_ledger_and_stats_of_a_batch_that_cannot_be_true(fields: dict[str, int], tmp_path: Path) -> None:
    name = f"ledger-0/{0:020}.log"
    first, second = split((FIXTURES / "clean-2" / name).read_bytes())
    path = write_file(tmp_path / name, patch(first, **fields) + second)
    run("salvage", str(path.parent), "--out", str(tmp_path / "out"))
    ledger = [jsonl.loads(line) for line in (tmp_path / "out" / "ledger.jsonl").read_text().splitlines()]
    (lost,) = (each for each in ledger if each.get("fate") == "damaged")
    base = fields.get("baseOffset", 0)
    assert (lost["offset"], lost["lastOffset"], lost["batches"]) == (base, base + 49, 1)
    if "recordCount" in fields:
        assert lost["records"] == 0
        said = jsonl.loads(run("stats", "--json", str(path.parent)).stdout.splitlines()[0])
        assert (said["records"], said["batchRecords"]["empty"]) == (15, 0)
        assert not said["damage"]  # its checksum matches: verify, too, counts it among the valid batches
        assert [each.endswith(lost["reason"]) for each in said["notes"]] == [True]


VIEWS = (
    ("inspect", "--format", "csv"),
    ("inspect", "--records", "-n", "2"),
    ("inspect", "--records", "-n", "2", "--json"),
    ("inspect", "-f", "%o", "-n", "2"),
    ("carve", "--runs"),
    ("verify", "--only", "checkpoints"),
    ("retention", "--config", "cleanup.policy=compact", "--keys", "--json"),
)


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_so_does_each_view_of_it(view: tuple[str, ...], impossible: dict[int, Path]) -> None:
    """Also if only a part of the batch, or not its records, is asked for."""
    for path in impossible.values():
        result = run(*view, path)
        assert SAYS.search((result.stdout + result.stderr).replace(f'"recordCount":{CLAIM}', "")), result.stdout


def test_what_a_cleaning_and_a_startup_make_of_it(impossible: dict[int, Path], tmp_path: Path) -> None:
    """The cleaner cannot read the batch (DefaultRecordBatch.RecordIterator). Of a batch that recovery truncates, the
    number of records is unknown."""
    for count, path in impossible.items():
        first, second, *rest = split((path / f"{0:020}.log").read_bytes())
        place = tmp_path / str(count) / "payments-0"
        place.mkdir(parents=True)
        shutil.copy(FIXTURES / "clean-2/meta.properties", place.parent)
        (place / f"{0:020}.log").write_bytes(first + second)
        (place / f"{2:020}.log").write_bytes(b"".join(rest))
        answers = run("retention", "--json", "--config", "cleanup.policy=compact", place).stdout.splitlines()
        holds = [each for each in map(jsonl.loads, answers) if each["type"] == "retentionHold"]
        assert [(each["hold"], each["position"]) for each in holds] == [("damage", len(first))], answers
        (place / f"{0:020}.log").write_bytes(flip(first, 8 * len(first) - 1) + second)
        plans = map(jsonl.loads, run("restart-plan", "--json", "--all", place.parent).stdout.splitlines())
        (plan,) = (each for each in plans if each.get("topic") == "payments" and "cuts" in each)
        cut = plan["cuts"][0]
        assert (cut["kind"], cut["batches"], cut["records"]) == ("truncated", 1, None)


def test_a_batch_that_a_read_committed_consumer_does_not_see(impossible: dict[int, Path], tmp_path: Path) -> None:
    """Its transaction is open, because the log ends after it."""
    for path in impossible.values():
        first, second, *_ = split((path / f"{0:020}.log").read_bytes())
        log = write_file(tmp_path / f"{0:020}.log", first + second)
        assert "1 batch whose recordCount cannot be true" in run("inspect", "--read-committed", log).stderr
