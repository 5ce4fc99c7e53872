"""Whatever reads a disk asks kdump.io.file_system about it, so that it can read a bundle as well."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import kdump
from kdump.io import file_system
from kdump.io.bundle.tree import open_bundle
from tests.command import run
from tests.conftest import FIXTURES
from tests.each_case import each_case
from tests.sources import nodes

KDUMP = Path(kdump.__file__).parent
ASKED = {"exists", "lexists", "isdir", "isfile", "islink", "getsize", "stat", "scandir", "listdir", "walk", "readlink"}
OF_THIS_MACHINE = {
    *("browse/prompt.py", "questions/bundle/command.py", "check/scrub/run.py", "check/scrub/state.py"),
    *("command_line/completion.py", "io/file_system.py", "io/page_cache.py", "io/bundle/manifest.py"),
    *("io/bundle/members.py", "io/bundle/names.py", "io/bundle/tree.py", "questions/bundle/directory_writer.py"),
    *("questions/bundle/places.py", "questions/bundle/run.py", "incident/doctor/log_directories.py"),
    *("io/file_access.py", "io/link_boundary.py", "log/output_directory.py"),
    *("questions/restart_plan/node/access_rights.py", "log/lock_holder.py", "questions/space/disks.py"),
}
"""Modules that ask about files that are never in a bundle."""


def asks_os(path: Path) -> set[str]:
    """Return the functions of os and os.path by which a module looks at files."""
    found = set()
    text = path.read_text(encoding="utf-8")
    for node in nodes(path) if "os." in text else ():
        if isinstance(node, ast.Attribute) and node.attr in ASKED and ast.unparse(node.value) in ("os", "os.path"):
            found.add(ast.unparse(node))
    return found


@each_case(
    "package", ["io", "log", "state", "kafka", "check", "questions", "incident", "browse", "command_line", "api"]
)
def test_nothing_asks_the_operating_system_itself(package: str) -> None:
    asking = {str(path.relative_to(KDUMP)): asks_os(path) for path in (KDUMP / package).rglob("*.py")}
    assert {name: asked for name, asked in asking.items() if asked and name not in OF_THIS_MACHINE} == {}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    assert run("bundle", FIXTURES / "clean-1", "--out", tmp_path / "b").exit_code == 0
    return tmp_path / "b"


def test_a_tree_has_what_the_disk_has(bundle: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "place")
    file_system.mount(place, open_bundle(str(bundle), 1))
    try:
        disk = str(FIXTURES / "clean-1")
        for directory, below, names in os.walk(disk):
            here = place + directory.removeprefix(disk)
            assert file_system.isdir(here)
            assert sorted(file_system.listdir(here)) == sorted(os.listdir(directory))
            for name in (*below, *names):
                own, there = os.stat(os.path.join(directory, name)), file_system.stat(os.path.join(here, name))
                assert there.st_size == own.st_size
                assert (there.st_mode, there.st_mtime_ns) == (own.st_mode, own.st_mtime_ns)
                assert there.st_dev != own.st_dev, "not a file of this machine"
        walked = {path.removeprefix(place): sorted(names) for path, _, names in file_system.walk(place)}
        assert walked == {path.removeprefix(disk): sorted(names) for path, _, names in os.walk(disk)}
        assert not file_system.lexists(place + "/missing")
        assert not file_system.exists(place + "/payments-0/missing")
        assert not file_system.isdir(place + "/payments-0/leader-epoch-checkpoint/below")
        with pytest.raises(FileNotFoundError):
            file_system.getsize(place + "/missing")
    finally:
        file_system.unmount(place)
    assert not file_system.exists(place)
