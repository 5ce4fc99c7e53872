"""Builds the single file: kdump with an interpreter, a C library, codecs and compiled core, for Linux (docs/carry.md).

    python -m tools.carry.build ARCH OUT [--work DIR]

It is for x86_64 or aarch64, whichever this machine is. zig's C compiler compiles what is compiled here, against musl,
which is in the file; everything else comes from the wheels in requirements.txt. OUT.txt lists the contents of OUT."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from importlib.metadata import distributions
from pathlib import Path

from tools.carry import archive, contents, cpython
from tools.carry.cpython import Interpreter
from tools.carry.programs import require, run
from tools.carry.target import TARGETS, Target

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SOURCES = ["kdump", "man", "LICENSE", "MANIFEST.in", "pyproject.toml", "pyspark_kdump", "README.md", "setup.py"]
COMPILED = "lz4"
"""The package that has no wheels for musl."""


def launcher(target: Target, work: Path) -> bytes:
    """Compile the launcher and return its bytes."""
    out = work / "launcher"
    cc = cpython.compiler(target, work / "launcher-cc")
    run(cc, "-O2", "-g0", "-s", "-static", "-Wall", "-Werror", HERE / "launcher.c", "-o", out, cwd=ROOT)
    contents.refuse(out, target)
    return out.read_bytes()


def install(interpreter: Interpreter, work: Path) -> Path:
    """Return a directory with kdump, its core compiled for the interpreter, and all its dependencies: exactly those in
    requirements.txt."""
    site, wheels, pinned = work / "site", work / "wheels", HERE / "requirements.txt"
    for directory in (site, wheels):
        shutil.rmtree(directory, ignore_errors=True)
    lines = pinned.read_text(encoding="utf-8").splitlines()
    compiled = [line for line in lines if line.partition("==")[0] == COMPILED]
    (work / "wheels.txt").write_text("\n".join(line for line in lines if line not in compiled), encoding="utf-8")
    cc = cpython.compiler(interpreter.target, work / "cc", interpreter.include)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(
        *(*pip, "install", "--quiet", "--no-deps", "--no-compile", "--target", site, "-r", work / "wheels.txt"),
        *("--only-binary", ":all:"),
        *(f"--platform={tag}" for tag in interpreter.target.platforms),
        *("--implementation", "cp", "--python-version", interpreter.version),
        cwd=ROOT,
    )
    run(
        *(*pip, "wheel", "--quiet", "--no-deps", "--no-cache-dir", "--no-binary", COMPILED, *compiled),
        *("--wheel-dir", wheels),
        _source(work / "source"),
        cwd=ROOT,
        CC=str(cc),
        LDSHARED=f"{cc} -shared",
        SETUPTOOLS_EXT_SUFFIX=interpreter.suffix,
        _PYTHON_HOST_PLATFORM=f"linux-{interpreter.target.name}",
    )
    for wheel in wheels.glob("*.whl"):
        run(sys.executable, "-m", "zipfile", "-e", wheel, site, cwd=ROOT)
    for path in (ROOT / "kdump").rglob("*.py"):
        compiled_name = site / path.relative_to(ROOT).with_suffix(interpreter.suffix)
        if path.read_text("utf-8").startswith("# cython:") and not compiled_name.is_file():
            sys.exit(f"{path.relative_to(ROOT)} was not compiled")
    return site


def _source(place: Path) -> Path:
    """Return a copy of kdump's source without compiled files."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(ROOT / name, place / name)
    return place


def manifest(interpreter: Interpreter, site: Path, out: Path) -> str:
    """Return a list of what the file contains, for those who have to review or approve it."""
    data = out.read_bytes()
    lines = [
        f"{out.name}: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}",
        f"for Linux on {interpreter.target.name}, with any C library or none",
        f"CPython {interpreter.version}",
        f"musl {interpreter.musl}",
        *sorted(f"{found.name} {found.version}" for found in distributions(path=[str(site)])),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[each.name for each in TARGETS], metavar="ARCH")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--work", type=Path, metavar="DIR", default=ROOT / "build/carry", help="[build/carry]")
    options = parser.parse_args()
    (target,) = (each for each in TARGETS if each.name == options.target)
    require(target.name)
    out = options.out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    interpreter = cpython.interpreter(target, options.work.resolve())
    work = options.work.resolve() / target.name
    work.mkdir(exist_ok=True)
    site = install(interpreter, work)
    contents.gather(interpreter, site, HERE / "kdump_carried.py", work / "tree")
    stored = contents.usual(interpreter, site)
    archive.write(launcher(target, work), work / "tree", stored, target.page, out)
    said = manifest(interpreter, site, out)
    out.with_name(out.name + ".txt").write_text(said, encoding="utf-8")
    print(said, end="")


if __name__ == "__main__":
    main()
