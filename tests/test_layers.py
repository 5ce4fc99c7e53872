"""Data flows in one direction, and the command line starts without modules that only some commands need."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.each_case import each_case
from tests.sources import nodes

ROOT = Path(__file__).parent.parent


def test_layers() -> None:
    command = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_help_imports_little() -> None:
    code = "import sys; from kdump.cli import cli; cli.main(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.splitlines()[-1].split())
    assert (
        not {"rich", "textual", "pyspark", "fsspec", "zstandard", "lz4", "snappy", "kdump.format", "kdump.log"}
        & modules
    )


def test_table_in_a_pipe_imports_no_codec_it_does_not_use() -> None:
    segment = ROOT / "fixtures" / "clean-1" / "payments-0" / "00000000000000000000.log"
    code = f"import sys; from kdump.cli import cli; cli.main(['inspect', {str(segment)!r}], standalone_mode=False)"
    code += "; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.splitlines()[-1].split())
    assert not {"rich", "pyspark", "fsspec", "zstandard", "snappy"} & modules


@each_case("command, count", [("ls", 132), ("inspect", 184), ("verify", 235)])
def test_imports_nothing_for_what_most_disks_do_not_have(command: str, count: int, tmp_path: Path) -> None:
    """Bundles, messages of v0 and v1, control records, remote storage, findings, metadata."""
    path = shutil.copytree(ROOT / "fixtures" / "clean-1" / "orders-none-0", tmp_path / command / "orders-none-0")
    code = "import sys; from kdump.cli import cli"
    code += f"; cli.main([{command!r}, {str(path)!r}], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.splitlines()[-1].split())
    unused = {"log.remote_objects", "check.engine.remote_check", "io.aiven", "state.metadata_image"}
    unused |= {"questions.ls", "render.hexdump"} if command == "inspect" else set()
    if command == "ls":
        unused |= {"io.withheld", "log.legacy_records", "format.versioned_messages", "problems.catalogue"}
    assert not {"hashlib", *(f"kdump.{name}" for name in unused)} & modules
    assert sum(name.startswith("kdump") for name in modules) <= count


def test_inspect_imports_no_decoder_it_does_not_use() -> None:
    segment = ROOT / "fixtures" / "clean-1" / "payments-0" / "00000000000000000000.log"
    code = "import sys; from kdump.cli import cli"
    code += (
        f"; cli.main(['inspect', {str(segment)!r}, '--json', '--records'], standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.splitlines()[-1].split())
    unused = {"formats", "jsonable", "kafka", "confluent", "avro", "protobuf", "plugins"}
    assert not {"decimal", "fastavro", "google.protobuf", *(f"kdump.decode.{name}" for name in unused)} & modules


def test_no_function_has_more_than_60_lines() -> None:
    """Decorators are not counted, docstrings are."""
    found = [
        f"{path.relative_to(ROOT)} {node.name}"
        for path in (ROOT / "kdump").rglob("*.py")
        for node in nodes(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert not {*found} - {"kdump/spark/embedded_engine.py kind"}  # one match, with a case for each kind of expression


def evaluated(node: ast.AST) -> Iterator[str]:
    """Yield the names that an import of the module evaluates: those outside of functions and annotations."""
    for name, part in ast.iter_fields(node):
        if name in ("annotation", "returns") or (isinstance(node, ast.FunctionDef) and name == "body"):
            continue
        for each in part if isinstance(part, list) else [part]:
            if isinstance(each, ast.Name):
                yield each.id
            if isinstance(each, ast.AST):
                yield from evaluated(each)


def test_lazy_modules_are_imported_and_not_used_at_once() -> None:
    """Python 3.15 imports what __lazy_modules__ names when it is first used (PEP 810)."""
    found = 0
    for path in (ROOT / "kdump").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for names in re.findall(r"(?m)^__lazy_modules__ = ({.*})$", text):
            tree = ast.parse(text)
            bound = [
                (node.module, {each.name for each in node.names})
                for node in tree.body
                if isinstance(node, ast.ImportFrom)
            ]
            assert ast.literal_eval(names) <= {module for module, _ in bound}, path
            lazy = {name for module, names_of in bound if module in ast.literal_eval(names) for name in names_of}
            assert not lazy & set(evaluated(tree)), path
            found += 1
    assert found
