"""Selection of the core, and that the same files work without a compiler and without Cython."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from kdump.core import (
    arrow_buffers,
    arrow_release,
    batch_counts,
    batch_scan,
    candidates,
    header_columns,
    id_rows,
    index_entries,
    integer_rows,
    json_values,
    message_set,
    newest_commits,
    partition_records,
    plain_records,
    record_checks,
    record_columns,
    record_counts,
    record_search,
    row_writer,
    table_values,
)
from kdump.engine import COMPILED, PLAIN, running
from kdump.format import plain_messages
from kdump.format.codec import snappy_tags
from kdump.version import __version__
from tests.conftest import ROOT, segment

UTILITY = "kdump._cyutility"
"""The module that the compiled modules share: it has no Python file."""
CORE = (
    *(arrow_buffers, arrow_release, batch_counts, batch_scan, candidates, header_columns, id_rows),
    *(index_entries, integer_rows, json_values, message_set, newest_commits, partition_records, plain_records),
    *(record_checks, record_search, record_columns, record_counts, row_writer, table_values, plain_messages),
    snappy_tags,
)
MAKES_WHAT_IS_ASKED_FOR = 'while [ "$1" != -o ]; do shift; done; : > "$2"\n'
"""A compiler that creates empty files, and takes no time."""
INSPECT = ("inspect", str(segment("clean-1/orders-zstd-0")), "--records", "--json")


def kdump(*arguments: str, path: str = "", **environment: str) -> str:
    """Return the output of kdump in a process of its own, with `path` at the start of sys.path."""
    code = f"import sys; sys.path.insert(0, {path!r}) if {path!r} else None; from kdump.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, env=os.environ | environment, check=True, cwd="/"
    )
    return done.stdout.decode()


def test_the_engine_that_is_asked_for_runs() -> None:
    """`make test` and `make test-all` run the suite with both engines; KDUMP_ENGINE selects one."""
    wanted = os.environ.get("KDUMP_ENGINE") or COMPILED
    assert running() == wanted
    for module in CORE:
        assert module.__file__ is not None
        assert module.__file__.endswith(".py") == (wanted == PLAIN)


def test_the_core_needs_no_cython() -> None:
    """Where it is not compiled, Cython is not installed, either."""
    names = " ".join(module.__name__ for module in CORE)
    code = f"import importlib, sys; sys.modules['cython'] = None; [*map(importlib.import_module, {names!r}.split())]"
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", f"from kdump.engine import choose; choose(); {code}"],
        env=os.environ | {"KDUMP_ENGINE": PLAIN, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert not done.returncode, done.stderr.decode()


@pytest.mark.skipif(os.environ.get("KDUMP_ENGINE") == PLAIN, reason="nothing is compiled")
def test_what_is_compiled_is_what_is_there() -> None:
    """Each module of the core is compiled, after its last change, and nothing else is."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    compiled = {path.with_name(path.name[: -len(suffix)]): path for path in (ROOT / "kdump").rglob(f"*{suffix}")}
    names = {".".join(path.relative_to(ROOT).parts) for path in compiled}
    assert names == {module.__name__ for module in CORE} | {UTILITY}
    for source, library in compiled.items():
        path = source.with_suffix(".py")
        if path.exists():
            assert library.stat().st_mtime >= path.stat().st_mtime, f"{path} has changed: make .venv/.ready"
    assert UTILITY in sys.modules


def extensions(monkeypatch: pytest.MonkeyPatch, **environment: str) -> dict[str, list[str]]:
    """Return what setup.py would compile, and from which files, without building anything."""
    said: dict[str, Any] = {}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("setuptools.setup", lambda **options: said.update(options))
    for name in ("KDUMP_COMPILE", *environment):
        monkeypatch.setenv(name, environment.get(name, ""))
    runpy.run_path("setup.py")
    return {extension.name: extension.sources for extension in said["ext_modules"]}


