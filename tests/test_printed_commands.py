"""A command that is printed as advice runs as it is printed, on a screen of any width and for any name of a directory:
what the operator has to supply is a word in capitals, and no option is missing."""

from __future__ import annotations

import codecs
import fcntl
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import click
import pytest

import kdump
from kdump.cli import cli, command_of
from kdump.index import COMMANDS
from kdump.problems.problem import NEEDS_DISK
from kdump.render.stdout import Output
from tests.command import run
from tests.conftest import DISKS, FIXTURES, SEED, sample
from tests.craft import flip
from tests.damages import DAMAGES, METADATA, Damage, aged, copy_disk, copy_some
from tests.restored_disk import RestoredDisks
from tools.incident import INCIDENTS, lay_out

SUPPLIED = {
    "VERSION": "4.3",
    "ID@HOST:PORT": "0@127.0.0.1:9093",
    "SIZE": "1g",
    "NEW-DIRECTORY": "{new}",
}
"""What the operator supplies, and what the test does. {new}: a path that is not there."""
ASKED = re.compile(r"[A-Z][A-Z@:-]+")
"""A word for what the operator supplies. What the problem is about (DIR, SEGMENT) is always known."""
WORD = re.compile(r"(?:\$'(?:[^'\\]|\\.)*'|'[^']*'|\"[^\"]*\"|[^\s'\"])+")
PROGRAM = re.compile(
    r"(?<![\w/-])(?:kdump ([a-z][a-z-]+)|kafka-[a-z-]+\.sh|(?:cp|mv|rm|chown|findmnt|fuser)(?= [-/'$])) "
)
ASKS = re.compile(r"Usage:|(?:^|[\s(])(?:pass|name it with|name each with|with) --[a-z]|--[a-z-]+$|no such file", re.M)
"""How a command refuses to start for want of an option."""
PAGES = ("doctor", "restart-plan", "verify", "retention", "space")
PARTS = 4
SCREENS = (80, 200)
"""Columns of terminals."""


def unquoted(word: str) -> list[str]:
    """Return what a shell makes of a word, with $'…' as bash and zsh read it."""
    return shlex.split(
        re.sub(
            r"\$'((?:[^'\\]|\\.)*)'",
            lambda escaped: shlex.quote(os.fsdecode(codecs.escape_decode(escaped[1])[0])),  # type: ignore[attr-defined]
            word,
        )
    )


def printed(text: str) -> Iterator[list[str]]:
    """Yield the commands in a text, as words without `kdump`: not those that are only named, without an argument, and
    nothing of the next line."""
    for start in PROGRAM.finditer(text):
        command = cli.get_command(click.Context(cli), start[1]) if start[1] else None
        if start[1] and command is None:
            continue
        flags = (
            {name for each in command.params if getattr(each, "is_flag", False) for name in each.opts}
            if command
            else ()
        )
        words: list[str] = []
        is_value = False
        for match in WORD.finditer(text, start.end(), text.find("\n", start.end()) % (len(text) + 1)):
            word = match[0].rstrip(".,;:)")
            if not (is_value or word.startswith(("-", "/", "'", "$'")) or ASKED.fullmatch(word)):
                break
            words += unquoted(word)
            is_value = word.startswith("-") and "=" not in word and word not in flags
            if word != match[0]:
                break
        if words:
            yield [start[1] or start[0].strip(), *words]


def refusals(texts: str, new: Path, ran: set[tuple[str, ...]]) -> Iterator[str]:
    """Run the commands of kdump in texts; yield those that ask for an option. `ran`: kinds of commands that have been
    run."""
    for number, words in enumerate(printed(texts)):
        kind = (words[0], *(word if word.startswith("-") or word in SUPPLIED else "" for word in words[1:]))
        if cli.get_command(click.Context(cli), words[0]) is None or (kind in ran and "rescue" not in words):
            continue
        ran.add(kind)
        filled = [SUPPLIED.get(word, word).format(new=new / str(number)) for word in words]
        result = run(*filled)
        asks = {word for word in words if ASKED.fullmatch(word)} - set(SUPPLIED)
        if asks or (result.exit_code == 2 and ASKS.search(result.stderr)):
            yield f"{shlex.join(words)}: {result.stderr}"


