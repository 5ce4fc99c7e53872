"""`kdump bundle`: commands answer from a bundle as they do from its disk, it contains no secret, and nothing in one
from elsewhere can do harm."""

from __future__ import annotations

import errno
import fcntl
import gzip
import io
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count, product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import zstandard

import kdump
from kdump.cli import COMMANDS as ALL
from kdump.cli import command_of
from kdump.format.batch_header import BATCH_HEADER, MAGIC_POSITION
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.io import file_system
from kdump.io.bundle.index import MAX_FILES
from kdump.io.bundle.members import part_of_directory
from kdump.io.bundle.names import CONTAINER, FORMAT, MANIFEST, container_name
from kdump.io.bundle.tree import open_bundle
from kdump.io.frames import FramesWriter
from kdump.io.low_impact_reads import bytes_read
from kdump.io.mounted_paths import unmount_paths
from kdump.io.run import Limits
from kdump.io.sorted_lines import Extent, SortedLines, extent_of, line_of
from kdump.log.internal_topics import INTERNAL_TOPICS
from kdump.log.region_totals import RegionTotals
from kdump.log.withheld import withheld_segment
from kdump.questions.bundle import directory_writer, sorted_rows
from kdump.questions.bundle.directory_writer import DirectoryWriter
from kdump.questions.bundle.places import DirectoryPlace
from kdump.questions.restart_plan.node.access_rights import Rights
from tests.command import objects, refused, run
from tests.conftest import DISKS, FIXTURES, ROOT, SEED, few, sample, seeded
from tests.craft import batch, one, patch, record, split, write_file
from tests.damages import DAMAGES, DISK_PATHS, OLD, Damage, aged, copy_disk, copy_some, leave_out_alike
from tests.facts.random_damage import WITH_MAGIC, bases, damaged
from tests.questions.restart_plan import restart_damages
from tests.state.test_cluster import TOKEN, int32
from tests.state.test_metadata import config, framed, text
from tests.test_verdicts import leave_out_the_unchanged
from tools.trials.predict import public_directory

CRC_AT = BATCH_HEADER.positions["crc"]
NOT_RECORDS = "indexes,snapshots,checkpoints,files,offsets,producers,transactions,timestamps"
COMMANDS = (
    ("ls",),
    ("ls", "--segments"),
    ("inspect",),
    ("verify", "--only", NOT_RECORDS, "--info"),
    ("verify", "--crc"),
    ("transactions",),
    ("producers",),
    ("groups",),
    ("cluster",),
    ("retention",),
    ("stats",),
    ("restart-plan", "--all"),
)
NO_ANSWER = {"browse", "diff", "explain", "report", "rescue", "scan"}
"""Commands that take a bundle, but do not answer with objects about its partitions alone."""
OF_RECORDS = (("verify", "--info"), ("stats",))
"""Commands whose answers need what --depth records finds."""
PAGE = ROOT / "docs" / "bundle.md"


def unknown_keys(*, deep: bool = False) -> dict[str, set[str]]:
    """Return the JSON keys that docs/bundle.md lists as different, by the type of the object. `deep`: with --depth
    records."""
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ((?:`\w+`(?:, )?)+) \| (.*) \|$", PAGE.read_text(), re.M)
    found: dict[str, set[str]] = {}
    for kinds, keys, what in rows:
        for kind in re.findall(r"`(\w+)`", kinds) if not (deep and "unless `--depth records`" in what) else ():
            found.setdefault(kind, set()).update(re.findall(r"`(\w+)`", keys))
    return found


UNKNOWN, UNKNOWN_DEEP = (unknown_keys(deep=deep) for deep in (False, True))


def bundled(disk: Path, out: Path, *options: str) -> Path:
    done = run("bundle", disk, "--out", out, *options)
    assert done.exit_code == 0, done.stderr
    return out


@contextmanager
def in_place_of(disk: Path, bundle: Path) -> Iterator[None]:
    """Show a bundle at the path of its disk, so that all paths in the output are the same."""
    file_system.mount(str(disk), open_bundle(str(bundle), 1))
    try:
        yield
    finally:
        file_system.unmount(str(disk))


def answer(
    disk: Path, command: tuple[str, ...], unknown: dict[str, set[str]] = UNKNOWN
) -> tuple[int, list[dict[str, Any]]]:
    done = run(*command, "--json", disk)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for row in rows:
        for key in {"seconds", *unknown.get(row["type"], ())}:
            row.pop(key, None)
        for codec in row.get("codecs", ()):
            for key in unknown.get("codecs", ()):
                codec.pop(key)
    return done.exit_code, rows


def assert_same_answers(
    disk: Path,
    bundle: Path,
    commands: tuple[tuple[str, ...], ...] = COMMANDS,
    unknown: dict[str, set[str]] = UNKNOWN,
) -> None:
    for command in commands:
        there = answer(disk, command, unknown)
        with in_place_of(disk, bundle):
            assert answer(disk, command, unknown) == there, command


@pytest.fixture
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ages are the same in both answers."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)


SOME = ("__cluster_metadata-0", "__consumer_offsets-0", "__transaction_state-0")
SOME += ("orders-zstd-0", "payments-0", "users-0")
SOME += ("upgraded-gzip-0", "v0-broker28-none-0", "v0-client09-snappy-0", "v0-librdkafka-lz4-0")
SOME += ("v1-broker28-gzip-0", "v1-client010-lz4-0", "v1-compacted-gzip-0", "v1-logappend-lz4-0")
"""Partitions of which each is of another kind."""


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return aged(copy_some(FIXTURES / "clean-1", tmp_path_factory.mktemp("some") / "disk", *SOME))


CRASHED, TIERED = "some of kafka-4.3/crash-1", "kafka-4.3-tiered/disk"


def healthy_disks(*quick: str) -> list[Any]:
    """Return the names of healthy disks as parameters; all but `quick` run in make test-all."""
    legacy = ("some of kafka-2.8-legacy", "kafka-2.8-legacy")
    names = ("kafka-4.3/clean-0", CRASHED, "kafka-4.3/crash-1", *legacy, TIERED)
    return [pytest.param(name, marks=() if name in quick else pytest.mark.every_disk) for name in names]


def healthy(name: str, tmp_path: Path) -> Path:
    """Return one of HEALTHY: a disk, or a copy with SOME of its partitions."""
    disk = DISKS / name.removeprefix("some of ")
    return disk if disk == DISKS / name else aged(copy_some(disk, tmp_path / "disk", *SOME))


@pytest.mark.usefixtures("_no_clock")
@pytest.mark.parametrize("name", few(healthy_disks(CRASHED, TIERED), 1))
def test_the_answers_of_a_healthy_disk(name: str, tmp_path: Path) -> None:
    disk = healthy(name, tmp_path)
    bundle = bundled(disk, tmp_path / "bundle")
    assert_same_answers(disk, bundle)
    assert_totals(bundle)
    assert_totals(bundled(disk, tmp_path / "headers", "--depth", "headers"))
    deep = bundled(disk, tmp_path / "deep", "--depth", "records")
    assert_same_answers(disk, deep, OF_RECORDS, UNKNOWN_DEEP)
    assert_doctor_says_the_same(disk, bundle, deep)


def assert_doctor_says_the_same(disk: Path, bundle: Path, deep: Path) -> None:
    """The same, and that records were not examined, unless all partitions are of Kafka's own topics, which are
    complete; with --depth records, all is the same."""
    there = answer(disk, ("doctor",))
    with in_place_of(disk, deep):
        assert answer(disk, ("doctor",)) == there
    with in_place_of(disk, bundle):
        status, here = answer(disk, ("doctor",))
    if any(path.name.partition("-")[0] not in INTERNAL_TOPICS for path in disk.glob("*-[0-9]")):
        page, damage = here[-1], next(row for row in here if row.get("question") == "damage" and "notExamined" in row)
        assert "records are not in the bundle" in damage["notExamined"]
        assert not page["isComplete"]
        assert not damage["isComplete"]
        damage["notExamined"].remove("records are not in the bundle")
        for row in (*here, *there[1]):
            row.pop("isComplete", None)
    assert (status, here) == there


def assert_totals(bundle: Path) -> None:
    """The totals in the index are those of the regions in the bundle."""
    tree = open_bundle(str(bundle), 1)
    for path in bundle.glob("0/*" + CONTAINER):
        inside = unquote(path.name.removesuffix(CONTAINER)) if path.name != "%" + CONTAINER else ""
        for name in [file.name for file in tree.directory(inside).files()]:
            if re.fullmatch(r"\d{20}\.log", name):
                source = withheld_segment(tree.open(f"{inside}/{name}".lstrip("/"), name))
                assert source is not None
                totals = RegionTotals(int(name[:20]))
                for region in source.stored_regions(0, Limits(), runs=False):
                    totals.region(region)
                assert source.totals() == totals.finished(), (inside, name)


LEFT_OUT = ("control-key-short", "control-value-short")
"""Damage that turns a control batch into one whose records might be anything."""
UNKNOWN_START = ("kraft-snapshot-junk-clean-0", "kraft-snapshot-junk-clean-1")
"""Damage of which a broker reads more than the bundle has."""


