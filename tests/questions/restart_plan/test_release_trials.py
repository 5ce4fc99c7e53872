"""Compares kdump.restart_plan with what real brokers of every release did: docs/release-trials.json. No broker runs
here. KDUMP_REWRITE=1 writes the tables of docs/restart-plan.md again."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.conftest import RELEASES, ROOT, few, sample
from tests.each_case import each_case
from tests.generated_table import check_table
from tests.questions.restart_plan.test_trial_tables import agreement
from tools.trials.release import RELEASES as TRIED
from tools.trials.release_record import Start, compared, starts

PAGE = ROOT / "docs" / "restart-plan.md"
RECORDS = {each["key"]: each for each in json.loads((ROOT / "docs" / "release-trials.json").read_text())}
STARTS = [start for start in starts(RELEASES) if start.key in RECORDS]
OWN = [start for start in STARTS if start.release == start.started_by]
CROSSING = [start for start in STARTS if start.release != start.started_by]
AT_LEAST = 25
"""Number of damages that each release has been started on."""


def test_the_record_is_whole() -> None:
    """Every release has been started on enough damages, and all differences are explained."""
    assert list(RECORDS) == [start.key for start in STARTS]
    assert set(TRIED) == {start.release for start in OWN}
    assert min(Counter(start.release for start in OWN if not start.is_undamaged).values()) >= AT_LEAST
    assert {each["name"] for each in RECORDS.values() if each["differences"] and not each.get("explained")} == set()


@pytest.mark.sampled
@pytest.mark.parametrize("name", few(TRIED, 3))
def test_every_startup(name: str) -> None:
    """The current plan for a release equals what its broker did, except for the explained differences."""
    check([start for start in OWN if start.release == name], 45, name)


@pytest.mark.sampled
def test_every_upgrade_and_downgrade() -> None:
    check(CROSSING, 9, "crossing")


def check(found: list[Start], one_in: int, name: str) -> None:
    wrong = {}
    for start in sample(found, one_in, name):
        record = RECORDS[start.key]
        differing = compared(start, RELEASES, record, RECORDS)
        if differing != record["differences"]:
            wrong[start.key] = differing
    assert not wrong


@each_case("start", [start for start in OWN if start.is_undamaged], ids=lambda start: start.key)
def test_a_healthy_disk_starts(start: Start) -> None:
    """Real brokers have started on all of these, and served every record: kdump promises no loss, and predicts none."""
    record = RECORDS[start.key]
    assert record["broker"]["starts"]
    assert not record["differences"]


# --- the tables of docs/restart-plan.md ---


def label(name: str) -> str:
    version, _, mode = name.rpartition("-")
    other = sum(each.version == version for each in TRIED.values()) > 1
    return f"{version} ({'ZooKeeper' if mode == 'zk' else 'KRaft'})" if other else version


def crossing(starts: bool) -> str:
    """Return which release was started on the disk of which other one."""
    by_disk: dict[str, list[str]] = {}
    for start in CROSSING:
        if RECORDS[start.key]["broker"]["starts"] is starts:
            by_disk.setdefault(label(start.release), []).append(label(start.started_by))
    return "; ".join(f"{', '.join(dict.fromkeys(by))} on {disk}" for disk, by in by_disk.items())


def tables() -> str:
    return (
        agreement(
            "release",
            "starts of 2.8.2 to 4.4.0, with ZooKeeper and KRaft",
            (bool(each["differences"]) for each in RECORDS.values()),
        )
        + "  On the disk of another release, after a clean shutdown and after `kill -9`, these start: "
        + f"{crossing(True)}. These do not: {crossing(False)}.\n"
    )


def test_the_tables_are_those_of_the_trials() -> None:
    check_table(PAGE, "release-trials.json", tables())
