"""Builds the single file: kdump with an interpreter, codecs and compiled core, for Linux (docs/carry.md).

    python -m tools.carry.build PYTHON OUT [--builder PYTHON] [--work DIR]

The file is for the architecture of PYTHON, x86-64 or aarch64. If this machine has another one, --builder names a
CPython of the same minor version that runs here. Code that is compiled here is compiled by zig's C compiler against an
old glibc, regardless of the glibc of this machine; everything else comes from the wheels in requirements.txt. OUT.txt
lists the contents of OUT."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from tools.carry import archive, contents
from tools.carry.interpreter import Interpreter
from tools.carry.target import Target

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SOURCES = ["kdump", "man", "LICENSE", "MANIFEST.in", "pyproject.toml", "pyspark_kdump", "README.md", "setup.py"]
BUILDERS = ["setuptools>=77", "Cython>=3.2.1", "wheel"]


def run(*command: str | Path, **variables: str) -> None:
    """Run a command in the root of the repository with additional environment variables. Exits if the command fails."""
    if subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}).returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")


def compiler(interpreter: Interpreter, work: Path) -> Path:
    """Return the path of a program to use as CC: it compiles for the oldest glibc and with the interpreter's
    headers."""
    path, target = work / "cc", interpreter.target
    options = f'-target {target.name}-linux-gnu.{glibc(target)} -mcpu={target.cpu} -I"{interpreter.include}"'
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang cc {options} "$@"\n')
    path.chmod(0o755)
    return path


def launcher(interpreter: Interpreter, cc: Path, work: Path) -> bytes:
    """Compile the launcher and return its bytes."""
    out = work / "launcher"
    run(cc, "-O2", "-g0", "-s", "-Wall", "-Werror", HERE / "launcher.c", "-o", out, "-ldl")
    contents.refuse(out, interpreter.target)
    return out.read_bytes()


def wheel(interpreter: Interpreter, cc: Path, work: Path) -> Path:
    """Build kdump's wheel with its core compiled for the interpreter, and return its path. Builds from a copy without
    previously compiled files."""
    source, tools, wheels = work / "source", work / "tools", work / "wheels"
    for directory in (source, wheels):
        shutil.rmtree(directory, ignore_errors=True)
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(ROOT / name, source / name)
    run(interpreter.builder, "-m", "venv", "--clear", "--without-pip", tools)
    pip: tuple[str | Path, ...] = (
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        tools / "bin/python",
    )
    run(*pip, "install", "--quiet", *BUILDERS)
    run(
        *(*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, source),
        CC=str(cc),
        LDSHARED=f"{cc} -shared",
        SETUPTOOLS_EXT_SUFFIX=interpreter.suffix,
        _PYTHON_HOST_PLATFORM=f"linux-{interpreter.target.name}",
    )
    made = next(wheels.glob("kafka_kdump-*.whl"))
    core = [path for path in (source / "kdump").rglob("*.py") if path.read_text("utf-8").startswith("# cython:")]
    compiled = subprocess.run([sys.executable, "-m", "zipfile", "-l", made], capture_output=True, text=True, check=True)
    for path in core:
        if f"{path.relative_to(source).with_suffix('')}{interpreter.suffix}" not in compiled.stdout:
            sys.exit(f"{path.relative_to(source)} was not compiled")
    return made


def install(interpreter: Interpreter, own: Path, work: Path) -> Path:
    """Return a directory with kdump and all its dependencies: exactly those in requirements.txt."""
    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    unpack_wheels(interpreter, HERE / "requirements.txt", site, interpreter.target.platforms)
    run(sys.executable, "-m", "zipfile", "-e", own, site)
    return site


def libraries(interpreter: Interpreter, work: Path) -> Path:
    """Return a directory with the wheels in libraries.txt, which contain shared libraries. Their platform tags require
    a newer glibc than the libraries need."""
    place = work / "libraries"
    shutil.rmtree(place, ignore_errors=True)
    unpack_wheels(interpreter, HERE / "libraries.txt", place, [f"manylinux_2_28_{interpreter.target.name}"])
    return place


def unpack_wheels(interpreter: Interpreter, requirements: Path, to: Path, platforms: list[str]) -> None:
    """Unpack the wheels listed in a file for the interpreter, without their dependencies."""
    run(
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"),
        *("--no-deps", "--no-compile", "--target", to, "-r", requirements),
        *("--only-binary", ":all:", *(part for tag in platforms for part in ("--platform", tag))),
        *("--implementation", "cp", "--python-version", interpreter.version),
    )


def glibc(target: Target) -> str:
    """Return the oldest supported glibc, such as 2.17."""
    return ".".join(map(str, target.glibc))


def manifest(interpreter: Interpreter, places: list[str], out: Path) -> str:
    """Return a list of what the file contains, for those who have to review or approve it."""
    data = out.read_bytes()
    target = interpreter.target
    lines = [
        f"{out.name}: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}",
        f"for Linux on {target.name} with glibc {glibc(target)} or later",
        f"CPython {interpreter.version}",
        *sorted(f"{found.name} {found.version}" for found in distributions(path=places)),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", type=Path, metavar="PYTHON")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--builder", type=Path, metavar="PYTHON", help="[the PYTHON that is packed]")
    parser.add_argument("--work", type=Path, metavar="DIR", help="[build/carry/ARCH]")
    options = parser.parse_args()
    interpreter = Interpreter.of(options.python, (options.builder or options.python).absolute())
    work, out = (options.work or ROOT / "build/carry" / interpreter.target.name).resolve(), options.out.resolve()
    work.mkdir(parents=True, exist_ok=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    cc = compiler(interpreter, work)
    head = launcher(interpreter, cc, work)
    site = install(interpreter, wheel(interpreter, cc, work), work)
    others = libraries(interpreter, work)
    contents.gather(interpreter, site, others, HERE / "kdump_carried.py", work / "tree")
    archive.write(head, work / "tree", interpreter.library.name, out)
    said = manifest(interpreter, [str(site), str(others)], out)
    out.with_name(out.name + ".txt").write_text(said, encoding="utf-8")
    print(said, end="")


if __name__ == "__main__":
    main()
