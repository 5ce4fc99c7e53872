"""What is no file of a broker's own in a log directory: links that lead out of it, pipes, and sparse files of a TiB.
Each is named at once, and nothing of what a link leads to is shown."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import run
from tests.conftest import FIXTURES, few

CANARY = "root:canary-qzxwvkjq:19000:0:99999:7:::\n"
EPOCHS = "payments-0/leader-epoch-checkpoint"
INDEX = f"users-0/{0:020}.index"
LINKED = (
    EPOCHS,
    INDEX,
    "payments-0/partition.metadata",
    f"payments-0/{120:020}.snapshot",
    f"users-0/{9000:020}.log",
    "log-start-offset-checkpoint",
    "__cluster_metadata-0/quorum-state",
    "bootstrap.checkpoint",
)
COMMANDS = {
    "doctor": ["doctor", "disk"],
    "verify": ["verify", "disk"],
    "restart-plan": ["restart-plan", "disk"],
    "inspect": ["inspect", "disk", "--all-files", "--hex"],
    "retention": ["retention", "disk"],
    "groups": ["groups", "disk"],
    "explain": ["explain", "server.log", "--disk", "disk"],
    "bundle": ["bundle", "disk", "--out", "out"],
    "salvage": ["salvage", "disk/users-0", "--out", "out"],
    "report": ["report", "disk", "--out", "out.html"],
    "rescue": ["rescue", "disk", "--controller", "0@127.0.0.1:9093", "--dry-run"],
    "ls": ["ls", "disk"],
}
LIMIT = 60
"""Seconds after which a command hangs."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copytree(FIXTURES / "disk-1", tmp_path / "disk")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "shadow").write_text(CANARY)
    (tmp_path / "server.log").write_text("[2026-11-21 07:59:16,342] INFO started (kafka.server.KafkaServer)\n")
    monkeypatch.chdir(tmp_path)
    signal.alarm(LIMIT)
    yield tmp_path
    signal.alarm(0)


def in_place_of(path: Path) -> Path:
    path.unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("name", few(COMMANDS, 5))
def test_nothing_is_shown_of_what_a_link_leads_to(here: Path, name: str) -> None:
    for file in LINKED:
        in_place_of(here / "disk" / file).symlink_to(here / "outside" / "shadow")
    (here / "disk" / "outside-0").symlink_to(here / "outside")
    result = run(*COMMANDS[name])
    assert CANARY[5:10] not in result.output + result.stderr
    written = [path for path in here.glob("out*/**/*") if path.parent != here / "outside" and path.is_file()]
    assert not [path for path in [*written, *here.glob("out.*")] if CANARY[5:17].encode() in path.read_bytes()]
    assert result.exit_code, "not all was read"


@pytest.mark.parametrize("linked", ["directory", EPOCHS, INDEX])
def test_a_link_that_leaves_is_named(here: Path, linked: str) -> None:
    link = in_place_of(here / "disk" / ("outside-0" if linked == "directory" else linked))
    link.symlink_to(here / "outside" if linked == "directory" else here / "outside" / "shadow")
    told = run("verify", "disk", "--format", "csv")
    assert told.exit_code == 2
    path = link.relative_to(here)
    assert f"{path}: a link leads out of the log directories, to {os.path.realpath(link)}" in told.stderr


def test_links_that_are_followed(here: Path) -> None:
    """A link to a whole log directory, one within it, and one to what was named as well."""
    whole = run("verify", "disk").stdout
    disk = (here / "disk").rename(here / "outside" / "kept")
    (here / "disk").symlink_to(disk)
    assert run("verify", "disk").stdout == whole
    (here / "above").mkdir()
    (here / "above" / "disk-9").symlink_to(disk)
    assert "a link leads" not in run("verify", "above").output
    epochs = here / "disk" / EPOCHS
    epochs.rename(here / "disk" / "payments-0" / "kept")
    epochs.symlink_to("kept")
    assert "a link leads" not in run("verify", "disk").output
    (disk / "users-0").rename(here / "outside" / "users-0")
    (disk / "users-0").symlink_to(here / "outside" / "users-0")
    assert "a link leads" in run("verify", "disk").output
    assert "a link leads" not in run("verify", "disk", "outside/users-0").output


@pytest.mark.parametrize("file", [EPOCHS, INDEX, "log-start-offset-checkpoint", "bootstrap.checkpoint"])
def test_a_pipe_is_named_at_once(here: Path, file: str) -> None:
    os.mkfifo(in_place_of(here / "disk" / file))
    for name in ("doctor", "restart-plan", "bundle"):
        assert run(*COMMANDS[name]).exit_code in (0, 1, 2), name


@pytest.mark.parametrize(
    "file",
    few(
        [INDEX, f"users-0/{0:020}.timeindex", f"payments-0/{0:020}.txnindex", f"payments-0/{120:020}.snapshot", EPOCHS],
        2,
    ),
)
def test_a_sparse_file_is_named_at_once(here: Path, file: str) -> None:
    os.truncate(here / "disk" / file, 1 << 40)
    told = run("verify", "disk", "--json").stdout
    assert Path(file).name in told
    for name in ("doctor", "restart-plan", "retention"):
        assert run(*COMMANDS[name]).exit_code in (0, 1, 2), name
