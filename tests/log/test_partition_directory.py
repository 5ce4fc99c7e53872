"""A partition directory next to a running broker: what is added while it is listed is noticed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from kdump.io.directory_listing import items
from kdump.io.run import QUIET_RUN
from kdump.log import find_directories as walk
from kdump.log import log_directory, partition_directory
from kdump.log.partition_directory import PartitionDirectory, current, partition
from tests.each_case import each_case

OLD = "00000000000000000000.log"
NEW = "00000000000000000010.log"


@each_case("is_walk", [True, False])
def test_a_segment_that_is_added_while_its_directory_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_walk: bool
) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / OLD).touch()
    before = time.time_ns() - 10**10
    os.utime(directory, ns=(before, before))

    def listed(path: str) -> Any:
        found = items(path)
        (directory / NEW).touch()
        return found

    monkeypatch.setattr(walk if is_walk else log_directory, "items", listed)
    place = (
        next(walk.find_directories(str(directory), QUIET_RUN))
        if is_walk
        else log_directory.directory_at(str(directory))
    )
    assert isinstance(place, PartitionDirectory)
    assert place.file_names == [OLD]
    assert current(place).file_names == [OLD, NEW]


@each_case(
    "ending, is_segment",
    [
        ("", True),
        (".gz", True),
        (".deleted", False),
        (".cleaned", False),
        (".swap", True),
        (".deleted.tmp", False),
        (".deleted.gz", False),
        (".tmp", False),
        (".part", False),
    ],
)
def test_which_file_is_a_segment(tmp_path: Path, ending: str, is_segment: bool) -> None:
    """A broker reads what ends in .log, after a startup also what ends in .log.swap, and kdump also what was compressed
    then."""
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{OLD}{ending}").touch()
    place = partition(str(tmp_path / "orders-0"))
    assert [segment.offset for segment in place.segments] == [0] * is_segment
    assert len([*place.files()]) == 1


STEMS = [
    *("00000000000000000000", "00000000000000000042", "09223372036854775807", "09223372036854775808"),
    *("99999999999999999999", "0000000000000000004", "000000000000000000042", "0000000000000000004a"),
    *("\u0660" * 20, "-0000000000000000042", " 0000000000000000042", "00000000000000000042-" + "a" * 22, ""),
]
ENDINGS = [
    *(".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".log.gz", ".log.deleted", ".index.swap"),
    *(".LOG", ""),
]


def test_the_names_of_most_files_are_read_as_all_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    names = sorted(stem + ending for stem in STEMS for ending in ENDINGS if stem + ending)
    place = ("/data/a-0", "/data", "a", 0, partition_directory._packed(names))
    fast = partition_directory._grouped.__wrapped__(*place)
    monkeypatch.setattr(partition_directory, "LIVE", frozenset())
    assert fast == partition_directory._grouped.__wrapped__(*place)
    assert [segment.name for segment in fast.segments][:3] == [*STEMS[:2], STEMS[-2]]
