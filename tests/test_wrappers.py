"""A directory above a broker's log directory gets the log directory's own answer, whatever the directories on the way
are called: Strimzi's are /var/lib/kafka/data-0/kafka-log0."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from kdump.io.errors import SourceError
from kdump.io.run import PLAIN_RUN
from kdump.log.find_directories import find_directories
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import PARTITION
from tests.command import run
from tests.conftest import FIXTURES, sample, seeded
from tests.test_typos import MORE, SPARK, of_paths

FIRST = f"{0:020}.log"
NAMES = ("data-0", "kafka-1", "disk-12", "payments-0", "0", "a.b-3", "kafka-log0", "kafka", "x")
COMMANDS = [name for name in of_paths() if name not in (*SPARK, "inspect")]
KEPT = ("__cluster_metadata-0", "__consumer_offsets-0", "orders-none-0", "payments-0", "users-0")


def broken(at: Path) -> Path:
    """A small disk with a damaged segment, an empty partition, and a log that lacks its end."""
    at.mkdir(parents=True)
    for each in (FIXTURES / "disk-1").iterdir():
        if each.is_file():
            shutil.copy(each, at)
        elif each.name in KEPT:
            shutil.copytree(each, at / each.name)
    (at / "empty-0").mkdir()
    log = at / "payments-0" / FIRST
    data = bytearray(log.read_bytes())
    data[200] ^= 1
    log.write_bytes(data)
    return at


def answer(command: str, path: Path, out: Path) -> tuple[int, str]:
    """The exit status and both streams, without the path and what takes time."""
    shutil.rmtree(out, ignore_errors=True)
    more = [text.replace("OUT", str(out / "out")) for text in MORE.get(command, ())]
    out.mkdir()
    if command == "diff":
        more = [str(FIXTURES / "disk-1")]
    forms = {"ls": ["--quick", "--by", "partition"], "inspect": ["--json"], "carve": [], "verify": ["--json"]}
    result = run(command, path, *more, *forms.get(command, []))
    text = " ".join((result.stdout + result.stderr).replace(str(path), "PATH").split())
    if command == "bundle":  # it has the directories above, too
        text = re.sub(r" in [\d.]+ \w+; \d+ directories", "", text)
    return result.exit_code, re.sub(r'\d[\d a-z]* ago|"seconds": ?[\d.e-]+| \d+ ?(?:ms|s)\b', "", text)


@pytest.mark.sampled
@pytest.mark.parametrize("command", ["verify", *sample([name for name in COMMANDS if name != "verify"], 3, "wrappers")])
def test_directories_above_a_log_directory(command: str, tmp_path: Path) -> None:
    """Except for `inspect`, which shows the overview of a log directory, and every segment below another."""
    chance = seeded(f"wrappers {command}")
    own = broken(tmp_path / "own" / "disk")
    expected = answer(command, own, tmp_path / "out")
    top = tmp_path / "above"
    inside = top.joinpath(*chance.choices(NAMES, k=chance.randint(0, 2)), chance.choice(NAMES[:4]))
    inside.parent.mkdir(parents=True, exist_ok=True)
    own.rename(inside)
    code, text = answer(command, top, tmp_path / "out")
    text = text.replace("PATH/" + str(inside.relative_to(top)), "PATH")
    if command == "restart-plan":  # names the log directory in paths
        text = re.sub(rf"(?<![\w./-]){re.escape(inside.name)}/", "disk/", text)
    assert (code, text) == expected, inside


def found_in(path: Path) -> set[tuple[str, str]]:
    """What `find_directories` finds, as the paths of partitions and of segments below `path`."""

    each: set[tuple[str, str]] = set()
    for place in find_directories(str(path), PLAIN_RUN):
        partitions = place.partitions if isinstance(place, LogDirectory) else [place]
        for one in partitions:
            assert isinstance(one, PartitionDirectory)
            each |= {("partition", one.path), *(("file", target.path) for target in one.files())}
    return each


def is_unknown(path: Path, root: Path) -> bool:
    """Whether it is below a directory whose name is none of a partition, in a broker's log directory: `verify` reports
    that directory."""
    return path.is_relative_to(root) and not PARTITION.match(path.relative_to(root).parts[0])


def test_everything_of_every_log_directory_is_found(tmp_path: Path) -> None:
    """Of several below directories of any names, next to each other and below each other, next to what is not Kafka's.
    Nothing of another program's is a partition."""
    chance = seeded("trees")
    for number in range(120):
        top = tmp_path / str(number)
        expected: set[tuple[str, str]] = set()
        for _ in range(chance.randint(1, 4)):
            place = top.joinpath(*chance.choices(NAMES, k=chance.randint(0, 3)))
            place.mkdir(parents=True, exist_ok=True)
            what = chance.choice(["root", "partition", "other", "other below"])
            if what == "root":
                (place / "meta.properties").touch()
            if what in ("root", "partition"):
                part = place / chance.choice(["orders-0", "clicks-1"])
                part.mkdir(exist_ok=True)
                (part / FIRST).touch()
                (place / "bootstrap.checkpoint").touch()
                expected |= {("partition", str(part)), ("file", str(part / FIRST))}
            elif what == "other":
                (place / "notes.txt").touch()
            else:
                (place / "app-7").mkdir(exist_ok=True)
                (place / "app-7" / "x.jar").touch()
        roots = {path.parent for path in top.rglob("meta.properties")}
        expected = {(kind, path) for kind, path in expected if not any(is_unknown(Path(path), root) for root in roots)}
        if not expected:
            with pytest.raises(SourceError, match="no Kafka log directory"):
                found_in(top)
            continue
        found = found_in(top)
        assert expected <= found, sorted(expected - found)
        for kind, path in found - expected:  # what a broker takes for a partition: any directory of such a name
            assert Path(path if kind == "partition" else Path(path).parent).parent in roots, path


def test_a_partition_directory_that_has_no_segment(tmp_path: Path) -> None:
    """Given directly: one that is empty is a partition if it is in a broker's log directory, and else none."""
    for parent, status in (("disk-1", 0), ("above-1", 2)):
        path = tmp_path / parent / "orders-0"
        path.mkdir(parents=True)
        if not status:
            (path.parent / "meta.properties").write_bytes((FIXTURES / "disk-1" / "meta.properties").read_bytes())
        for _ in range(2):
            for command in ("verify", "ls"):
                assert run(command, path).exit_code == status
            (path / "notes.txt").touch()
