"""Builds the single file: kdump with an interpreter, codecs and compiled core, for Linux (docs/carry.md).

    python -m tools.carry.build PYTHON OUT [--builder PYTHON] [--work DIR]

It is for the kind of machine that PYTHON is for, x86-64 or aarch64. If that is not this machine's, --builder names a
CPython of the same minor version that runs here. What is compiled here is compiled by zig's C compiler against an old
glibc, whatever this machine has; the rest are wheels, as requirements.txt names them. OUT.txt lists what is in OUT."""

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
    """Run it in the repository with more environment variables; its failure ends the build."""
    if subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}).returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")


def compiler(interpreter: Interpreter, work: Path) -> Path:
    """A program to be called as CC, which compiles for the oldest glibc, and by the interpreter's own headers."""
    path, target = work / "cc", interpreter.target
    options = f'-target {target.name}-linux-gnu.{glibc(target)} -mcpu={target.cpu} -I"{interpreter.include}"'
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang cc {options} "$@"\n')
    path.chmod(0o755)
    return path


def launcher(interpreter: Interpreter, cc: Path, work: Path) -> bytes:
    """The compiled launcher."""
    out = work / "launcher"
    run(cc, "-O2", "-g0", "-s", "-Wall", "-Werror", HERE / "launcher.c", "-o", out, "-ldl")
    contents.refuse(out, interpreter.target)
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
    """A directory with kdump and all that it stands on: no more than requirements.txt names."""
    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    unpack_wheels(interpreter, HERE / "requirements.txt", site, interpreter.target.platforms)
    run(sys.executable, "-m", "zipfile", "-e", own, site)
    return site


def libraries(interpreter: Interpreter, work: Path) -> Path:
    """A directory with the wheels that bring shared libraries: what their names claim to need is not what they need."""
    place = work / "libraries"
    shutil.rmtree(place, ignore_errors=True)
    unpack_wheels(interpreter, HERE / "libraries.txt", place, [f"manylinux_2_28_{interpreter.target.name}"])
    return place


def unpack_wheels(interpreter: Interpreter, requirements: Path, to: Path, platforms: list[str]) -> None:
    """Unpack the wheels that a file names, for the interpreter, and no more than these."""
    run(
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"),
        *("--no-deps", "--no-compile", "--target", to, "-r", requirements),
        *("--only-binary", ":all:", *(part for tag in platforms for part in ("--platform", tag))),
        *("--implementation", "cp", "--python-version", interpreter.version),
    )


def glibc(target: Target) -> str:
    """The oldest glibc that is enough."""
    return ".".join(map(str, target.glibc))


def manifest(interpreter: Interpreter, places: list[str], out: Path) -> str:
    """What is in the file: for whoever has to know, or to allow it."""
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
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", type=Path, metavar="PYTHON")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--builder", type=Path, metavar="PYTHON", help="[the PYTHON that goes in]")
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
