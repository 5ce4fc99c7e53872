"""Every fact that two commands state is equal, on disks of every release with one to three random damages."""

from __future__ import annotations

import json
import re
import shutil
from functools import reduce
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

import kdump
from kdump import jsonl
from kdump.answer import answer_object
from kdump.io import link_boundary
from kdump.io.errors import SourceError
from kdump.io.run import Run
from tests import craft
from tests.command import run
from tests.conftest import FIXTURES, RELEASES, SEED, few, sample
from tests.facts.compare import Contradiction, contradictions, differences, run_all, run_on_bundles, unexplained
from tests.facts.declared import COMMANDS, FACTS, REPORT
from tests.facts.random_damage import SHARED, bases, damaged
from tools import facts_reference

DISKS, AT_ONCE = (600, 30) if SEED else (3, 3)
"""Number of damaged disks, and how many of them are one test."""


def contradictory(source: Path, number: object, root: Path) -> list[Contradiction | str]:
    """Return the contradictions about a damaged copy of a disk, and nulls without a reason; the copy is removed."""
    paths, done = damaged(number, source, root)
    everything = run_all(paths)
    found = [*contradictions(everything), *unexplained(everything)]
    for each in [*paths, *(path for path in root.parent.iterdir() if path.is_symlink())]:
        shutil.rmtree(each) if not each.is_symlink() else each.unlink()
    print(f"{number}: {source.parent.name}/{source.name}: {', '.join(done)}")
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(0, DISKS, AT_ONCE))
def test_commands_agree(first: int, tmp_path: Path) -> None:
    disks = bases()
    for number in range(first, first + AT_ONCE):
        source = disks[number * 7 % len(disks)]
        found = contradictory(source, f"{SEED}{number}", tmp_path / "disk")
        assert not found, "\n".join(map(str, found))


API = ("transactions", "producers", "retention", "space", "reindex")


@pytest.mark.sampled
@pytest.mark.parametrize("number", range(100 if SEED else 1))
def test_a_python_function_gives_what_the_command_prints(number: int, tmp_path: Path) -> None:
    """Except for the summary of `reindex`. The disk may be given as a path, or as one of several."""
    disks = bases()
    paths, _ = damaged(f"{SEED}api{number}", disks[number * 7 % len(disks)], tmp_path / "disk")
    names = [str(path) for path in paths]
    for name in API:
        now = {"now": 1 << 41} if name != "reindex" else {}
        given = {"options" if name == "reindex" else "run": Run(unreadable=lambda error: None), **now}
        given_now = ("--now", str(1 << 41)) if now else ()
        printed_by = run(name, *names, *COMMANDS[name], *given_now, "--json")
        try:
            answers = list(getattr(kdump, name)(names[0] if len(names) == 1 else names, **given))
        except SourceError as refusal:
            assert (printed_by.exit_code, f"kdump: {refusal}") == (2, printed_by.stderr.splitlines()[-1])  # noqa: PT017
            continue
        lines = printed_by.stdout.splitlines()
        stated = sorted(VOLATILE.sub("", line) for line in lines if '"reindexSummary"' not in line)
        assert sorted(VOLATILE.sub("", jsonl.line(answer_object(each)).rstrip()) for each in answers) == stated, name


MENDED = [
    ("logEndOffset", "2.8.2-zk/clean", 155),
    ("logEndOffset", "4.4.0-kraft/crash", 90),
    ("logEndOffset", "4.3.1-kraft/clean", 54),
    ("logStartOffset", "3.9.1-zk/clean", 387),
    ("lastOffset", "3.6.2-kraft/crash", 288),
    ("lastOffset", "4.4.0-kraft/crash", 90),
    ("damages", "3.3.2-zk/crash", 130),
    ("damages", "4.3.1-kraft/clean", 209),
    ("whether retention deletes segments next", "3.3.2-zk/crash", 99),
    ("live partitions", "4.1.0-kraft/clean", 82),
    ("whether an index is right", "3.3.2-zk/crash", 130),
    ("missing partitions", "3.3.2-zk/clean", 36),
    ("whether a topic's configs are known", "3.6.2-kraft/clean", 224),
    ("release", "3.3.2-kraft/clean", 64),
    ("whether retention deletes segments next", "3.3.2-kraft/crash", 562),
    ("open transactions", "3.9.1-zk/crash", 326),
    ("truncated bytes", "3.3.2-zk/crash", 6),
    ("logStartOffset", "3.6.2-zk/clean", 134),
    ("metadata offset", "3.6.2-kraft/controller", 8),
    ("truncated bytes", "4.3.1-kraft/controller", 365),
    ("logStartOffset", "3.9.1-kraft/clean", "pic263"),
    ("whether a topic's configs are known", "3.6.2-kraft/clean", "2026-11-27373"),
    ("whether an index is right", "3.9.1-kraft/crash", "2026-11-28932"),
    ("log end offset after a startup", "4.3.1-kraft/clean", "2026-11-29625"),
    ("whether an index is right", "4.0.0-kraft/crash", "2026-11-29949"),
    ("logEndOffset", FIXTURES / "disk-1", "2026-11-29347"),
    ("remarks on committed offsets", SHARED, "share"),
    ("damages", SHARED, "x108"),
    ("whether a topic's configs are known", FIXTURES / "disk-1", "2026-11-30603"),
]