@pytest.mark.sampled
@pytest.mark.usefixtures("_no_clock")
@pytest.mark.parametrize("damage", sample(DAMAGES, 500, "bundle"), ids=lambda damage: damage.name)
def test_the_answers_of_a_damaged_disk(damage: Damage, tmp_path: Path) -> None:
    source = DISKS / DISK_PATHS[damage.disk]
    disk = copy_disk(source, tmp_path / "disk")
    damage.apply(disk)
    leave_out_the_unchanged(disk, source)
    aged(disk)
    bundle = bundled(disk, tmp_path / "bundle")
    if damage.name in LEFT_OUT:
        assert run("transactions", bundle).exit_code == 2
        return
    left_out = set()
    if damage.name in UNKNOWN_START:
        assert run("restart-plan", bundle).exit_code == 2
        left_out.add("restart-plan")
    if run("verify", "--only", "records", disk).exit_code:
        left_out.add("stats")  # without --depth records it counts the records that headers state
    assert_same_answers(disk, bundle, tuple(command for command in COMMANDS if command[0] not in left_out))
    assert_totals(bundle)
    deep = bundled(disk, tmp_path / "deep", "--depth", "records")
    assert_same_answers(disk, deep, OF_RECORDS, UNKNOWN_DEEP)


LISTING = ("transactions", "producers", "retention")
QUESTIONS: tuple[tuple[str, ...], ...] = (
    *((*command, "--list") if command[0] in LISTING else command for command in COMMANDS),
    ("groups", "--offsets"),
    ("registry",),
    ("connect",),
    ("space",),
    ("rescue", "--dry-run"),
    ("doctor",),
)


def stated(disks: list[Path], command: tuple[str, ...]) -> tuple[int, list[dict[str, Any]], bool]:
    """Return exit status and rows without what a bundle never knows, and whether something is not in the bundle."""
    done = run(*command, "--json", *disks)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for row in rows:
        if row["type"].startswith("doctor"):
            row.pop("isComplete", None)
            if row.get("question") == "groups":
                row.pop("answer", None)  # as recordsBehind of group
            row["notExamined"] = [each for each in row.get("notExamined", ()) if "not in the bundle" not in each]
            if row.get("code") == "retention-futureTimestamp":
                row.pop("offset")  # as in retentionHold
        for key in {"seconds", *UNKNOWN.get(row["type"], ())}:
            row.pop(key, None)
        if isinstance(row.get("unread"), list):
            row["unread"] = [each for each in row["unread"] if "is not in the bundle" not in each]
        for codec in row.get("codecs", ()):
            for key in UNKNOWN["codecs"]:
                codec.pop(key)
    return done.exit_code, rows, "not in the bundle" in done.stderr + done.stdout


ONE_BIT = [("20261129bundle", number) for number in (10, 21, 48, 262, 451)]
"""Disks with a damaged batch that has one flipped bit: a transaction marker, one of the last segment, the first of a
transaction; and the magic of the last batch. The last is a log twice, from an odd byte on."""


@pytest.mark.sampled
@pytest.mark.usefixtures("_no_clock")
@pytest.mark.parametrize(
    ("seed", "number"), [*sample(ONE_BIT, 4), *((f"{SEED}bundle", number) for number in range(500 if SEED else 1))]
)
def test_the_answers_of_a_randomly_damaged_disk(seed: str, number: int, tmp_path: Path) -> None:
    """The same, or that something is not in the bundle."""
    disks = bases()
    source = disks[number * 7 % len(disks)]
    paths, done = damaged(f"{seed}{number}", source, tmp_path / "disk", changes=WITH_MAGIC)
    there = {command: stated(paths, command) for command in QUESTIONS}
    with ExitStack() as stack:
        for path in paths:
            stack.enter_context(in_place_of(path, bundled(path, tmp_path / f"{path.name}.bundle")))
        here = {command: stated(paths, command) for command in QUESTIONS}
    if here[("cluster",)][2]:
        return  # without the metadata, other answers are less, too
    for command, (status, rows, _) in there.items():
        here_status, here_rows, lacks = here[command]
        is_stated = here_status >= 2 or any("not in the bundle" in str(row.get("errors")) for row in here_rows)
        if command[0] == "space" or (lacks and is_stated):
            continue  # most of it is about the host
        assert (here_status, here_rows) == (status, rows), (command, source, done)


@pytest.mark.usefixtures("_no_clock")
@pytest.mark.parametrize("is_clean", few([True, False], 1))
def test_batches_that_a_broker_takes_for_messages(is_clean: bool, tmp_path: Path) -> None:
    """No checksum covers the magic. A broker decompresses what it takes for a wrapper, by a byte of the checksum."""
    disk = copy_some(FIXTURES / "disk-1", tmp_path / "disk", "payments-0")
    if not is_clean:
        (disk / ".kafka_cleanshutdown").unlink()
    for magic, codec in product((0, 1, 0x82), range(8)):
        data = next(data for n in count() if (data := one(b"value %d" % n))[CRC_AT] & 7 == codec)
        data = data[:MAGIC_POSITION] + bytes([magic]) + data[MAGIC_POSITION + 1 :]
        write_file(disk / f"magic{magic}-{codec}" / f"{0:020}.log", data + one(b"next", 1))
    aged(disk)
    assert_same_answers(disk, bundled(disk, tmp_path / "bundle"))


def test_a_redacted_batch_that_a_broker_takes_for_a_message(tmp_path: Path) -> None:
    """The checksum of a batch with names is not in the bundle: neither is that of the message."""
    disk = copy_some(FIXTURES / "disk-1", tmp_path / "disk", "__consumer_offsets-0")
    (disk / ".kafka_cleanshutdown").unlink()
    segment = disk / "__consumer_offsets-0" / f"{0:020}.log"
    for magic, data in product((0, 1, 0x82), [segment.read_bytes()]):
        segment.write_bytes(data[:MAGIC_POSITION] + bytes([magic]) + data[MAGIC_POSITION + 1 :])
        done = run("restart-plan", bundled(aged(disk), tmp_path / f"redacted{magic}", "--redact"))
        assert done.exit_code == 2
        assert "the checksum of the batch at byte 0 is not in the bundle" in done.stdout + done.stderr


@pytest.mark.usefixtures("_no_clock")
@pytest.mark.parametrize(
    "links", few([{"a-0": "payments-0", "up": ".."}, {"me-0": ".", "z-0": "payments-0"}], 1), ids=" ".join
)
def test_the_answers_of_a_disk_with_links(links: dict[str, str], tmp_path: Path) -> None:
    disk = copy_some(FIXTURES / "clean-1", tmp_path / "disk", *SOME)
    for link, to in links.items():
        (disk / link).symlink_to(to)
    aged(disk)
    assert_same_answers(disk, bundled(disk, tmp_path / "bundle"))


def test_a_log_directory_in_another(tmp_path: Path) -> None:
    disk = copy_disk(FIXTURES / "clean-1", tmp_path / "disk")
    inner = disk / "inner"
    shutil.copytree(disk / "payments-0", inner / "orders-0")
    for paths in ((disk, inner), (inner, disk)):
        out = tmp_path / paths[0].name
        assert run("bundle", *paths, "--out", out if out != disk else tmp_path / "b").exit_code == 0
        listed = objects("ls", out if out != disk else tmp_path / "b")
        assert {"payments", "orders"} <= {row.get("topic") for row in listed}


@pytest.mark.parametrize("packed", [False, True])
def test_a_bundle_is_read_anywhere(packed: bool, tmp_path: Path) -> None:
    disk = FIXTURES / "clean-1"
    bundle = bundled(disk, tmp_path / "b", "--tar", str(tmp_path / "b.tar"))
    path = tmp_path / "elsewhere.tar" if packed else tmp_path / "elsewhere"
    shutil.move(tmp_path / "b.tar" if packed else bundle, path)
    here, there = run("ls", path), run("ls", disk)
    assert here.exit_code == 0
    assert here.stdout.replace(str(path), str(disk)) == there.stdout
    assert "a bundle of" in here.stderr
    assert len(objects("inspect", path / "payments-0")) == len(objects("inspect", disk / "payments-0")) > 0


def test_several_log_directories(tmp_path: Path) -> None:
    disks = [DISKS / "kafka-4.3/clean-1", DISKS / "kafka-4.3/clean-2"]
    done = run("bundle", *disks, "--out", tmp_path / "b", "--json")
    assert done.exit_code == 0
    listed = objects("ls", tmp_path / "b")
    assert [row["directory"] for row in listed if row["type"] == "logDirectory"] == [
        str(tmp_path / "b" / disk.name) for disk in disks
    ]


def test_transactions_of_one_record_take_few_bytes(tmp_path: Path) -> None:
    """At most 18 bytes per batch and a thousandth of the log, COMMIT markers included."""
    dice, sequences = seeded("transactions"), dict.fromkeys(range(1000, 1500), 0)
    marker = record(key=struct.pack(">hh", 0, 1), value=struct.pack(">hi", 0, 7))
    time, batches = 1_700_000_000_000, []
    for offset in range(0, 20_000, 2):
        producer = dice.randrange(1000, 1500)
        time += dice.randrange(50)
        fields = {"producerId": producer, "producerEpoch": 0, "baseTimestamp": time, "maxTimestamp": time}
        own = {"attributes": 0x10, "baseSequence": sequences[producer], **fields}
        batches.append(one(dice.randbytes(20), offset, **own))
        batches.append(batch(marker, count=1, offset=offset + 1, attributes=0x30, **fields))
        sequences[producer] += 1
    log = write_file(tmp_path / "t-0" / f"{0:020}.log", b"".join(batches))
    made = objects("bundle", log.parent, "--out", tmp_path / "b")[0]
    assert made["bundleBytes"] < 18 * len(batches) + made["segmentBytes"] / 1000


