"""Nobody may read what a command writes who may not read what it was made of."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdump.io.file_access import access_of
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.spark.store import Store
from tests.command import run
from tests.conftest import FIXTURES, sample

WRITERS = {
    "salvage": ["salvage", "disk/orders-zstd-0", "--out", "out"],
    "salvage of __cluster_metadata": ["salvage", "disk/__cluster_metadata-0", "--out", "out"],
    "carve": ["carve", "disk/orders-zstd-0", "--out", "out"],
    "reindex": ["reindex", "disk/orders-zstd-0", "--all", "--out", "out"],
    "bundle": ["bundle", "disk", "--out", "out"],
    "packed bundle": ["bundle", "disk", "--out", "out/bundle", "--tar", "out/bundle.tar"],
    "export": ["export", "disk", "--table", "batches", "--out", "out/batches.parquet"],
    "export of __cluster_metadata": ["export", "disk/__cluster_metadata-0", "--out", "out/records.parquet"],
    "export to a directory": ["export", "disk", "--topic", "users", "--out", "out/records"],
    "find": ["find", "key == 'x'", "disk/users-0", "--report", "out/found"],
    "report": ["report", "disk/users-0", "--out", "out/page.html", "--charts", "out/charts"],
    "registry": ["registry", "registry", "--export", "out"],
    "rescue": ["rescue", "disk", "--controller", "0@127.0.0.1:9093", "--out", "out"],
}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that all may enter; pytest's are closed to others."""
    before = os.umask(0o022)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        shutil.copytree(FIXTURES / "disk-1", place / "disk")
        shutil.copytree(FIXTURES / "registry-1", place / "registry")
        (place / "out").mkdir()
        monkeypatch.chdir(place)
        yield place
        monkeypatch.undo()
    os.umask(before)


def grant(place: Path, of_file: int, of_directory: int) -> None:
    for path in (place, *place.rglob("*")):
        path.chmod(of_directory if path.is_dir() else of_file)


def written(place: Path) -> dict[str, int]:
    """Return the modes of what is in a directory."""
    return {str(path.relative_to(place)): path.stat().st_mode & 0o777 for path in place.rglob("*")}


MODES = [(0o600, 0o700, True), (0o644, 0o700, True), (0o600, 0o755, True), (0o640, 0o750, False), (0o644, 0o755, False)]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "of_file", "of_directory", "closed"),
    [(name, *modes) for name in WRITERS for modes in sample(MODES, 4, f"modes {name}")],
)
def test_what_is_written_is_as_open_as_its_sources(
    here: Path, name: str, of_file: int, of_directory: int, closed: bool
) -> None:
    for source in ("disk", "registry"):
        grant(here / source, of_file, of_directory)
    assert run(*WRITERS[name]).exit_code in (0, 1)
    modes = written(here / "out")
    assert modes
    for path, mode in modes.items():
        is_directory = (here / "out" / path).is_dir()
        expected = of_directory if is_directory else of_file
        if closed:
            expected &= 0o700
        has_keys = METADATA_TOPIC in f"{name} {path}" and "bundle" not in name
        if has_keys or (name == "rescue" and is_directory):  # of users
            expected &= 0o700
        assert mode == expected, path


def test_a_directory_that_exists_is_closed_for_a_scan(here: Path) -> None:
    for mode in (0o755, 0o770, 0o700):
        (here / "out").chmod(mode)
        grant(here / "disk", 0o644, 0o755)
        Store(str(here / "out")).begin([str(here / "disk")])
        assert (here / "out").stat().st_mode & 0o777 == mode & 0o755
        grant(here / "disk", 0o600, 0o755)
        Store(str(here / "out")).begin([str(here / "disk")])
        assert (here / "out").stat().st_mode & 0o777 == 0o700


def test_a_group_is_only_that_of_the_new_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grant(here / "disk", 0o640, 0o750)
    assert access_of(["disk"]) == 0o640
    monkeypatch.setattr(os, "getegid", lambda: os.getgid() + 1)
    assert access_of(["disk"]) == 0o600
    grant(here / "disk", 0o644, 0o755)
    assert access_of(["disk"]) == 0o644


def test_a_closed_directory_above_closes_what_is_in_it(here: Path) -> None:
    assert access_of(["disk/users-0"]) == 0o644
    (here / "disk").chmod(0o700)
    assert access_of(["disk/users-0"]) == 0o600
    assert access_of(["-", "s3://bucket/disk"]) == 0o666