@pytest.mark.every_disk
@pytest.mark.parametrize(
    ("number", "name"),
    few([(142, "3.3.2-kraft/clean"), (150, "4.4.0-kraft/controller"), (158, "4.1.0-kraft/controller")], 1),
)
def test_what_is_mended_in_bundles(number: int, name: str, tmp_path: Path) -> None:
    """A second directory states another cluster; no partition is left; a batch of the metadata has another magic."""
    paths, _ = damaged(f"2026-11-27bundle{number}", RELEASES / name, tmp_path / "disk")
    bundled = run_on_bundles(paths)
    assert [str(each) for each in differences(run_all(paths), bundled)] == []


@pytest.mark.sampled
@pytest.mark.parametrize(("fact", "name", "number"), sample(MENDED, len(MENDED), "mended"))
def test_what_is_mended(fact: str, name: str | Path, number: object, tmp_path: Path) -> None:
    found = contradictory(RELEASES / name, number, tmp_path / "disk")
    assert [str(each) for each in found if each.fact == fact] == []


VOLATILE = re.compile(
    r'"(?:seconds\w*|now|free\w*|reserved|elsewhere|idle|age|inodesFree|allocated|dated|missingToStart|stateLostAt)"'
    r':[^,}]*|"otherThreads":[^]]*'
)
"""What differs between two runs."""


def printed(command: str, paths: list[str], above: Path) -> str:
    """Return what a command prints about paths below `above`, without the part that differs if they are absolute.
    Kafka's own messages have absolute paths."""
    name, *options = command.split()
    result = run(name, *paths, *options, *COMMANDS.get(command, ()), "--json")
    text = result.stdout + result.stderr
    text = re.sub(rf"((?:Exception: |file (?:at: )?)[\[(]?){above}/", r"\1", text)
    text = text.replace(f"{above}/", "") if paths[0].startswith("/") else text
    return VOLATILE.sub("", re.sub(r"\b(disk\d*(-second)?)/+", r"\1/", text))


@pytest.mark.every_disk
@pytest.mark.sampled
def test_the_spelling_of_a_path_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absolute path, a relative one, and one with a slash at its end are the same disk, partition or segment; every
    path in the output has the form of the one that was given."""
    monkeypatch.chdir(tmp_path)
    for number, source in enumerate(bases() if SEED else [FIXTURES / "clean-2"]):
        # Each has its own name: one that is made again may be taken for the one before, because all are as old.
        paths, _ = damaged(f"{SEED}{number}", source, tmp_path / f"disk{number}")
        below = sorted(each for each in paths[0].iterdir() if each.is_dir())
        segments = sorted(paths[0].glob("*/*.log"))
        for asked in filter(None, (paths, below[:2], segments[:1])):
            names = [str(each.relative_to(tmp_path)) for each in asked]
            given = [list(map(str, asked)), names, [f"{each}/" for each in names]][: 2 if asked[0].is_file() else 3]
            for command in (*(COMMANDS.keys() - {"diff"}), "inspect"):
                assert len({printed(command, each, tmp_path) for each in given}) == 1, (command, names)
        for path in paths:
            shutil.rmtree(path)


def test_a_partition_on_another_file_system_is_one_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link in its log directory leads to it. (The settings of `retention` depend on the time.)"""
    disk = Path(shutil.copytree(FIXTURES / "registry-1", tmp_path / "disk"))
    commands = [*(COMMANDS.keys() - {"retention"}), "doctor", "registry", "connect"]

    def outputs() -> dict[str, str]:
        return {
            command: VOLATILE.sub("", run(*command.split(), disk, *COMMANDS.get(command, ()), "--json").stdout)
            for command in commands
        }

    before = outputs()
    for partition in [path for path in disk.iterdir() if path.is_dir()]:
        partition.symlink_to(partition.rename(tmp_path / f"far-{partition.name}"))
    monkeypatch.setattr(link_boundary, "_is_read", lambda real: True)  # as if that path was passed, too
    assert outputs() == before


