"""The configs that determine what a log deletes, and the source of each value of a topic.

Source: org.apache.kafka.storage.internals.log.LogConfig and CleanerConfig, ServerLogConfigs, and the static synonyms of
ServerTopicConfigSynonyms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kdump.format.known_releases import config_default
from kdump.format.numbers import LONG_MAX
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import COMPACTED_TOPICS
from kdump.query import many
from kdump.state.effective_config import dynamic_synonyms
from kdump.state.metadata_image import BROKER, MetadataImage

OPTION, TOPIC, BROKERS, CLUSTER, FILE = "option", "topic", "broker", "cluster default", "server.properties"
DEFAULT, ASSUMED = "default", "assumed"
"""Sources of a value, in order of precedence. `assumed`: Kafka's default, if the topic's own configs are unknown."""
SOURCES = (OPTION, TOPIC, BROKERS, CLUSTER, FILE, DEFAULT, ASSUMED)
FOREVER = LONG_MAX
"""Long.MAX_VALUE: Kafka's value for no bound."""
INTEGER = re.compile(r"[+-]?[0-9]+")


def _policies(text: str) -> tuple[str, ...]:
    """Parse a cleanup.policy; an empty list keeps everything (KIP-1161)."""
    names = tuple(name.strip().lower() for name in text.split(",") if name.strip())
    if not set(names) <= {"compact", "delete"}:
        raise ValueError(text)
    return names


def _whole(text: str) -> int:
    if not INTEGER.fullmatch(text.strip()):
        raise ValueError(text)
    number = int(text)
    if not -LONG_MAX <= number <= LONG_MAX:
        raise ValueError(text)
    return number


