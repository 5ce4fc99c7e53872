"""Checks `verify --state`: what a scrub remembers is what was read, and what it finds is what a check without a state
finds."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kdump.check.engine.second_look import key
from kdump.check.engine.units import units
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.scrub.record import UnitRecord, same, unpack_record
from kdump.check.scrub.run import Scrub
from kdump.check.scrub.schedule import DAY, Budget, Waiting, due_now
from kdump.check.scrub.state import FILE, LAYOUT, ScrubState
from kdump.check.totals import CheckTotals
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import FaultTolerantSource
from kdump.io.run import Limits
from kdump.io.source import Source, open_source
from tests.conftest import DISKS, FIXTURES, SEED, few, read_regions, sample
from tests.craft import flip, one
from tests.disks import cut, partition

START = 1_800_000_000_000
CADENCE = 10 * DAY
Read = Callable[[str, int, int], None]


def nothing(path: str, position: int, count: int) -> None:
    pass


def scrubbed(
    root: Path,
    state: Path,
    now: int = START,
    *,
    budget: int | None = None,
    read: Read = nothing,
    listed: Callable[[], None] = lambda: None,
) -> tuple[list[Finding], Scrub]:
    """Run a scrub. Returns what it reports, and the run. `read` is called with each read, `listed` once the files are
    listed."""

    class Recorded(FaultTolerantSource):
        def read_at(self, position: int, count: int) -> bytes:
            data = super().read_at(position, count)
            read(self.name, position, len(data))
            return data

    def opened(path: str) -> Source:
        return open_source(path, Recorded)

    options = Options(limits=Limits(), now=now, open_source=opened)
    with closing(ScrubState(str(state), (str(root),))) as own:
        run = Scrub(own, options, CADENCE, Budget(budget), CheckTotals())
        here = list(units([str(root)], options))
        listed()
        findings = [finding for _, findings in run.run(here) for finding in findings]
    return findings, run


def verified(root: Path, now: int = START) -> list[Finding]:
    """Return what a check without a state finds."""
    totals = CheckTotals()
    options = Options(limits=Limits(), now=now)
    return [finding for unit in units([str(root)], options) for finding in unit.run(totals)]


def keys(findings: list[Finding]) -> list[tuple[str, str, int, int, str]]:
    return sorted(map(key, findings))


@pytest.mark.parametrize("name", few(["disk-1", "clean-2", "crash-1", "cleaned-1", "state-1", "legacy"], 3))
def test_a_scrub_finds_what_a_check_finds_and_reads_it_once(name: str, tmp_path: Path) -> None:
    root = shutil.copytree(FIXTURES / name, tmp_path / "disk")
    expected = keys(verified(root))
    first, _ = scrubbed(root, tmp_path / "state")
    assert keys(first) == expected
    again, run = scrubbed(root, tmp_path / "state", START + 1000)
    assert keys(again) == expected
    assert run.bytes_read < 20_000  # the files at the root
    with_budget = tmp_path / "in-parts"
    largest = max((log.stat().st_size for log in root.rglob("*.log")), default=1)
    for hour in range(200):
        findings, run = scrubbed(root, with_budget, START + hour, budget=largest)
        if not run.coverage.unchecked:
            break
    assert keys(findings) == expected


def test_a_bit_that_rots_is_found_when_it_is_due_with_all_that_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing shows that the file has changed; and a path is the same disk however it is written."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FIXTURES / "disk-1", "disk")
    (tmp_path / "link").symlink_to("disk")
    state, log = tmp_path / "state", Path("disk/orders-none-0/00000000000000000000.log")
    scrubbed(tmp_path / "disk", state)
    before = log.stat()
    log.write_bytes(flip(log.read_bytes(), 8 * 12_000))
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    for run, root in enumerate((tmp_path / "disk", Path("disk"), Path("link"), tmp_path / "disk"), 1):
        now = START + 2 * run * CADENCE
        found, _ = scrubbed(root, state, now)
        assert sorted(map(same, found)) == sorted(map(same, verified(root, now)))
        assert "crc-mismatch" in {finding.code for finding in found}
        assert any(finding.code == "offset-gap" and "orders-none-0" in finding.file for finding in found)


@pytest.mark.parametrize("is_known", [False, True])
def test_segments_that_a_broker_deletes_meanwhile(is_known: bool, tmp_path: Path) -> None:
    """They are listed, and gone when they are looked at."""
    root = partition(tmp_path, *cut(10, 20, 30)).parent
    if is_known:
        scrubbed(root, tmp_path.parent / f"{tmp_path.name}-state")
    logs = sorted(root.rglob("*.log"))

    def delete() -> None:
        for log in (logs[0], logs[-1]):
            log.unlink()

    findings, run = scrubbed(root, tmp_path.parent / f"{tmp_path.name}-state", START + DAY, listed=delete)
    assert not [finding for finding in findings if finding.severity == "error"]
    again, run = scrubbed(root, tmp_path.parent / f"{tmp_path.name}-state", START + 2 * DAY)
    assert keys(again) == keys(verified(root, START + 2 * DAY))
    assert run.coverage.bytes == sum(log.stat().st_size for log in logs[1:-1])


LOGS = [
    log
    for pattern in ("kafka-4.3/clean-1", "kafka-4.3/crash-1", "kafka-4.3/clean-2")
    for log in sorted(DISKS.glob(f"{pattern}/*/*.log"))
    if log == max(log.parent.glob("*.log"))
]


def test_what_grew_is_read_from_where_it_ended(tmp_path: Path) -> None:
    """A log that grows batch by batch, and rolls, has the findings of a check of all of it."""
    dice = random.Random(SEED)
    grown = 0
    for number, log in enumerate(dice.sample(LOGS, min(20, len(LOGS)))):
        data = log.read_bytes()
        ends = [region.end for region in read_regions(data) if region.kind == "batch"]
        if len(ends) < 3:
            continue
        place = shutil.copytree(log.parent, tmp_path / str(number) / log.parent.name)
        state, own = tmp_path / f"state-{number}", place / log.name
        now, before, codes = START, 0, set[str]()
        for end in [*sorted(dice.sample(ends[:-1], min(3, len(ends) - 1))), len(data)]:
            with own.open("r+b" if before else "wb") as file:
                file.seek(before)
                file.write(data[before:end])
            found, run = scrubbed(place, state, now)
            if log.parent.name != "__cluster_metadata-0":
                assert keys(found) == keys(verified(place, now)), (log, before, end)
            segments, previous = sorted(place.glob("*.log")), codes
            codes = {finding.code for finding in found if finding.severity != "info"}
            if before and segments[-1].name == log.name and not any("index" in code for code in previous):
                assert run.totals.batches == sum(before < one <= end for one in ends), log
                grown += 1
            before, now = end, now + DAY // 100
    assert grown > 10


@dataclass
class Segment:
    path: Path
    last_read: list[int]
    """When each of its bytes was read last, 0 for never."""
    flipped: int | None = None


@dataclass
class Disk:
    """A partition that changes, with what is known of it."""

    root: Path
    dice: random.Random
    now: int = START
    segments: list[Segment] = field(default_factory=list)
    offset: int = 0
    reported: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.place = self.root / "orders-0"
        self.place.mkdir(parents=True)
        (self.root / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=d\n")
        self.roll()

    def roll(self) -> None:
        if self.segments and not self.segments[-1].last_read:
            return
        self.segments.append(Segment(self.place / f"{self.offset:020}.log", []))
        self.segments[-1].path.touch()
        self.append()

    def append(self) -> None:
        segment = self.segments[-1]
        for _ in range(self.dice.randrange(1, 6)):
            data = one(b"v" * self.dice.randrange(100, 400), self.offset, baseTimestamp=self.now, maxTimestamp=self.now)
            with segment.path.open("ab") as file:
                file.write(data)
            segment.last_read += [0] * len(data)
            self.offset += 1

    def delete(self) -> None:
        if len(self.segments) > 2:
            gone = self.segments.pop(0)
            gone.path.unlink()
            self.reported.discard(str(gone.path))

    def flip(self) -> None:
        """Flip a bit of a value in a closed segment, which changes nothing else."""
        closed = [segment for segment in self.segments[:-1] if segment.flipped is None]
        if closed:
            segment = self.dice.choice(closed)
            seen = segment.path.stat()
            with segment.path.open("r+b") as file:
                data = file.read()
                file.seek(0)
                file.write(flip(data, 8 * (len(data) - 20)))
            os.utime(segment.path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            segment.flipped = self.now

    def replace(self) -> None:
        """Let another file take the place of a closed segment, as the log cleaner does."""
        if len(self.segments) > 1:
            segment = self.dice.choice(self.segments[:-1])
            data = segment.path.read_bytes()
            if segment.flipped is not None:
                data = flip(data, 8 * (len(data) - 20))
            passing = segment.path.with_suffix(".new")
            passing.write_bytes(data)
            passing.rename(segment.path)
            segment.flipped, segment.last_read = None, [0] * len(data)
            self.reported.discard(str(segment.path))

    def read(self, path: str, position: int, count: int) -> None:
        segment = next((segment for segment in self.segments if str(segment.path) == path), None)
        if segment is not None and count > 100:  # not a header by itself
            for byte in range(position, min(position + count, len(segment.last_read))):
                segment.last_read[byte] = max(segment.last_read[byte], self.now)


@pytest.mark.parametrize("limited", few([True, False], 1))
def test_everything_is_read_within_the_cadence_and_nothing_else_is_called_checked(
    limited: bool, tmp_path: Path
) -> None:
    dice = random.Random(f"{SEED} {limited}")
    for number in range(3):
        disk = Disk(tmp_path / str(number) / "disk", dice)
        state = tmp_path / str(number) / "state"
        for _ in range(6):
            disk.roll()
        was_moved = False
        for step in range(32):
            changes = [disk.append, disk.roll, disk.delete, disk.flip, disk.replace]
            for change in dice.choices(changes, (6, 3, 2, 1, 1), k=dice.randrange(4)):
                change()
            disk.now += dice.randrange(DAY // 2, DAY)
            if step == 25 and not limited:
                disk.now, was_moved = disk.now - 12 * DAY, True
            sizes = [len(segment.last_read) for segment in disk.segments]
            budget = sum(sizes) // 3 + max(sizes) + 4000 if limited else None
            findings, run = scrubbed(disk.root, state, disk.now, budget=budget, read=disk.read)
            assert budget is None or run.bytes_read <= budget
            with closing(ScrubState(str(state), ())) as own:
                record = own.get(os.path.realpath(disk.place))
            assert record is not None
            damaged = {finding.file for finding in findings if finding.severity == "error"}
            for segment in disk.segments:
                note = record.segments[segment.path.stem]
                if note.checked is not None and not was_moved:
                    assert min(segment.last_read[: note.end], default=disk.now) >= note.checked
                if not limited:
                    assert note.checked is not None
                    assert disk.now - note.checked <= CADENCE
                    assert note.checked <= disk.now
                elif step > 10 and note.checked is not None:
                    assert disk.now - note.checked <= CADENCE
                if segment.flipped is not None and disk.now - segment.flipped >= CADENCE and step > 10:
                    assert str(segment.path) in damaged
            assert disk.reported <= damaged  # what was found stays found
            assert all(segment.flipped is not None for segment in disk.segments if str(segment.path) in damaged)
            disk.reported = damaged
            if step > 10:
                assert limited or not run.coverage.unchecked


def test_what_is_due_is_spread_over_the_runs_that_are_left() -> None:
    waiting = [Waiting(START, 10, number, "0") for number in range(100)]
    now, read = START, 0
    for day in range(1, 11):
        now = START + day * DAY
        due = due_now(waiting, now, CADENCE, DAY, budget=150)
        assert sum(due_one.size for due_one in due) <= 150
        read += len(due)
        for read_now in due:
            waiting[read_now.unit] = read_now._replace(checked=now)
    assert read == 100
    assert not due_now(waiting[:1], waiting[0].checked + DAY, CADENCE, DAY, None)
    assert due_now([Waiting(now + 1, 10, 0, "0")], now, CADENCE, DAY, None)[0].checked == 0  # the clock was moved


def small_state(tmp_path: Path) -> tuple[Path, Path]:
    root = shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk")
    state = tmp_path / "state"
    scrubbed(root, state)
    return root, state


def _sql(*statements: str) -> Callable[[Path, Path], None]:
    def change(root: Path, state: Path) -> None:
        import sqlite3

        with closing(sqlite3.connect(state / FILE)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()

    return change


def _other_disk(root: Path, state: Path) -> None:
    meta = root / "meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=", "cluster.id=another"))


def _unmounted(root: Path, state: Path) -> None:
    shutil.move(root, root.parent / "elsewhere")
    shutil.copytree(FIXTURES / "crash-1", root / "crash-1")


UNUSABLE = {
    "from a newer kdump": (_sql(f"PRAGMA user_version = {LAYOUT + 1}"), "newer kdump"),
    "not a state": (_sql("PRAGMA application_id = 7"), "is not the state"),
    "a record of another partition": (
        _sql("UPDATE unit SET record = (SELECT record FROM unit ORDER BY key DESC LIMIT 1)"),
        "is damaged",
    ),
    "a record is incomplete": (_sql("UPDATE unit SET record = x'00'"), "is damaged"),
    "a record is missing": (_sql("DELETE FROM unit WHERE key = (SELECT key FROM unit LIMIT 1)"), "is damaged"),
    "a log directory is missing": (_sql("DELETE FROM about"), "is damaged"),
    "a run is missing": (_sql("DELETE FROM run"), "is damaged"),
    "without a table": (_sql("DROP TABLE unit"), "is damaged"),
    "not a database": (lambda root, state: (state / FILE).write_bytes(b"x" * 5000), "is damaged"),
    "of another disk": (_other_disk, "of another disk"),
    "of a disk that is not mounted": (_unmounted, "is not among the log directories"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_state_that_cannot_be_used_is_refused(name: str, tmp_path: Path) -> None:
    root, state = small_state(tmp_path)
    change, expected = UNUSABLE[name]
    change(root, state)
    with pytest.raises(SourceError, match=expected) as error:
        scrubbed(root, state)
    assert "\n" not in str(error.value)


def test_a_damaged_state_never_makes_anything_count_as_checked(tmp_path: Path) -> None:
    """With any of its bytes wrong, or truncated, a state is refused, or is as it was, or everything is read again."""
    root, state = small_state(tmp_path)
    findings, run = scrubbed(root, state)
    expected = keys(findings), run.coverage.as_dict()
    data = (state / FILE).read_bytes()
    dice = random.Random(SEED)
    refused = 0
    for number in range(40):
        other = tmp_path / f"state-{number}"
        other.mkdir()
        damaged = data[: dice.randrange(len(data))] if number % 4 == 0 else flip(data, dice.randrange(8 * len(data)))
        (other / FILE).write_bytes(damaged)
        try:
            findings, run = scrubbed(root, other)
        except SourceError:
            refused += 1
            continue
        assert keys(findings) == expected[0]
        assert run.coverage.as_dict() == expected[1]
    assert refused > 10


def contents(state: Path) -> object:
    with closing(ScrubState(str(state), ())) as own:
        return {name: own.get(name) for name in own.unit_keys()}, own.about(), own.runs()


@pytest.mark.sampled
def test_a_state_with_any_byte_wrong_is_refused_or_has_the_same_contents(tmp_path: Path) -> None:
    _, state = small_state(tmp_path)
    _sql("PRAGMA page_size = 512", "VACUUM")(state, state)  # fewer bytes that are not used
    expected, dice, refused = contents(state), random.Random(SEED), 0
    data = (state / FILE).read_bytes()
    positions = sample(range(len(data)), 8)
    for position in positions:
        (state / FILE).write_bytes(flip(data, 8 * position + dice.randrange(8)))
        try:
            assert contents(state) == expected, position
        except SourceError:
            refused += 1
    assert refused > len(positions) // 3  # the others are not used


def test_a_log_directory_whose_path_is_not_utf8(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"disk-\xff")
    shutil.copytree(FIXTURES / "clean-2", root)
    expected = keys(scrubbed(root, tmp_path / "state")[0])
    again, run = scrubbed(root, tmp_path / "state", START + 1000)
    assert keys(again) == expected == keys(verified(root))
    assert run.bytes_read < 20_000


def command(*arguments: object, **more: object) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "kdump", "verify", *map(str, arguments)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)  # type: ignore[call-overload, no-any-return]


def killed(line: list[object], dice: random.Random) -> Iterator[None]:
    """Run a command that is killed after a moment, longer and longer."""
    for number in range(6):
        process = command(*line)
        time.sleep(0.3 + dice.random() * 0.25 * number)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        yield


@pytest.mark.every_disk
def test_a_state_is_whole_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    root, state = shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk"), tmp_path / "state"
    for _ in killed([root, "--state", state], random.Random(SEED)):
        with closing(ScrubState(str(state), (str(root),))) as own:
            for name in own.unit_keys():
                assert own.get(name) is not None
    findings, run = scrubbed(root, state, round(time.time() * 1000) + 1000)
    assert keys(findings) == keys(verified(root, run.options.now))
    assert not run.coverage.unchecked


def _small_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def test_the_command_refuses_a_state_on_a_full_disk_or_next_to_what_is_read(tmp_path: Path) -> None:
    root, state = shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk"), tmp_path / "state"
    for place, more in ((state, {"preexec_fn": _small_files}), (root / "state", {}), (root / "orders-0", {})):
        process = command(root, "--state", place, **more)
        out, err = process.communicate()
        assert process.returncode == 2, err
        assert not out
        assert err.count(b"\n") == 1


def test_what_is_remembered_of_a_finding_is_all_of_it() -> None:
    """With what is known of its facts, and what its impact states."""
    every = [str, str, str, int, str, int, int, int, int, int, str, str, str, int, int, str]
    values = [kind(number) for number, kind in enumerate(every)]
    finding = Finding(*values, {"logDamaged": False, "clean": None}, {"records": "3 records"})  # type: ignore[arg-type]
    assert unpack_record(UnitRecord(findings=[("a", finding)]).pack()).findings == [("a", finding)]