def test_a_contradiction_is_found() -> None:
    """The comparison finds what differs."""
    ls = {"type": "logDirectory", "directory": "/d", "cleanShutdown": True}
    answers = {"ls": {"logDirectory": [ls]}, "doctor": {"doctorDisk": [{"path": "/d", "clean": False}]}}
    facts = [fact for fact in FACTS if fact.name == "clean shutdown"]
    (found,) = contradictions(answers, facts)
    assert found.kind == ("clean shutdown", "ls", "doctor")
    assert (found.subject, found.value, found.other_value) == ("/d", "True", "False")
    answers["doctor"]["doctorDisk"][0]["clean"] = True
    assert not list(contradictions(answers, facts))


def test_declarations() -> None:
    """Each fact has a name of its own, two places where it is stated, and a function that exists."""
    assert len({fact.name for fact in FACTS}) == len(FACTS)
    for fact in FACTS:
        assert len(fact.states) > 1, fact.name
        assert {each.command for each in fact.states} <= {*COMMANDS, REPORT, "inspect --read-committed"}, fact.name
        if fact.function:
            module, _, name = fact.function.partition(":")
            reduce(getattr, name.split("."), import_module(f"kdump.{module}"))


def test_the_page() -> None:
    assert (facts_reference.DOCS / "facts.md").read_text() == facts_reference.page()


def impossible(name: str, data: bytes) -> bytes:
    """Return a batch or message with a matching checksum of which something is impossible."""
    is_v2 = data[16] == 2
    count = int.from_bytes(data[57:61], "big")
    changes = {
        "sign": lambda: craft.flip(data, 0),
        "offset": lambda: craft.rebase(data, -1),
        "delta": lambda: craft.patch(data, lastOffsetDelta=-1) if is_v2 else craft.rebase(data, -5),
        "negative count": lambda: craft.patch(data, recordCount=-1) if is_v2 else craft.fix_crc(data[:-1] + b"U"),
        "large count": lambda: craft.patch(data, recordCount=1 << 30) if is_v2 else data,
        "other count": lambda: craft.patch(data, recordCount=count + 1) if is_v2 else data,
        "content": lambda: craft.fix_crc(data[:-20] + bytes(byte ^ 0x5A for byte in data[-20:])),
    }
    return changes[name]()


IMPOSSIBLE = ("sign", "offset", "delta", "negative count", "large count", "other count", "content")
LOGS = ("clean-2/ledger-0", "clean-1/payments-0", "legacy/v0-client09-gzip-0", "legacy/v1-client010-none-0")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "place", "what"), sample(product(LOGS, (0, 1, -1), IMPOSSIBLE), 56, "impossible batches")
)
def test_one_meaning_of_valid(name: str, place: int, what: str, tmp_path: Path) -> None:
    """Every command that counts batches, ends logs or checks them takes the same batches for valid."""
    disk = tmp_path / "disk"
    log = shutil.copytree(FIXTURES / name, disk / Path(name).name) / f"{0:020}.log"
    shutil.copy(FIXTURES / "disk-1" / "meta.properties", disk)
    batches = craft.split(log.read_bytes())
    batches[place] = impossible(what, batches[place])
    log.write_bytes(b"".join(batches))
    everything = run_all([disk])
    assert [*map(str, contradictions(everything)), *unexplained(everything)] == []
    assert [str(each) for each in differences(everything, run_on_bundles([disk]))] == []
    if place == -1 and what in ("sign", "offset", "delta"):
        (row,) = everything["ls"]["partitionLog"]
        before = [json.loads(line)["lastOffset"] for line in run("inspect", log, "--json").stdout.splitlines()]
        assert row["logEndOffset"] == before[-2] + 1
