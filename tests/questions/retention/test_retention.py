"""Compares the rules of retention and of the log cleaner with Kafka's own classes (LogRetention.java), and tests them
one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdump.format.kafka_release import LINES
from kdump.format.known_releases import known, newest
from kdump.io.errors import SourceError
from kdump.kafka.server_properties import read_properties
from kdump.log.paths import Target
from kdump.questions.retention.compaction import compaction
from kdump.questions.retention.configs import CONFIGS, STATIC, ConfigOverrides, Settings, settings
from kdump.questions.retention.deletion import HELD, KEPT, LATER, NOW, LogFacts, deletions
from kdump.questions.retention.observed_segments import ObservedSegment
from kdump.state.effective_config import dynamic_synonyms
from kdump.state.metadata_image import BROKER, MetadataImage, TopicImage

HERE = Path(__file__).parent
CASES = [line.split("\t") for line in (HERE / "log_retention.tsv").read_text().splitlines()]
CLOCK = 1_800_000_000_000
NAMES = (
    *("cleanup.policy", "retention.ms", "retention.bytes", "min.compaction.lag.ms", "max.compaction.lag.ms"),
    "min.cleanable.dirty.ratio",
)


def config(**options: str) -> Settings:
    return settings(
        "t", None, None, ConfigOverrides({name.replace("_", "."): value for name, value in options.items()})
    )


def segment(base: int, size: int, first: int, largest: int) -> ObservedSegment:
    at = Target(f"{base:020}.log", None, "t", 0, base, "")
    # The time of an empty segment is that of its file, which is never used.
    return ObservedSegment(at, base, size, CLOCK, first_timestamp=first, largest=largest)


def case(fields: list[str]) -> tuple[list[ObservedSegment], LogFacts, Settings, int | None]:
    given = settings("t", None, None, ConfigOverrides(dict(zip(NAMES, fields))))
    segments = [segment(*map(int, each.split(":"))) for each in fields[6].split(" ")]
    start, end, mark, stable = map(int, fields[7:11])
    log = LogFacts(start, end, mark, stable, CLOCK)
    return segments, log, given, None if fields[11] == "-" else int(fields[11])


@pytest.mark.parametrize("number", range(0, 600, 100))
def test_the_cleaner_as_kafka_has_it(number: int) -> None:
    taken = 0
    for fields in CASES[number : number + 100]:
        segments, log, given, checkpoint = case(fields)
        found = compaction(segments, log, given, checkpoint)
        answer = [
            found.firstDirtyOffset,
            found.firstUncleanableOffset,
            found.stop,
            found.cleanBytes,
            found.cleanableBytes,
        ]
        answer += [found.is_overdue, found.is_taken]
        assert [str(each).lower() for each in answer] == fields[12:19], fields
        taken += found.is_taken
        if not found.is_taken and found.missingBytes is not None:
            # This many more bytes reach the ratio, fewer do not.
            least, all_clean = given["min.cleanable.dirty.ratio"], found.cleanBytes
            more = found.cleanableBytes + found.missingBytes
            assert more / (all_clean + more) > least
            assert found.missingBytes == 1 or (more - 1) / (all_clean + more - 1) <= least
    assert 10 < taken < 90


def test_deletion_as_kafka_has_it() -> None:
    states = {NOW: 0, LATER: 0, KEPT: 0, HELD: 0}
    for fields in CASES:
        segments, log, given, _ = case(fields)
        found = deletions(segments, log, given)
        for each in found:
            states[each.deletion] += 1
        left = {int(base) for base in (fields[19] if len(fields) > 19 else "").split()}
        kept = [each.baseOffset for each, what in zip(segments, found) if what.deletion != NOW]
        # A log that loses all its segments gets a new one.
        assert kept == [each.baseOffset for each in segments if each.baseOffset in left], fields
        for each, what in zip(segments, found):
            if what.deletion == LATER and what.deletesAt is not None:
                assert what.deletesAt > CLOCK, (fields, each.baseOffset)
    assert all(count > 50 for count in states.values()), states


def test_later_is_when_it_goes() -> None:
    """From the reported millisecond on, and not before, the segment is deleted, together with those before it."""
    checked = 0
    for fields in CASES:
        segments, log, given, _ = case(fields)
        if log.high_watermark != log.log_end:
            continue
        found = deletions(segments, log, given)
        for number, what in enumerate(found):
            if what.deletion not in (LATER, HELD) or what.deletesAt is None:
                continue
            on_time = deletions(segments, log._replace(now=what.deletesAt), given)
            before = deletions(segments, log._replace(now=what.deletesAt - 1), given)
            assert all(each.deletion == NOW for each in on_time[: number + 1]), fields
            assert before[number].deletion != NOW, fields
            checked += 1
    assert checked > 150


def test_bytes_that_are_missing_are_those() -> None:
    given = config(retention_bytes="250", retention_ms="-1")
    segments = [segment(n * 10, 100, CLOCK, CLOCK) for n in range(4)]
    log = LogFacts(0, 40, 40, 40, CLOCK)
    found = deletions(segments, log, given)
    assert [each.deletion for each in found] == [NOW, LATER, LATER, KEPT]
    assert [each.deletesAfterBytes for each in found[1:]] == [50, 150, None]
    for number in (1, 2):
        for more, goes in ((found[number].deletesAfterBytes, True), (found[number].deletesAfterBytes - 1, False)):
            grown = [*segments[:3], segment(30, 100 + more, CLOCK, CLOCK)]
            assert (deletions(grown, log, given)[number].deletion == NOW) == goes


def test_a_timestamp_of_the_future_keeps_what_is_behind_it() -> None:
    given = config(retention_ms="1000")
    old, future = CLOCK - 10_000, CLOCK + 10 * 3_600_000
    segments = [segment(0, 10, old, old), segment(1, 10, old, future), segment(2, 10, old, old), segment(3, 0, -1, -1)]
    found = deletions(segments, LogFacts(0, 3, 3, 3, CLOCK), given)
    assert [each.deletion for each in found] == [NOW, HELD, HELD, KEPT]
    assert [each.blocked for each in found] == ["", "future", "future", "empty"]
    assert (found[1].by, found[2].by, found[2].deletesAt) == (None, 1, future + 1001)
    # A clock that is slightly ahead is not reported: the segment waits.
    near = [segment(0, 10, old, CLOCK + 60_000), segment(1, 10, old, old)]
    assert [each.deletion for each in deletions(near, LogFacts(0, 2, 2, 2, CLOCK), given)] == [LATER, LATER]
    # Size-based retention still deletes it.
    by_size = deletions(segments, LogFacts(0, 3, 3, 3, CLOCK), config(retention_ms="1000", retention_bytes="0"))
    assert [each.deletion for each in by_size[:3]] == [NOW, NOW, NOW]


def test_what_the_tier_lacks_stays() -> None:
    given = config(retention_ms="1000", remote_storage_enable="true", local_retention_ms="10")
    old = CLOCK - 500
    segments = [segment(0, 10, old, old), segment(5, 10, old, old), segment(9, 10, CLOCK, CLOCK)]
    log = LogFacts(0, 12, 12, 12, CLOCK, remote_end=4)
    found = deletions(segments, log, given)
    assert [(each.deletion, each.deletionRule) for each in found[:2]] == [
        (NOW, "local.retention.ms"),
        (HELD, "local.retention.ms"),
    ]
    assert found[1].blocked == "tier"
    assert deletions(segments, log._replace(remote_end=None), given)[0].deletion == "unknown"
    # The active segment has no copy: it is rolled first.
    rolled = deletions(segments[:1], LogFacts(0, 5, 5, 5, CLOCK, remote_end=-1), given)
    assert [(each.deletion, each.blocked) for each in rolled] == [(LATER, "roll")]


def test_the_time_of_a_segment() -> None:
    found = segment(0, 10, 5, 7)
    assert (found.timestamp, found.timestamp_from) == (7, "batch")
    found.indexed, found.recovers = 9, False
    assert (found.timestamp, found.timestamp_from) == (9, "timeIndex")
    found.recovers = True  # it is read again
    assert (found.timestamp, found.timestamp_from) == (7, "batch")
    found.indexed, found.recovers = None, False
    assert (found.timestamp, found.timestamp_from) == (CLOCK, "file")
    found.recovers = None  # the broker is running
    assert found.timestamp_from == "batch"
    found.largest = -1
    assert (found.timestamp, found.timestamp_from) == (CLOCK, "file")


# --- Configs.


def test_defaults_and_names_are_kafkas() -> None:
    """No release from 2.8 on has another default, and kdump knows each name in server.properties."""
    for name, each in CONFIGS.items():
        own = [(known(line).topic_configs if each.is_topics else known(line).broker_configs) for line in LINES]
        assert {each.read(configs[name] or "") for configs in own if name in configs} == {each.default}, name
        mine = (dynamic_synonyms()[name],) if name in dynamic_synonyms() else ()
        mine += tuple(other for other, _ in STATIC.get(name, ()))
        assert mine == newest().synonyms.get(name, ()), name


def metadata(topic: dict[str, str], broker: dict[str, str], cluster: dict[str, str]) -> MetadataImage:
    return MetadataImage(
        topics={"t": TopicImage("t", "id", topic)}, configs={(BROKER, "1"): broker, (BROKER, ""): cluster}
    )


def test_the_first_that_has_a_value_counts() -> None:
    topic, broker = {"retention.ms": "1"}, {"log.retention.ms": "2"}
    cluster, file = {"log.retention.ms": "3"}, {"log.retention.hours": "1", "log.retention.minutes": "4"}
    steps: list[tuple[dict[str, Any], int, str]] = [
        ({"options": {"log.retention.hours": "2"}}, 1, "topic"),
        ({"options": {"retention.ms": "9"}}, 9, "option"),
        ({"topic": {}}, 2, "broker"),
        ({"topic": {}, "broker": {}}, 3, "cluster default"),
        ({"topic": {}, "broker": {}, "cluster": {}}, 240_000, "server.properties"),
        ({"topic": {}, "broker": {}, "cluster": {}, "file": {}}, 604_800_000, "default"),
        ({"topic": {}, "options": {"log.retention.hours": "2"}}, 7_200_000, "option"),
    ]
    for changed, value, source in steps:
        said: dict[str, Any] = {"topic": topic, "broker": broker, "cluster": cluster, "file": file, "options": {}}
        said |= changed
        given = ConfigOverrides(said["options"], said["file"])
        found = settings("t", metadata(said["topic"], said["broker"], said["cluster"]), 1, given)
        assert found.values["retention.ms"] == (value, source), changed
    unknown = settings("other", metadata(topic, broker, cluster), 1, ConfigOverrides())
    assert unknown.values["retention.ms"] == (2, "broker")
    assert unknown.values["retention.bytes"].source == "assumed"
    assert not unknown.is_known


def test_nonsense_is_passed_over() -> None:
    for name, value in (("retention.ms", "x"), ("retention.bytes", "9" * 30), ("cleanup.policy", "burn")):
        found = settings("t", metadata({name: value}, {}, {}), 1, ConfigOverrides())
        assert found.values[name].source == "default"
        assert len(found.problems) == 1
        assert name in found.problems[0]
    assert settings("t", metadata({"cleanup.policy": ""}, {}, {}), 1, ConfigOverrides())["cleanup.policy"] == ()
    assert settings("__consumer_offsets", None, None, ConfigOverrides()).compacts
    assert settings("t", None, None, ConfigOverrides(), was_cleaned=True).compacts


def test_server_properties(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "# log.retention.ms=1\n log.retention.hours = 5\nlog.roll.ms:7\nlog.cleaner.\\\n  enable false\n! x\na\n"
    )
    said = read_properties(str(path)).values
    assert said == {"log.retention.hours": "5", "log.roll.ms": "7", "log.cleaner.enable": "false", "a": ""}
    path.write_bytes(b"\0")
    for wrong in (path, tmp_path, tmp_path / "none"):
        with pytest.raises(SourceError):
            read_properties(str(wrong))
