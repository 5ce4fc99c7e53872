"""A bundle, or a copy of a disk, is examined on other systems, too: commands run without what only Linux has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FIXTURES, ROOT, sample
from tools.carry import programs

CHILD = """
import json, os, sys, time
time.time = lambda: 1_795_298_400  # no age changes between two runs
from click.testing import CliRunner
from kdump.cli import cli
from kdump.log import output_directory
os.fsync = output_directory.sync_file_system = lambda written: None  # see `quiet_disks` in conftest.py
if __name__ == "__main__":
    for words in json.loads(sys.argv[1]):
        result = CliRunner().invoke(cli, words)
        error = result.exception if not isinstance(result.exception, SystemExit) else None
        print(json.dumps([result.exit_code, result.stdout, result.stderr, repr(error) if error else ""]))
"""
SAME = [
    "ls DISK", "inspect DISK/payments-0 --records", "inspect DISK/payments-0 --json --jobs 2", "stats DISK --by hour",
    "stats DISK/users-0", "verify DISK --info", "verify DISK --jobs 2", "diff DISK disk-1", "groups DISK",
    "cluster DISK", "registry registry-1", "connect connect-1", "transactions DISK", "producers DISK",
    "retention DISK", "carve DISK/payments-0 --runs", "schema BatchHeader", "ls DISK --idle --max-rate 1G",
    "find \"key == 'a3'\" DISK", "explain crc-mismatch", "dump-log --files DISK/payments-0/00000000000000000000.log",
]  # fmt: skip
"""Commands with the same output."""
PACKED = "bundle DISK --out OUT/b --tar OUT/b.tar"
"""Others read what it writes."""
OTHER = [
    "doctor DISK", "restart-plan DISK", "restart-plan DISK --estimate", "space DISK --need 1G", "doctor OUT/b.tar",
    "salvage DISK/payments-0 --out OUT/salvaged", "reindex DISK/payments-0 --out OUT/indexes --all",
    "report DISK --out OUT/report.html", "bundle DISK --out OUT/bundle", PACKED,
    "verify OUT/b.tar", "doctor",
]  # fmt: skip
"""Commands whose output states what this machine has, or where files were written."""


def results(place: str, out: Path) -> list[list[str]]:
    out.mkdir()
    tried = {*sample(SAME, 2, "systems"), *sample(OTHER, 2, "systems"), PACKED}
    typed = sorted(tried, key=lambda words: ("OUT/b.tar" in words and words != PACKED, words))
    words = [[*map(str, _split(each, out))] for each in typed]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((*filter(None, [place]), str(ROOT)))}
    command = [sys.executable, "-c", CHILD, json.dumps(words)]
    done = subprocess.run(command, cwd=FIXTURES, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [[each, *json.loads(line)] for each, line in zip(typed, done.stdout.splitlines(), strict=True)]


def _split(typed: str, out: Path) -> list[str]:
    words = typed.replace("DISK", "clean-1").replace("OUT", str(out)).split(' "')
    return words[0].split() + ([words[1].partition('"')[0], *words[1].partition('"')[2].split()] if words[1:] else [])


@pytest.mark.sampled
def test_commands_without_what_only_linux_has(tmp_path: Path) -> None:
    probe = "import os, sys; from kdump.io.page_cache import cached_pages; print(sys.platform, hasattr(os, 'sendfile'))"
    place = os.pathsep.join((str(ROOT / "tests" / "not_linux"), str(ROOT)))
    said = subprocess.check_output([sys.executable, "-c", probe], env={**os.environ, "PYTHONPATH": place}, text=True)
    assert said == "freebsd14 False\n"
    here = results("", tmp_path / "here")
    there = results(str(ROOT / "tests" / "not_linux"), tmp_path / "there")
    for (words, status, stdout, stderr, error), other in zip(here, there):
        assert (error, other[4]) == ("", ""), (words, other[3], other[4])
        if words == "doctor":  # there, no running broker is found, and no configuration of one
            continue
        assert other[1] == status, (words, other[3])
        if words in SAME:
            assert (other[2], other[3]) == (stdout, stderr), words


def test_the_readme_states_what_is_known_of_other_systems() -> None:
    text = " ".join((ROOT / "README.md").read_text().split())
    assert "**Other systems.**" in text
    assert "macOS" in text
    assert all(package in text for package in ("autoconf", "automake", "libtool"))


def test_what_a_single_file_needs_to_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "shutil.which", lambda name: None if name in ("autoreconf", "libtoolize") else f"/usr/bin/{name}"
    )
    assert {"autoconf", "libtool"} <= {*programs.missing("x86_64")} <= {"autoconf", "libtool", "debian-archive-keyring"}
    with pytest.raises(SystemExit, match="apt-get install autoconf libtool"):
        programs.require("x86_64")
