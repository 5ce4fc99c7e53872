"""Checks that generated pages and files are up to date."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path
from types import ModuleType

import pytest

import kdump
from kdump.format import java_properties, text_files
from kdump.format.structs import TEXT_FIELDS, structs
from kdump.log.file_kinds import by_name
from tests.conftest import sample
from tests.each_case import each_case
from tools import api_reference, architecture, core_columns, format_reference
from tools.format_reference import DOCS

ROOT = DOCS.parent
FIXTURES = ROOT / "fixtures"
NAMED = re.compile(r"(?<![\w/.-])(?:kdump|tests|tools|bench)/[\w/]+\.(?:py|toml|tsv|java)\b")


def test_the_tables_of_the_format() -> None:
    written = (DOCS / "format.md").read_text()
    assert format_reference.page(written) == written
    told = {match[2] for match in format_reference.MARK.finditer(written)}
    layouts = {struct.name for struct in structs() if struct.schema is None}
    assert layouts - told == {"RecordHeader", "ConsumerProtocolPrefix"}  # with RecordV2, and in messages.md
    assert set(TEXT_FIELDS) <= told


def test_the_messages() -> None:
    written = (DOCS / "messages.md").read_text()
    assert format_reference.messages_page() == written
    assert all(f"\n- **{struct.name}** (" in written for struct in structs() if struct.schema is not None)


def test_the_api() -> None:
    written = (DOCS / "api-reference.md").read_text()
    assert api_reference.page() == written
    assert all(f"\n### kdump.{name}\n" in written for name in kdump.API)


def test_the_picture_of_the_layers() -> None:
    assert architecture.picture() == (DOCS / "architecture.svg").read_text()
    packages = {path.parent.name for path in (DOCS.parent / "kdump").glob("*/__init__.py")}
    drawn = {module.removeprefix("kdump.") for layer in architecture.layers() for module in layer}
    assert packages <= drawn


PARSERS = {
    "partition-metadata": text_files.partition_metadata,
    "meta-properties": java_properties.properties,
    "quorum-state": text_files.json_object,
    "clean-shutdown": text_files.json_object,
}


@pytest.mark.parametrize("kind", PARSERS)
def test_the_names_in_text_files(kind: str) -> None:
    known = {field.name for field in TEXT_FIELDS[kind]}
    files = [
        path for path in FIXTURES.rglob("*") if (found := by_name(str(path))[0]) is not None and found.name == kind
    ]
    names = {line.values["name"] for path in files for line in PARSERS[kind](Path(path).read_bytes()) if line.values}
    assert names
    assert names <= known


@pytest.mark.sampled
def test_modules_that_texts_name_exist() -> None:
    """By file name, or as package.module in a docstring or comment."""
    root = DOCS.parent
    files = [path for name in ("kdump", "tests", "tools", "bench") for path in (root / name).rglob("*.py")]
    names = {path.name for path in files} | {"setup.py"}
    packages = {path.parent.name for path in (root / "kdump").glob("*/__init__.py")}
    missing = []
    for path in sample(sorted((root / "kdump").rglob("*.py")), 7, "texts"):
        for token in tokenize.tokenize(io.BytesIO(path.read_bytes()).readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
                named = set(re.findall(r"\b[a-z_0-9]+\.py\b", token.string)) - names
                for package, module in re.findall(r"(?<![\w./])([a-z]+)\.([a-z_]+)\b(?!\.)", token.string):
                    if package in packages - {"log", "cluster"} and not _is_module(root / "kdump" / package, module):
                        named.add(f"{package}.{module}")
                missing += [(str(path.relative_to(root)), name) for name in sorted(named)]
    assert missing == []


def _is_module(package: Path, name: str) -> bool:
    return (package / name).is_dir() or (package / f"{name}.py").exists()


def test_the_files_that_are_named_exist() -> None:
    folders = (ROOT / name for name in ("docs", "kdump", "tests", "tools", "bench"))
    texts = [*ROOT.glob("*.md"), *(each for folder in folders for each in folder.rglob("*.*"))]
    named = {
        name
        for path in texts
        if path.suffix in (".md", ".py", ".toml")
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


@each_case("module", core_columns.MODULES, ids=lambda module: module.__name__)
def test_the_constants_of_the_compiled_core(module: ModuleType) -> None:
    made = core_columns.path(module).read_text(encoding="utf-8")
    assert made == core_columns.pxd(module), "run: python -m tools.core_columns"
