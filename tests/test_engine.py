"""Which core runs, and that the same files do without a compiler, and without Cython."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdump.engine import COMPILED, PLAIN, running
from kdump.forensics import tally
from kdump.format import candidates, columns, gather, head_columns, heads, message_set, runs, sound
from kdump.render import cells, record_lines
from tests.conftest import ROOT, segment

CORE = (candidates, columns, gather, head_columns, heads, message_set, runs, sound, cells, record_lines, tally)
INSPECT = ("inspect", str(segment("clean-1/orders-zstd-0")), "--records", "--json")


def kdump(*arguments: str, path: str = "", **environment: str) -> str:
    """What kdump prints, in a process of its own; `path` is put in front of sys.path."""
    code = f"import sys; sys.path.insert(0, {path!r}) if {path!r} else None; from kdump.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, env=os.environ | environment, check=True, cwd="/"
    )
    return done.stdout.decode()


def test_the_engine_that_is_asked_for_runs() -> None:
    """`make test` and `make test-all` run the suite under both engines: KDUMP_ENGINE says which this is."""
    wanted = os.environ.get("KDUMP_ENGINE") or COMPILED
    assert running() == wanted
    for module in CORE:
        assert module.__file__ is not None
        assert module.__file__.endswith(".py") == (wanted == PLAIN)


@pytest.mark.skipif(os.environ.get("KDUMP_ENGINE") == PLAIN, reason="nothing is compiled")
def test_what_is_compiled_is_what_is_there() -> None:
    """Each of the core's modules is compiled, and since it was last changed."""
    core = [path for path in (ROOT / "kdump").rglob("*.py") if path.read_text().startswith("# cython:")]
    assert {path.stem for path in core} == {module.__name__.rpartition(".")[2] for module in CORE}
    for path in core:
        (compiled,) = [
            other for other in path.parent.glob(f"{path.stem}.*.so") if sys.implementation.cache_tag[8:] in other.name
        ]
        assert compiled.stat().st_mtime >= path.stat().st_mtime, f"{path} has changed: make .venv/.ready"


def test_the_version_says_which() -> None:
    assert kdump("--version", KDUMP_ENGINE=PLAIN) == "kdump, version 0.1.0, plain core\n"
    if running() == COMPILED:
        assert kdump("--version", KDUMP_ENGINE="") == "kdump, version 0.1.0, compiled core\n"


def test_both_say_the_same() -> None:
    assert kdump(*INSPECT, KDUMP_ENGINE=PLAIN) == kdump(*INSPECT, KDUMP_ENGINE="")


def test_both_say_the_same_where_some_files_are_decoded() -> None:
    """Decoded records go one by one, others from columns to lines, and all in the order of the files."""
    files = [
        str(segment(f"clean-1/{name}"))
        for name in ("orders-zstd-0", "__consumer_offsets-0", "payments-0", "__transaction_state-0", "orders-none-0")
    ]
    plain = kdump("inspect", *files, "--records", "--json", KDUMP_ENGINE=PLAIN)
    assert plain == kdump("inspect", *files, "--records", "--json", KDUMP_ENGINE="")
    assert plain.count('"keyDecoded"') == 168


def test_without_cython(tmp_path: Path) -> None:
    """The plain core asks nothing of Cython, whether it is installed or not."""
    (tmp_path / "cython.py").write_text("raise ImportError('there is none')")
    assert kdump(*INSPECT, path=str(tmp_path), KDUMP_ENGINE=PLAIN) == kdump(*INSPECT)


def test_without_a_compiler(tmp_path: Path) -> None:
    """What setup.py installs where there is no compiler: the same modules, as Python."""
    environment = {"CC": "/bin/false", "KDUMP_ENGINE": ""}
    where = ["--build-base", str(tmp_path / "base"), "--build-lib", str(tmp_path / "lib")]
    build = [sys.executable, "setup.py", "-q", "build", *where]
    done = subprocess.run(build, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "lib").rglob("*.so"))
    assert kdump("--version", path=str(tmp_path / "lib"), KDUMP_ENGINE="") == "kdump, version 0.1.0, plain core\n"
    assert kdump(*INSPECT, path=str(tmp_path / "lib"), KDUMP_ENGINE="") == kdump(*INSPECT)
