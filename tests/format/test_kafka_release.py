"""Which releases of Kafka are understood by name."""

from __future__ import annotations

import pytest

from kdump.format.kafka_release import KRAFT, ZOOKEEPER, KafkaRelease, parse_release
from tests.each_case import each_case


@each_case(
    "text, release",
    [
        ("2.8", (2, 8, None, None)),
        ("3.6.2", (3, 6, 2, None)),
        ("3.9-zookeeper", (3, 9, None, ZOOKEEPER)),
        ("3.9.1-zk", (3, 9, 1, ZOOKEEPER)),
        ("kafka-3.3-kraft", (3, 3, None, KRAFT)),
        ("4.2", (4, 2, None, KRAFT)),
        ("cp-6.2", (2, 8, None, None)),
        ("cp-7.6", (3, 6, None, None)),
        ("CP-7.9.1", (3, 9, None, None)),
        ("7.5.3-ccs", (3, 5, None, None)),
        ("cp-8.1-kraft", (4, 1, None, KRAFT)),
    ],
)
def test_names(text: str, release: tuple[int, int, int | None, str | None]) -> None:
    assert parse_release(text) == KafkaRelease(*release)


@each_case("text", ["", "1.1", "2.7", "3.10", "4.100", "3", "cp-6.1", "cp-9.0", "latest", "4.0-zk"])
def test_an_unknown_name_is_refused_with_what_is_understood(text: str) -> None:
    with pytest.raises(ValueError, match=r"3\.9|4\.0"):
        parse_release(text)


def test_a_release_without_a_patch_is_its_newest_one() -> None:
    assert parse_release("3.7").order > parse_release("3.7.2").order > parse_release("3.7.0").order
