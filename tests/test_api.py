"""The Python API: the examples of docs/api.md, its guarantees for damaged files, and that `import kdump` stays fast."""

from __future__ import annotations

import doctest
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump import jsonl
from kdump.answer import answer_object
from kdump.command_line.typed_options import OPTIONS
from kdump.index import PLACES
from kdump.log.region import Batch
from kdump.query import ADDS
from tests import command, craft
from tests.conftest import FIXTURES, ROOT, each_segment, read_regions
from tests.each_case import each_case
from tools import index

PAGE = ROOT / "docs" / "api.md"
FIRST = f"{0:020}.log"


def examples() -> str:
    """Return the Python examples of the page; a blank line ends the expected output."""
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))


def test_the_examples_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    parsed = doctest.DocTestParser().get_doctest(examples(), {}, str(PAGE), str(PAGE), 0)
    said: list[str] = []
    found = doctest.DocTestRunner(verbose=False).run(parsed, out=said.append)
    assert found.attempted > 15
    assert found.failed == 0, "".join(said)


def test_each_name_has_its_section_and_comes_from_its_module() -> None:
    text = PAGE.read_text()
    for name in kdump.API:
        assert f"kdump.{name}" in text or PAGE.with_name(f"{name}.md").is_file(), name
        assert getattr(kdump, name).__name__ == name
        assert name in dir(kdump)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kdump.nothing  # noqa: B018


def test_type_checkers_see_what_there_is() -> None:
    """What the modules declare is in the index, and in what type checkers read."""
    assert {path: path.read_text() for path in index.texts()} == index.texts()
    assert (ROOT / "kdump" / "py.typed").is_file()


def test_import_is_light() -> None:
    code = "import sys, kdump; print(*(name for name in sys.modules if name.startswith('kdump')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["kdump", "kdump.engine", "kdump.version"]


@each_case("path", each_segment())
def test_open_gives_what_the_reader_gives(path: Path) -> None:
    mine = [(region.kind, region.position, region.size) for region in kdump.open(path).regions()]
    assert mine == [(region.kind, region.position, region.size) for region in read_regions(path)]


