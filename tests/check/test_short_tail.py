"""Fewer bytes than a header has at the end of a log: verify and restart-plan say the same about a broker that loads it
after a clean shutdown, of a disk and of a bundle."""

import json
import shutil
from itertools import product
from pathlib import Path

import pytest

import kdump
from tests import craft
from tests.command import run
from tests.conftest import sample

LENGTHS = (-5, 0, 13, 14, 20, 40, 48, 300)
MAGICS = (0, 1, 2, 3, 130)
SIZES = (12, 17, 18, 26, 33, 52, 60)
META = "version=1\nnode.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\ndirectory.id=qqqqqqqqqqqqqqqqqqqqqQ\n"


def tail(length: int, magic: int, size: int) -> bytes:
    header = bytes(7) + b"\x02" + length.to_bytes(4, "big", signed=True) + b"abcd" + bytes((magic,))
    return header.ljust(size, b"x")[:size]


def exits(files: dict[str, bytes]) -> set[str]:
    """Return the names of the tails, by their bytes, at which FileLogInputStream throws while the last batch of the log
    is looked for."""
    found = set()
    for name, data in files.items():
        length, magic = int.from_bytes(data[8:12], "big", signed=True), (data[16:17] or b"\0")[0]
        if len(data) > 17 and (length < 14 or (12 + length <= len(data) and 2 <= magic < 128)):
            found.add(name)
    return found


def disk(root: Path, tails: dict[str, bytes]) -> Path:
    root.mkdir()
    (root / "meta.properties").write_text(META)
    (root / ".kafka_cleanshutdown").touch()
    records = [craft.record(each, b"k", b"v") for each in range(2)]
    for name, data in tails.items():
        craft.write_file(root / name / f"{0:020}.log", craft.batch(records, offset=0) + data)
        for suffix in (".index", ".timeindex"):
            (root / name / f"{0:020}{suffix}").touch()
    return root


def stated(root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the impact that verify states for the tail of each partition, and the exceptions that stop a startup."""
    findings = {
        Path(each["file"]).parent.name: each["consequence"]
        for each in map(json.loads, run("verify", "--json", root).stdout.splitlines())
        if each.get("position") == 79
    }
    plan = kdump.restart_plan([str(root)], kafka_version="4.3.1")
    return findings, {Path(each.file).parent.name: each.exception for each in plan.allStops}


@pytest.mark.sampled
def test_short_tails(tmp_path: Path) -> None:
    tails = {f"t{number}-0": tail(*case) for number, case in enumerate(sample(product(LENGTHS, MAGICS, SIZES), 19))}
    root = disk(tmp_path / "disk", tails)
    findings, stops = stated(root)
    assert stops.keys() == exits(tails)
    for name in tails:
        assert "appends after them" not in findings[name] or name not in stops, (name, tails[name])
        exception = findings[name].partition("shutdown exits (")[2].partition(")")[0]
        assert exception in ("", stops.get(name, "").partition(":")[0]), (name, tails[name])
    bundle = tmp_path / "disk.kdump"
    assert run("bundle", root, "--out", bundle).exit_code == 0
    shutil.rmtree(root)
    bundled, stopped = stated(bundle)
    assert {name: each for name, each in bundled.items() if findings[name] != each} == {}
    assert stopped == stops