def test_what_was_not_read_is_said_first(tmp_path: Path) -> None:
    disk = FIXTURES / "clean-1"
    complete = bundled(disk, tmp_path / "crc")
    first, *_, last = run("verify", complete).stdout.splitlines()
    assert "the records of" in first
    assert "as far as it is in the bundle" in last
    quick = bundled(disk, tmp_path / "headers", "--depth", "headers")
    first = run("verify", quick, "--crc").stdout.splitlines()[0]
    assert "the checksums of" in first
    [summary] = (row for row in objects("verify", quick) if row["type"] == "summary")
    assert set(summary["notInBundle"]) == {"records", "checksums"}
    assert run("verify", complete, "--only", "records").exit_code == 2
    assert run("inspect", complete, "--records").exit_code == 2
    assert run("inspect", complete / "payments-0", "--hex").exit_code == 2


@pytest.mark.parametrize("command", sorted({"salvage", "carve", "dump-log"}))
def test_other_commands_take_no_bundle(command: str, tmp_path: Path) -> None:
    assert not command_of(command).mounts
    bundle = bundled(FIXTURES / "clean-1" / "payments-0", tmp_path / "b")
    assert f", on {FIXTURES / 'clean-1' / 'payments-0'}" in refused(command, bundle), "where to run it"


@pytest.mark.sampled
@pytest.mark.parametrize("recipe", sample(restart_damages.chosen(), 240, "restarts"), ids=lambda recipe: recipe.name)
def test_starts_are_predicted(recipe: restart_damages.Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rights, "name", property(lambda self: str(self.user)))  # users are of the bundle's host
    with public_directory() as root, ExitStack() as stack:
        source = DISKS / DISK_PATHS[recipe.disk]
        disk = copy_disk(source, root / "disk")
        directories = [path for path in recipe.node(disk).paths if path.is_dir()]
        leave_out_alike(disk, source)
        there = run("restart-plan", "--all", "--json", *directories)
        for number, path in enumerate(directories):
            out = tmp_path / f"bundle-{number}"
            if run("bundle", path, "--out", out).exit_code == 2 and not out.exists():
                continue  # not mounted
            stack.enter_context(in_place_of(path, out))
        here = run("restart-plan", "--all", "--json", *directories)
    if recipe.name in ("marker-recovery", *LEFT_OUT):
        assert here.exit_code == 2
        assert "not in the bundle" in here.stderr
        return
    assert here.exit_code == there.exit_code
    if recipe.name == "metadata-file":  # a file with the name of the directory is not copied
        assert "__cluster_metadata-0: not in the bundle" in here.stdout
        return
    rows = [[json.loads(line) for line in done.stdout.splitlines()] for done in (there, here)]
    for row in (*rows[0], *rows[1]):
        for key in {"seconds", *UNKNOWN.get(row["type"], ())}:
            row.pop(key, None)
    assert rows[1] == rows[0]


def test_a_start_is_unknown_without_checksums(tmp_path: Path) -> None:
    """Recovery verifies them."""
    disk = copy_some(DISKS / "kafka-4.3/crash-1", tmp_path / "disk", *SOME)
    bundle = bundled(disk, tmp_path / "headers", "--depth", "headers")
    done = run("restart-plan", bundle)
    assert done.exit_code == 2
    assert "as far as the files could be read" in done.stdout.splitlines()[0]
    assert "checksum" in done.stdout + done.stderr


@pytest.mark.every_disk
def test_a_report_draws_the_same_charts(some: Path, deep: Path, small: Path, tmp_path: Path) -> None:
    """Their specifications are the same."""
    drawn = {}
    for made, source, jobs in (("disk", some, "1"), ("crc", small, "2"), ("records", deep, "1")):
        path = shutil.copytree(source, tmp_path / f"of-{made}" / some.name)
        out = tmp_path / made
        done = run("report", path, "--out", f"{out}.html", "--charts", out, "--chart-format", "svg", "--jobs", jobs)
        assert done.exit_code == 0
        drawn[made] = {file.name: file.read_text() for file in out.iterdir()}
    for depth, missing in (("crc", {"top-keys.svg", "compression.svg"}), ("records", {"top-keys.svg"})):
        assert {name for name in drawn["disk"] if drawn["disk"][name] != drawn[depth].get(name)} == missing
        assert "top-keys.svg" not in drawn[depth]
        text = (tmp_path / f"{depth}.html").read_text()
        assert ("are not in the bundle and were not checked" in text) == (depth == "crc")


def test_the_api_takes_bundles(tmp_path: Path) -> None:
    disk = copy_some(DISKS / "kafka-4.3/clean-1", tmp_path / "disk", *SOME)
    bundled(disk, tmp_path / "b", "--tar", str(tmp_path / "b.tar"))
    log = kdump.open(tmp_path / "b.tar" / "payments-0")
    assert [batch.baseOffset for batch in log.batches()] == [
        batch.baseOffset for batch in kdump.open(disk / "payments-0").batches()
    ]
    assert {each.topic for each in kdump.stats([str(tmp_path / "b")])} == {
        each.topic for each in kdump.stats(str(disk))
    }
    [compared] = kdump.diff([str(tmp_path / "b" / "payments-0"), str(disk / "payments-0")])
    assert compared.relation == "same"
    assert kdump.restart_plan([str(tmp_path / "b")]).verdict == kdump.restart_plan([str(disk)]).verdict
    with pytest.raises(kdump.SourceError, match="not in the bundle"):
        list(log.records())
    unmount_paths()


def test_an_empty_directory_of_a_broker_is_bundled(tmp_path: Path) -> None:
    empty = tmp_path / "not-mounted"
    empty.mkdir()
    assert run("bundle", empty, "--out", tmp_path / "alone").exit_code == 2
    bundle = tmp_path / "b"
    assert run("bundle", FIXTURES / "clean-1", empty, "--out", bundle).exit_code == 0
    assert run("ls", bundle / "clean-1").exit_code == 0


OF_COPIES = (("diverged-1", "diverged-2"), ("clean-1", "clean-2"), ("clean-0", "clean-1"))
PACKED = ((0,), (1,), (0, 1))


@pytest.mark.parametrize(
    ("names", "packed"),
    [
        pytest.param(names, packed, marks=[] if number == which else [pytest.mark.every_disk])
        for number, names in enumerate(OF_COPIES)
        for which, packed in enumerate(PACKED)
    ],
)
def test_copies_are_compared(names: tuple[str, str], packed: tuple[int, ...], tmp_path: Path) -> None:
    """tests/questions/diff/test_diff.py does the same with all of its copies."""
    disks = [DISKS / "kafka-4.3" / name for name in names]
    there = run("diff", "--json", *disks)
    with ExitStack() as stack:
        for number in packed:
            stack.enter_context(in_place_of(disks[number], bundled(disks[number], tmp_path / str(number))))
        here = run("diff", "--json", *disks)
    assert here.exit_code == there.exit_code == 1
    rows = [[json.loads(line) for line in done.stdout.splitlines()] for done in (there, here)]
    of_disks, of_bundles = ([row | {"seconds": 0} for row in each if row["type"] != "difference"] for each in rows)
    assert of_bundles == of_disks
    first = [next((row for row in each if row["isDivergence"]), {}) for each in map(differences, rows)]
    assert first[0].get("offset") == first[1].get("offset") == (None if names[0] == "clean-0" else 50)


def cleaned_once_more(disk: Path) -> None:
    """Remove the first record of a batch of users-0, as the log cleaner removes one that a later record replaces."""
    segment = disk / "users-0" / f"{0:020}.log"
    parts = split(segment.read_bytes())
    number = next(n for n, part in enumerate(parts) if int.from_bytes(part[57:61], "big") == 6)
    data = parts[number]
    size, at, shift = 0, 61, 0
    while True:  # the length of the first record, a varint
        size |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 0x80:
            break
    rest = data[at + (size >> 1) :]
    made = patch(data[:61] + rest, batchLength=49 + len(rest), recordCount=5)
    segment.write_bytes(b"".join((*parts[:number], made, *parts[number + 1 :])))


