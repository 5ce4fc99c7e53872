"""Releases of Kafka, as a user names them: 3.6, 3.6.2, 3.9-zookeeper, cp-7.6.

Source: the feature and compatibility tables of Confluent Platform ("Confluent Platform and Apache Kafka
compatibility"); KIP-833 (ZooKeeper is removed in 4.0), KIP-500 (KRaft since 2.8)."""

from __future__ import annotations

import re
from typing import NamedTuple

from kdump.format.releases import RELEASES

ZOOKEEPER, KRAFT = "zookeeper", "kraft"
"""Modes of a node: where its cluster keeps the metadata."""

NEWEST_PATCH = 999
"""Stands for the newest patch release if none is named."""

LINES = tuple((major, minor) for major, minor, _ in RELEASES)
"""Minor releases that are known, oldest first."""

CONFLUENT = {
    (6, 2): (2, 8),
    **{(7, minor): (3, minor) for minor in range(10)},
    **{(8, minor): (4, minor) for major, minor in LINES if major == 4},
}
"""Kafka's release in each release of Confluent Platform."""

_KAFKA = re.compile(r"(?:kafka[-_ ])?v?(\d+)\.(\d+)(?:\.(\d+))?")
_CONFLUENT = re.compile(r"(?:cp|confluent)[-_ ]?v?(\d+)\.(\d+)(?:\.(\d+))?")
_CCS = re.compile(r"v?(\d+)\.(\d+)\.(\d+)-(?:ccs|ce)")
_MODE = re.compile(r"[-_ ](zookeeper|zk|kraft)$")

UNDERSTOOD = (
    "2.8, 3.0 to 3.9 and 4.0 and later, with or without a patch release (3.6.2), and cp-6.2, cp-7.0 to cp-7.9, cp-8.0 "
    f"to cp-8.{LINES[-1][1]}; up to 3.9, add -zookeeper or -kraft to choose the mode (3.9-kraft)"
)
LARGEST_NUMBER = 99
"""Largest part of the number of a later release: 2026.1 is no release of Kafka."""


class KafkaRelease(NamedTuple):
    """A release. `patch` is None if any may be meant: the newest one is assumed. `mode` is ZOOKEEPER, KRAFT, or None
    if it is not named."""

    major: int
    minor: int
    patch: int | None = None
    mode: str | None = None

    @property
    def order(self) -> tuple[int, int, int]:
        """Key by which releases are compared, whatever the mode."""
        return self.major, self.minor, NEWEST_PATCH if self.patch is None else self.patch

    @property
    def line(self) -> tuple[int, int]:
        """Major and minor release."""
        return self.major, self.minor

    @property
    def number(self) -> str:
        """The number as Kafka writes it: 3.6 or 3.6.2."""
        return f"{self.major}.{self.minor}" + ("" if self.patch is None else f".{self.patch}")

    @property
    def option(self) -> str:
        """The release as parse_release and --kafka-version take it: 3.6.2-zookeeper."""
        return self.number if self.mode is None or not self.has_modes else f"{self.number}-{self.mode}"

    @property
    def is_newer(self) -> bool:
        """Whether the release is newer than the newest one that is known."""
        return self.line > NEWEST.line

    @property
    def has_modes(self) -> bool:
        """Whether brokers of this release run with ZooKeeper or with KRaft."""
        return self.major < 4

    def __str__(self) -> str:
        if self.mode is None or not self.has_modes:
            return self.number
        return f"{self.number} ({'ZooKeeper' if self.mode == ZOOKEEPER else 'KRaft'})"


NEWEST = KafkaRelease(*RELEASES[-1], KRAFT)
"""The newest release that is known; its rules apply if nothing states another one."""
NEWEST_KNOWN = f"Kafka {NEWEST.number}, the newest release that kdump knows"


def newer_text(what: str, number: int | str, highest: int | str | None) -> str:
    """Return that something has a number above the `highest` that is known (None: there is no such thing)."""
    return f"{what} {newer_number(number, highest)}"


def newer_number(number: int | str, highest: int | str | None) -> str:
    """Return the same without what it is."""
    known = "which does not exist in" if highest is None else f"above {highest}, the highest in"
    return f"{number}, {known} {NEWEST_KNOWN}"


def newer_release_text(release: KafkaRelease) -> str:
    """Return that a release that was named is newer than those that are known; empty if it is not."""
    return f"Kafka {release.number} is newer than {NEWEST_KNOWN}: its rules are applied" if release.is_newer else ""


class AppliedRelease(NamedTuple):
    """The release whose rules are applied to a disk: one between `since` and `until` (inclusive) may be the true one.
    `doubt` says so in words; empty if nothing states a release, or exactly one. `newer` is what only a newer release
    than the newest known one writes; empty if nothing on the disk is. `is_registered`: the node registered with a
    release that is known."""

    release: KafkaRelease = NEWEST
    since: KafkaRelease = KafkaRelease(2, 8)
    until: KafkaRelease = NEWEST
    doubt: str = ""
    newer: tuple[str, ...] = ()
    is_registered: bool = False


NEWEST_APPLIES = AppliedRelease()
"""Nothing states a release."""


def parse_release(name: str) -> KafkaRelease:
    """Return the release that `name` names, which may be newer than those that are known. Raises ValueError with the
    names that are understood."""
    given = name.strip().lower()
    mode_match = _MODE.search(given)
    mode = None
    if mode_match:
        mode = KRAFT if mode_match[1] == KRAFT else ZOOKEEPER
        given = given[: mode_match.start()]
    match = _CONFLUENT.fullmatch(given) or _CCS.fullmatch(given)
    patch: int | None
    if match:
        release = CONFLUENT.get((int(match[1]), int(match[2])))
        if release is None:
            raise ValueError(f"{name!r} is not a known release of Confluent Platform; use {UNDERSTOOD}")
        # A distribution's own patch releases do not follow Kafka's.
        major, minor, patch = *release, None
    else:
        match = _KAFKA.fullmatch(given)
        if match is None:
            raise ValueError(f"{name!r} is not a Kafka release; use {UNDERSTOOD}")
        major, minor = int(match[1]), int(match[2])
        patch = None if match[3] is None else int(match[3])
        is_later = (major, minor) > NEWEST.line and max(major, minor) <= LARGEST_NUMBER
        if not ((major, minor) in LINES or is_later) or (patch or 0) >= NEWEST_PATCH:
            raise ValueError(f"kdump does not know Kafka {given}; use {UNDERSTOOD}")
    if major >= 4:
        if mode == ZOOKEEPER:
            raise ValueError(f"{name!r}: Kafka 4.0 and later run without ZooKeeper; use {major}.{minor}")
        mode = KRAFT
    return KafkaRelease(major, minor, patch, mode)
