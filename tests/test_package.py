"""The source distribution and the wheel: what is in them, and whether they work in an empty environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT
from tools.manual import DISTRIBUTION

PACKAGES = ("kdump", "pyspark_kdump")
ALONGSIDE = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")
SHARED = {"man": "share/man/man1"}
"""By directory of the repository: where an installation has its files, below the prefix."""
CYTHONS = "kdump/_cyutility"
"""The module in which Cython has what its modules share."""
BUILT = ("*.so", "__pycache__", "*.egg-info")
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
DEMO = re.compile(r"^\t@\$\(BIN\)/kdump (.+)$", re.MULTILINE)


class Distributions(NamedTuple):
    """The files of one build."""

    sdist: Path
    wheel: Path


def members(directory: Path) -> set[str]:
    """The files below a directory, but for what is compiled and cached."""
    return {
        str(path.relative_to(directory.parent))
        for path in directory.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }


def copied(to: Path) -> Path:
    """The repository as a fresh clone has it, but for real bytes and documents."""
    for name in (*PACKAGES, "man", "tests"):
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns(*BUILT))
    for name in ALONGSIDE:
        shutil.copy(ROOT / name, to)
    return to


def called(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run it, and return what it printed; its failure is the test's."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def unpacked(sdist: Path, to: Path) -> Path:
    """The one directory that is in a source distribution."""
    to.mkdir()
    called("tar", "-xf", sdist, "-C", to, cwd=to)  # a tarfile that takes `filter` is younger than some of Python 3.11
    (directory,) = to.iterdir()
    return directory


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Built without the compiled core, by the setuptools of the environment: the wheel of the sdist, as pip does."""
    place = tmp_path_factory.mktemp("plain")
    (place / "repository").mkdir()
    repository = copied(place / "repository")
    made = called(sys.executable, "-c", BUILD, "build_sdist", place, cwd=repository, KDUMP_COMPILE="0")
    sdist = place / made.splitlines()[-1]
    source = unpacked(sdist, place / "source")
    made = called(sys.executable, "-c", BUILD, "build_wheel", place, cwd=source, KDUMP_COMPILE="0")
    return Distributions(sdist, place / made.splitlines()[-1])


@pytest.mark.package
def test_the_sdist_holds_what_is_built_from_and_nothing_else(plain: Distributions) -> None:
    with tarfile.open(plain.sdist) as archive:
        found = {member.name.partition("/")[2] for member in archive if member.isfile()}
    made = {name for name in found if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name}
    expected = members(ROOT / "kdump") | members(ROOT / "pyspark_kdump") | members(ROOT / "man") | {*ALONGSIDE}
    assert found - made == expected
    assert plain.sdist.name.startswith("kafka_kdump-")


@pytest.mark.package
def test_the_wheel_holds_what_runs_and_nothing_else(plain: Distributions) -> None:
    with zipfile.ZipFile(plain.wheel) as archive:
        found = {name for name in archive.namelist() if not name.endswith("/")}
        prefixes = {name.partition(".data/data/")[2]: name for name in found if ".data/data/" in name}
        for directory, place in SHARED.items():
            for path in (ROOT / directory).iterdir():
                if path.is_file():
                    assert archive.read(prefixes.pop(f"{place}/{path.name}")) == path.read_bytes()
    assert not prefixes
    code = {name for name in found if ".dist-info/" not in name and ".data/" not in name}
    assert code == members(ROOT / "kdump") | members(ROOT / "pyspark_kdump")


@pytest.mark.package
def test_the_metadata(plain: Distributions) -> None:
    from packaging.metadata import Metadata

    import kdump

    with zipfile.ZipFile(plain.wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        said = Metadata.from_email(archive.read(name), validate=True)
        (points,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        assert archive.read(points).decode().split() == ["[console_scripts]", "kdump", "=", "kdump.__main__:main"]
    assert (said.name, str(said.version)) == (DISTRIBUTION, kdump.__version__)
    assert (said.license_expression, said.license_files) == ("Apache-2.0", ["LICENSE"])
    assert said.description_content_type == "text/markdown"
    assert said.description == (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compiled(plain: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """As a release has them: the sdist, and the wheel that pip builds of it where there is a C compiler, with what
    pyproject.toml asks for."""
    place = tmp_path_factory.mktemp("compiled")
    (place / "repository").mkdir()
    made = called(sys.executable, "-c", BUILD, "build_sdist", place, cwd=copied(place / "repository"))
    sdist = place / made.splitlines()[-1]
    with tarfile.open(sdist) as one, tarfile.open(plain.sdist) as other:
        assert sorted(one.getnames()) == sorted(other.getnames())
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    called(*pip, "wheel", "--no-deps", "--wheel-dir", place, sdist, cwd=place)
    (wheel,) = place.glob("*.whl")
    return Distributions(sdist, wheel)


def environment(place: Path) -> Path:
    """A new virtual environment."""
    called(sys.executable, "-m", "venv", place, cwd=place.parent)
    return place


def installed(prefix: Path, distribution: Path | str, **variables: str) -> None:
    """Install it, with all that it depends on."""
    pip = (prefix / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    called(*pip, "install", distribution, cwd=prefix, **variables)


def works(prefix: Path, core: str) -> None:
    """Check all that an installation brings. `core`: which one it has to say that it runs."""
    nothing: Mapping[str, str] = {"PATH": "/nowhere"}
    program = str(prefix / "bin" / "kdump")

    def run(*command: str) -> bytes:
        done = subprocess.run(command, cwd=ROOT, env=nothing, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    assert f", {core} core" in run(program, "--version").decode()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    segment = re.findall(r"^DEMO := (.+)$", makefile, re.MULTILINE)[0]
    commands = [line.replace("$(DEMO)", segment).split() for line in DEMO.findall(makefile)]
    assert len(commands) == 3
    for arguments in commands:
        assert run(program, *arguments) == run(sys.executable, "-m", "kdump", *arguments)
    for directory, place in SHARED.items():
        for path in (ROOT / directory).iterdir():
            if path.is_file():
                assert (prefix / place / path.name).read_bytes() == path.read_bytes()
    (site,) = prefix.glob("lib/python*/site-packages")
    for package in PACKAGES:
        assert members(site / package) == members(ROOT / package)
    assert not (site / "tests").exists()
    compiled = {str(path.relative_to(site)).partition(".")[0] for path in (site / "kdump").rglob("*.so")}
    assert compiled == (core_modules() if core == "compiled" else set())


def core_modules() -> set[str]:
    """What is compiled where that is possible, all of it or nothing."""
    paths = (path for path in (ROOT / "kdump").rglob("*.py") if path.read_text("utf-8").startswith("# cython:"))
    return {CYTHONS, *(str(path.relative_to(ROOT).with_suffix("")) for path in paths)}


@pytest.mark.package
def test_the_wheel_in_an_empty_environment(compiled: Distributions, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "empty")
    installed(prefix, compiled.wheel)
    works(prefix, "compiled")


@pytest.mark.package
def test_the_sdist_where_there_is_no_compiler(plain: Distributions, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "empty")
    installed(prefix, plain.sdist, PATH=str(prefix / "bin"))
    works(prefix, "plain")


@pytest.mark.package
def test_a_compiler_that_fails_stops_no_installation(plain: Distributions, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "empty")
    installed(prefix, plain.sdist, CC="false")
    works(prefix, "plain")


@pytest.mark.package
def test_the_registry_would_take_them(compiled: Distributions, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "twine")
    installed(prefix, "twine")
    called(prefix / "bin" / "python", "-m", "twine", "check", "--strict", *compiled, cwd=tmp_path)
