"""Runs every command in README.md and docs/, and compares its output, character by character.

A fenced block of the kind `console` contains commands after `$ `, each with its exact output (both streams). They run
in fixtures/, with output to a pipe, 80 columns wide where it matters. KDUMP_REWRITE=1 writes the outputs again."""

from __future__ import annotations

import io
import os
import re
import textwrap
from contextlib import redirect_stdout
from pathlib import Path
from runpy import run_path

import click
import pytest

from kdump.all_answers import TYPES
from kdump.cli import cli
from kdump.version import __version__
from tests.conftest import few, sample
from tests.each_case import each_case
from tests.shell import run
from tools.incident import INCIDENTS, lay_out

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW = [page for page in PAGES if page.parent.name == "incidents" or page.name in ("remote.md", "report.md")]
"""Pages whose commands need a disk that is made for them, or the engine that draws charts."""
OF_INCIDENT = {"remote": "missing-remote-segment"}
"""Pages whose commands run on the disk of an incident."""
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DISK = re.compile(r"^(?:DISK|Example disk, `make incident NAME=.*?)$(?=\n\n)", re.MULTILINE | re.DOTALL)
"""In the page of an incident: what was done to its disk."""
WRITTEN = re.compile(r"\bwritten \d{4}-[0-9T:.-]+Z")
"""The file times differ in a copy of the repository."""
MARKDOWN_ONLY = ("make ", "git ", "pip ")
"""Commands that install kdump, which whoever runs the tests has already done."""


def disk_of(name: str) -> str:
    """Return the line about the disk of an incident, from the code that damages it."""
    said = " ".join(str(INCIDENTS[name].__doc__).split())
    text = f"Example disk, `make incident NAME={name}`: {said}"
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def commands(block: str) -> list[str]:
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def executed(block: str, directory: Path) -> str:
    """Return the block as it should be: each command followed by its output."""
    if any(command.startswith(MARKDOWN_ONLY) for command in commands(block)):
        return block
    out = []
    for command in commands(block):
        said = WRITTEN.sub("written 2026-11-21T08:00:12.345Z", run(command, directory))
        out.append(f"$ {command}\n{said}" + ("" if said.endswith("\n") or not said else "\n"))
    return "".join(out)


def tried() -> list[Path]:
    """Return the README, and one page in two, but of SLOW one in 15; with KDUMP_REWRITE or KDUMP_SEED, all."""
    if os.environ.get("KDUMP_REWRITE"):
        return PAGES
    chosen = {PAGES[0], *sample(SLOW, 15, "pages"), *sample((page for page in PAGES if page not in SLOW), 2, "pages")}
    return [page for page in PAGES if page in chosen]


@pytest.mark.sampled
@pytest.mark.parametrize("page", tried(), ids=lambda page: page.name)
def test_commands_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    text, directory = page.read_text(), ROOT / "fixtures"
    incident = OF_INCIDENT.get(page.stem, page.stem if page.parent.name == "incidents" else "")
    if incident in INCIDENTS:
        directory = tmp_path / incident
        lay_out(incident, directory)
    rewritten = BLOCK.sub(lambda match: f"```console\n{executed(match[1], directory)}```", text)
    if directory != ROOT / "fixtures":
        rewritten = DISK.sub(lambda match: disk_of(incident), rewritten, count=1)
    if os.environ.get("KDUMP_REWRITE"):
        page.write_text(rewritten)
        return
    assert rewritten == text


@pytest.mark.parametrize(
    "line",
    few(
        [
            "inspect clean-1/payments-0 --limit 3",
            "verify disk-1",
            "inspect missing.log",
            "ls --nonsense",
            "groups clean-1 --tz Europe/Paris",
        ],
        2,
    ),
)
def test_a_fork_prints_what_a_shell_shows(line: str) -> None:
    """Documented commands are run by forks of one process (tests/shell.py), without starting Python for each."""
    with_status = f"kdump {line}; echo $?"
    expected = run(with_status, served=False)
    assert run(with_status) == expected
    assert run(f"kdump {line}") == re.sub(r"\d+\n\Z", "", expected)


@pytest.mark.parametrize("name", ["carry.md", "kubernetes.md"])
def test_images_have_the_version_as_their_tag(name: str) -> None:
    page = ROOT / "docs" / name
    text = page.read_text(encoding="utf-8")
    expected = re.sub(r"(?<=/kdump:)[\d.]+\d", __version__, text)
    if os.environ.get("KDUMP_REWRITE"):
        page.write_text(expected, encoding="utf-8")
    assert text == expected
    assert f"/kdump:{__version__}" in text


def test_documents_stay_short() -> None:
    """What is written twice is not read; a page that grows has to be cut elsewhere."""
    assert sum(len(page.read_text().split()) for page in PAGES[1:]) <= 150_000


def test_some_commands_are_shown() -> None:
    shown = [command for page in PAGES for block in BLOCK.findall(page.read_text()) for command in commands(block)]
    assert sum(command.startswith("kdump ") for command in shown) > 10


def test_every_incident_has_its_page() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "incidents").glob("*.md")} - {"README"}
    assert pages == set(INCIDENTS)
    index = (ROOT / "docs" / "incidents" / "README.md").read_text()
    assert all(f"]({name}.md)" in index for name in INCIDENTS)


@each_case("name", sorted(INCIDENTS))
def test_a_page_of_an_incident_begins_with_what_one_needs_at_night(name: str) -> None:
    """Short lines: what to run, what to do, what never to do; the commands and their options exist."""
    text = (ROOT / "docs" / "incidents" / f"{name}.md").read_text()
    night = re.match(r"# [^\n]+\n\n```text\n(.+?)\n```\n\n", text, re.DOTALL)
    assert night is not None
    lines = night[1].splitlines()
    assert len(lines) in (3, 4)
    assert all(len(line) <= 132 for line in lines)
    assert lines[-1].startswith("never: ")
    named = re.findall(r"\bkdump ([a-z-]+)([^;:()]*)", night[1])
    assert named
    for command, rest in named:
        found = cli.get_command(click.Context(cli), command)
        assert found is not None
        known = {option for param in found.params for option in param.opts}
        assert set(re.findall(r"(?<=\s)--[a-z-]+", rest.partition(", and kafka-")[0])) <= known


def test_json_reference_is_the_declarations() -> None:
    with redirect_stdout(io.StringIO()) as printed:
        run_path(str(ROOT / "tools" / "json_reference.py"), run_name="__main__")
    text = printed.getvalue()
    assert (ROOT / "docs" / "json.md").read_text() == text
    assert all(f"\n## {name}\n" in text for name in TYPES)
