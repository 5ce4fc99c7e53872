"""A command of kdump that is printed as advice runs as it is printed: what the operator has to supply is a word in
capitals, and no option is missing."""

from __future__ import annotations

import fcntl
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import click
import pytest

import kdump
from kdump.cli import cli
from tests.command import run
from tests.conftest import DISKS, sample
from tests.damages import DAMAGES, METADATA, aged, copy_disk, copy_some
from tests.restored_disk import RestoredDisks

SUPPLIED = {"VERSION": "4.3", "ID@HOST:PORT": "0@127.0.0.1:9093", "SIZE": "1g", "NEW-DIRECTORY": "{new}"}
"""What the operator supplies, and what the test does. {new}: a path that is not there."""
ABOUT = ("DIR", "SEGMENT")
"""What a problem is about, which is always known."""
WORD = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+")
ASKS = re.compile(r"Usage:|(?:^|[\s(])(?:pass|name it with|name each with|with) --[a-z]|--[a-z-]+$", re.M)
"""How a command refuses to start for want of an option."""


def printed(text: str) -> Iterator[list[str]]:
    """Yield the commands of kdump in a text, as words: not those that are only named, without an argument."""
    for start in re.finditer(r"\bkdump ([a-z][a-z-]+) ", text):
        command = cli.get_command(click.Context(cli), start[1])
        if command is None:
            continue
        takes = {name: not getattr(each, "is_flag", False) for each in command.params for name in each.opts}
        words: list[str] = []
        is_value = False
        for match in WORD.finditer(text, start.end()):
            word = match[0].rstrip(".,;:)")
            if not (is_value or word.startswith(("-", "/", "'")) or word in (*SUPPLIED, *ABOUT)):
                break
            words += shlex.split(word)
            is_value = word.startswith("-") and takes.get(word, False)
            if word != match[0]:
                break
        if words:
            yield [start[1], *words]


def refusals(texts: str, new: Path, ran: set[tuple[str, ...]]) -> Iterator[str]:
    """Run the commands in texts; yield those that ask for an option. `ran`: kinds of commands that have been run."""
    for words in printed(texts):
        kind = tuple(word if word.startswith("-") or word in SUPPLIED else "" for word in words)
        if kind in ran and "rescue" not in words:
            continue
        ran.add((words[0], *kind))
        filled = [SUPPLIED.get(word, word).format(new=new / str(len(ran))) for word in words]
        result = run(*filled)
        if set(ABOUT) & set(words) or (result.exit_code == 2 and ASKS.search(result.stderr)):
            yield f"{shlex.join(words)}: {result.stderr}"


def pages(*paths: Path) -> str:
    """Return what is printed about disks."""
    shown = "\n".join(run(name, *paths).stdout for name in ("doctor", "restart-plan", "verify"))
    items = kdump.doctor(list(map(str, paths))).items
    return shown + "\n".join(line for each in items for line in (*each.actions, each.impact, *each.commands))


@pytest.mark.sampled
def test_of_damaged_disks(tmp_path: Path) -> None:
    disks, ran = RestoredDisks(tmp_path), set[tuple[str, ...]]()
    for damage in sample(DAMAGES, 80, "printed commands of damage"):
        root = disks.damaged(damage)[0].directories_of_broker
        assert [*refusals(pages(*map(Path, root)), tmp_path / damage.name, ran)] == [], damage.name
    assert len(ran) > 5


def without_metadata(root: Path) -> list[Path]:
    shutil.rmtree(root / METADATA)
    return [root]


def with_strays(root: Path) -> list[Path]:
    """A controller was formatted again, and the broker has set its directories aside."""
    without_metadata(root)
    (root / "trimmed-0").rename(root / f"trimmed-0.{'0' * 32}-stray")
    return [root]


def without_controller(root: Path) -> list[Path]:
    controller = copy_disk(DISKS / "kafka-4.3" / "clean-0", root.with_name("controller"))
    shutil.rmtree(controller / METADATA)
    return [controller, root]


@pytest.mark.parametrize(
    ("lose", "is_running"), [(without_metadata, False), (with_strays, True), (without_controller, True)]
)
def test_of_disks_whose_metadata_is_lost(lose: Callable[[Path], list[Path]], is_running: bool, tmp_path: Path) -> None:
    """None of them states which release ran. While a node is running, what shows more runs; what to do begins with its
    stop."""
    source = DISKS / "kafka-4.3" / "clean-1"
    paths = lose(copy_some(source, tmp_path / "o'brien's disk", "trimmed-0", "payments-0", METADATA))
    with ExitStack() as held:
        for path in map(aged, paths):
            lock = held.enter_context((path / ".lock").open("w"))
            if is_running:
                fcntl.lockf(lock, fcntl.LOCK_EX)
        commands = "\n".join(line for each in kdump.doctor(list(map(str, paths))).items for line in each.commands)
        assert is_running == ("--while-running" in commands)
        assert [*refusals(commands, tmp_path, set())] == []
    assert [*refusals(pages(*paths), tmp_path, set())] == []
