"""`kdump diff` on the command line."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kdump.all_answers import TYPES
from kdump.render.stdout import Output
from tests import command, craft
from tests.conftest import FIXTURES
from tools.incident import lay_out

FIRST = f"{0:020}.log"
ONE, OTHER = FIXTURES / "diverged-1" / "ledger-0", FIXTURES / "diverged-2" / "ledger-0"


run = partial(command.run, "diff")
refused = partial(command.refused, "diff")


def objects(*args: str | Path, status: int = 1) -> list[dict[str, Any]]:
    result = run(*args, "--json")
    assert result.exit_code == status, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    for each in found:
        if each["type"] in TYPES:
            assert list(each) == ["type", *(key.name for key in TYPES[each["type"]])]
    return found


def test_json_of_two_replicas() -> None:
    difference, diff, summary = objects(ONE, OTHER)
    assert (diff["relation"], diff["firstDivergentOffset"], diff["cause"]) == ("divergent", 50, "records")
    assert [(each["leaderEpoch"], each["checkpointEpoch"]) for each in diff["epochs"]] == [(0, 0), (2, 2)]
    assert [each["offset"] for each in diff["truncations"]] == [50, 50]
    assert [copy["epochs"] for copy in diff["copies"]] == [
        [{"epoch": 0, "startOffset": 0}],
        [{"epoch": 0, "startOffset": 0}, {"epoch": 2, "startOffset": 50}],
    ]
    assert (difference["offset"], difference["lastOffset"], difference["records"]) == (50, 64, 15)
    assert (difference["leftPosition"], difference["rightPosition"]) == (802, 802)
    assert [sample["offset"] for sample in difference["samples"]] == [50, 51, 52, 53, 54]
    assert {name: summary[name] for name in ("partitions", "same", "prefix", "divergent")} == {
        "partitions": 1,
        "same": 0,
        "prefix": 0,
        "divergent": 1,
    }


def test_exit_statuses(tmp_path: Path) -> None:
    assert run(ONE, ONE).exit_code == 0
    assert run(ONE, OTHER).exit_code == 1
    assert run(ONE, OTHER, "-q").stdout == ""
    assert run(ONE).exit_code == 2
    assert run(ONE, tmp_path / "none").exit_code == 2
    assert run(ONE, OTHER, "--json", "-q").exit_code == 2
    assert run("-", "-").exit_code == 2
    assert run(ONE / "leader-epoch-checkpoint", OTHER).exit_code == 2
    data = (ONE / FIRST).read_bytes()
    assert run(ONE, "-", stdin=data).exit_code == 0
    assert run(ONE, "-", stdin=data[:-1]).exit_code == 1


def test_log_directories(tmp_path: Path) -> None:
    """They are compared partition by partition; a partition on one side only is a difference only between copies of one
    disk."""
    (diff,) = [each for each in objects(FIXTURES / "diverged-1", FIXTURES / "clean-2") if each["type"] == "diff"]
    assert (diff["topic"], diff["partition"], diff["firstDivergentOffset"]) == ("ledger", 0, 50)
    result = run(FIXTURES / "clean-2", FIXTURES / "clean-2")
    assert (result.exit_code, result.stdout) == (0, "2 partitions compared: 2 same\n")
    assert (
        "ledger-0: the same: offsets 0..64, 65 records"
        in run(FIXTURES / "clean-2", FIXTURES / "clean-2", "--all").stdout
    )
    copy = shutil.copytree(FIXTURES / "clean-2", tmp_path / "copy")
    shutil.rmtree(copy / "ledger-0")
    result = run(FIXTURES / "clean-2", copy)
    assert result.exit_code == 1
    assert re.search(rf"\bledger-0\b.*{re.escape(str(FIXTURES / 'clean-2' / 'ledger-0'))}$", result.stderr, re.M)
    properties = copy / "meta.properties"
    properties.write_text(re.sub(r"directory\.id=.*", "directory.id=AAAAAAAAAAAAAAAAAAAAAA", properties.read_text()))
    assert run(FIXTURES / "clean-2", copy).exit_code == 0
    assert run(FIXTURES / "clean-2", FIXTURES / "framed").exit_code == 2
    assert run(FIXTURES / "clean-2" / "ledger-0", FIXTURES / "clean-2").exit_code == 0


def test_one_partition_twice_below_a_path() -> None:
    assert "pass one of them" in refused(FIXTURES, FIXTURES / "clean-2")


def test_control_characters_stay_out(tmp_path: Path) -> None:
    for name, value in (("a\x1b[31m", b"\x1b[2Jone"), ("b", b"\x1b[2Jtwo")):
        craft.write_file(tmp_path / name / "t-0" / FIRST, craft.one(value))
    for options in ((), ("--full",), ("--json",)):
        result = run(tmp_path / "a\x1b[31m" / "t-0", tmp_path / "b" / "t-0", *options)
        assert result.exit_code == 1
        assert "\x1b" not in result.stdout + result.stderr


def test_memory_and_reading_nothing_twice(tmp_path: Path) -> None:
    """Two large copies, one of them recompressed, take a few windows, whatever their size."""
    value = random.Random(1).randbytes(900)
    parts = {codec: [] for codec in ("none", "lz4")}
    for offset in range(0, 30_000, 100):
        rows = [craft.record(delta, key=b"%d" % delta, value=value) for delta in range(100)]
        for codec, found in parts.items():
            found.append(craft.batch(rows, codec, offset=offset))
    for codec, found in parts.items():
        craft.write_file(tmp_path / codec / "t-0" / FIRST, b"".join(found))
    code = "import resource, subprocess, sys; s = subprocess.call(sys.argv[1:], stdout=2)"
    code += "; print(s, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = [sys.executable, "-m", "kdump", "diff", str(tmp_path / "none" / "t-0"), str(tmp_path / "lz4" / "t-0")]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    status, peak = map(int, done.stdout.split())
    assert status == 0, done.stderr
    assert peak < 100 * 1024


def test_the_same_records_in_other_epochs(tmp_path: Path) -> None:
    """A producer sent the same records again to another leader: no record differs, but a broker would truncate them."""
    parts = craft.split((FIXTURES / "clean-1" / "trimmed-0" / FIRST).read_bytes())
    for name, epoch in (("a", 0), ("b", 3)):
        (tmp_path / name / "t-0").mkdir(parents=True)
        (tmp_path / name / "meta.properties").write_text("version=1\n")
        data = [*parts[:4], *(craft.patch(part, partitionLeaderEpoch=epoch) for part in parts[4:])]
        (tmp_path / name / "t-0" / FIRST).write_bytes(b"".join(data))
    result = run(tmp_path / "a", tmp_path / "b")
    assert result.exit_code == 1
    assert re.findall(r"DIVERGENT from offset (\d+)", result.stdout) == ["20"]
    assert "fetches again" in result.stdout.splitlines()[0]
    assert "loses" not in result.stdout
    legal, elected = (
        next(line for line in result.stdout.splitlines() if word in line) for word in ("legal: ", "B elected: ")
    )
    assert re.findall(r"\d+(?:\.\.\d+)?", legal) == ["6", "20..49"]  # batches, and offsets
    assert re.findall(r"\d+(?:\.\.\d+)?", elected) == ["20", "20..49"]  # the new end, and what is fetched


def test_damage_shows_though_no_record_is_lost(tmp_path: Path) -> None:
    parts = craft.split((FIXTURES / "clean-1" / "trimmed-0" / FIRST).read_bytes())
    for name, between in (("a", b""), ("b", b"\x07" * 40)):
        (tmp_path / name / "t-0").mkdir(parents=True)
        (tmp_path / name / "meta.properties").write_text("version=1\n")
        (tmp_path / name / "t-0" / FIRST).write_bytes(b"".join([parts[0], between, *parts[1:]]))
    result = run(tmp_path / "a", tmp_path / "b")
    assert result.exit_code == 0
    assert "B is damaged: 40 bytes at" in result.stdout
    assert result.stdout.splitlines()[0].endswith("; B is damaged")


def test_the_report_says_whose_log_is_the_later_leaders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And how to save what each copy has: on one line, which runs."""
    copies = FIXTURES / "diverged-1" / "ledger-0", FIXTURES / "diverged-2" / "ledger-0"
    monkeypatch.setattr(Output, "width", 80)
    text = run(*copies).stdout
    assert "from there on, B has the log of the later leader (epoch 2)" in text
    assert "whether the records of A were committed is unknown" in text
    assert "… and 12 more records" in text
    commands = [line.strip() for line in text.splitlines() if line.startswith("    kdump inspect ")]
    assert [line[-7:] for line in commands] == ["A.jsonl", "B.jsonl"]
    saved = [command.run(*shlex.split(line)[1:-2]).stdout.splitlines() for line in commands]
    assert list(map(len, saved)) == [20, 15]


def test_what_cannot_be_replicas(tmp_path: Path) -> None:
    """A mirror has another name or is in another cluster: no broker truncates one to match the other."""
    lay_out("compare-with-mirror", tmp_path / "it")
    source, mirror = tmp_path / "it/disk-1/orders-none-0", tmp_path / "it/disk-2/a.orders-none-0"
    text = command.run("diff", source, mirror)
    assert "note: orders-none-0 and a.orders-none-0 are not replicas of one partition" in text.stdout
    assert "elected" not in text.stdout
    assert text.exit_code == 1
    mirror.rename(mirror.with_name("orders-none-0"))
    text = command.run("diff", tmp_path / "it/disk-1", tmp_path / "it/disk-2", "--topic", "orders-none")
    assert "of clusters FN96DRb6S3GeSIQS03itlw and q0eGNDWzT3mZ8kZ6sXn1Lw: a mirror has other offsets" in text.stdout
    assert "elected" not in text.stdout
    (tmp_path / "it/disk-2/meta.properties").unlink()
    assert "elected" in command.run("diff", source, mirror.with_name("orders-none-0")).stdout
