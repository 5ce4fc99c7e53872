"""Sources and packages from Debian, from which the interpreter of the single file is built.

apt downloads them, and checks their signatures, for the release in `SUITE`, whatever this machine's own release is. A
directory with the same files does, too (CARRIED_SOURCES), where there is no apt."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.carry.programs import KEYRING, run

SUITE = "trixie"
SOURCES = {
    "python3.13": ("python3.13_3.13.5.orig.tar.xz", "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640"),
    "zlib": (
        "zlib_1.3.dfsg+really1.3.1.orig.tar.gz",
        "60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb",
    ),
    "libffi": ("libffi_3.4.8.orig.tar.gz", "cbb7f0b3b095dc506387ec1e35b891bfb4891d05b90a495bc69a10f2293f80ff"),
}
"""By the name of the source package: the file with the authors' code, and its SHA-256."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def source(name: str, downloads: Path, to: Path) -> Path:
    """Return a directory with the code of a package, unpacked below `to`. Exits if it cannot be had, or is not the
    code that SOURCES states."""
    file, digest = SOURCES[name]
    archive = _file(file, downloads, "source", "--download-only", "--tar-only", name)
    if hashlib.sha256(archive.read_bytes()).hexdigest() != digest:
        sys.exit(f"{archive}: not the file that tools/carry/debian.py states")
    place = to / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    run("tar", "--extract", "--file", archive, "--directory", place, "--strip-components=1")
    return place


def package(name: str, architecture: str, downloads: Path, to: Path) -> tuple[Path, str]:
    """Unpack a binary package into `to`; return that directory, and the package's version."""
    debian = ARCHITECTURES[architecture]
    found = _file(f"{name}_*_{debian}.deb", downloads, "download", f"{name}:{debian}")
    shutil.rmtree(to, ignore_errors=True)
    run("dpkg-deb", "--extract", found, to)
    return to, found.name.split("_")[1]


def _file(pattern: str, downloads: Path, *command: str) -> Path:
    """Return the one file that matches in CARRIED_SOURCES, or in the downloads, into which apt-get COMMAND puts it."""
    own = os.environ.get("CARRIED_SOURCES")
    place = Path(own) if own else downloads
    if not own and not any(place.glob(pattern)):
        _download(downloads, command)
    found = sorted(place.glob(pattern))
    if not found:
        sys.exit(f"{place}: no {pattern}; CARRIED_SOURCES names a directory that has it")
    return found[-1]


def _download(downloads: Path, command: tuple[str, ...]) -> None:
    state = downloads / "apt"
    for directory in ("lists/partial", "cache/archives/partial"):
        (state / directory).mkdir(parents=True, exist_ok=True)
    lines = [f"{kind} [signed-by={KEYRING}] {_mirror()} {SUITE} main\n" for kind in ("deb", "deb-src")]
    (state / "sources.list").write_text("".join(lines), encoding="utf-8")
    settings = {
        "Dir::Etc::SourceList": state / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": state / "lists",
        "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "root",
        **{f"APT::Architectures::{number}": name for number, name in enumerate(ARCHITECTURES.values())},
    }
    options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
    apt = ("apt-get", "--quiet=2", *options)
    if not any((state / "lists").glob("*Sources")):
        run(*apt, "update", cwd=downloads)
    run(*apt, *command, cwd=downloads)


def _mirror() -> str:
    """Return the address from which this machine's apt takes Debian's packages. Exits if there is none."""
    asked = [
        *("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"),
        "Label: Debian",
    ]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    return said[0] if said else sys.exit("apt has no package lists of Debian: apt-get update, or set CARRIED_SOURCES")
