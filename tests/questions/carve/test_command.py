"""`kdump carve` on the command line."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from kdump.all_answers import TYPES
from kdump.cli import cli
from tests import command, craft
from tests.conftest import FIXTURES, segment

FIRST = f"{0:020}.log"


run = partial(command.run, "carve")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file with two segments, and a batch inside a value of another."""
    path = tmp_path / "image"
    nested = craft.one(craft.one(b"inside", 9), 3)
    parts = [segment("clean-1/orders-zstd-0").read_bytes(), nested, segment("clean-1/users-0").read_bytes()]
    path.write_bytes(b"?" * 777 + b"!".join(parts))
    return path


objects = partial(command.objects, "carve", types=TYPES)


def test_json(image: Path) -> None:
    """Batches have the objects of inspect; a run follows its last batch, and a nested batch follows its outer one."""
    told = objects(image)
    assert [each["type"] for each in told] == [
        *["batch"] * 5,
        "run",
        *["batch", "batch", "nested", "run"],
        *["batch"] * 9,
        "run",
        "carveSummary",
    ]
    nested = told[8]
    assert (nested["position"], nested["within"]) == (told[7]["position"], told[6]["position"])
    first, summary = told[5], told[-1]
    assert (first["run"], first["position"], first["firstOffset"], first["lastOffset"]) == (1, 777, 0, 299)
    assert (summary["batches"], summary["nested"], summary["runs"], summary["files"]) == (16, 1, 3, 1)
    direct = CliRunner().invoke(cli, ["inspect", str(FIXTURES / "clean-1" / "orders-zstd-0" / FIRST), "--json"])
    for mine, line in zip(told, direct.stdout.splitlines()):
        theirs = json.loads(line)
        of_file = {"file": "", "topic": None, "partition": None}
        assert {**mine, "file": "", "position": mine["position"] - 777} == theirs | of_file
    assert [each["type"] for each in objects(image, "--runs")] == ["run", "run", "run", "carveSummary"]


def test_tables(image: Path) -> None:
    listed = run(image).stdout
    assert "run 1: 5 batches, 7,658 bytes at byte 777, offsets 0..299" in listed
    assert "nested: the batch at" in listed
    assert "16 batches (1 nested) in 3 runs" in listed
    rows = run(image, "--runs").stdout.splitlines()
    assert rows[0].split()[:3] == ["run", "position", "bytes"]
    assert [row.split()[0] for row in rows[1:4]] == ["1", "2", "3"]
    both = run(image, image).stdout
    assert both.count(f"{image}:\n") == 1  # a heading before each file


def test_exit_statuses_and_pipes(image: Path, tmp_path: Path) -> None:
    empty = craft.write_file(tmp_path / "empty", b"")
    assert run(image).exit_code == 0
    assert run(image, "-q").stdout == ""
    assert run(empty).exit_code == 1
    assert run(tmp_path / "none").exit_code == 2
    assert run(image, tmp_path / "none").exit_code == 2
    assert run(image, "--json", "-q").exit_code == 2
    assert run("-", "-").exit_code == 2
    assert "in 3 runs" in run("-", stdin=image.read_bytes()).stdout
    out = tmp_path / "out"
    assert "3 segments written to" in run(image, "--out", out).stdout
    assert sorted(path.name for path in out.iterdir()) == ["run-000001", "run-000002", "run-000003"]
    assert run(image, "--out", out).exit_code == 2
