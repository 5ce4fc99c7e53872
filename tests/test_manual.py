"""Checks that docs/cli.md and the manual pages are generated from click's declarations, and that roff reports no
warning for them."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from kdump.cli import COMMANDS
from tools.cli_reference import page
from tools.man_pages import DIRECTORY, all_pages
from tools.manual import ROOT, pages


def test_the_reference_is_what_click_knows() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == page()


def test_the_manual_pages_are_what_click_knows() -> None:
    assert {path.name: path.read_text() for path in DIRECTORY.glob("*.1")} == all_pages()


def test_every_command_is_told_whole() -> None:
    told = list(pages())
    assert [each.name for each in told] == list(COMMANDS)
    assert not [each.name for each in told if len(each.examples) < 2 or not each.status or not each.description]
    assert not [option for each in told for option in each.options if not option.help]


def test_roff_has_no_complaints() -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("no mandoc here")
    done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", *DIRECTORY.glob("*.1")], capture_output=True, text=True)
    assert not done.stdout + done.stderr


def test_a_page_reads_well() -> None:
    if shutil.which("man") is None:
        pytest.skip("no man here")
    environment = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}
    command = ["man", "--warnings", "-l", str(DIRECTORY / "kdump-inspect.1")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert not done.stderr
    assert "       kdump inspect [OPTIONS] PATH..." in lines
    assert any(line.startswith("       -o, --offset A..B") for line in lines)
    assert r"              Write records by a format string as in kcat: '%o %k %s\n'." in lines
    assert lines.index("EXIT STATUS") < lines.index("ENVIRONMENT") < lines.index("EXAMPLES") < lines.index("SEE ALSO")
