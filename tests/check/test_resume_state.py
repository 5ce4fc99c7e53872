"""Checks that a check which resumes after some segments, with the state that an earlier check had there, finds the same
as the earlier check."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import rules
from kdump.check.engine.units import units_of
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.partition_context import CheckpointedEpoch, PartitionContext
from kdump.check.resume_state import StateError
from kdump.check.rule import FindingMerger, Observer
from kdump.check.totals import CheckTotals
from kdump.cluster.disks import Disks
from kdump.kafka.small_files import CheckpointOffset
from kdump.log.partition_directory import partition
from kdump.log.paths import target
from kdump.state.id_numbers import IdNumbers
from kdump.state.producer_state import ProducerState
from tests.conftest import DISKS, FIXTURES, SEED, read_regions, seeded
from tests.craft import flip
from tests.test_damaged_disks import DAMAGES

ROOTS = {"fixtures": FIXTURES, "4.3": DISKS / "kafka-4.3", "2.8": DISKS / "kafka-2.8-legacy"}
LEFT = {
    *("expected", "largest", "ended", "ended_in_run", "entries_in_run", "_found", "open_before", "damaged"),
    *("damage_end", "before", "broken", "entry", "_entries", "aborts", "at", "runs"),
}
"""Attributes of a rule that belong to one segment or batch; the next one starts with new ones."""


def in_pieces(log: Path, into: Path, dice: random.Random, count: int) -> Path:
    """Return a copy of the partition whose log is split into several segments. The other files stay with the first
    segment, so that some of their entries are beyond its end."""
    place = shutil.copytree(log.parent, into / log.parent.name)
    for other in place.glob("*.log"):
        if other.name != log.name:
            other.unlink()
    data = log.read_bytes()
    heads = [region for region in read_regions(data) if region.kind == "batch" and region.position]
    cuts = sorted(dice.sample(heads, min(count - 1, len(heads))), key=lambda region: region.position)
    ends = [region.position for region in cuts] + [len(data)]
    (place / log.name).write_bytes(data[: ends[0]])
    for region, end in zip(cuts, ends[1:]):
        base = region.lastOffset if region.baseOffset is None else region.baseOffset  # type: ignore[attr-defined]
        (place / f"{base:020}.log").write_bytes(data[region.position : end])
    bases = sorted(int(piece.stem) for piece in place.glob("*.log"))
    for snapshot in sorted(place.glob("*.snapshot")):  # this one contains states that the log does not have, or not yet
        (place / f"{bases[len(bases) // 2]:020}.snapshot").write_bytes(snapshot.read_bytes())
    return place


def check_of(place: Path, known: PartitionContext) -> tuple[PartitionScan, CheckTotals]:
    totals = CheckTotals()
    return PartitionScan(partition(str(place)), known, Options(now=1_800_000_000_000), totals, rules), totals


def values(check: PartitionScan) -> list[Any]:
    """Return the state of all rules of a check."""
    said = []
    for rule in check.observers:
        own = {name: value for name, value in vars(rule).items() if name not in LEFT}
        said.append({name: repr(_plain(value)) for name, value in own.items()})
    return said


def _plain(value: Any) -> Any:
    """Return a comparable form of a value, without objects that differ between two checks."""
    if hasattr(value, "saved_fields"):
        return type(value).__name__
    if isinstance(value, FindingMerger):
        return value.first
    if isinstance(value, (ProducerState, IdNumbers)):
        return [*value.items()]
    if callable(value):
        return "function"
    return {name: _plain(each) for name, each in vars(value).items()} if hasattr(value, "__dict__") else value


def held_together(place: Path, known: PartitionContext) -> Iterator[int]:
    """Compare the check of a partition with one that resumes at each of its segments. Yields the number of findings
    after each."""
    states: dict[int, tuple[str, int, list[int]]] = {}
    whole, totals = check_of(place, known)
    found: list[Finding] = []
    counts = ("files", "bytes", "batches", "records")

    for number in range(len(whole.partition.segments)):
        states[number] = (whole.state(), len(found), [getattr(totals, name) for name in counts])
        found.extend(whole.segment(number))
    found.extend(whole.end())
    for number, (state, told, counted) in states.items():
        later, more = check_of(place, known)
        later.resume(number, state)
        assert later.state() == state
        rest = [each for segment in range(number, len(states)) for each in later.segment(segment)] + [*later.end()]
        assert rest == found[told:]
        assert later.state() == whole.state()
        assert [a + getattr(more, name) for a, name in zip(counted, counts)] == [getattr(totals, n) for n in counts]
        for name in ("log_start", "log_end", "reached", "recovery_sensitive", "_records"):
            assert getattr(later, name) == getattr(whole, name), name
        assert later.neighbor_files.walked == whole.neighbor_files.walked
        if number:
            assert values(later) == values(whole)
        yield len(rest)


def logs(disk: str, names: tuple[str, ...]) -> list[Path]:
    return [path for name in names for path in sorted(ROOTS[disk].glob(name)) if path.stat().st_size]


CHOSEN = {
    "fixtures": ("clean-1/payments-0/*.log", "clean-1/users-0/*.log", "clean-2/ledger-0/*.log"),
    "4.3": ("clean-1/payments-0/*.log", "crash-1/*/*.log", "clean-1/__transaction_state-*/*.log", "clean-0/*/*.log"),
    "2.8": ("*/*.log",),
}


def some_known(dice: random.Random, place: Path) -> PartitionContext:
    """Return random knowledge about a partition, as other files of a disk would provide it."""
    said = partition(str(place))
    at = target(str(place / "leader-epoch-checkpoint"))
    noted = CheckpointOffset(dice.randrange(60), at, 0, 1)
    checkpoints = dict.fromkeys(("log-start-offset", "cleaner-offset", "recovery-point-offset"), noted)
    chosen = {name: value for name, value in checkpoints.items() if dice.random() < 0.3}
    epochs = tuple(CheckpointedEpoch(n, start, n, 4) for n, start in enumerate(sorted(dice.sample(range(200), 3))))
    return PartitionContext(
        topic=said.topic,
        partition=said.partition,
        clean=dice.choice((None, True, False)),
        compacted=dice.choice((None, True)),
        checkpoints=chosen,
        epochs=dice.choice((None, epochs)),
        epochs_at=at,
        max_message_bytes=dice.choice((None, 200)),
        now=1_800_000_000_000,
    )


@pytest.mark.sampled
@pytest.mark.parametrize("disk", CHOSEN)
def test_it_goes_on_where_it_was(disk: str, tmp_path: Path) -> None:
    dice = random.Random(7)
    most = findings = 0
    chosen = logs(disk, CHOSEN[disk])
    picked = dice.sample(chosen, min(12, len(chosen))) + chosen[:2] * 2 if SEED else dice.sample(chosen, 3) + chosen[:1]
    for number, log in enumerate(picked):
        place = in_pieces(log, tmp_path / str(number), dice, 4)
        pieces = sorted(place.glob("*.log"))
        for damaged in (False, True):
            if damaged:
                piece = dice.choice(pieces)
                data = piece.read_bytes()
                piece.write_bytes(flip(data, dice.randrange(8 * len(data))))
            for rest in held_together(place, some_known(dice, place)):
                findings = max(findings, rest)
            most = max(most, len(pieces))
    assert most > 2
    assert findings


@pytest.mark.every_disk
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("disk", CHOSEN)
def test_every_log(disk: str, seed: int, tmp_path: Path) -> None:
    dice = seeded(seed)
    for number, log in enumerate(logs(disk, ("*/*.log", "*/*/*.log"))):
        place = in_pieces(log, tmp_path / str(number), dice, dice.choice((2, 3, 6)))
        if dice.random() < 0.7:
            piece = dice.choice(sorted(place.glob("*.log")))
            data = bytearray(piece.read_bytes())
            if len(data) > 100:
                dice.choice(DAMAGES)(data, dice)
                piece.write_bytes(data)
        assert list(held_together(place, some_known(dice, place)))
        shutil.rmtree(tmp_path / str(number))


class Watch(Observer):
    """Keeps the state before each segment, and how many findings there were until then."""

    def __init__(self, scan: PartitionScan, found: list[Finding]) -> None:
        self.scan, self.found = scan, found
        self.states: list[tuple[str, int]] = []

    def before(self, number: int) -> None:
        self.states.append((self.scan.state(), len(self.found)))


@pytest.mark.parametrize("damaged", [False, True])
def test_findings_that_wait_for_the_end_of_the_log(damaged: bool, tmp_path: Path) -> None:
    """A broker may lack an index because of damage anywhere in the log: an aborted transaction without a .txnindex."""
    place = in_pieces(FIXTURES / "clean-1" / "payments-0" / f"{0:020}.log", tmp_path, random.Random(1), 4)
    pieces = sorted(place.glob("*.log"))
    for piece in pieces[1:]:
        piece.with_suffix(".index").touch()
    if damaged:
        pieces[0].write_bytes(flip(pieces[0].read_bytes(), 8 * 500))
    (unit,) = units_of(Disks([partition(str(place))]), Options())
    watches, found = list[Watch](), list[Finding]()

    def watching(scan: PartitionScan) -> list[Observer]:
        watches.append(Watch(scan, found))
        return [watches[0]]

    for finding in unit.run(CheckTotals(), watching):
        found.append(finding)  # seen by the watch
    assert any(each.code == "txn-index-mismatch" and each.file.endswith(".log") for each in found)
    assert len(watches[0].states) == 4
    for number, (state, told) in enumerate(watches[0].states):
        assert [*unit.run(CheckTotals(), lambda scan: [Watch(scan, [])], (number, state))] == found[told:]


def test_a_state_that_is_none(tmp_path: Path) -> None:
    place = in_pieces(FIXTURES / "clean-1" / "payments-0" / f"{0:020}.log", tmp_path, random.Random(1), 3)
    known = PartitionContext(topic="payments", partition=0)
    whole, _ = check_of(place, known)
    list(whole.segment(0))
    said = json.loads(whole.state())
    others: list[Any] = [None, 3, {}, [], said[:-1], [*said, said[0]], [[name, {}] for name, _ in said], "x"]
    for number, (name, own) in enumerate(said):
        for attribute in own:
            for wrong in ("text", {"a": 1}, [1], [[1]], 1.5, {"open": 3}, {"byId": [[1]]}):
                others.append([*said[:number], [name, {**own, attribute: wrong}], *said[number + 1 :]])
    refused = 0
    for other in others:
        later, _ = check_of(place, known)
        try:
            later.resume(1, json.dumps(other))
        except StateError:
            refused += 1
    assert refused > len(others) * 3 // 4
    for text in ("", "{", "[" * 100_000):
        with pytest.raises(StateError):
            check_of(place, known)[0].resume(1, text)
