"""The order of log directories, and how their paths are written, change only what docs/json.md names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command import objects
from tests.conftest import few, sample
from tests.path_orders import COMMANDS, DISKS_OF_SEVERAL, NOW, differences, old_metadata


@pytest.fixture(autouse=True)
def same_place() -> Iterator[None]:
    """Keep the working directory."""
    here = os.getcwd()
    yield
    os.chdir(here)


@pytest.mark.sampled
@pytest.mark.parametrize("disk", few(DISKS_OF_SEVERAL, 2), ids=lambda disk: disk.__name__)
def test_no_order_and_no_spelling_changes_an_answer(tmp_path: Path, disk: Callable[[Path], None]) -> None:
    disk(tmp_path)
    found = [
        f"kdump {' '.join((command.name, *command.options))}, {text}"
        for command in sample(COMMANDS, 12, disk.__name__)
        for text in differences(command, tmp_path)
    ]
    assert not found, "\n\n".join(found)


def test_the_newest_metadata_answers_for_both_log_directories(tmp_path: Path) -> None:
    """The older log has no topic that was created after it: its partitions are no strays, and their configs are known.
    A broker has caught up before it decides (BrokerMetadataPublisher.initializeManagers)."""
    old_metadata(tmp_path)
    paths = [tmp_path / "disk_a", tmp_path / "disk_b"]
    for given in (paths, paths[::-1], paths[1:] + paths[:1]):
        plan = objects("restart-plan", *given, status=3)
        assert not any(each["stray"] for each in plan if each["type"] == "restartPartition")
        (end,) = [each for each in plan if each["type"] == "restartPlan"]
        assert any("up to offset 329" in text for text in end["assumptions"])
        (stop,) = end["stops"]
        assert stop["exception"].startswith("KafkaException: Found unexpected metadata location in data directory")
        assert stop["file"] == str(tmp_path / "disk_b" / "__cluster_metadata-0")
        kept = [each for each in objects("retention", *given, *NOW) if each["type"] == "retention"]
        assert kept
        assert all(each["isConfigKnown"] for each in kept)
        (space,) = [
            each for each in objects("space", *given, *NOW, "--need", "1M", status=1) if each["type"] == "space"
        ]
        assert space["metadataOffset"] == 329