def test_setup_compiles_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every module that begins with `# cython:` is compiled, after the module that they share."""
    found = extensions(monkeypatch)
    core = {module.__name__: [f"{module.__name__.replace('.', '/')}.py"] for module in CORE}
    assert found == {UTILITY: ["kdump/_cyutility.c"]} | core
    assert next(iter(found)) == UTILITY
    marked = [path for path in (ROOT / "kdump").rglob("*.py") if path.read_text().startswith("# cython:")]
    assert {str(path.relative_to(ROOT)) for path in marked} == {source for [source] in core.values()}
    assert extensions(monkeypatch, KDUMP_COMPILE="0") == {}


def test_the_makefile_builds_with_what_a_build_requires() -> None:
    """pyproject.toml declares the requirements. pip cannot install only these, so the Makefile repeats them."""
    project = (ROOT / "pyproject.toml").read_text()
    requires = re.search(r"^\[build-system\]\nrequires = \[(.*)\]$", project, re.MULTILINE)
    assert requires
    wanted = re.findall(r'"(.+?)"', requires[1])
    makefile = re.search(r"^BUILDERS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert makefile
    assert re.findall("'(.+?)'", makefile[1]) == wanted


def test_the_version_says_which() -> None:
    assert kdump("--version", KDUMP_ENGINE=PLAIN) == f"kdump, version {__version__}, plain core, which is slower\n"
    if running() == COMPILED:
        assert kdump("--version", KDUMP_ENGINE="") == f"kdump, version {__version__}, compiled core\n"


def test_both_say_the_same_where_some_files_are_decoded() -> None:
    """Decoded records are written one by one, others from columns to lines, and all in the order of the files."""
    files = [
        str(segment(f"clean-1/{name}"))
        for name in ("orders-zstd-0", "__consumer_offsets-0", "payments-0", "__transaction_state-0", "orders-none-0")
    ]
    plain = kdump("inspect", *files, "--records", "--json", KDUMP_ENGINE=PLAIN)
    assert plain == kdump("inspect", *files, "--records", "--json", KDUMP_ENGINE="")
    assert plain.count('"keyDecoded"') == 168


def test_without_cython(tmp_path: Path) -> None:
    """The plain core does not use Cython, whether or not it is installed."""
    (tmp_path / "cython.py").write_text("raise ImportError('there is none')")
    assert kdump(*INSPECT, path=str(tmp_path), KDUMP_ENGINE=PLAIN) == kdump(*INSPECT)


def built(tmp_path: Path, compiler: str, command: str) -> subprocess.CompletedProcess[str]:
    """Run setup.py with that compiler on a copy of the sources, which installs into `tmp_path`/lib."""
    copy = tmp_path / "copy"
    leave_out = shutil.ignore_patterns("*.so", "__pycache__")
    for name in ("kdump", "man", "pyspark_kdump", "build/core/kdump"):
        if (ROOT / name).exists():  # the existing C code saves generating it
            shutil.copytree(ROOT / name, copy / name, ignore=leave_out)
    for name in ("LICENSE", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy2(ROOT / name, copy)
    where = ["--build-temp", str(tmp_path / "temp"), "--build-lib", str(tmp_path / "lib")]
    environment = os.environ | {"CC": compiler, "KDUMP_ENGINE": "", "KDUMP_COMPILE": ""}
    build = [sys.executable, "setup.py", "-q", command, *where]
    return subprocess.run(build, cwd=copy, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.every_disk
def test_without_a_compiler(tmp_path: Path) -> None:
    """Without a compiler, setup.py installs the same modules, as Python."""
    done = built(tmp_path, "/bin/false", "build")
    assert done.returncode == 0, done.stderr
    assert "kdump: the core stays plain Python: " in done.stderr
    assert not list((tmp_path / "lib").rglob("*.so"))
    assert (
        kdump("--version", path=str(tmp_path / "lib"), KDUMP_ENGINE="")
        == f"kdump, version {__version__}, plain core, which is slower\n"
    )
    assert kdump(*INSPECT, path=str(tmp_path / "lib"), KDUMP_ENGINE="") == kdump(*INSPECT)


@pytest.mark.every_disk
def test_all_of_the_core_is_compiled_or_none(tmp_path: Path) -> None:
    """Modules of the core call each other's C functions, so if one does not compile, none is used."""
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *record_checks*) exit 1;; esac\n' + MAKES_WHAT_IS_ASKED_FOR)
    compiler.chmod(0o755)
    done = built(tmp_path, str(compiler), "build_ext")
    assert done.returncode == 0, done.stderr
    assert "record_checks" in done.stderr
    assert not list((tmp_path / "lib").rglob("*.so"))
    compiler.write_text("#!/bin/sh\n" + MAKES_WHAT_IS_ASKED_FOR)
    done = built(tmp_path / "again", str(compiler), "build_ext")
    assert len(list((tmp_path / "again/lib").rglob("*.so"))) == len(CORE) + 1, done.stderr


def test_a_core_that_does_not_exist() -> None:
    for code in ("from kdump.__main__ import main; main()", "import kdump; kdump.open('x')"):
        result = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"KDUMP_ENGINE": "plian"}, capture_output=True, text=True
        )
        assert "KDUMP_ENGINE=plian: no such core" in result.stderr.splitlines()[-1]
        assert result.returncode == (2 if "main" in code else 1)