def test_a_partition_is_one_log(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    for offset in (0, 3):
        data = craft.batch([craft.record(delta, value=b"%d" % (offset + delta)) for delta in range(3)], offset=offset)
        (folder / f"{offset:020}.log").write_bytes(data)
    log = kdump.open(folder)
    assert [record.value for record in log.records()] == [b"%d" % number for number in range(6)]
    assert [os.path.basename(segment.path) for segment in log.segments] == [f"{0:020}.log", f"{3:020}.log"]
    assert [record.offset for record in log.segments[1].records()] == [3, 4, 5]


def test_damage_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    data = craft.one(b"a") + craft.overwrite(craft.one(b"b", 1), 64, b"\xff") + craft.one(b"c", 2) + b"\0" * 20
    (tmp_path / FIRST).write_bytes(data)
    log = kdump.open(tmp_path / FIRST)
    assert [batch.baseOffset for batch in log.batches()] == [0, 2]
    assert [(batch.baseOffset, batch.crcValid) for batch in log.batches(damaged=True)] == [
        (0, True),
        (1, False),
        (2, True),
    ]
    assert [region.kind for region in log.regions()] == ["batch", "batch", "batch", "padding"]
    assert all(isinstance(region, Batch) for region in list(log.regions())[:3])


def test_a_path_is_one_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function takes one path as it takes several, and refuses none."""
    monkeypatch.chdir(FIXTURES)
    out: dict[str, Any] = {"report": "page.html", "salvage": "salvaged", "bundle": "bundle"}
    for name in kdump.API:
        function = getattr(kdump, name)
        if not (inspect.isfunction(function) and {"paths", "sources"} & {*inspect.signature(function).parameters}):
            continue
        with pytest.raises(ValueError, match="no path was given"):
            function([], *["isControl"] * (name == "find"), **{"out": str(tmp_path)} if name in out else {})
        if name == "diff":
            with pytest.raises(ValueError, match="diff compares two or more paths, not clean-2 alone"):
                list(kdump.diff("clean-2"))
        elif name not in ("registry", "connect", "groups"):  # of which clean-2 has none
            answers = []
            for number, given in enumerate(("clean-2", ["clean-2"])):
                more = {"out": str(tmp_path / f"{number}{out[name]}")} if name in out else {}
                answer = function(given, *["isControl"] * (name == "find"), **more)
                answers.append([*answer] if isinstance(answer, Iterator) else answer)
            assert len(answers[0]) == len(answers[1]) if isinstance(answers[0], list) else answers[1], name


def test_refusals(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path, FIXTURES):
        with pytest.raises(kdump.SourceError):
            kdump.open(path)
    with pytest.raises(kdump.SourceError, match="entries\\(\\)"):
        list(kdump.open(FIXTURES / "clean-1" / "orders-none-0" / f"{0:020}.index").regions())
    with pytest.raises(kdump.SourceError, match="regions\\(\\)"):
        list(kdump.open(FIXTURES / "clean-1" / "orders-none-0" / FIRST).entries())
    with pytest.raises(kdump.SourceError):
        list(kdump.diff([str(FIXTURES / "clean-2"), str(tmp_path / "none")]))
    with pytest.raises(kdump.SourceError):
        list(kdump.stats([str(tmp_path / "none")]))


ANSWERS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "registry": ((), {}),
    "one subject and ID": (("--subject", "orders-value", "--id", "3"), {"subjects": "orders-value", "ids": [3]}),
    "deleted": (("--deleted",), {"show": "deleted"}),
    "history": (("--history", "--subject", "trial-value"), {"show": "history", "subjects": ["trial-value"]}),
    "usage": (("--usage", "--topic", "orders"), {"show": "usage", "topics": ["orders"]}),
    "as of an offset": (("--as-of", "10"), {"as_of": 10}),
    "as of a time": (("--as-of", "1795000010000"), {"as_of": 1795000010000}),
    "connect": ((), {}),
    "connect, offsets": (("--show", "offsets"), {"show": "offsets"}),
    "connect, one connector": (("--connector", "lines-in"), {"connectors": ["lines-in"]}),
    "connect, deleted": (("--deleted",), {"deleted": True}),
    "connect, history": (("--history",), {"history": True}),
}


@each_case("name", ANSWERS)
def test_registry_and_connect_give_what_the_commands_give(name: str) -> None:
    options, keywords = ANSWERS[name]
    kind = name.partition(",")[0] if name.startswith("connect") else "registry"
    disk = str(FIXTURES / f"{kind}-1")
    said = command.run(kind, disk, *options, "--json").stdout.splitlines()
    mine = [answer_object(each) for each in getattr(kdump, kind)(disk, **keywords)]
    assert [json.loads(jsonl.line(each)) for each in mine] == [json.loads(line) for line in said]
    assert len(mine) > 1


def test_registry_and_connect_refuse_what_makes_no_sense(tmp_path: Path) -> None:
    for cluster in ("one", "two"):
        shutil.copytree(FIXTURES / "registry-1" / "_schemas-0", tmp_path / cluster / "_schemas-0")
        (tmp_path / cluster / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster}\n")
    with pytest.raises(ValueError, match="an offset applies to a single log"):
        list(kdump.registry([str(tmp_path / "one"), str(tmp_path / "two")], as_of=3))
    with pytest.raises(ValueError, match="an offset applies to a single log"):
        list(kdump.connect(str(FIXTURES / "connect-1"), as_of=3))
    for function in (kdump.registry, kdump.connect):
        with pytest.raises(ValueError, match="unknown show all; known are"):
            function(str(tmp_path), show="all")
        with pytest.raises(kdump.SourceError):
            list(function(str(tmp_path / "nothing")))


def test_decoded_names_what_it_cannot_use(tmp_path: Path) -> None:
    orders = FIXTURES / "registry-1" / "orders-0"
    with pytest.raises(ValueError, match="there is no format 'xml'"):
        list(kdump.decoded(orders, value_format="xml"))
    with pytest.raises(ValueError, match="no such file or directory"):
        list(kdump.decoded(orders, schemas=tmp_path / "nothing"))


def test_the_function_of_a_command_is_asked_by_the_query_that_carries_its_options() -> None:
    names = {name: {"cluster": "cluster_metadata"}.get(name, name.replace("-", "_")) for name in PLACES}
    asked = {name: getattr(kdump, function) for name, function in names.items() if function in kdump.API}
    assert len(asked) > 15
    for name, function in asked.items():
        if name != "explain":  # its command takes a code or the words of a message, too
            options = getattr(import_module(PLACES[name][0]).command.callback, OPTIONS)
            assert function.query in [each.metadata.get(ADDS) for each in fields(options)], name