@pytest.mark.parametrize(
    ("keys", "is_compared"),
    [((b"0123456789abcdef",) * 2, True), ((b"0123456789abcdef", b"another key, too"), False), ((), False)],
)
def test_hashes_show_what_a_copy_lacks(keys: tuple[bytes, ...], is_compared: bool, tmp_path: Path) -> None:
    """Though not whether the log cleaner removed it: there are no hashes of keys."""
    disks = [copy_some(DISKS / "kafka-4.3/clean-1", tmp_path / name, *SOME) for name in ("one", "other")]
    cleaned_once_more(disks[1])
    there = objects("diff", *disks, "--topic", "users", status=1)
    [lost] = differences(there)
    assert lost["kind"] == "missing"
    bundles = []
    for number, disk in enumerate(disks):
        options: list[str] = []
        if keys:
            (tmp_path / f"key-{number}").write_bytes(keys[number])
            options = ["--hash-key", str(tmp_path / f"key-{number}")]
        bundles.append(bundled(disk, tmp_path / f"b-{number}", *options))
        assert not any(key in contents(bundles[-1]) for key in keys)
    with in_place_of(disks[0], bundles[0]), in_place_of(disks[1], bundles[1]):
        here = run("diff", "--json", *disks, "--topic", "users")
    rows = [json.loads(line) for line in here.stdout.splitlines()]
    assert here.exit_code == 2
    if not is_compared:
        assert "notInBundle" in {row["kind"] for row in differences(rows)}
        return
    mixed = objects("diff", bundles[0], disks[1], "--topic", "users", "--hash-key", tmp_path / "key-0", status=2)
    for found in (rows, mixed):
        missing, same = differences(found)
        assert (missing["kind"], same["kind"]) == ("notInBundle", "rewritten")
        assert [missing[key] for key in ("offset", "records")] == [lost[key] for key in ("offset", "records")]


def test_a_hash_key_is_checked(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"short")
    for name in ("short", "missing"):
        for command in (("bundle", FIXTURES / "clean-1", "--out", tmp_path / "b"), ("diff", FIXTURES, FIXTURES)):
            assert str(tmp_path / name) in refused(*command, "--hash-key", tmp_path / name)
    assert not (tmp_path / "b").exists()


def differences(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["type"] == "difference"]


def test_unknown_checksums_are_not_taken_for_matching_ones(tmp_path: Path) -> None:
    bundle = bundled(FIXTURES / "clean-1" / "payments-0", tmp_path / "headers", "--depth", "headers")
    [found] = [row for row in objects("diff", bundle, FIXTURES / "clean-1" / "payments-0") if row["type"] == "diff"]
    assert ["checksums" in " ".join(copy["notes"]) for copy in found["copies"]] == [True, False]


def test_what_is_unknown_of_records_is_null(tmp_path: Path) -> None:
    bundle = bundled(FIXTURES / "clean-1" / "payments-0", tmp_path / "b")
    [shallow] = objects("stats", bundle)
    assert {key for key in shallow if shallow[key] is None} >= UNKNOWN["stats"]
    assert "--depth records" in run("stats", bundle).stdout
    deep = bundled(FIXTURES / "clean-1" / "payments-0", tmp_path / "deep", "--depth", "records")
    [known] = objects("stats", deep)
    assert {key for key in known if known[key] is None} & UNKNOWN["stats"] == UNKNOWN_DEEP["stats"]
    first, *_ = run("verify", deep).stdout.splitlines()
    assert "not in the bundle" not in first


def test_sums_are_not_used_after_other_records(tmp_path: Path) -> None:
    """How late a record is depends on those before it."""
    source = copy_disk(FIXTURES / "clean-1" / "payments-0", tmp_path / "payments-0")
    for offset, stamp in ((0, 1_700_000_000_000), (10, 1_600_000_000_000), (20, 1_500_000_000_000)):
        data = one(b"v", offset=offset, baseTimestamp=stamp, maxTimestamp=stamp)
        (source / f"{offset:020}.log").write_bytes(data)
    aged(source)
    bundle = bundled(source, tmp_path / "b", "--depth", "records")
    for _ in range(3):
        assert_same_answers(source, bundle, (("stats",),), UNKNOWN_DEEP)
        alone = sorted(source.glob("*.log"))[-1]
        [there], [here] = objects("stats", alone), objects("stats", bundle / alone.name)
        assert here["late"] in (there["late"], None)
        sorted(source.glob("*.log"))[0].unlink()
        aged(source)
        if any(source.glob("*.log")):
            bundled(source, bundle, "--depth", "records")
        else:
            break


def test_records_of_a_topic(tmp_path: Path) -> None:
    disk = FIXTURES / "clean-1"
    bundle = bundled(disk, tmp_path / "b", "--records", "orders-*")
    for partition in ("orders-none-0", "__consumer_offsets-0"):
        there = run("inspect", "--records", "--json", disk / partition)
        with in_place_of(disk, bundle):
            here = run("inspect", "--records", "--json", disk / partition)
        assert (here.exit_code, here.stdout) == (0, there.stdout), partition
    assert run("inspect", "--records", bundle / "payments-0").exit_code == 2
    small = bundled(disk, tmp_path / "small", "--no-internal")
    assert run("groups", small).exit_code == 2


# --- What it must not contain -----------------------------------------------------------------------------------------

CANARY = b"canary-%02d-0123456789abcd"


def contents(bundle: Path) -> bytes:
    """Return everything in a bundle, expanded."""
    found = []
    for path in bundle.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found.append(data)
            for match in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), data):
                unpacker = zstandard.ZstdDecompressor().decompressobj()
                try:
                    found.append(unpacker.decompress(data[match.start() :]))
                except zstandard.ZstdError:
                    continue
    return b"\0".join(found)


def secret_disk(root: Path) -> list[bytes]:
    """Create a disk with a canary in each field that a bundle must not have, and return the canaries."""
    canaries = [CANARY % number for number in range(12)]
    key, value, header, header_key, salt, stored, server, token, removed, password, plugin, torn = canaries
    assert all(len(each) == 24 for each in canaries)
    fields = record(0, key=key, value=value, headers=[(header_key + b"\xff", header)])
    data = [batch(fields, offset=number, codec=codec) for number, codec in enumerate(("none", "zstd", "gzip"))]
    topic = root / "topic-0"
    topic.mkdir(parents=True)
    log = b"".join(data) + value * 3 + b"".join(data[:1]) + torn * 5
    (topic / f"{0:020}.log").write_bytes(log)
    write_file(root / "other-0" / f"{0:020}.log", batch(record(0, value=b"other")))
    (topic / "notes.txt").write_bytes(value)
    (topic / f"{0:020}.log.deleted").write_bytes(log)
    metadata = root / "__cluster_metadata-0"
    metadata.mkdir()
    secrets = [
        framed(11, text("ann") + b"\x01" + b"".join(map(sized, (salt, stored, server))) + int32(4096) + b"\0"),
        framed(10, TOKEN.replace(text("id-1"), text(token.decode()))),
        framed(26, text(removed.decode()) + b"\0"),
        config(4, "1", "ssl.keystore.password", password.decode()),
        config(4, "", "my.plugin.setting", plugin.decode()),
    ]
    (metadata / f"{0:020}.log").write_bytes(b"".join(one(each, offset=number) for number, each in enumerate(secrets)))
    (root / "bootstrap.checkpoint").write_bytes(
        b"".join(one(each, offset=number) for number, each in enumerate(secrets))
    )
    packed = metadata / f"{len(secrets):020}.log"
    packed.write_bytes(
        one(secrets[0], offset=len(secrets), codec="gzip") + one(secrets[3] + b"rest", offset=len(secrets) + 1)
    )
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\ndirectory.id=y\n")
    return canaries


def sized(data: bytes) -> bytes:
    return bytes([len(data) + 1]) + data


