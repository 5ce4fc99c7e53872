"""Timestamps that contradict the time at which their file was written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command import objects
from tests.craft import batch, record, write_file

WRITTEN = 1_795_892_323_000
"""When the file was last changed; epoch ms."""
DAY, YEAR = 86_400_000, 365 * 86_400_000
FUTURE, PAST = ("timestamp-in-future", "warning"), ("timestamp-in-past", "warning")


@pytest.mark.parametrize(
    ("timestamp", "finding", "unit"),
    [
        (WRITTEN, None, ""),
        (WRITTEN - 9 * YEAR, None, ""),
        (WRITTEN + DAY, None, ""),
        (-1, None, ""),
        (WRITTEN // 1000, PAST, "seconds"),
        ((WRITTEN - 3 * YEAR) // 1000, PAST, "seconds"),
        (WRITTEN * 1000, FUTURE, "microseconds"),
        (WRITTEN * 1_000_000, FUTURE, "nanoseconds"),
        (WRITTEN + YEAR, FUTURE, ""),
        ((WRITTEN + YEAR) * 1000, FUTURE, ""),
        (0, ("timestamp-in-past", "info"), ""),
        (946_684_800_000, ("timestamp-in-past", "info"), ""),
    ],
)
def test_units(timestamp: int, finding: tuple[str, str] | None, unit: str, tmp_path: Path) -> None:
    data = batch([record(value=b"v")], baseTimestamp=timestamp, maxTimestamp=timestamp)
    path = write_file(tmp_path / "a-0" / f"{0:020}.log", data)
    os.utime(path, (WRITTEN // 1000, WRITTEN // 1000))
    found = objects("verify", path, "--info", "--only", "timestamps")[:-1]
    assert [(each["code"], each["severity"]) for each in found] == ([] if finding is None else [finding])
    assert [f"read as {unit}, they are up to 2026-11-28" in each["message"] for each in found if unit == "seconds"] in (
        [],
        [timestamp == WRITTEN // 1000],
    )
    assert all((f"read as {unit}" in each["message"]) is bool(unit) for each in found)


def test_each_kind_is_a_finding_of_its_own(tmp_path: Path) -> None:
    """A producer that was corrected: what it wrote before and after, and one with microseconds."""
    times = (WRITTEN // 1000, WRITTEN // 1000 + 1, WRITTEN, WRITTEN * 1000, WRITTEN // 1000)
    batches = [
        batch([record(value=b"v")], offset=offset, baseTimestamp=time, maxTimestamp=time)
        for offset, time in enumerate(times)
    ]
    path = write_file(tmp_path / "a-0" / f"{0:020}.log", b"".join(batches))
    os.utime(path, (WRITTEN // 1000, WRITTEN // 1000))
    found = objects("verify", path, "--only", "timestamps")[:-1]
    assert [(each["code"], each["offset"]) for each in found] == [
        ("timestamp-in-past", 0),
        ("timestamp-in-future", 3),
        ("timestamp-in-past", 4),
    ]


def test_retention_states_the_unit_of_what_it_deletes(tmp_path: Path) -> None:
    for name, time in (("seconds-0", WRITTEN // 1000), ("old-0", WRITTEN - 9 * YEAR), ("zero-0", 0)):
        data = batch([record(value=b"v")], baseTimestamp=time, maxTimestamp=time)
        path = write_file(tmp_path / name / f"{0:020}.log", data)
        os.utime(path, (WRITTEN // 1000, WRITTEN // 1000))
    found = objects("retention", tmp_path, "--now", str(WRITTEN))
    notes = {each["topic"]: each["notes"] for each in found if each["type"] == "retention"}
    assert [name for name in notes if any("read as seconds" in note for note in notes[name])] == ["seconds"]
