"""What a command prints if there is nothing to show: what was looked at, and what there is none of."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.command import run
from tests.conftest import FIXTURES

CLEAN, SMALL = FIXTURES / "clean-1", FIXTURES / "clean-2"
NOW = "--now=2026-11-21T08:00"
CASES: dict[str, tuple[list[Any], str]] = {
    "groups before there were any": (["groups", CLEAN, "--as-of", "2020-01-01"], "no groups in 2 partitions of "),
    "members": (["groups", CLEAN, "--members"], "no members in 4 groups"),
    "offsets": (["groups", FIXTURES / "state-1", "--offsets", "--group", "none"], "--group none: no match"),
    "group changes": (["groups", CLEAN, "--history", "--as-of", "2020-01-01"], "no changes of groups in 2 partitions "),
    "a part": (["cluster", CLEAN, "--show", "acls"], "no acls in the metadata below offset 329"),
    "two parts": (["cluster", CLEAN, "--show", "acls,scram"], "no acls and no scram in the metadata below offset 329"),
    "one of two parts": (["cluster", CLEAN, "--show", "topics,quotas"], "no quotas in the metadata below offset 329"),
    "transactions": (["transactions", SMALL], "no transactions in 1 partition"),
    "hanging": (["transactions", CLEAN, "--state", "hanging", NOW], "no hanging transactions in 27 partitions"),
    "open": (
        ["transactions", CLEAN, "--open", "--topic", "sessions", NOW],
        "no open or hanging transactions in 1 partition",
    ),
    "producers": (["producers", FIXTURES / "legacy"], "no idempotent producers in 16 partitions"),
    "broken producers": (
        ["producers", CLEAN, "--broken", NOW],
        "no producers with a sequence or epoch error in 27 partitions",
    ),
    "producers by state": (["producers", CLEAN, "--state", "unknown", NOW], "no unknown producers in 27 partitions"),
    "blockers": (
        ["retention", SMALL, "--holds", NOW],
        "nothing is kept longer than the configs require in 1 partition",
    ),
    "pairs": (["diff", CLEAN, FIXTURES / "legacy"], "no partition is in more than one of the paths"),
    "batches": (["carve", __file__], "0 batches in 0 runs"),
    "matches": (["find", "key == 'none'", CLEAN / "payments-0"], "nothing matches in"),
    "records": (["inspect", CLEAN / "payments-0", "--key", "none"], "nothing matches"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_there_is_none_of(name: str) -> None:
    words, text = CASES[name]
    result = run(*map(str, words))
    assert text in result.output
    assert "Usage:" not in result.output


@pytest.mark.parametrize("command", ["groups", "transactions", "producers", "retention", "stats", "ls", "verify"])
def test_an_empty_log(command: str, tmp_path: Path) -> None:
    """It is looked at, and something is said about it: no output would look like a failure."""
    log = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.touch()
    shutil.copy(FIXTURES / "disk-1" / "meta.properties", tmp_path)
    result = run(command, tmp_path)
    assert result.exit_code == 0
    assert result.output
    assert not any(line != line.rstrip() for line in result.output.splitlines())


@pytest.mark.parametrize("command", ["ls", "verify", "retention", "inspect", "transactions", "producers", "stats"])
def test_a_topic_that_may_have_only_its_id(command: str, tmp_path: Path) -> None:
    for topic_id in ("vkVXBAQsTpC2kKb7Zc5bAw", "wkVXBAQsTpC2kKb7Zc5bAw"):
        shutil.copytree(FIXTURES / "clean-1" / "payments-0", tmp_path / topic_id / "0")
    result = run(command, tmp_path, "--topic", "payments")
    assert result.exit_code == 2
    assert (
        "--topic payments: no match; not compared: 2 topics whose path has only a topic ID, vkVXBAQsTpC2kKb7Zc5bAw, "
        "wkVXBAQsTpC2kKb7Zc5bAw: select it with --topic ID" in result.stderr
    )
    assert run(command, tmp_path, "--topic", "vkVXBAQsTpC2kKb7Zc5bAw").exit_code in (0, 1)
    shutil.copytree(FIXTURES / "clean-1" / "payments-0", tmp_path / "payments-0")
    result = run(command, tmp_path, "--topic", "payments")
    assert result.exit_code in (0, 1)
    assert "--topic: not compared: 2 topics whose path has only a topic ID, vkV" in result.stderr
    for chosen in (["--topic", "*"], ["--topic", "vkVXBAQsTpC2kKb7Zc5bAw"], []):
        assert "not compared" not in run(command, tmp_path, *chosen).stderr


def test_a_name_of_22_characters_is_no_topic_id(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "clean-1" / "payments-0", tmp_path / "payments-audit-logging-0")
    assert "topic ID" not in run("ls", tmp_path, "--topic", "payments").stderr


def test_files_that_a_broker_does_not_serve_are_not_called_intact() -> None:
    """The log cleaner left cleaned-1/users-0 with a .deleted segment alone."""
    path = str(FIXTURES / "cleaned-1")
    assert run("verify", path).stdout.splitlines()[0] == "NOTHING TO CHECK"
    assert "1 file with batches that a broker does not serve (--all-files)" in run("inspect", f"{path}/users-0").stderr


def test_an_environment_variable_sets_the_current_time(monkeypatch: pytest.MonkeyPatch) -> None:
    on_that_day = run("transactions", "--open", "--now", "2026-11-21T09:00Z", str(FIXTURES / "disk-1"))
    monkeypatch.setenv("KDUMP_NOW", "2026-11-21T09:00Z")
    by_variable = run("transactions", "--open", str(FIXTURES / "disk-1"))
    assert by_variable.stdout == on_that_day.stdout
    assert "1 h 1 min ago" in by_variable.stdout