@pytest.mark.parametrize(
    "options",
    [(), ("--depth", "headers"), ("--depth", "records"), ("--records", "other"), ("--hash-key", str(ROOT / "LICENSE"))],
    ids=" ".join,
)
def test_no_record_and_no_secret_leaves_the_broker(options: tuple[str, ...], tmp_path: Path) -> None:
    canaries = secret_disk(tmp_path / "disk")
    everything = (tmp_path / "disk" / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()
    assert all(each in everything for each in canaries[4:11]), "the disk has what the bundle must not have"
    out = tmp_path / "b"
    done = run("bundle", tmp_path / "disk", "--out", out, *options)
    assert done.exit_code == 0, done.stderr
    inside = contents(out)
    assert b"ssl.keystore.password" in inside, "names are in it"
    assert [each for each in canaries if each in inside or each.hex().encode() in inside] == []
    cluster = [json.loads(line) for line in run("cluster", out, "--json").stdout.splitlines()]
    shown = {row["name"]: row["value"] for row in cluster if row["type"] == "clusterConfig"}
    assert set(shown["my.plugin.setting"]) == {"*"}
    assert [row["name"] for row in cluster if row["type"] == "clusterScram"] == ["ann"]


def test_records_that_are_asked_for_bring_no_secret(tmp_path: Path) -> None:
    canaries = secret_disk(tmp_path / "disk")
    inside = contents(bundled(tmp_path / "disk", tmp_path / "b", "--records", "*"))
    assert canaries[1] in inside, "the values of the topic"
    assert [each for each in canaries[4:11] if each in inside] == []


SCRAM = framed(11, text("ann") + b"\x01" + b"".join(map(sized, [CANARY % 1] * 3)) + int32(4096) + b"\0")
CONTROL_BIT = 1 << 5
HIDING_PLACES = {
    "a control batch": ("__cluster_metadata-0", f"{0:020}.log", one(SCRAM, attributes=CONTROL_BIT)),
    "a control batch of a client": ("topic-0", f"{0:020}.log", one(CANARY % 1, attributes=CONTROL_BIT)),
    "a control bit from damage": (
        "topic-0",
        f"{0:020}.log",
        one(b"first") + patch(one(CANARY % 1, offset=1), crc=False, attributes=CONTROL_BIT) + one(b"last", offset=2),
    ),
    "a config of an unknown kind of resource": (
        "__cluster_metadata-0",
        f"{0:020}.log",
        one(config(99, "1", "my.plugin", (CANARY % 1).decode())),
    ),
    "a segment with the name of an index": ("__cluster_metadata-0", f"{0:020}.index", one(SCRAM)),
    "a segment in the middle of a checkpoint": ("topic-0", "leader-epoch-checkpoint", b"0\n1\n" + one(CANARY % 1)),
    "a copy of the metadata": ("metadata-0", f"{0:020}.log", one(SCRAM)),
}


@pytest.mark.parametrize("depth", ["crc", "headers"])
@pytest.mark.parametrize("place", HIDING_PLACES)
def test_records_where_none_are_expected_do_not_leave_the_broker(place: str, depth: str, tmp_path: Path) -> None:
    directory, name, data = HIDING_PLACES[place]
    disk = tmp_path / "disk"
    secret_disk(disk)
    write_file(disk / directory / name, data)
    assert CANARY % 1 in data
    out = tmp_path / "b"
    run("bundle", disk, "--out", out, "--depth", depth, "--records", "metadata")
    assert CANARY % 1 not in contents(out)


def connect_disk(root: Path, name: str = "connect-configs", codec: str = "none") -> list[bytes]:
    """Create a disk with canaries in all places of Connect's topics that have secrets, and return the canaries."""
    canaries = [CANARY % number for number in range(8)]
    password, url, key, escaped, plain, schema, partition, torn = (each.decode() for each in canaries)
    properties = {"db.password": password, "url": f"jdbc:x://ann:{url}@h/db", "file": "kept-in-the-bundle"}
    steps = [
        (b"connector-a", json.dumps({"properties": properties}).encode()),
        (b"session-key", json.dumps({"key": key, "algorithm": "HmacSHA256", "creation-timestamp": 1}).encode()),
        (b"task-a-0", b'{"properties":{"pass\\u0077ord":"%b\\"","x":"1"}}' % escaped.encode()),
        (b"task-a-1", b'{"schema":{},"payload":{"properties":{ "a.token" : "%b" }}}' % schema.encode()),
        (b"connector-b", json.dumps({"properties": {"sasl.jaas.config": f'x required password="{plain}";'}}).encode()),
    ]
    for place, records in (
        (name, steps),
        ("connect-offsets", [(b'["a",{"api.key":"%b"}]' % partition.encode(), b"{}")]),
    ):
        folder = root / f"{place}-0"
        folder.mkdir(parents=True)
        body = [record(number, key, value) for number, (key, value) in enumerate(records)]
        data = [batch([each], offset=number, codec=codec) for number, each in enumerate(body, 1)]
        data.insert(0, batch([record(0, b"commit-a", b'{"tasks":2}')], codec=codec))
        data += [batch([record(0, b"connector-c", b'{"password":"%b' % torn.encode())], offset=len(data), codec=codec)]
        (folder / f"{0:020}.log").write_bytes(b"".join(data))
    return canaries


@pytest.mark.parametrize("name", ["connect-configs", "my-connect-configs", "settings"])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_connectors_bring_no_secret(name: str, codec: str, tmp_path: Path) -> None:
    """Without being asked for, nothing of Connect's topics is in a bundle; with it, all but secrets."""
    canaries = connect_disk(tmp_path / "disk", name, codec)
    inside = contents(bundled(tmp_path / "disk", tmp_path / "a"))
    assert not [each for each in (*canaries, b"kept-in-the-bundle", b"connector-a") if each in inside]
    inside = contents(bundled(tmp_path / "disk", tmp_path / "b", "--records", "*"))
    places = [tmp_path / "b" / f"{each}-0" for each in (name, "connect-offsets")]
    shown = "".join(run("inspect", each, "--records", "--json", "--no-decode").stdout for each in places).encode()
    assert [each for each in canaries if each in inside + shown] == []
    assert b"commit-a" in shown, "what is no secret"
    # Compressed batches with secrets are left out.
    assert (b"kept-in-the-bundle" in shown) == (codec == "none")
    if codec == "none":
        found = objects("connect", tmp_path / "b", "--connect-topic", name, status=2)
        configs = {each["name"]: each["config"] for each in found if each["type"] == "connector"}
        assert configs["a"]["file"] == "kept-in-the-bundle"
        assert not [each for each in canaries if each.decode() in json.dumps(found)]


def test_a_link_to_the_metadata_brings_no_secret(tmp_path: Path) -> None:
    canaries = secret_disk(tmp_path / "disk")
    (tmp_path / "disk" / "a-0").symlink_to("__cluster_metadata-0")
    inside = contents(bundled(tmp_path / "disk", tmp_path / "b", "--records", "*"))
    assert [each for each in canaries[4:11] if each in inside] == []


# --- Again, and interrupted -------------------------------------------------------------------------------------------


def written(disk: Path, out: Path) -> int:
    [summary] = objects("bundle", disk, "--out", out)
    return int(summary["written"])


@pytest.mark.parametrize("options", [(), ("--redact",)])
def test_a_broker_that_appends_while_files_are_read(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each file is read, it appends a batch, and entries about it to both indexes."""
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (log, index, times) = (partition / f"{0:020}{suffix}" for suffix in (".log", ".index", ".timeindex"))
    end = 0

    def append() -> None:
        nonlocal end
        data = one(b"v" * 5000, offset=end, maxTimestamp=1_700_000_000_000 + end, baseTimestamp=1_700_000_000_000 + end)
        position = log.stat().st_size if end else 0
        for path, added in (
            (log, data),
            (index, INDEX_ENTRY.struct.pack(end, position) if position else b""),
            (times, TIME_INDEX_ENTRY.struct.pack(1_700_000_000_000 + end, end)),
        ):
            with path.open("ab") as file:
                file.write(added)
        end += 1

    append()
    read = DirectoryWriter._written

    def written(self: DirectoryWriter, *args: Any) -> Any:
        append()
        return read(self, *args)

    monkeypatch.setattr(DirectoryWriter, "_written", written)
    bundle = bundled(partition, tmp_path / "b", *options)
    assert end > 3
    monkeypatch.undo()
    files = open_bundle(str(bundle), 1).directory("").files()
    assert {file.name.rpartition(".")[2]: file.error for file in files} == dict.fromkeys(("index", "log", "timeindex"))
    assert [
        row["code"] for row in objects("verify", bundle) if row["type"] == "finding" and row["severity"] == "error"
    ] == []


def test_a_follower_that_truncates_while_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It removes the last batch, and what its index has about it, after the index was read."""
    partition = copy_disk(DISKS / "kafka-4.3/clean-1/ledger-0", tmp_path / "ledger-0")
    log, times = (partition / f"{0:020}{suffix}" for suffix in (".log", ".timeindex"))
    batches = split(log.read_bytes())
    read = DirectoryWriter._written
    seen = []

    def written(self: DirectoryWriter, name: str, file: Any, container: Any) -> Any:
        found = read(self, name, file, container)
        seen.append(file.name)
        if seen.count(times.name) == 1 and file.name == times.name:
            log.write_bytes(b"".join(batches[:1]))
            times.write_bytes(b"")
        return found

    monkeypatch.setattr(DirectoryWriter, "_written", written)
    bundle = bundled(partition, tmp_path / "b")
    monkeypatch.undo()
    assert seen.count(log.name) == 2
    found = [row for row in objects("verify", bundle) if row["type"] == "finding"]
    assert [row["code"] for row in found if row["severity"] == "error"] == []


def test_a_second_run_reads_what_has_changed(tmp_path: Path) -> None:
    disk = aged(copy_some(DISKS / "kafka-4.3/clean-1", tmp_path / "disk", *SOME))
    out = tmp_path / "b"
    assert written(disk, out) == len([path for path in [disk, *disk.rglob("*")] if path.is_dir()])
    assert written(disk, out) == 0
    before = {path.name: path.read_bytes() for path in out.rglob("*" + CONTAINER)}
    payments = disk / "payments-0"
    segment = next(payments.glob("*.log"))
    segment.write_bytes(segment.read_bytes()[:-10])
    os.utime(segment, (OLD, OLD))
    shutil.rmtree(disk / "users-0")
    [summary] = objects("bundle", disk, "--out", out)
    assert (summary["written"], summary["removed"]) == (2, 1), "the partition, and the directory without users-0"
    after = {path.name: path.read_bytes() for path in out.rglob("*" + CONTAINER)}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {container_name("payments-0"), container_name("")}
    assert set(before) - set(after) == {container_name("users-0")}
    fresh = bundled(disk, tmp_path / "fresh")
    assert {path.name: path.read_bytes() for path in fresh.rglob("*" + CONTAINER)} == after


@pytest.mark.parametrize("depth", ["headers", "crc", "records"])
def test_a_second_run_reads_no_segment_again(depth: str, tmp_path: Path) -> None:
    """Nor if the file system has allocated more space for it since: it does so when it writes its cache to the disk."""
    partition = tmp_path / "orders-0"
    partition.mkdir()
    zeros = 1 << 20
    batches = b"".join(one(bytes(150), offset) for offset in range(5000))
    for base in (0, 5000):
        with (partition / f"{base:020}.log").open("wb") as file:
            file.write(batches if base == 0 else one(b"value", base))
            file.truncate(file.tell() + zeros)
    aged(partition)
    out = tmp_path / "b"
    sizes = [_bytes_read_for(partition, out, depth) for _ in range(2)]
    assert sizes[0] > len(batches) // 10
    assert sizes[1] < 1000
    last = partition / f"{5000:020}.log"
    before = last.stat()
    with last.open("r+b") as file:
        file.seek(-zeros, os.SEEK_END)
        file.write(bytes(zeros))
    aged(partition)
    now = last.stat()
    assert (now.st_size, now.st_ino) == (before.st_size, before.st_ino)
    assert now.st_blocks > before.st_blocks
    assert _bytes_read_for(partition, out, depth) < 1000
    bundled(partition, tmp_path / "fresh", "--depth", depth)
    same = [next((path / "0").glob("*" + CONTAINER)).read_bytes() for path in (out, tmp_path / "fresh")]
    assert same[0] == same[1]


def _bytes_read_for(partition: Path, out: Path, depth: str) -> int:
    """Return how many bytes of files `kdump bundle` reads."""
    before = bytes_read()
    bundled(partition, out, "--depth", depth)
    return bytes_read() - before


def test_a_file_that_changes_again_at_once_is_read_again(tmp_path: Path) -> None:
    """A file system's times are too coarse to show two changes in a row."""
    disk = copy_disk(FIXTURES / "clean-1" / "payments-0", tmp_path / "payments-0")
    assert written(disk, tmp_path / "b") == 1
    assert written(disk, tmp_path / "b") == 1


@pytest.mark.usefixtures("_no_clock")
@pytest.mark.parametrize("options", [(), ("--redact", "--hash-key", str(ROOT / "LICENSE"))])
def test_a_file_that_is_left_out_is_no_change(options: tuple[str, ...], tmp_path: Path) -> None:
    """It is left out for what is in it, and named each time."""
    partition = copy_disk(FIXTURES / "clean-1" / "payments-0", tmp_path / "payments-0")
    (partition / f"{7:020}.index").write_bytes(one(b"value"))
    aged(partition)
    out = tmp_path / "b"
    runs = [run("bundle", partition, "--out", out, "--json", *options) for _ in range(3)]
    summaries = [json.loads(done.stdout) for done in runs]
    assert [summary["written"] for summary in summaries] == [1, 0, 0]
    assert [summary["unread"] + summary["leftOut"] for summary in summaries] == [1, 1, 1]
    assert len({(done.exit_code, done.stderr) for done in runs}) == 1
    (partition / f"{7:020}.index").write_bytes(b"")
    [summary] = objects("bundle", partition, "--out", out, *options)
    assert (summary["written"], summary["unread"], summary["leftOut"]) == (1, 0, 0)


def test_what_is_no_file_in_place_of_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time; to read a pipe would not end."""
    disk = copy_some(FIXTURES / "disk-1", tmp_path / "disk", "payments-0")
    partition, target = disk / "payments-0", tmp_path / "target"
    names = [f"{number:020}.log" for number in (7, 8, 9, 10)]
    os.mkfifo(partition / names[0])
    os.mkdir(partition / names[1])
    (partition / names[2]).symlink_to(target)
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(partition)
        listener.bind(names[3])
    runs = [run("bundle", disk, "--out", tmp_path / "b", "--json") for _ in range(2)]
    assert {done.exit_code for done in runs} == {2}
    for done in runs:
        assert json.loads(done.stdout)["unread"] == len(names)
        assert all(f"{partition / name}: " in done.stderr for name in names)
        assert done.stderr.count("not a file") == 3
    for path in (partition, tmp_path / "b" / "payments-0"):
        assert f"{path / names[0]}: not a file" in run("ls", "--segments", path).stdout


def test_the_status_of_a_directory_is_brought_up_to_date(tmp_path: Path) -> None:
    disk = aged(copy_disk(FIXTURES / "clean-1", tmp_path / "disk"))
    out = bundled(disk, tmp_path / "b")
    (disk / "payments-0").chmod(0o700)
    os.utime(disk / "users-0", (OLD + 1, OLD + 1))
    bundled(disk, out)
    fresh = bundled(disk, tmp_path / "fresh")
    assert all((fresh / path.relative_to(out)).read_bytes() == path.read_bytes() for path in out.rglob("*" + CONTAINER))


def test_two_runs_do_not_write_into_one_bundle(tmp_path: Path) -> None:
    out = bundled(FIXTURES / "clean-1", tmp_path / "b")
    lock = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run("bundle", FIXTURES / "clean-1", "--out", out)
    finally:
        os.close(lock)
    assert done.exit_code == 2
    assert "another run" in done.stderr
    bundled(FIXTURES / "clean-1", out)


def test_another_run_that_begins_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, out = FIXTURES / "clean-1" / "payments-0", tmp_path / "b"
    waits = DirectoryPlace.locked

    def after_another(place: DirectoryPlace) -> Any:
        monkeypatch.undo()
        bundled(disk, out, "--depth", "headers")
        return waits(place)

    monkeypatch.setattr(DirectoryPlace, "locked", after_another)
    assert "other options" in refused("bundle", disk, "--out", out, "--tar", tmp_path / "b.tar")
    assert not (tmp_path / "b.tar").exists()
    assert open_bundle(str(out), 1).manifest.depth == "headers"


def test_other_options_need_another_directory(tmp_path: Path) -> None:
    disk, out = FIXTURES / "clean-1" / "payments-0", tmp_path / "b"
    bundled(disk, out)
    for arguments in ((disk, "--depth", "headers"), (disk.parent,), (disk, "--no-internal"), (disk, "--records", "x")):
        before = (out / MANIFEST).read_bytes()
        assert run("bundle", *arguments, "--out", out).exit_code == 2
        assert (out / MANIFEST).read_bytes() == before
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert run("bundle", disk, "--out", tmp_path / "full").exit_code == 2
    assert run("bundle", disk, "--out", disk / "b").exit_code == 2
    assert run("bundle", out, "--out", tmp_path / "c").exit_code == 2, "a bundle of a bundle"


@pytest.mark.parametrize("number", few([signal.SIGTERM, signal.SIGKILL, signal.SIGINT], 1))
def test_an_interrupted_run_goes_on(number: int, tmp_path: Path) -> None:
    disk, out = FIXTURES / "clean-1", tmp_path / "b"
    command = [sys.executable, "-m", "kdump", "bundle", str(disk), "--out", str(out), "--max-rate", "100k"]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while running.poll() is None and len(list(out.rglob("*" + CONTAINER))) < 8:
        time.sleep(0.01)
    running.send_signal(number)
    running.wait()
    done = len(list(out.rglob("*" + CONTAINER)))
    assert 8 <= done < 30
    if number != signal.SIGKILL:
        assert not list(out.rglob("*.kdump-part"))
    listed = run("ls", out)
    assert "NOT COMPLETE" in listed.stderr
    assert written(disk, out) < len([path for path in [disk, *disk.rglob("*")] if path.is_dir()])
    assert not list(out.rglob("*.kdump-part"))
    assert "NOT COMPLETE" not in run("ls", out).stderr
    fresh = bundled(disk, tmp_path / "fresh")
    assert all((fresh / path.relative_to(out)).read_bytes() == path.read_bytes() for path in out.rglob("*" + CONTAINER))


# --- From elsewhere ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(some: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundled(some, tmp_path_factory.mktemp("small") / "b")


@pytest.mark.sampled
@pytest.mark.parametrize("made", few(["small", "deep"], 1))
def test_a_damaged_bundle_is_named(made: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    small: Path = request.getfixturevalue(made)
    dice = seeded("bundle")
    files = sorted(path for path in small.rglob("*") if path.is_file())
    commands = (("verify",), ("ls",), ("inspect", "--json"), ("transactions",), ("stats",))
    intact = {command: run(*command, small).stdout for command in commands}
    assert all(intact.values())
    noticed = 0
    for number in sample(range(200), 100, "bundle"):
        copy = shutil.copytree(small, tmp_path / str(number))
        path = copy / files[dice.randrange(len(files))].relative_to(small)
        data = bytearray(path.read_bytes())
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data if number % 3 else data[: dice.randrange(len(data))])
        for command in commands:
            done = run(*command, copy)
            if done.exit_code == 0:  # what is damaged is not needed for this answer
                assert path.name == MANIFEST or done.stdout.replace(str(copy), str(small)) == intact[command]
                continue
            assert path.name == MANIFEST or "the bundle is damaged" in " ".join((done.stderr + done.stdout).split())
            noticed += 1
        shutil.rmtree(copy)
    assert noticed


def rewritten(path: Path, change: Callable[[dict[str, Any], Callable[[bytes], Extent]], object]) -> None:
    """Change the index of a part; `change` gets it, and what adds bytes."""
    name = f"{path.parent.name}/{path.name}"
    frames = part_of_directory(str(path.parent.parent), name)
    (_, head), *rows = SortedLines(frames, extent_of(frames.part.about["index"]))
    index = {**head, "files": [{"name": own, **row} for own, row in rows]}
    data = frames.read(0, frames.size)
    with path.open("wb") as file:
        writer = FramesWriter(file)
        writer.write(data)

        def add(data: bytes) -> Extent:
            writer.write(data)
            return Extent(writer.position - len(data), len(data))

        change(index, add)
        files = [(each.pop("name"), each) for each in index.pop("files")]
        writer.finish(name, index=add(b"".join(line_of(key, row) for key, row in [("", index), *files])))


def segment_of(index: dict[str, Any]) -> dict[str, Any]:
    return next(file for file in index["files"] if file["name"].endswith(".log"))


def with_regions(index: dict[str, Any], add: Callable[[bytes], Extent], *rows: tuple[int, Any]) -> None:
    """Let these lines say what there is of the segment."""
    segment_of(index)["log"]["known"]["regions"] = add(b"".join(line_of(*row) for row in rows))


NOISE = random.Random(1).randbytes(90_000)
IMPOSSIBLE: dict[str, Callable[[dict[str, Any], Callable[[bytes], Extent]], object]] = {
    "8 million lines": lambda index, add: segment_of(index)["log"]["known"].update(regions=add(b"\n" * 8_000_000)),
    "a line of 8 MB": lambda index, add: segment_of(index)["log"]["known"].update(
        regions=add(b"[0," + b" " * 8_000_000)
    ),
    "a line without an end": lambda index, add: segment_of(index)["log"]["known"].update(regions=add(b'[0,{"kind":')),
    "a line in another order": lambda index, add: with_regions(
        index, add, (0, {"kind": "withheld", "size": 100}), (50, {"kind": "withheld", "size": 100})
    ),
    "lines that fall": lambda index, add: with_regions(
        index, add, (100, {"kind": "withheld", "size": 100}), (0, {"kind": "withheld", "size": 100})
    ),
    "a text for a position": lambda index, add: with_regions(index, add, ("0", {"kind": "withheld", "size": 1})),  # type: ignore[arg-type]
    "no object": lambda index, add: with_regions(index, add, (0, 5)),
    "a kind that is a list": lambda index, add: with_regions(index, add, (0, {"kind": [], "size": 100})),
    "nested": lambda index, add: segment_of(index)["log"]["known"].update(regions=add(b"[" * 100_000 + b"\n")),
    "an empty region": lambda index, add: with_regions(index, add, (0, {"kind": "withheld", "size": 0})),
    "a region of 2^62 bytes": lambda index, add: with_regions(index, add, (0, {"kind": "withheld", "size": 1 << 62})),
    "zeros for batches": lambda index, add: segment_of(index)["log"].update(data=add(bytes(8_000_000))),
    "a batch replaced by 16 GiB": lambda index, add: with_regions(
        index, add, (0, {"kind": "batch", "size": 80, "header": list(range(13)), "replaced": [0, 1 << 34]})
    ),
    "no regions": lambda index, add: segment_of(index)["log"]["known"].clear(),
    "a longer segment": lambda index, add: segment_of(index)["log"]["data"].__setitem__(1, 1 << 62),
    "a segment elsewhere": lambda index, add: segment_of(index)["log"]["data"].__setitem__(0, 1 << 62),
    "a negative mode": lambda index, add: segment_of(index)["status"].__setitem__(0, -5),
    "a mode of 2^40": lambda index, add: segment_of(index)["status"].__setitem__(0, 1 << 40),
    "a negative size": lambda index, add: segment_of(index)["status"].__setitem__(1, -5),
    "half a surrogate in an error": lambda index, add: index.update(error="\ud800"),
    "a name of 256 bytes": lambda index, add: segment_of(index).update(name="0" * 256),
    "half a surrogate": lambda index, add: segment_of(index).update(name="\ud800"),
}


WRONG_TOTALS: dict[str, Callable[[dict[str, Any], Callable[[bytes], Extent]], object]] = {
    "totals without numbers": lambda index, add: segment_of(index)["log"].update(totals=[]),
    "a codec that is a number": lambda index, add: segment_of(index)["log"]["totals"].__setitem__(8, [5]),
    "a negative number of batches": lambda index, add: segment_of(index)["log"]["totals"].__setitem__(0, -1),
}
IMPOSSIBLE |= WRONG_TOTALS


@pytest.mark.parametrize("change", IMPOSSIBLE)
def test_a_container_that_no_kdump_wrote(change: str, small: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(small, tmp_path / "b")
    rewritten(copy / "0" / container_name("payments-0"), IMPOSSIBLE[change])
    tracemalloc.start()
    try:
        done = run("ls" if change in WRONG_TOTALS else "inspect", copy / "payments-0")
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert done.exit_code == 2
    assert "the bundle is damaged" in done.stderr


@pytest.fixture(scope="module")
def deep(some: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ("--depth", "records", "--hash-key", str(ROOT / "LICENSE"))
    return bundled(some, tmp_path_factory.mktemp("deep") / "b", *options)


def known_of(index: dict[str, Any], what: str) -> Any:
    """Return where what is known of a segment is, of one of which this is known."""
    return next(file["log"]["known"] for file in index["files"] if what in file.get("log", {}).get("known", ()))


WRONG_VERDICTS = {
    "8 million lines": b"\n" * 8_000_000,
    "no object": b"[0,[]]\n",
    "nested": b"[" * 100_000 + b"\n",
    "a wrong finding": b'[0,{"findings":[[1,2,3,4,5,6,7,8,9]]}]\n',
    "a finding with a list": b'[0,{"findings":[["a","b",0,0,0,[],[],"",""]]}]\n',
    "a wrong problem": b'[0,{"findings":[],"problems":[[]]}]\n',
    "a negative number of records": b'[0,{"findings":[],"records":-1}]\n',
}
WRONG_SUMS = {
    "a number": b"5",
    "nothing": b"",
    "nested": b"[" * 100_000,
    "no sums": b'{"before":-1}',
    "too many": b'{"before":-1,"sums":[' + b"1," * 100_000 + b"1]}",
    "too large": b'{"before":-1,"sums":[99999999999999999999999]}',
}
WRONG_HASHES = {
    "nothing": b"[0,null]\n",
    "a negative number of rows": b'[0,[-1,[],""]]\n',
    "many rows": b'[0,[%d,[],""]]\n' % (1 << 62),
    "a negative offset": b'[0,[0,[-1],"0011223344556677"]]\n',
    "no hashes": b'[0,[0,[1],""]]\n',
    "no digits": b'[0,[0,[1],"zz"]]\n',
}


@pytest.mark.parametrize(
    ("command", "data"),
    few(
        [
            *(pytest.param("verify", data, id=f"verify {name}") for name, data in WRONG_VERDICTS.items()),
            *(pytest.param("stats", data, id=f"stats {name}") for name, data in WRONG_SUMS.items()),
            *(pytest.param("diff", data, id=f"diff {name}") for name, data in WRONG_HASHES.items()),
        ],
        5,
    ),
)
def test_what_no_kdump_knows_about_records(command: str, data: bytes, deep: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(deep, tmp_path / "b")
    partition = "users-0" if command == "diff" else "payments-0"

    def change(index: dict[str, Any], add: Callable[[bytes], Extent]) -> None:
        if command == "verify":
            known_of(index, "records")["records"] = add(data)
        elif command == "stats":
            known_of(index, "records")["records"] = add(b"[%d,%b]\n" % ((1 << 63) - 1, data))
        else:
            known_of(index, "hashes")["hashes"] = add(data)

    rewritten(copy / "0" / container_name(partition), change)
    paths = [copy / partition]
    if command == "diff":
        cleaned = tmp_path / "disk"
        cleaned.mkdir()
        copy_disk(FIXTURES / "clean-1" / partition, cleaned / partition)
        cleaned_once_more(cleaned)
        paths.append(cleaned / partition)
    tracemalloc.start()
    try:
        done = run(command, *paths)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert done.exit_code == 2
    assert "the bundle is damaged" in " ".join((done.stderr + done.stdout).split())


GOOD_HEAD: dict[str, Any] = {"path": "", "status": [0o40755] + [0] * 7, "error": None, "files": 0}


@pytest.mark.parametrize(
    "change",
    [
        {"files": None},
        {"files": []},
        {"files": 1},
        {"files": -1},
        {"files": 1 << 70},
        {"files": MAX_FILES + 1},
        {"path": "/etc"},
        {"path": "a/../b"},
        {"path": "a"},
        {"path": 5},
        {"status": [0] * 8},
        {"status": [0o100644] + [0] * 7},
        {"status": [0o40755] + [0] * 6},
        {"status": None},
        {"error": 5},
    ],
)
def test_a_head_that_no_kdump_wrote(change: dict[str, Any], small: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(small, tmp_path / "b")
    for head, status in ((GOOD_HEAD, (0, 1, 2)), (GOOD_HEAD | change, (2,))):
        with (copy / "0" / container_name("")).open("wb") as file:
            frames, line = FramesWriter(file), line_of("", head)
            frames.write(line)
            frames.finish(f"0/{container_name('')}", index=Extent(0, len(line)))
        done = run("ls", copy)
        assert done.exit_code in status
        assert ("the bundle is damaged" in done.stderr) == (2 in status and len(status) == 1), done.stderr
        assert done.exit_code == 0 or str(copy) in done.stderr


@pytest.mark.every_disk
def test_a_directory_with_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a run, nor the next one, nor what reads the bundle has all of its files in memory: a run keeps two
    compressed rows of each, with times in ns."""
    monkeypatch.setattr(sorted_rows, "MAX_HELD", 1 << 14)
    _, few, many = (_peaks_with(tmp_path / str(count), count) for count in (10, 800, 2400))  # the first run imports
    each = [(more - less) / 1600 for less, more in zip(few, many)]
    assert max(each) < 600, each
    assert max(each[2:]) < 200, each


def _peaks_with(place: Path, count: int) -> list[int]:
    """Return the peak memory in bytes of each step, for a partition with so many more files."""
    disk, out = place / "disk", place / "b"
    disk.mkdir(parents=True)
    partition = copy_disk(FIXTURES / "clean-1" / "payments-0", disk / "payments-0")
    for number in range(count):
        (partition / f"{number * 7:020}.deleted").touch()
    aged(partition)
    peaks = []

    def measured(function: Callable[[], object]) -> object:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        found = function()
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
        return found

    tracemalloc.start()
    try:
        measured(lambda: bundled(disk, out))
        assert measured(lambda: written(disk, out)) == 0
        tree: Any = measured(lambda: open_bundle(str(out), 1))
        names = len(os.listdir(partition))
        assert measured(lambda: sum(1 for _ in tree.entries("payments-0", "x"))) == names
        assert measured(lambda: tree.stat(f"payments-0/{(count - 1) * 7:020}.deleted").st_size) == 0
    finally:
        tracemalloc.stop()
    return peaks


def test_a_directory_with_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_writer, "MAX_FILES", 2)
    disk, out = tmp_path / "disk", tmp_path / "b"
    disk.mkdir()
    copy_disk(FIXTURES / "clean-1" / "payments-0", disk / "payments-0")
    assert f"{disk / 'payments-0'}: it has more than 2 files" in refused("bundle", disk, "--out", out)
    assert "more than 2 files" in refused("ls", out)


def tarred(path: Path) -> tarfile.TarFile:
    """Open a packed bundle as the tar file that it is."""
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream:
        return tarfile.open(fileobj=io.BytesIO(stream.read()))


def test_a_packed_bundle_is_a_tar_file_of_ordinary_files(tmp_path: Path) -> None:
    """Small files are as they are, and segments have what is kept of them at its place."""
    disk = FIXTURES / "clean-1"
    bundled(disk, tmp_path / "b", "--tar", str(tmp_path / "b.tar.zst"))
    with tarred(tmp_path / "b.tar.zst") as archive:
        members = {each.name: each for each in archive}
        assert {each.type for each in members.values()} == {tarfile.REGTYPE, tarfile.DIRTYPE}
        kinds = dict.fromkeys(("small", "internal", "records"), 0)
        for path in (each for each in disk.rglob("*") if each.is_file()):
            found = members[f"clean-1/{path.relative_to(disk)}"]
            assert found.mtime == int(path.stat().st_mtime)
            assert found.size == path.stat().st_size or path.suffix != ".log"
            file, data = archive.extractfile(found), path.read_bytes()
            assert file is not None
            stored = file.read()
            if path.suffix != ".log":
                kinds["small"] += stored == data.rstrip(b"\0")
            elif path.parent.name.startswith("__") and path.parent.name != "__cluster_metadata-0":
                kinds["internal"] += stored == data
            else:
                assert stored[:61] == data[:61]
                kinds["records"] += stored != data
        assert all(kinds.values()), kinds
        [(_, line)] = [
            json.loads(line)
            for line in archive.extractfile(members[f"kdump-bundle/clean-1/payments-0/{0:020}.log.regions"])  # type: ignore[union-attr]
            if json.loads(line)[0] == 0
        ]
        assert line["kind"] == "withheld"


def test_a_packed_bundle_that_is_compressed(tmp_path: Path) -> None:
    """It is none of Kafka's files, and not a damaged meta.properties."""
    run("bundle", DISKS / "kafka-4.3" / "clean-1", "--out", tmp_path / "b", "--tar", tmp_path / "b.tar")
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress((tmp_path / "b.tar").read_bytes()))
    done = run("verify", tmp_path / "b.tar.gz")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "b.tar.gz" in done.stderr


