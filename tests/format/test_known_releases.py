"""What each release of Kafka knows: the data files against the schemas, and against what is known of the releases."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import kdump.format
from kdump.format.kafka_release import LINES, NEWEST
from kdump.format.known_releases import (
    at_most,
    features,
    first_taking,
    known,
    metadata_changes,
    metadata_levels,
    newest,
)
from kdump.format.schema import load_folder
from tools.adopt import facts

FORMAT = Path(kdump.format.__file__).parent


def test_each_file_is_listed() -> None:
    stated = [json.loads(path.read_text())["release"] for path in FORMAT.glob("releases/*.json")]
    assert sorted(tuple(map(int, each.split(".")))[:2] for each in stated) == list(LINES)
    assert NEWEST.number in stated
    assert all(known(line).line == line for line in LINES)


def test_the_newest_release_has_the_schemas_of_the_package() -> None:
    ranges = {
        path.stem: {name: schema.valid for name, schema in load_folder(path.stem).items()}
        for path in FORMAT.glob("schemas/*.json")
    }
    assert newest().messages == ranges


@pytest.mark.jars
def test_the_newest_file_is_what_its_jars_state(tmp_path: Path) -> None:
    facts.write(facts.facts(Path(os.environ["KDUMP_JARS"]).resolve(), NEWEST.number), tmp_path)
    name = "{}.{}.json".format(*NEWEST.line)
    assert (tmp_path / name).read_text() == (FORMAT / "releases" / name).read_text()


def test_levels() -> None:
    """The numbers have no gap, and each name that a release gives a level is the same in all of them."""
    levels = metadata_levels()
    assert list(levels) == list(range(1, max(levels) + 1))
    for line in LINES:
        release = known(line)
        assert release.levels.items() <= levels.items()
        assert release.changed <= set(release.levels) & metadata_changes()
        if release.levels:
            versions = release.features["metadata.version"]
            assert (versions.lowest, versions.highest) == (min(release.levels), max(release.levels))
    assert (levels[1], levels[7], levels[21], levels[30]) == ("3.0-IV1", "3.3-IV3", "3.9-IV0", "4.3-IV0")


@pytest.mark.parametrize(
    ("feature", "level", "line"),
    [
        ("metadata.version", 1, (3, 3)),
        ("metadata.version", 30, (4, 3)),
        ("metadata.version", 31, (4, 4)),
        ("metadata.version", 33, (4, 4)),
        ("metadata.version", 9_999, None),
        ("kraft.version", 1, (3, 9)),
        ("transaction.version", 2, (4, 0)),
        ("group.version", 1, (4, 0)),
        ("eligible.leader.replicas.version", 1, (4, 0)),
        ("share.version", 1, (4, 1)),
        ("share.version", 2, (4, 4)),
        ("streams.version", 1, (4, 2)),
        ("another.version", 1, None),
    ],
)
def test_the_first_release_that_takes_a_level(feature: str, level: int, line: tuple[int, int] | None) -> None:
    assert first_taking(feature, level) == line
    if line is not None:
        assert known(line).takes(feature, level)
        assert feature in features()


def test_a_release_takes_what_is_in_its_range() -> None:
    assert not known((4, 0)).takes("metadata.version", 6)
    assert known((3, 9)).takes("metadata.version", 6)
    assert not known((4, 3)).takes("share.version", 2)
    assert known((3, 3)).takes("share.version", 0)
    assert not known((3, 3)).takes("share.version", 1)
    assert not known((3, 2)).features


def test_tagged_fields() -> None:
    """A release adds them without a new version of the message."""
    assert [known(line).tags["StreamsGroupMetadataValue"] for line in ((4, 2), (4, 3), (4, 4))] == [1, 1, 3]
    assert "StreamsGroupMetadataValue" not in known((4, 1)).tags


def test_configs_and_files() -> None:
    assert known((4, 4)).topic_configs["max.decompressed.message.bytes"] == "2147483639"
    assert "remote.copy.lag.ms" not in known((4, 3)).topic_configs
    assert {each.topic_configs["retention.ms"] for each in map(known, LINES)} == {"604800000"}
    assert known((3, 3)).broker_configs.get("producer.id.expiration.ms") is None
    assert known((3, 4)).broker_configs["producer.id.expiration.ms"] == "86400000"
    assert {line for line in LINES if known(line).files["FileQuorumStateStore"].hold(1)} == {
        line for line in LINES if line >= (3, 8)
    }


def test_a_release_that_is_not_known() -> None:
    assert at_most((99, 0)) is newest()
    assert at_most((3, 6)) is known((3, 6))
    with pytest.raises(KeyError):
        known((99, 0))
