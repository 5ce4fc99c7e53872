"""Compares kdump.kafka.follower_truncation with Kafka's own LeaderEpochFileCache (EpochCache.java wrote
epoch_cache.tsv with 4.3.1), and replays the histories in KIP-101 and KIP-279."""

from __future__ import annotations

from pathlib import Path

from kdump.kafka.follower_truncation import EpochLineage, Truncation, truncation
from kdump.kafka.leader_epoch_file_cache import EpochEntry, end_offset_for
from tests.each_case import each_case

GOLDEN = Path(__file__).with_name("epoch_cache.tsv").read_text().splitlines()


def entries(text: str) -> tuple[EpochEntry, ...]:
    return tuple(EpochEntry(int(epoch), int(start)) for epoch, start in (word.split("@") for word in text.split()))


@each_case("line", GOLDEN, ids=range(len(GOLDEN)))
def test_kafkas_own_cache_says_the_same(line: str) -> None:
    stored, start, end, loaded, answers = line.split("\t")
    lineage = EpochLineage(entries(stored), int(start), int(end)).loaded()
    assert lineage.epochs == entries(loaded)
    for word in answers.split():
        requested, _, answer = word.partition(":")
        epoch, offset = map(int, answer.split("@"))
        mine = end_offset_for(lineage.epochs, int(requested), int(end))
        assert (mine or (-1, -1)) == (epoch, offset), word


def history(*epochs: tuple[int, int], end: int, start: int = 0, mark: int | None = None) -> EpochLineage:
    return EpochLineage(tuple(EpochEntry(*each) for each in epochs), start, end, mark)


CASES = {
    "the same": (history((0, 0), end=10), history((0, 0), end=10), Truncation(10, 0, "epochs")),
    "behind": (history((0, 0), end=10), history((0, 0), end=4), Truncation(4, 0, "epochs")),
    "ahead in the same epoch": (history((0, 0), end=4), history((0, 0), end=10), Truncation(4, 6, "epochs")),
    "KIP-101: a leader that lost its tail comes back": (
        history((0, 0), (1, 1), end=3),
        history((0, 0), end=2),
        Truncation(1, 1, "epochs"),
    ),
    "KIP-279: two fast elections": (
        history((0, 0), (2, 10), end=12),
        history((0, 0), (1, 10), end=13),
        Truncation(10, 3, "epochs"),
    ),
    "KIP-279: several epochs that the leader never had": (
        history((0, 0), (3, 5), (6, 20), end=30),
        history((0, 0), (1, 5), (2, 8), (4, 12), end=40),
        Truncation(5, 35, "epochs"),
    ),
    "no epochs: the high watermark": (
        history((0, 0), end=9),
        history(end=9, mark=7),
        Truncation(7, 2, "highWatermark"),
    ),
    "no epochs, and no high watermark": (history(end=9), history(end=9), Truncation(None, None, "highWatermark")),
    "below the leader's log start": (
        history((3, 50), end=60, start=50),
        history((0, 0), end=20),
        Truncation(50, 20, "logStart"),
    ),
}


@each_case("name", CASES)
def test_histories(name: str) -> None:
    leader, follower, expected = CASES[name]
    assert truncation(leader, follower) == expected