def _ratio(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError(text)
    return number


def _bool(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(text)
    return text.strip().lower() == "true"


class Config(NamedTuple):
    """A config, and the parser of its text. `is_topics`: whether a topic can have its own value."""

    name: str
    read: Callable[[str], Any]
    is_topics: bool = True

    @property
    def default(self) -> Any:
        """Kafka's default. No release from 2.8 on has another."""
        return self.read(config_default(self.name) or "")


CONFIGS = {
    config.name: config
    for config in (
        Config("cleanup.policy", _policies),
        Config("retention.ms", _whole),
        Config("retention.bytes", _whole),
        Config("segment.ms", _whole),
        Config("segment.jitter.ms", _whole),
        Config("segment.bytes", _whole),
        Config("file.delete.delay.ms", _whole),
        Config("min.cleanable.dirty.ratio", _ratio),
        Config("min.compaction.lag.ms", _whole),
        Config("max.compaction.lag.ms", _whole),
        Config("delete.retention.ms", _whole),
        Config("max.decompressed.message.bytes", _whole),
        Config("remote.storage.enable", _bool),
        Config("remote.log.copy.disable", _bool),
        Config("local.retention.ms", _whole),
        Config("local.retention.bytes", _whole),
        Config("remote.copy.lag.ms", _whole),
        Config("remote.copy.lag.bytes", _whole),
        Config("log.cleaner.enable", _bool, False),
        Config("log.cleaner.dedupe.buffer.size", _whole, False),
        Config("log.cleaner.threads", _whole, False),
        Config("log.cleaner.io.buffer.load.factor", _ratio, False),
        Config("log.retention.check.interval.ms", _whole, False),
    )
}
"""In the order of the output."""
STATIC = {
    "retention.ms": (("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "segment.ms": (("log.roll.hours", 3_600_000),),
    "segment.jitter.ms": (("log.roll.jitter.hours", 3_600_000),),
}
"""Names that exist only in server.properties, and the milliseconds of their unit. The name in milliseconds has
precedence."""


class Setting(NamedTuple):
    """A config's value and its source, one of SOURCES."""

    value: Any
    source: str


Asked = Mapping[str, str] | Iterable[tuple[str, str]]


def parse_config(typed: str) -> tuple[str, str]:
    """Parse KEY=VALUE. Raises ValueError for a config that does not exist, or a value that a broker would reject."""
    name, equals, value = typed.partition("=")
    if not equals:
        raise ValueError(f"{typed!r} is not KEY=VALUE")
    if name not in known_names():
        raise ValueError(f"unknown config {name!r}; use {', '.join(sorted(known_names()))}")
    try:
        check(name, value)
    except ValueError:
        raise ValueError(f"{name}: {value!r} is not a valid value") from None
    return name, value


def config_option() -> Any:
    """Return the field of --config."""
    about = "Override a topic config, or set a broker default (log.retention.hours=1); repeatable."
    return many("--config", metavar="KEY=VALUE", type=parse_config, help=about)


@dataclass
class ConfigOverrides:
    """Values known in addition to the metadata: `options` by name (a topic's config, or a broker's), and `properties`,
    the broker's server.properties."""

    options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def asked(cls, config: Asked | None, properties: Mapping[str, str] | None) -> ConfigOverrides:
        """Return those that a question has. Raises ValueError as parse_config does."""
        options = dict(config or {})
        for name, value in options.items():
            parse_config(f"{name}={value}")
        return cls(options, properties or {})

    def of_node(self, server: ServerProperties | None) -> ConfigOverrides:
        """Return the same for a node whose server.properties were found."""
        return self if server is None or self.properties else replace(self, properties=server.values)


@dataclass
class Settings:
    """The configs of one topic by name. `is_known`: whether the topic's own were found; `own`: their names. `problems`:
    invalid values, which were ignored."""

    values: dict[str, Setting] = field(default_factory=dict)
    is_known: bool = False
    problems: list[str] = field(default_factory=list)
    own: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    @property
    def compacts(self) -> bool:
        return "compact" in self["cleanup.policy"]

    @property
    def deletes(self) -> bool:
        return "delete" in self["cleanup.policy"]

    def is_certain(self, *names: str, are_defaults_known: bool) -> bool:
        """Return whether the values of these configs are those in force: given, the topic's own, or the default of a
        broker whose server.properties is known. If the topic's own are unknown, they may differ from any other."""
        sources = {self.values[name].source for name in names}
        if not self.is_known:
            return sources == {OPTION}
        return ASSUMED not in sources and (are_defaults_known or DEFAULT not in sources)

    @property
    def is_tiered(self) -> bool:
        """Whether segments are copied to remote storage, so that local.retention.* determines how long they stay on
        this disk."""
        return bool(self["remote.storage.enable"]) and not self["remote.log.copy.disable"]

    def retention(self, what: str) -> tuple[int, str]:
        """Return the retention bound of the log on this disk (-1: none) and the name of its config. `what` is ms or
        bytes. See UnifiedLog.localRetentionMs and localRetentionSize: -2 stands for the topic's total retention."""
        name = f"retention.{what}"
        if self.is_tiered and self[f"local.{name}"] != -2:
            name = f"local.{name}"
        return self[name], name

    @property
    def copy_lag(self) -> str:
        """What a segment waits for until it is copied to remote storage, in words; empty if it need not wait. Of each
        config, -1 stands for the local retention, which the other one limits alone if there is none
        (RemoteLogManager.isEligibleForUpload, LogConfig)."""
        names = ("remote.copy.lag.ms", "remote.copy.lag.bytes")
        if 0 in [self[name] for name in names]:
            return ""
        return " or ".join(f"{name}={self[name]}" for name in names)

    @property
    def longest_segment(self) -> int:
        """Maximum ms between the first record of a segment and the one that rolls it, without jitter
        (LogConfig.maxSegmentMs)."""
        longest: int = self["segment.ms"]
        if self.compacts and self["max.compaction.lag.ms"] > 0:
            longest = min(longest, self["max.compaction.lag.ms"])
        return longest


def known_names() -> frozenset[str]:
    """Return the names that `ConfigOverrides.options` may contain."""
    static = (name for names in STATIC.values() for name, _ in names)
    return frozenset((*CONFIGS, *(dynamic_synonyms()[name] for name in CONFIGS if name in dynamic_synonyms()), *static))


def broker_names() -> frozenset[str]:
    """Return the names in a server.properties that have an effect here."""
    return frozenset(name for config in CONFIGS.values() for name, _ in _broker_names(config))


def check(name: str, text: str) -> None:
    """Raise ValueError for a value that a broker would reject; `name` is one of known_names()."""
    for config in CONFIGS.values():
        if name == config.name or name in [broker_name for broker_name, _ in _broker_names(config)]:
            config.read(text)


def settings(
    topic: str | None,
    metadata: MetadataImage | None,
    node_id: int | None,
    given: ConfigOverrides,
    *,
    was_cleaned: bool = False,
) -> Settings:
    """Return the configs of a topic on broker `node_id`. `was_cleaned`: the log cleaner has cleaned a partition of the
    topic; if its configs are unknown, this shows at least that it is compacted."""
    described = metadata.topics.get(topic) if metadata is not None and topic is not None else None
    own = described.configs if described is not None else {}
    is_known = metadata is not None and described is not None and not metadata.emptied
    made = Settings(is_known=is_known, own=frozenset(own))
    for config in CONFIGS.values():
        fallback = Setting(config.default, DEFAULT if described is not None else ASSUMED)
        if config.name == "cleanup.policy" and described is None and (was_cleaned or topic in COMPACTED_TOPICS):
            fallback = Setting(("compact",), ASSUMED)
        value = fallback
        for text, factor, source, name in _texts(config, own, metadata, node_id, given):
            try:
                read = config.read(text)
            except ValueError:
                made.problems.append(f"{name}={text!r} ({source}) is invalid and was ignored")
                continue
            value = Setting(read * factor if factor != 1 else read, source)
            break
        made.values[config.name] = value
    return made


def _texts(
    config: Config, own: Mapping[str, str], metadata: MetadataImage | None, node_id: int | None, given: ConfigOverrides
) -> Iterator[tuple[str, int, str, str]]:
    """Yield the given values of a config in order of precedence: (text, ms of its unit or 1, source, name)."""
    name = config.name
    for source, values in ((OPTION, given.options), (TOPIC, own)):
        if config.is_topics and name in values:
            yield values[name], 1, source, name
    names = list(_broker_names(config))
    yield from _of(names, OPTION, given.options)
    if metadata is not None:
        node = "" if node_id is None else str(node_id)
        for source, resource in ((BROKERS, node), (CLUSTER, "")):
            if resource or source == CLUSTER:
                yield from _of(names[:1], source, metadata.configs.get((BROKER, resource), {}))
    yield from _of(names, FILE, given.properties)


def _broker_names(config: Config) -> Iterable[tuple[str, int]]:
    name = config.name if not config.is_topics else dynamic_synonyms().get(config.name)
    return (() if name is None else ((name, 1),)) + STATIC.get(config.name, ())


def _of(
    names: Iterable[tuple[str, int]], source: str, values: Mapping[str, str]
) -> Iterator[tuple[str, int, str, str]]:
    return ((values[name], factor, source, name) for name, factor in names if name in values)