def pages(*paths: Path, columns: int | None = None) -> str:
    """Return what is printed about disks, on a terminal with so many columns, or in a pipe."""
    with pytest.MonkeyPatch.context() as screen:
        screen.setattr(Output, "width", columns)
        return "\n".join(run(name, *paths).stdout for name in PAGES)


def items(*paths: Path) -> str:
    """Return the texts of doctor's items."""
    found = kdump.doctor(list(map(str, paths))).items
    return "\n".join(line for each in found for line in (*each.actions, each.impact, *each.commands))


def broken(pipe: str, *paths: Path, columns: int) -> list[list[str]]:
    """Return the commands that a terminal shows otherwise than a pipe."""
    screen, whole = [*printed(pages(*paths, columns=columns))], [*printed(pipe)]
    return [words for words in (*screen, *whole) if (words in screen) != (words in whole)]


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(PARTS if SEED else 2))
def test_of_damaged_disks(part: int, tmp_path: Path) -> None:
    """The names of the directories are longer than a line, and have to be quoted. No command changes the disk."""
    work = tmp_path / f"o'brien's disk {'x' * 90}"
    work.mkdir()
    disks, ran = RestoredDisks(work), set[tuple[str, ...]]()
    cases = [*DAMAGES, *sorted(INCIDENTS)][part::PARTS]
    for number, case in enumerate(sample(cases, len(cases), f"printed commands {part}")):
        name = case if isinstance(case, str) else case.name
        roots, explained = damaged(disks, case)
        before = states(work)
        pipe = pages(*roots)
        assert broken(pipe, *roots, columns=SCREENS[number % 2]) == [], name
        assert [*refusals(f"{pipe}{explained}{items(*roots)}", tmp_path / name, ran)] == [], name
        assert states(work) == before
    assert ran


def test_of_a_bundle(tmp_path: Path) -> None:
    """A command that takes no bundle names the disk itself."""
    disk, bundle = copy_disk(FIXTURES / "clean-1", tmp_path / "disk"), tmp_path / "bundle"
    log = disk / "orders-none-0" / f"{0:020}.log"
    log.write_bytes(flip(log.read_bytes(), 8 * 12000))
    (disk / "payments-0" / f"{0:020}.index").unlink()
    (disk / "trimmed-0").rename(disk / f"trimmed-0.{'0' * 32}-delete")
    run("bundle", disk, "--out", bundle)
    explained = run("explain", "crc-mismatch", "--disk", bundle).stdout
    commands = [*printed(f"{pages(bundle)}{explained}{items(bundle)}")]
    need = {name for name in COMMANDS if not command_of(name).mounts} - {"schema", "query", "completion"}
    assert all(NEEDS_DISK.search(f"kdump {name} DIR") for name in need)
    on_disk = [words for words in commands if words[0] in (*need, "cp", "mv", "rm")]
    assert {words[0] for words in on_disk} >= {"salvage", "reindex", "rm"}
    assert not [words for words in on_disk if any(word.startswith(str(bundle)) for word in words)]


def damaged(disks: RestoredDisks, case: Damage | str) -> tuple[list[Path], str]:
    """Return the log directories of a recipe or an incident, and how explain explains what the recipe leads to."""
    if isinstance(case, str):
        lay_out(case, disks.work / case)
        return sorted(path for path in (disks.work / case).iterdir() if path.is_dir()), ""
    roots = [*map(Path, disks.damaged(case)[0].directories_of_broker)]
    explained = run("explain", case.code, "--disk", roots[0]).stdout
    return roots, explained if "on disk:" in explained else ""


def states(root: Path) -> dict[Path, tuple[int, int]]:
    """Return the size and the time of each file."""
    return {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in root.rglob("*")}


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
    paths = lose(copy_some(source, tmp_path / "-o'brien's\n\x1b\udcff disk", "trimmed-0", "payments-0", METADATA))
    with ExitStack() as held:
        for path in map(aged, paths):
            lock = held.enter_context((path / ".lock").open("w"))
            if is_running:
                fcntl.lockf(lock, fcntl.LOCK_EX)
        commands = "\n".join(line for each in kdump.doctor(list(map(str, paths))).items for line in each.commands)
        assert is_running == ("--while-running" in commands)
        assert [*refusals(commands, tmp_path, set())] == []
    assert [*refusals(pages(*paths), tmp_path, set())] == []
