"""`kdump salvage` on the command line."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.all_answers import TYPES
from kdump.cli import cli
from kdump.format.batch_header import BATCH_HEADER
from kdump.questions.salvage.byte_outcomes import FATES, LOST
from tests import command, craft
from tests.conftest import FIXTURES, ROOT, sample, seeded
from tests.test_damaged_disks import DAMAGES, damaged_copy

FIRST = f"{0:020}.log"
ORDERS = FIXTURES / "clean-1" / "orders-none-0"


run = partial(command.run, "salvage")


def hurt(tmp_path: Path, source: Path = ORDERS) -> Path:
    """A copy with a batch that several wrong bytes damage."""
    copy = shutil.copytree(source, tmp_path / source.name)
    data = bytearray((copy / FIRST).read_bytes())
    data[12000:12040] = b"#" * 40
    (copy / FIRST).write_bytes(data)
    return copy


def test_exit_statuses(tmp_path: Path) -> None:
    damaged = hurt(tmp_path)
    assert run(ORDERS, "--out", tmp_path / "1").exit_code == 0
    assert run(damaged, "--out", tmp_path / "2").exit_code == 1
    assert run(damaged, "--out", tmp_path / "2").exit_code == 2  # it exists
    assert run(damaged, "--out", damaged / "out").exit_code == 2  # next to the source
    assert not (damaged / "out").exists()
    assert run(tmp_path / "none", "--out", tmp_path / "3").exit_code == 2
    assert run(ORDERS, damaged, "--out", tmp_path / "4").exit_code == 2
    assert run(ORDERS, "-q", "--json", "--out", tmp_path / "5").exit_code == 2
    assert run(ORDERS / f"{0:020}.index", "--out", tmp_path / "6").exit_code == 2
    assert run("-", "--out", tmp_path / "7", stdin=(ORDERS / FIRST).read_bytes()).exit_code == 2  # of which partition?
    quiet = run("-", "--name", "t-7", "-q", "--out", tmp_path / "8", stdin=(ORDERS / FIRST).read_bytes())
    assert (quiet.exit_code, quiet.stdout) == (0, "")
    assert (tmp_path / "8" / "t-7" / FIRST).read_bytes() == (ORDERS / FIRST).read_bytes()
    craft.write_file(tmp_path / "junk-0" / FIRST, b"#" * 1000)
    result = run(tmp_path / "junk-0", "--out", tmp_path / "9", "--json")
    assert result.exit_code == 2
    made = json.loads(result.stdout.splitlines()[0])
    assert (made["topic"], made["partition"], made["whole"], made["records"].get("kept", 0)) == ("junk", 0, False, 0)
    assert made["bytes"].keys() <= set(LOST)
    assert [path.name for path in (tmp_path / "9").iterdir()] == ["ledger.jsonl"]


def reordered(tmp_path: Path, *order: int) -> Path:
    """Return a copy with its batches in another order."""
    copy = shutil.copytree(ORDERS, tmp_path / "-".join(map(str, order)) / ORDERS.name)
    batches = craft.split((copy / FIRST).read_bytes())
    (copy / FIRST).write_bytes(b"".join(batches[number] for number in order))
    return copy


@pytest.mark.parametrize("order", [(0, 2, 1, 3, 4), (0, 1, 2, 4, 3), (1, 0, 3, 2, 4), (4, 0, 1, 2, 3)])
def test_batches_out_of_order(order: tuple[int, ...], tmp_path: Path) -> None:
    result = run(reordered(tmp_path, *order), "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0
    made = json.loads(result.stdout.splitlines()[0])
    assert (made["whole"], made["records"]["kept"], made["lostOffsets"], made["logEndOffset"]) == (True, 300, 0, 300)
    assert "out of order" in made["notes"][-1]
    assert (tmp_path / "out" / ORDERS.name / FIRST).read_bytes() == (ORDERS / FIRST).read_bytes()


def test_batches_out_of_order_as_records(tmp_path: Path) -> None:
    result = run(reordered(tmp_path, 3, 4, 0, 2, 1), "--out", tmp_path / "out", "--format", "jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out" / "orders-none-0.jsonl").read_text().splitlines()]
    assert (result.exit_code, [row["offset"] for row in rows]) == (0, list(range(300)))


def test_a_valid_batch_that_is_not_written_is_no_success(tmp_path: Path) -> None:
    copy = reordered(tmp_path, 0, 1, 2, 3, 4)
    with (copy / FIRST).open("ab") as file:
        file.write(craft.one(b"other", 100))
    result = run(copy, "--out", tmp_path / "out", "--json")
    assert result.exit_code == 1
    made = json.loads(result.stdout.splitlines()[0])
    assert (made["whole"], made["records"]["kept"], made["lostOffsets"]) == (False, 300, 0)
    spans = map(json.loads, (tmp_path / "out" / "ledger.jsonl").read_text().splitlines())
    assert [(each["fate"], each["offset"]) for each in spans if each["fate"] != "kept"] == [("contradicts", 100)]
    assert "offset 100: " in run(copy, "--out", tmp_path / "again").stdout


def test_out_of_order_on_standard_input(tmp_path: Path) -> None:
    """It is read only once: batches out of order are named."""
    data = (reordered(tmp_path, 0, 1, 2, 4, 3) / FIRST).read_bytes()
    result = run("-", "--name", "t-0", "--out", tmp_path / "out", stdin=data)
    assert result.exit_code == 1
    assert "offsets 240..299: " in result.stdout


def test_the_source_is_not_touched(tmp_path: Path) -> None:
    damaged = hurt(tmp_path)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in damaged.iterdir()}
    run(damaged, "--out", tmp_path / "out", "--damaged-records")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in damaged.iterdir()} == before


def test_json_and_ledger_are_what_is_declared(tmp_path: Path) -> None:
    damaged = hurt(tmp_path)
    result = run(damaged, "--out", tmp_path / "out", "--json")
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    ledger = [json.loads(line) for line in (tmp_path / "out" / "ledger.jsonl").read_text().splitlines()]
    assert [each["type"] for each in objects] == ["salvage", "salvageSummary"]
    assert {each["type"] for each in ledger} == {"salvageSpan", "salvageHole"}
    for each in (*objects, *ledger):
        assert list(each) == ["type", *(key.name for key in TYPES[each["type"]])]
    made = objects[0]
    assert (made["whole"], made["lostOffsets"], made["logEndOffset"]) == (False, 60, 300)
    assert sum(made["bytes"].values()) == (damaged / FIRST).stat().st_size
    assert set(LOST) < set(FATES)


def test_records_as_json(tmp_path: Path) -> None:
    """They are the objects of inspect; records of damaged batches are marked."""
    run(ORDERS, "--out", tmp_path / "out", "--write", "jsonl")
    inspected = CliRunner().invoke(cli, ["inspect", "--records", "--json", str(ORDERS)]).stdout
    assert (tmp_path / "out" / "orders-none-0.jsonl").read_text() == inspected
    result = run(hurt(tmp_path), "--out", tmp_path / "all", "--write", "jsonl", "--damaged-records")
    assert "next steps" not in result.stdout
    rows = [json.loads(line) for line in (tmp_path / "all" / "orders-none-0.jsonl").read_text().splitlines()]
    damaged = [row["offset"] for row in rows if row.get("damaged")]
    assert damaged
    assert set(damaged) <= set(range(120, 180))
    assert all(row["damaged"] is True for row in rows if 120 <= row["offset"] < 180)


def test_topics_are_chosen(tmp_path: Path) -> None:
    result = run(FIXTURES / "clean-1", "--topic", "franz*", "--topic", "acks0", "--out", tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir())
    assert (result.exit_code, names) == (0, ["acks0-0", "franz-lz4-0", "franz-snappy-0", "franz-zstd-0"])


def test_control_characters_stay_out(tmp_path: Path) -> None:
    directory = tmp_path / "a\x1b[31m" / "t-0"
    craft.write_file(directory / FIRST, craft.one(b"\x1b[2J") + b"#" * 100)
    for number, options in enumerate(([], ["--full"], ["--json"], ["--write", "jsonl"])):
        out = tmp_path / str(number)
        result = run(directory, "--out", out, *options)
        written = list(out.rglob("*.jsonl"))
        assert "\x1b" not in result.stdout + result.stderr
        assert all(b"\x1b" not in path.read_bytes() for path in written)


def test_a_path_that_is_no_text(tmp_path: Path) -> None:
    directory = tmp_path / "b\udcff" / "t-0"
    craft.write_file(directory / FIRST, craft.one(b"v") + b"#" * 100)
    assert run(directory, "--out", tmp_path / "out", "--json").exit_code == 1
    for line in (tmp_path / "out" / "ledger.jsonl").read_text().splitlines():
        assert "\\xff" in json.loads(line).get("file", "\\xff")


@pytest.mark.sampled
@pytest.mark.parametrize("damage", sample(DAMAGES, 7, "test_damaged_disks"), ids=lambda damage: damage.__name__)
def test_damaged_disks(damage: Callable[[bytearray, random.Random], None], tmp_path: Path) -> None:
    """Every file of a disk is damaged: there is no traceback, and the output is valid."""
    dice = seeded(damage.__name__)
    disks = [FIXTURES / "crash-1", FIXTURES / "clean-2", FIXTURES / "legacy", FIXTURES / "diverged-2"]
    for number, disk in sample(enumerate(disks), 4, damage.__name__):
        copy = damaged_copy(disk, tmp_path / f"{number}" / "disk", damage, dice)
        for options in ([], ["--damaged-records", "--deleted"])[number % 2 :]:
            out = tmp_path / f"{number}" / f"out{len(options)}"
            result = run(copy, "--out", out, "--json", *options)
            made = [json.loads(line) for line in result.stdout.splitlines()]
            kept = made[-1]["partitions"] - made[-1]["empty"]
            assert result.exit_code in ((0, 1) if kept else (2,)), result.stderr
            odd: set[Any] = {code for each in made if each["type"] == "salvage" for code in each["odd"]}
            verified = CliRunner().invoke(cli, ["verify", str(out), "--json"]) if kept else None
            found = [json.loads(line) for line in verified.stdout.splitlines()] if verified else []
            wrong = {each["code"] for each in found if each["type"] == "finding" and each["severity"] == "error"}
            assert wrong <= odd, (disk, options, [each for each in found if each.get("severity") == "error"][:3])


def test_real_brokers_serve_what_was_kept() -> None:
    """Compares with docs/salvage-trials.json, which tools/salvage_trials.py writes and docs/salvage.md describes."""
    results = json.loads((ROOT / "docs" / "salvage-trials.json").read_text())
    assert (
        f"by {sum(each['code'] != 'salvage' for each in results)} recipes" in (ROOT / "docs" / "salvage.md").read_text()
    )
    for each in results:
        assert (each["dumpLog"], each["broker"]) == ("nothing is wrong", "serves all of it"), each
        assert each["consumer"] == "reads all that was kept", each
        assert each.get("consumerCommitted", each["consumer"]) == each["consumer"], each
    swapped = {each["name"]: each for each in results if each["name"] in ("two-swapped", "last-two-swapped")}
    assert [(each["exit"], each["consumed"], each["logEnd"]) for each in swapped.values()] == [(0, 300, 300)] * 2
    lost = next(each for each in results if each["name"] == "marker-lost")
    assert lost["readsBehindIt"] is True
    assert lost["consumedAfterAbort"] > lost["consumedCommitted"]


def test_a_restart_plan_states_what_can_be_saved(tmp_path: Path) -> None:
    """Of the records in damaged batches, no more than it states, and all of them if only the checksum is damaged."""
    disk = tmp_path / "disk"
    shutil.copytree(FIXTURES / "disk-1", disk)
    for path in [disk, *disk.rglob("*")]:
        path.chmod(0o755)
    (disk / ".kafka_cleanshutdown").unlink(missing_ok=True)
    log = disk / "orders-none-0" / FIRST
    data = bytearray(log.read_bytes())
    data[BATCH_HEADER.positions["crc"]] ^= 1
    log.write_bytes(data)
    (plan,) = (
        each
        for each in command.objects("restart-plan", disk, "--topic", "orders-none", status=1)
        if each["type"] == "restartPartition"
    )
    states = sum(cut["damagedRecords"] for cut in plan["cuts"])
    made = json.loads(run(log.parent, "--out", tmp_path / "out", "--damaged-records", "--json").stdout.splitlines()[0])
    assert made["records"]["recovered"] == states == 60
    text = command.run("restart-plan", disk, "--topic", "orders-none").stdout
    assert f"up to {states} records of 1 damaged batch, whose values may be wrong" in text
