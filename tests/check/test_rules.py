"""Checks that each code of the catalogue is reported by one file of check/rules/."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import kdump
from kdump.check.engine.rule_list import RULES
from kdump.check.rule import Observer
from kdump.check.rules.offset_index import IndexRule
from kdump.problems import catalogue
from kdump.problems.catalogue import Declaration, families
from tests.each_case import each_case
from tests.sources import nodes

KDUMP = Path(kdump.__file__).parent
COUNTS_BY_CODE = KDUMP / "check" / "totals.py"
"""The one file of check/ that names codes of several families: it counts what is missing."""


def names_of_codes(path: Path) -> dict[str, str]:
    """Return the constants of a module that are codes, with the code that each declares."""
    return {
        node.targets[0].id: node.value.args[0].value
        for node in ast.iter_child_nodes(nodes(path)[0])
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "id", "") == "Code"
        and isinstance(node.value.args[0], ast.Constant)
    }


def strings(path: Path) -> set[str]:
    """Return the strings in a module."""
    return {node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


SOURCES = sorted(KDUMP.rglob("*.py"))
FILES = sorted(path for path in (KDUMP / "check" / "rules").glob("*.py") if path.stem != "__init__")


def test_every_code_of_the_catalogue_has_one_rule() -> None:
    may_declare = [path for path in SOURCES if "Code(" in path.read_text(encoding="utf-8")]
    declared = [code for path in may_declare for code in names_of_codes(path).values()]
    assert sorted(declared) == sorted(catalogue.findings())
    assert sorted(code for path in FILES for code in names_of_codes(path).values()) == sorted(catalogue.findings())
    for path in FILES:
        for name, code in names_of_codes(path).items():
            assert name == code.upper().replace("-", "_")


@cache
def strings_below_check() -> set[str]:
    """Return the strings in the packages that note problems, which rules report."""
    return {text for folder in ("format", "log") for path in (KDUMP / folder).rglob("*.py") for text in strings(path)}


@each_case("path", FILES, ids=lambda path: path.stem)
def test_every_code_is_reported_by_its_own_file(path: Path) -> None:
    own = names_of_codes(path)
    assert own
    noted = strings_below_check()
    used = {node.id for node in nodes(path) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assert {code for name, code in own.items() if name not in used} <= noted


@each_case("path", [path for path in SOURCES if ".finding(" in path.read_text()], ids=lambda path: path.stem)
def test_no_file_reports_a_code_of_another_one(path: Path) -> None:
    own = names_of_codes(path)
    for call in nodes(path):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "finding":
            assert len(call.args) == 1, f"line {call.lineno}: all but the file is named"
            if isinstance(call.func.value, ast.Name) and call.func.value.id.isupper():
                assert call.func.value.id in own, f"line {call.lineno}"


def test_no_other_file_of_check_names_a_code() -> None:
    for path in (KDUMP / "check").rglob("*.py"):
        if path != COUNTS_BY_CODE:
            assert strings(path) & set(catalogue.findings()) <= set(names_of_codes(path).values()), path


def test_every_rule_is_in_the_list() -> None:
    listed = {name for entry in RULES for name in entry.make.__code__.co_names}
    rules = {
        each
        for module in (importlib.import_module(f"kdump.check.rules.{path.stem}") for path in FILES)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Observer) and each.__module__ == module.__name__
    }
    assert len(rules) > len(RULES) / 2
    assert {each.__name__ for each in rules - {IndexRule}} <= listed


@each_case("code", catalogue.findings().values(), ids=lambda code: code.code)
def test_every_family_can_be_selected(code: Declaration) -> None:
    assert code.family in families(code.family)


def test_the_families_of_the_list_are_those_of_the_codes() -> None:
    assert {family for entry in RULES for family in entry.families} <= {
        code.family for code in catalogue.findings().values()
    }
