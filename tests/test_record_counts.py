"""Numbers of records that commands print, where headers state what cannot be true."""

from __future__ import annotations

import json as jsonl
import re
from pathlib import Path

import pytest

from tests.broker_at_work import disk
from tests.command import run
from tests.conftest import FIXTURES, sample
from tests.craft import patch, split
from tools.trials.working import commands

CLAIM = 1_000_000_007
FALSE = re.compile(r"\b[1-9]\d?,?000,?000,?\d{3}\b")
"""One claim, or the sum of several."""
STATED = re.compile(r'recordCount"?:? ?(is )?\d+|"actual":\d+')
"""Where a header's field is shown as such."""
NAMES = [name for name, _ in commands([Path("d1")], Path("out")) if name not in ("scan", "verify --jobs 2")]
RUNS = [(name, json) for name in NAMES for json in (True, False) if json or "inspect" not in name]
"""The tables of inspect have the header's field in the column `records`."""


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
@pytest.mark.parametrize(("name", "json"), sample(RUNS, 12, "record counts"))
def test_a_claim_is_not_counted(name: str, json: bool, claiming: Path, tmp_path: Path) -> None:
    command, *arguments = dict(commands([claiming], tmp_path))[name]
    result = run(command, *(each for each in arguments if json or each != "--json"))
    written = [path.read_text() for path in tmp_path.glob("*.html")]
    for text in (result.stdout, result.stderr, *written):
        assert not FALSE.search(STATED.sub("", text)), FALSE.findall(STATED.sub("", text))


@pytest.mark.parametrize("fields", [{"recordCount": CLAIM}, {"recordCount": -5}, {"baseOffset": -7}])
def test_the_ledger_and_stats_of_a_batch_that_cannot_be_true(fields: dict[str, int], tmp_path: Path) -> None:
    name = f"ledger-0/{0:020}.log"
    first, second = split((FIXTURES / "clean-2" / name).read_bytes())
    path = tmp_path / name
    path.parent.mkdir()
    path.write_bytes(patch(first, **fields) + second)
    run("salvage", str(path.parent), "--out", str(tmp_path / "out"))
    ledger = [jsonl.loads(line) for line in (tmp_path / "out" / "ledger.jsonl").read_text().splitlines()]
    (lost,) = (each for each in ledger if each.get("fate") == "damaged")
    base = fields.get("baseOffset", 0)
    assert (lost["offset"], lost["lastOffset"], lost["batches"]) == (base, base + 49, 1)
    if "recordCount" in fields:
        assert lost["records"] == 0
        said = jsonl.loads(run("stats", "--json", str(path.parent)).stdout.splitlines()[0])
        assert (said["records"], said["batchRecords"]["empty"]) == (15, 0)
        assert [each["reason"] for each in said["damage"]] == [lost["reason"]]