def changed_manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        values = json.loads(data)
        change(values)
        return json.dumps(values).encode()

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: b"[" * 100_000,
        changed_manifest(lambda values: values.update(format=FORMAT + 1)),
        changed_manifest(lambda values: values.update(names=["../.."])),
        changed_manifest(lambda values: values.update(names=[])),
        changed_manifest(lambda values: values.update(names=None)),
        changed_manifest(lambda values: values.pop("host")),
        changed_manifest(lambda values: values.update(created="now")),
        changed_manifest(lambda values: values.update(directories=["\ud800"])),
        changed_manifest(lambda values: values.update(directories=[1])),
        changed_manifest(lambda values: values.update(host=["a"])),
    ],
)
def test_a_manifest_that_no_kdump_wrote(change: Callable[[bytes], bytes], small: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(small, tmp_path / "b")
    (copy / MANIFEST).write_bytes(change((copy / MANIFEST).read_bytes()))
    done = run("ls", copy)
    assert done.exit_code == 2
    assert MANIFEST in done.stderr or "format" in done.stderr


def test_a_container_is_missing(small: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(small, tmp_path / "b")
    (copy / "0" / container_name("payments-0")).unlink()
    for command in ("ls", "verify", "transactions", "retention"):
        done = run(command, copy)
        assert done.exit_code == 2
        assert "not in the bundle" in " ".join((done.stderr + done.stdout).split())


def test_a_directory_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    out = bundled(FIXTURES / "clean-1", tmp_path / "b")
    monkeypatch.setattr(os, "replace", read_only)
    monkeypatch.setattr(os, "unlink", read_only)
    assert "Read-only" in refused("bundle", FIXTURES / "clean-1", "--out", out)


def test_a_link_in_a_bundle_is_not_followed(small: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(small, tmp_path / "b")
    container = next(copy.rglob("payments*" + CONTAINER))
    elsewhere = tmp_path / "elsewhere"
    shutil.move(container, elsewhere)
    container.symlink_to(elsewhere)
    done = run("verify", copy)
    assert done.exit_code == 2
    assert "payments-0" in done.stdout


@pytest.mark.usefixtures("_no_clock")
def test_what_is_damaged_in_a_bundle_is_read_again(tmp_path: Path) -> None:
    disk = aged(copy_disk(FIXTURES / "clean-1" / "payments-0", tmp_path / "payments-0"))
    out = bundled(disk, tmp_path / "b")
    container = next(out.rglob("*" + CONTAINER))
    intact = container.read_bytes()
    (disk / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")  # so that the frames of the other files are copied
    os.utime(disk / "leader-epoch-checkpoint", (OLD, OLD))
    container.write_bytes(intact[:100] + bytes(50) + intact[150:])
    os.utime(container)
    assert written(disk, out) == 1
    assert (
        next(out.rglob("*" + CONTAINER)).read_bytes()
        == next(bundled(disk, tmp_path / "c").rglob("*" + CONTAINER)).read_bytes()
    )


@pytest.mark.every_disk
@pytest.mark.usefixtures("_no_clock")
def test_a_packed_bundle_answers_as_the_directory(tmp_path: Path) -> None:
    disk = aged(copy_some(DISKS / "kafka-4.3" / "clean-1", tmp_path / "disk", *SOME))
    made = bundled(disk, tmp_path / "one.dir", "--tar", str(tmp_path / "one.tar"))
    answers = 0
    for command in sorted(name for name in ALL if command_of(name).mounts and name not in NO_ANSWER):
        here = answer(made, (command,))
        there = answer(tmp_path / "one.tar", (command,))
        answers += bool(here[1])
        assert json.loads(json.dumps(there).replace("one.tar", "one.dir")) == list(here)
    assert answers > 10


@pytest.mark.parametrize("other", ["kdump-bundle-0", 0, None])
def test_a_bundle_of_another_format_is_refused(other: object, tmp_path: Path) -> None:
    out = bundled(FIXTURES / "clean-1", tmp_path / "old.bundle")
    manifest = out / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": other}))
    done = run("verify", out)
    assert done.exit_code == 2
    assert f"a bundle of format {other!r}, of another version of kdump" in done.stderr
    assert "make it again" in done.stderr


@pytest.mark.parametrize("size", [18, 23, 60])
def test_of_the_last_bytes_only_what_a_broker_reads_is_in_it(size: int, tmp_path: Path) -> None:
    """Fewer than a header has, which may be of a record: their batch length and magic."""
    disk = Path(shutil.copytree(FIXTURES / "disk-1", tmp_path / "disk"))
    with (disk / "users-0" / f"{254:020}.log").open("ab") as file:
        file.write((b"canary of a client " * 4)[:size])
    assert run("bundle", disk, "--out", tmp_path / "bundle").exit_code == 0
    path = tmp_path / "bundle" / "0" / "users-0.tar.zst"
    data = zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True).read()
    assert b"254.log" in data
    assert not [part for part in (b"canary", b"client") if part in data]
    found = [objects("verify", each, "--only", "bytes", status=1) for each in (disk, tmp_path / "bundle")]
    messages = [[each["message"] for each in of if each["type"] == "finding"] for of in found]
    assert messages[0] == messages[1] != []
