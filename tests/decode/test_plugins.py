"""Decoders that other packages install: entry points of the group kdump.decoders."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FIXTURES, ROOT
from tests.craft import batch, record
from tests.decode.test_kafka_topic_decoders import objects, run
from tests.each_case import each_case

PAYMENTS = FIXTURES / "clean-1" / "payments-0"
MODULE = '''
import sys


def seen(data, about):
    """All that a decoder is told."""
    return {**about._asdict(), "size": len(data)}


def breaks(data, about):
    raise ValueError("no \\x1b[31m sense")


def leaves(data, about):
    sys.exit(3)


class Loops:
    def __call__(self, data, about):
        return self.__call__(data, about)


def hostile(data, about):
    return {"\\x1b]0;gone\\x07": ["\\x1b[2J\\u202e", float("nan"), b"\\xff", {1, }, 10 ** 400]}


def endless(data, about):
    list_ = []
    list_.append(list_)
    return list_


def odd(data, about):
    return object()


def json(data, about):
    return "never asked"


NUMBER = 7
'''
NAMES = ["seen", "breaks", "leaves", "Loops", "hostile", "endless", "odd", "json", "NUMBER"]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a distribution with decoders, in the same form as pip does."""
    (tmp_path / "their_decoders.py").write_text(MODULE)
    about = tmp_path / "their_decoders-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-decoders\nVersion: 1.0\n")
    points = [f"{name} = their_decoders:{name}" for name in NAMES] + ["gone = their_decoders:gone", "no = no_module:x"]
    (about / "entry_points.txt").write_text("[kdump.decoders]\n" + "\n".join(points) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_decoders", raising=False)
    return tmp_path


@pytest.mark.usefixtures("installed")
def test_a_decoder_is_told_where_the_bytes_come_from() -> None:
    at = objects(PAYMENTS, "--decoder", "seen", "--offset", "3")[0]
    told = {"topic": "payments", "partition": 0, "offset": 3, "timestamp": at["timestamp"], "headers": []}
    assert at["keyDecoded"] == {"part": "key", **told, "size": at["keySize"]}
    assert at["valueDecoded"] == {"part": "value", **told, "size": at["valueSize"]}
    at = objects(PAYMENTS, "--key-format", "seen", "--value-format", "json", "--offset", "3")[0]
    assert at["keyDecoded"]["part"] == "key"
    assert at["valueDecoded"]["order"] == 2
    [at] = objects("-", "--decoder", "seen", stdin=batch([record(0, None, b"v", [(b"h", b"\xff")])]))
    assert at["keyDecoded"] is None
    assert at["valueDecoded"]["headers"] == [["aA==", "/w=="]]


WRONG = [
    ("breaks", "decoder breaks: ValueError: no \x1b[31m sense"),
    ("leaves", "decoder leaves: SystemExit: 3"),
    ("Loops", "decoder Loops: RecursionError: "),
    ("endless", "decoder endless: nested deeper than 100 levels"),
    ("odd", "decoder odd: cannot represent object in JSON"),
]


@pytest.mark.usefixtures("installed")
@each_case("name, problem", WRONG)
def test_what_a_decoder_breaks_is_one_record(name: str, problem: str) -> None:
    found = objects(PAYMENTS, "--value-format", name, "--offset", "0..9")
    assert len(found) == 10
    assert all(at["valueProblem"].startswith(problem) for at in found)
    assert not any("valueDecoded" in at for at in found)
    for form in ("--records", "--hex"):
        out = run(PAYMENTS, "--records", form, "--value-format", name, "--offset", "0..9").stdout
        assert "\x1b" not in out
        assert f"! the value does not decode: decoder {name}: " in out


@pytest.mark.usefixtures("installed")
def test_what_a_decoder_says_obeys_no_terminal() -> None:
    [at] = objects(PAYMENTS, "--value-format", "hostile", "--limit", "1")
    assert at["valueDecoded"] == {"\x1b]0;gone\x07": ["\x1b[2J\u202e", "NaN", "/w==", [1], 10**400]}
    for form in ([], ["--json"], ["--columns", "valueDecoded"]):
        out = run(PAYMENTS, "--records", *form, "--value-format", "hostile", "--limit", "1").stdout
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", out)
        assert "gone" in out


@pytest.mark.usefixtures("installed")
@each_case(
    "name, words",
    [
        ("absent", "no format 'absent'; use one of auto, "),
        ("gone", "decoder gone (their_decoders:gone) cannot be loaded: AttributeError: "),
        ("no", "decoder no (no_module:x) cannot be loaded: ModuleNotFoundError: No module named 'no_module'"),
        ("NUMBER", "decoder NUMBER (their_decoders:NUMBER) is not callable"),
    ],
)
def test_a_decoder_that_does_not_load(name: str, words: str) -> None:
    result = run(PAYMENTS, "--records", "--value-format", name)
    assert result.exit_code == 2
    assert words in result.output
    assert name != "absent" or "avro, protobuf, Loops, NUMBER, breaks, endless" in result.output


@pytest.mark.usefixtures("installed")
def test_a_name_of_kdumps_own_stays_its_own() -> None:
    assert objects(PAYMENTS, "--value-format", "json", "--limit", "1")[0]["valueDecoded"]["order"] == 0


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    """Install the two files of the page in the same form as pip does."""
    page = (ROOT / "docs" / "decoders.md").read_text()
    files = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", page, re.M | re.S))
    assert files.keys() == {"pyproject.toml", "page_counters.py"}
    (tmp_path / "page_counters.py").write_text(files["page_counters.py"])
    project = files["pyproject.toml"]
    name, version = (re.search(rf'^{key} = "(.*)"$', project, re.M)[1] for key in ("name", "version"))  # type: ignore[index]
    group, point, value = re.search(  # type: ignore[union-attr]
        r'^\[project\.entry-points\."(.*)"\]\n(\w+) = "(.*)"$', project, re.M
    ).groups()
    about = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{point} = {value}\n")
    segment = batch([record(0, b"page-7", b"\0\x05" + b"\x80\x01" + b"\7"), record(1, b"page-8", b"\1\2")])
    (tmp_path / "counts.log").write_bytes(segment)
    command = [sys.executable, "-m", "kdump", "inspect", "counts.log", "--records", "--value-format", point]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [*command, "--columns", "offset,key,valueDecoded"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = done.stdout.splitlines()
    assert rows[1].split(maxsplit=2) == ["0", "page-7", '{"kind":"views","counts":[5,128,7]}']
    assert rows[3] == "  ! the value does not decode: decoder counters: ValueError: kind 1 is not known"
