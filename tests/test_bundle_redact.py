"""`kdump bundle --redact`: no name leaves the broker, and the answers are those of the disk with other names."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from kdump.forensics.bundle.redact import Redactor
from kdump.log.hash_key import read_hash_key
from tests.command import run
from tests.conftest import DISKS, FIXTURES
from tests.craft import batch, one, record
from tests.damages import aged, copy_disk
from tests.state.test_metadata import config, framed, text
from tests.test_bundle import contents, secret_disk

NAME = "name-%02d-0123456789abcdefg"
"""24 bytes, and a legal name of a topic."""
NAMES = [NAME % number for number in range(25)]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(os.urandom(32))
    return path


def named_disk(root: Path) -> None:
    """Create a disk with another name wherever one can be."""
    names = iter(NAMES)
    secret_disk(root)
    first = next(names)
    log = batch(record(0, key=next(names).encode(), value=next(names).encode()))
    for directory in (
        f"{first}-0",
        f"{next(names)}-0.{'0' * 32}-delete",
        f"{next(names)}-1.{'1' * 32}-stray",
        next(names),
    ):
        (root / directory).mkdir()
        (root / directory / f"{0:020}.log").write_bytes(log)
        (root / directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (root / f"{first}-0" / next(names)).write_text(next(names))
    (root / f"{first}-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 22}\n")
    (root / f"{next(names)}-0").symlink_to(f"{first}-0")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (root / name).write_text(f"0\n2\n{first} 0 1\n{next(names)} 0 1\n")
    (root / "cleaner-offset-checkpoint").write_text(f"0\n1\n{next(names)} and more\n")
    (root / "log-start-offset-checkpoint").write_text(f"{next(names)}\n")
    (root / f"{first}-0" / "leader-epoch-checkpoint").write_text(f"0\n1\n0 0\n{next(names)}\n")
    metadata = root / "__cluster_metadata-0"
    (metadata / "quorum-state").write_text(json.dumps({"leaderId": 1, "data_version": 1, "x": next(names)}))
    (metadata / f"{100:020}.log").write_bytes(
        one(framed(2, text(next(names)) + bytes(16) + b"\0"), offset=100)
        + one(config(2, next(names), "a", "b"), offset=101)
    )
    voters = b"\0\0\0" + b"\x02" + (1).to_bytes(4, "big") + bytes(16) + b"\x02" + text("X") + text(next(names))
    (metadata / f"{200:020}.log").write_bytes(
        batch(record(0, key=b"\0\0\0\6", value=voters), offset=200, attributes=0x20)
    )
    offsets = root / "__consumer_offsets-0"
    offsets.mkdir()
    group, committed, note = (next(names).encode() for _ in range(3))
    commit_key = b"\0\1" + b"".join(len(each).to_bytes(2, "big") + each for each in (group, committed)) + bytes(4)
    commit = b"\0\3" + bytes(8) + b"\xff" * 4 + len(note).to_bytes(2, "big") + note + bytes(8)
    (offsets / f"{0:020}.log").write_bytes(batch(record(0, key=commit_key, value=commit)))
    with (root / "meta.properties").open("a") as file:
        file.write(f"#{next(names)}\nmy.name={next(names)}\nnode.id={next(names)}.\n")
    shutil.copytree(root / f"{first}-0", root / f"{next(names)}" / f"{first}-0")
    assert next(names, None) is None, "every name is somewhere"


@pytest.mark.parametrize("depth", ["headers", "crc", "records"])
def test_no_name_leaves_the_broker(depth: str, key: Path, tmp_path: Path) -> None:
    disk = tmp_path / (NAME % 99)
    named_disk(disk)
    everything = "\n".join(map(str, disk.rglob("*"))).encode() + b"".join(
        path.read_bytes() for path in disk.rglob("*") if path.is_file()
    )
    assert [name for name in NAMES if name.encode() not in everything] == []
    bundle, archive = tmp_path / "b", tmp_path / "b.tar"
    done = run("bundle", disk, "--out", bundle, "--tar", archive, "--redact", "--hash-key", key, "--depth", depth)
    assert done.exit_code == 0, done.stderr
    inside = (
        contents(bundle)
        + archive.read_bytes()
        + "\n".join(str(path.relative_to(bundle)) for path in bundle.rglob("*")).encode()
    )
    for name in (*NAMES, NAME % 99, os.uname().nodename + '"', "/" + tmp_path.name):
        assert name.encode() not in inside, name
        assert name.encode().hex().encode() not in inside
    assert key.read_bytes() not in inside
    assert "hashes in place of the names" in done.stderr


def shown(rows: list[dict[str, Any]], redactor: Redactor, disk: Path, bundle: Path) -> Any:
    """Return JSON objects of the disk with the names that the bundle has."""
    found = json.dumps(rows)
    for path in sorted((path.name for path in disk.iterdir() if path.is_dir()), key=len, reverse=True):
        topic = re.sub(r"-\d+(\.[0-9a-f]{32}-\w+)?$", "", path)
        found = re.sub(rf'(?<=["/]){re.escape(topic)}(?=["-])', redactor.topic(topic), found)
    return json.loads(found.replace(str(disk), str(bundle)))


@pytest.mark.parametrize("command", [("ls",), ("ls", "--segments"), ("inspect",), ("verify", "--crc"), ("producers",)])
@pytest.mark.parametrize("name", ["kafka-4.3/clean-1", "kafka-2.8-legacy"])
def test_the_answers_have_other_names(
    name: str, command: tuple[str, ...], key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    disk, bundle = tmp_path / "disk", tmp_path / "b"
    aged(copy_disk(DISKS / name, disk))
    assert run("bundle", disk, "--out", bundle, "--redact", "--hash-key", key).exit_code == 0
    there, here = run(*command, "--json", disk), run(*command, "--json", bundle)
    assert here.exit_code == there.exit_code
    rows = [[json.loads(line) for line in done.stdout.splitlines()] for done in (there, here)]
    rows[0] = shown(rows[0], Redactor(read_hash_key(str(key))), disk, bundle)
    for each in rows:
        for row in each:
            for left_out in ("seconds", "notInBundle", "damage", "transactionalId"):
                row.pop(left_out, None)
        each.sort(key=lambda row: json.dumps(row, sort_keys=True))
    assert rows[1] == rows[0]


def test_replicas_can_be_compared(key: Path, tmp_path: Path) -> None:
    bundles = []
    for name in ("diverged-1", "diverged-2"):
        bundles.append(tmp_path / name)
        assert run("bundle", FIXTURES / name, "--out", bundles[-1], "--redact", "--hash-key", key).exit_code == 0
    rows = [json.loads(line) for line in run("diff", "--json", *bundles).stdout.splitlines()]
    [found] = [row for row in rows if row["type"] == "diff" and row["relation"] == "divergent"]
    assert found["topic"] == Redactor(read_hash_key(str(key))).topic("ledger")
    assert found["firstDivergentOffset"] == 50


@pytest.mark.parametrize("options", [("--redact",), ("--no-internal",)])
def test_a_start_is_not_refused_for_what_was_left_out(options: tuple[str, ...], key: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    assert run("bundle", DISKS / "kafka-4.3/clean-1", "--out", bundle, *options, "--hash-key", key).exit_code == 0
    done = run("restart-plan", bundle, "--json")
    plan = json.loads(done.stdout.splitlines()[-1])
    assert done.exit_code == 2
    assert plan["stops"] == []
    assert any("bootstrap.checkpoint" in each for each in plan["unread"])


def test_a_second_run_reads_what_has_changed(key: Path, tmp_path: Path) -> None:
    disk, bundle = aged(copy_disk(DISKS / "kafka-4.3/clean-1", tmp_path / "disk")), tmp_path / "b"
    written = []
    for _ in range(2):
        done = run("bundle", disk, "--out", bundle, "--redact", "--hash-key", key, "--json")
        written.append(json.loads(done.stdout)["written"])
    assert written[0] > 40
    assert written[1] == 0
    other = tmp_path / "other"
    other.write_bytes(os.urandom(32))
    assert run("bundle", disk, "--out", bundle, "--redact", "--hash-key", other).exit_code == 2


def test_names_need_a_key(tmp_path: Path, key: Path) -> None:
    for options in (("--redact",), ("--redact", "--hash-key", key, "--records", "x")):
        done = run("bundle", FIXTURES / "clean-1", "--out", tmp_path / "b", *options)
        assert done.exit_code == 2
        assert not (tmp_path / "b").exists()
