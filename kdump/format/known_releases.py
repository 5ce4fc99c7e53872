"""What each release of Kafka knows: metadata levels, features, messages, configs, versions of files.

A file of kdump/format/releases is a minor release, as its newest patch release has it. tools/adopt generates it from
the release's jars. Its keys:

- features: by name the lowest and the highest level with which a node registers, and the level of a new cluster. Empty
  up to 3.2, which had no metadata.version.
- levels: the names of the levels of metadata.version that a node takes without unstable.feature.versions.enable;
  unstable: of those that need it.
- changed: the levels that changed the metadata: a controller refuses to lower metadata.version from one of them, or
  across one (MetadataVersion.didMetadataChange and checkIfMetadataChanged).
- messages: the versions of each message that can be on a disk, by Kafka's module and name ("0-3"; "none": not read any
  more). The apiKey is in kdump/format/schemas. tags: the highest tag of a field of those that have tagged fields, which
  a release may add without a new version (tags in nested structures are not counted).
- files: the versions of small files, by the class that reads them.
- topicConfigs, brokerConfigs: defaults as text; null: none. topicRules: the type and the limits of a topic's config, in
  the form of Kafka's ConfigDef ("LONG [-1,...]"). synonyms: the configs of a broker that are the default of a
  topic's, in order of precedence (ServerTopicConfigSynonyms, since 3.6).

A file is read only when something asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kdump.format.kafka_release import LINES, newer_text

if TYPE_CHECKING:
    from kdump.format.schema import Versions

Line = tuple[int, int]
"""Major and minor release."""


class KnownRelease(NamedTuple):
    """What a minor release knows; see the keys above. The ranges are inclusive."""

    line: Line
    features: Mapping[str, Versions]
    new_levels: Mapping[str, int]
    levels: Mapping[int, str]
    unstable: Mapping[int, str]
    changed: frozenset[int]
    messages: Mapping[str, Mapping[str, Versions]]
    tags: Mapping[str, int]
    files: Mapping[str, Versions]
    topic_configs: Mapping[str, str | None]
    topic_rules: Mapping[str, str]
    broker_configs: Mapping[str, str | None]
    synonyms: Mapping[str, tuple[str, ...]]

    def takes(self, feature: str, level: int) -> bool:
        """Return True if a node registers with a range of this feature that includes the level. Level 0 stands for a
        feature that is not used."""
        levels = self.features.get(feature)
        return level == 0 if levels is None else levels.hold(level)


@cache
def known(line: Line) -> KnownRelease:
    """Return what a minor release knows. Raises KeyError if it is not in LINES."""
    if line not in LINES:
        raise KeyError(line)
    import pkgutil

    from kdump.format.schema import Versions  # ls starts without

    data = pkgutil.get_data("kdump.format.releases", "{}.{}.json".format(*line))
    assert data is not None
    read: dict[str, Any] = json.loads(data)
    return KnownRelease(
        line,
        {name: Versions(lowest, highest) for name, (lowest, highest, _) in read["features"].items()},
        {name: level for name, (_, _, level) in read["features"].items()},
        {int(level): name for level, name in read["levels"].items()},
        {int(level): name for level, name in read["unstable"].items()},
        frozenset(read["changed"]),
        {
            module: {name: Versions.parse(text) for name, text in messages.items()}
            for module, messages in read["messages"].items()
        },
        read["tags"],
        {name: Versions.parse(text) for name, text in read["files"].items()},
        read["topicConfigs"],
        read["topicRules"],
        read["brokerConfigs"],
        {name: tuple(text.split(",")) for name, text in read["synonyms"].items()},
    )


def newest() -> KnownRelease:
    """Return what the newest known release knows: what is above that was written by a newer one."""
    return known(LINES[-1])


def newer_version(reader: str, version: int | None, what: str = "version") -> str:
    """Return that a small file has a version above those that the newest known release reads with the class `reader`;
    empty if it has another one."""
    highest = newest().files[reader].highest
    return newer_text(what, version, highest) if version is not None and version > highest else ""


def at_most(line: Line) -> KnownRelease:
    """Return what the newest known release up to this one knows: itself, unless it is not known."""
    return known(max((each for each in LINES if each <= line), default=LINES[0]))


def first_taking(feature: str, level: int) -> Line | None:
    """Return the first release that takes this level of a feature, or a higher one; None if no known one does."""
    lines = (
        releases.line
        for releases in _all()
        if feature in releases.features and releases.features[feature].highest >= level
    )
    return next(lines, None)


def features() -> tuple[str, ...]:
    """Return the names of all features of all releases."""
    return tuple(dict.fromkeys(name for releases in _all() for name in releases.features))


@cache
def metadata_levels() -> Mapping[int, str]:
    """Return the name of each level of metadata.version that a release takes, in ascending order."""
    return {level: name for releases in _spanning() for level, name in releases.levels.items()}


@cache
def metadata_changes() -> frozenset[int]:
    """Return the levels that changed the metadata."""
    return frozenset(level for releases in _spanning() for level in releases.changed)


@cache
def config_default(name: str) -> str | None:
    """Return the default of a config of topics or brokers, in the newest release that has it."""
    for line in reversed(LINES):
        for configs in (known(line).topic_configs, known(line).broker_configs):
            if name in configs:
                return configs[name]
    raise KeyError(name)


@cache
def synonyms() -> Mapping[str, tuple[str, ...]]:
    """Return, by config of topics, the configs of a broker that are its default, in order of precedence."""
    return {name: names for releases in _spanning() for name, names in releases.synonyms.items()}


def _all() -> Iterator[KnownRelease]:
    return map(known, LINES)


def _spanning() -> Iterator[KnownRelease]:
    """Yield the last release of each major one: a minor release forgets no level."""
    for line, following in zip(LINES, (*LINES[1:], (0, 0))):
        if following[0] != line[0]:
            yield known(line)
