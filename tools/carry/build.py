"""Builds the single file: kdump with an interpreter, codecs and compiled core, for x86-64 Linux (docs/carry.md).

    python -m tools.carry.build PYTHON OUT [--work DIR]

What is compiled here is compiled by zig's C compiler against an old glibc, whatever this machine has; the rest are
wheels, as requirements.txt names them. Beside OUT comes OUT.txt, which says what is in it."""

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

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SOURCES = ["kdump", "man", "LICENSE", "pyproject.toml", "pyspark_kdump", "README.md", "setup.py"]
GLIBC = ".".join(map(str, contents.OLDEST_GLIBC))
BUILDERS = ["setuptools>=77", "Cython>=3.1", "wheel"]


def run(*command: str | Path, **variables: str) -> None:
    """Run it in the repository with more environment variables; its failure ends the build."""
    if subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}).returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")


def compiler(work: Path) -> Path:
    """A program to be called as CC, which compiles for the oldest glibc."""
    path = work / "cc"
    target = f"x86_64-linux-gnu.{GLIBC}"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang cc -target {target} -mcpu=x86_64 "$@"\n')
    path.chmod(0o755)
    return path


def launcher(interpreter: Interpreter, cc: Path, work: Path) -> bytes:
    """The compiled launcher."""
    out = work / "launcher"
    run(cc, "-O2", "-g0", "-s", "-Wall", "-Werror", f"-I{interpreter.include}", HERE / "launcher.c", "-o", out, "-ldl")
    contents.refuse_newer(out)
    return out.read_bytes()


def wheel(interpreter: Interpreter, cc: Path, work: Path) -> Path:
    """kdump's own, its core compiled for the interpreter, from a copy: nothing compiled before is taken over."""
    source, tools, wheels = work / "source", work / "tools", work / "wheels"
    for directory in (source, wheels):
        shutil.rmtree(directory, ignore_errors=True)
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(ROOT / name, source / name)
    run(interpreter.python, "-m", "venv", "--clear", "--without-pip", tools)
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
    )
    made = next(wheels.glob("kafka_kdump-*.whl"))
    core = [path for path in (source / "kdump").rglob("*.py") if path.read_text("utf-8").startswith("# cython:")]
    compiled = subprocess.run([sys.executable, "-m", "zipfile", "-l", made], capture_output=True, text=True, check=True)
    for path in core:
        if f"{path.relative_to(source).with_suffix('')}{interpreter.suffix}" not in compiled.stdout:
            sys.exit(f"{path.relative_to(source)} was not compiled")
    return made


def install(interpreter: Interpreter, own: Path, work: Path) -> Path:
    """A directory with kdump and all that it stands on: no more than requirements.txt names."""
    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    glibcs = [f"manylinux_2_{minor}_x86_64" for minor in range(contents.OLDEST_GLIBC[1], 4, -1)]
    tags = [*glibcs, "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
    run(
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--target",
        site,
        *("--only-binary", ":all:", *(part for tag in tags for part in ("--platform", tag))),
        *("--implementation", "cp", "--python-version", interpreter.version),
        "-r",
        HERE / "requirements.txt",
    )
    run(sys.executable, "-m", "zipfile", "-e", own, site)
    return site


def manifest(interpreter: Interpreter, site: Path, out: Path) -> str:
    """What is in the file: for whoever has to know, or to allow it."""
    data = out.read_bytes()
    lines = [
        f"{out.name}: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}",
        f"for Linux on x86-64 with glibc {GLIBC} or later",
        f"CPython {interpreter.version}",
        *sorted(f"{found.name} {found.version}" for found in distributions(path=[str(site)])),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", type=Path, metavar="PYTHON")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--work", type=Path, default=ROOT / "build/carry")
    options = parser.parse_args()
    work, out = options.work.resolve(), options.out.resolve()
    work.mkdir(parents=True, exist_ok=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    interpreter = Interpreter.of(options.python.absolute())
    cc = compiler(work)
    head = launcher(interpreter, cc, work)
    site = install(interpreter, wheel(interpreter, cc, work), work)
    contents.gather(interpreter, site, HERE / "kdump_carried.py", work / "tree")
    archive.write(head, work / "tree", interpreter.library.name, out)
    said = manifest(interpreter, site, out)
    out.with_name(out.name + ".txt").write_text(said, encoding="utf-8")
    print(said, end="")


if __name__ == "__main__":
    main()
