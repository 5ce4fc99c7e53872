"""Builds the distributions of a release next to the single files and images, and checks them: make release.

    python -m tools.release OUT [--python PYTHON …]

The sdist, a wheel in plain Python, and for each CPython here two wheels with the compiled core, for manylinux and for
musllinux. The same commit gives the same bytes, in any directory. OUT/SHA256SUMS has all files of OUT."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tools.carry import cpython, emulation
from tools.carry.programs import run
from tools.carry.target import HOST, target_of
from tools.test_parts import RECORD

ROOT = Path(__file__).parent.parent
PYTHONS = tuple(f"python3.{minor}" for minor in range(10, 15))
LIBRARIES = {"gnu.2.17": f"manylinux_2_17_{HOST.name}", "musl": f"musllinux_1_2_{HOST.name}"}
"""By what zig compiles for: the tag of the wheel."""
ASKED = """import sys, sysconfig as s
print(sys.executable, s.get_path('include'), s.get_config_var('EXT_SUFFIX'), s.get_config_var('MULTIARCH'))"""
DEMO = "fixtures/clean-1"
BY_HAND = "## Manual checks"


def source(place: Path) -> str:
    """Lay out the commit's files, and return its time in epoch seconds. Exits if something is not committed."""
    # The file that says which parts of make test-all are green is written by the parts before this one.
    if _git("status", "--porcelain", "--untracked-files=no", "--", f":!{RECORD}"):
        sys.exit("there are changes that are not committed: a release is built from a commit")
    place.mkdir(parents=True)
    archive = subprocess.run(("git", "archive", "HEAD"), cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(("tar", "--extract", "--no-same-permissions"), cwd=place, input=archive, check=True)
    return _git("show", "--no-patch", "--format=%ct", "HEAD")


def _git(*arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def sdist(place: Path, out: Path, time: str) -> Path:
    """Build the source distribution, of no particular owner."""
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    with tempfile.TemporaryDirectory() as made:
        run(sys.executable, "-c", code, made, cwd=place, quiet=True, KDUMP_COMPILE="0", SOURCE_DATE_EPOCH=time)
        (found,) = Path(made).iterdir()
        plain = io.BytesIO()
        with tarfile.open(found) as old, tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new:
            for member in sorted(old, key=lambda each: each.name):
                member.mtime, member.uid, member.gid, member.uname, member.gname = int(time), 0, 0, "", ""
                member.mode, member.pax_headers = 0o755 if member.isdir() else 0o644, {}
                new.addfile(member, old.extractfile(member) if member.isfile() else None)
        (out / found.name).write_bytes(gzip.compress(plain.getvalue(), mtime=int(time)))
        return out / found.name


def wheel(place: Path, out: Path, python: Path | str, tag: str, **variables: str) -> Path:
    """Build a wheel with this interpreter, and return it."""
    shutil.rmtree(place / "build", ignore_errors=True)
    with tempfile.TemporaryDirectory() as made:
        pip = (python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps", "--no-cache-dir")
        options = (f"--config-settings=--build-option=--plat-name={tag}",) if tag else ()
        run(*pip, "--wheel-dir", made, *options, place, cwd=place, quiet=False, **variables)
        (found,) = Path(made).iterdir()
        return Path(shutil.move(found, out / found.name))


def compiled(place: Path, out: Path, python: str, work: Path, time: str) -> list[Path]:
    """Build the wheels with a compiled core for an interpreter; none if it is not here."""
    asked = (
        subprocess.run((python, "-c", ASKED), capture_output=True, text=True, check=False)
        if shutil.which(python)
        else None
    )
    if asked is None or asked.returncode:
        print(f"{python}: not here, no wheel")
        return []
    program, include, suffix, machine = asked.stdout.split()
    own, made = work / f"headers{suffix}", []
    own.mkdir()
    (own / machine).symlink_to(Path(include).parent / machine)  # Debian's pyconfig.h includes <MULTIARCH/python3.…>
    for library, tag in LIBRARIES.items():
        cc = cpython.compiler(HOST, work / f"cc-{library}", [Path(include), own], library)
        variables = {
            "CC": str(cc),
            "LDSHARED": f"{cc} -shared",
            "SETUPTOOLS_EXT_SUFFIX": suffix.replace("-gnu", f"-{library.partition('.')[0]}"),
            "SOURCE_DATE_EPOCH": time,
        }
        made.append(wheel(place, out, program, tag, **variables))
    return made


def check(file: Path, python: str, says: str) -> None:
    """Install a distribution into an empty environment, and run it there, from a directory without its source."""
    with tempfile.TemporaryDirectory() as place:
        run(python, "-m", "venv", place, cwd=ROOT)
        programs = Path(place) / "bin"
        run(programs / "pip", "--disable-pip-version-check", "install", "--quiet", file, cwd=Path(place))
        said = subprocess.run((programs / "kdump", "--version"), cwd=place, capture_output=True, text=True, check=True)
        if says not in said.stdout:
            sys.exit(f"{file.name}: says {said.stdout.strip()}, not {says}")
        run(programs / "kdump", "verify", "--crc", "--quiet", ROOT / DEMO, cwd=Path(place))
    print(f"{file.name}: installed by {python}, {said.stdout.strip()}")


def check_alone(program: str, root: Path, name: str) -> None:
    """Run a program of a root directory that holds nothing else, on a log directory that is put beside it."""
    if not emulation.runs(root / program):
        print(f"{name}: not run, {target_of(root / program).name} does not run here (docs/carry.md)")
        return
    shutil.copytree(ROOT / DEMO, root / "log")
    (root / "tmp").mkdir()  # a container has this or /proc
    entered = ("unshare", "--map-root-user", f"--root={root}", "--wd=/", f"/{program}")
    said = subprocess.run((*entered, "--version"), env={}, capture_output=True, text=True, check=True).stdout.strip()
    if "compiled core" not in said:
        sys.exit(f"{name}: says {said}")
    run(*entered, "verify", "--crc", "--quiet", "/log")
    print(f"{name}: ran in an empty root, {said}")


def check_image(file: Path) -> None:
    """Check the digests of an image, and run what it holds for each architecture."""
    with tarfile.open(file) as archive:

        def read(name: str) -> bytes:
            found = archive.extractfile(name)
            assert found is not None
            data = found.read()
            if name.startswith("blobs/") and hashlib.sha256(data).hexdigest() != name.rpartition("/")[2]:
                sys.exit(f"{file.name}: {name} has another digest")
            return data

        def blob(descriptor: dict[str, Any]) -> bytes:
            return read(f"blobs/{descriptor['digest'].replace(':', '/')}")

        (index,) = json.loads(read("index.json"))["manifests"]
        for each in json.loads(blob(index))["manifests"]:
            with tempfile.TemporaryDirectory() as root:
                for layer in json.loads(blob(each))["layers"]:
                    subprocess.run(("tar", "--extract"), cwd=root, input=blob(layer), check=True)
                check_alone("bin/kdump", Path(root), f"{file.name} for {each['platform']['architecture']}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="PYTHON", help=f"[{' '.join(PYTHONS)}]")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("*.whl"), *out.glob("*.tar.gz")):
        old.unlink()
    with tempfile.TemporaryDirectory() as directory:
        work, place = Path(directory), Path(directory) / "source"
        time = source(place)
        check(sdist(place, out, time), sys.executable, "core")
        check(
            wheel(place, out, sys.executable, "", KDUMP_COMPILE="0", SOURCE_DATE_EPOCH=time),
            sys.executable,
            "plain core",
        )
        for python in options.python:
            for file in compiled(place, out, python, work, time):
                if "manylinux" in file.name:
                    check(file, python, "compiled core")
        for file in sorted(out.glob("kdump-linux-*4")):
            root = work / file.name
            root.mkdir()
            shutil.copy(file, root / "kdump")
            check_alone("kdump", root, file.name)
        for file in sorted(out.glob("kdump-image*.tar")):
            check_image(file)
    files = sorted(path for path in out.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(sums + "\nLeft for a person (RELEASING.md):\n")
    print((ROOT / "RELEASING.md").read_text(encoding="utf-8").partition(BY_HAND)[2])


if __name__ == "__main__":
    os.umask(0o022)
    main()
