"""Every command that explain prints can be run: on a disk, whose path has spaces and an apostrophe, and without one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kdump.incident.explain.answer import Explanation
from kdump.incident.explain.catalogue import messages
from kdump.incident.explain.disk_evidence import DiskEvidence
from kdump.incident.explain.run import explain_name, explain_text
from tests.command import run
from tests.conftest import DISKS, sample
from tests.damages import copy_disk
from tests.incident.explain.explaining import PUBLIC_LINES
from tests.incident.explain.test_explain_messages import sample as wording
from tests.incident.explain.test_io_errors import parses

OTHERS = "NEW-DIRECTORY|COPY-OF-ANOTHER-REPLICA|DEVICE-OR-IMAGE|OTHER-FILE"
"""What a message cannot name."""
NOT_THERE = "no match|no topics of Connect|no _schemas found|not a log; pass|use kdump inspect"
"""What a command prints if the group or producer of a sample is not on the disk, or its files are no segments."""


def texts() -> list[str]:
    """Return a line of each message."""
    samples = [f"ERROR {wording(message.texts[0], message)} (k.C)" for message in messages() if message.texts]
    return [*samples, *(line.replace(" | ", "\n") for _, line in PUBLIC_LINES)]


def commands(text: str, disk: DiskEvidence | None) -> list[str]:
    *found, _ = explain_text(text, disk)
    return [command for each in found if isinstance(each, Explanation) for command in each.commands]


def test_without_a_disk() -> None:
    for text in texts():
        for command in commands(text, None):
            assert parses(command), (command, text)
    for message in messages():
        assert not any(re.search(r"\d{4}-\d\d", command) for command in message.commands), "a constant"
        explanation = explain_name(message.name)
        assert isinstance(explanation, Explanation)
        assert all(map(parses, explanation.commands)), message.name


@pytest.mark.parametrize("reason", ["No space left on device", "Read-only file system", "Operation not permitted"])
def test_a_command_about_a_file_that_was_not_created_asks_its_directory(reason: str) -> None:
    (first, *_) = commands(f"mkdir: cannot create directory '/opt/app/config': {reason}", None)
    assert shlex.split(first)[-1] == "/opt/app"


@pytest.mark.every_disk
@pytest.mark.sampled
def test_on_a_disk(tmp_path: Path) -> None:
    root = copy_disk(DISKS / "kafka-4.3" / "clean-1", tmp_path / "o'brien's disk")
    disk = DiskEvidence((str(root),))
    printed = dict.fromkeys(
        command for text in texts() for command in commands(re.sub(r"\borders\b", "orders-none", text), disk)
    )
    for command in printed:
        assert "LOGDIR" not in command
        for word in shlex.split(command):
            assert not word.startswith(str(root)) or Path(word).exists(), command
    of_kdump = [command for command in printed if command.startswith("kdump ") and not re.search(OTHERS, command)]
    assert len(of_kdump) > 70
    for command in sample(of_kdump, 7, "printed commands"):
        name, *words = shlex.split(command)[1:]
        done = run(name, *words)
        assert done.exit_code in (0, 1) or re.search(NOT_THERE, done.stderr), (command, done.stderr)
