"""What lower values of retention.ms and retention.bytes free, and the commands that set them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kdump.forensics.retention.configs import ASSUMED, DEFAULT, OPTION, TOPIC, Settings
from kdump.forensics.space.answers import KeptFrom, SpaceCandidate
from kdump.forensics.space.due_segments import RetainedLog, with_value

HOUR, DAY = 3_600_000, 86_400_000
AGES = tuple(HOUR * each for each in (1, 2, 3, 6, 12)) + tuple(
    DAY * each for each in (1, 2, 3, 5, 7, 14, 21, 30, 60, 90, 180, 365, 730)
)
"""Values of retention.ms that are tried, in ms."""
SHARES = (0.75, 0.5, 0.25, 0.1)
"""Values of retention.bytes that are tried, as shares of the topic's largest partition."""
BY_CONTROLLER = "while no broker is up, use --bootstrap-controller in place of --bootstrap-server"
SHOWN = 4
"""Maximum number of values of retention.ms that are reported for a topic."""


@dataclass
class RetainedTopic:
    """The live partitions of a topic, and its configs."""

    name: str
    settings: Settings
    logs: list[RetainedLog]
    are_defaults_known: bool = False
    """Whether the broker's server.properties was given."""

    def is_certain(self, *names: str) -> bool:
        """Return whether the values of these configs are those in force: given, the topic's own, or the default of a
        broker whose server.properties is known. If the topic's own are unknown, they may differ from any other."""
        sources = {self.settings.values[name].source for name in names}
        if not self.settings.is_known:
            return sources == {OPTION}
        return ASSUMED not in sources and (self.are_defaults_known or DEFAULT not in sources)

    @property
    def is_unknown(self) -> bool:
        """Whether it depends on configs that are unknown what the broker deletes."""
        return not self.settings.is_known and not self.is_certain("cleanup.policy", "retention.ms")

    @property
    def allocated(self) -> int:
        return sum(log.usage.allocated for log in self.logs)

    def due(self) -> list[int]:
        """Return for each partition how many segments are due under the configs in force."""
        return [log.due(self.settings) for log in self.logs]


def candidates(topic: RetainedTopic) -> list[SpaceCandidate]:
    """Return the values that free something, those of retention.ms first, the highest value first. None for a topic
    that only the log cleaner cleans."""
    if not topic.settings.deletes and not (topic.settings.is_tiered and not topic.settings.compacts):
        return []
    due = topic.due()
    found: list[SpaceCandidate] = []
    for what, values in (("ms", AGES[::-1]), ("bytes", _sizes(topic))):
        current, config = topic.settings.retention(what)
        config = _local(topic.settings, config)
        here: list[SpaceCandidate] = []
        for value in values:
            if 0 <= current <= value:
                continue
            each = _candidate(topic, config, value, current, due)
            if each.frees > (here[-1].frees if here else 0):
                here.append(each)
        found += _spread(here)
    return found


def _local(settings: Settings, config: str) -> str:
    """Return the config that determines how long segments stay on this disk."""
    return config if not settings.is_tiered or config.startswith("local.") else f"local.{config}"


def _sizes(topic: RetainedTopic) -> Iterator[int]:
    largest = max(sum(log.usage.sizes) for log in topic.logs)
    for share in SHARES:
        value = int(largest * share)
        unit = 1 << 30 if value >= 16 << 30 else 1 << 20
        if value >= unit:
            yield value // unit * unit


def _candidate(topic: RetainedTopic, config: str, value: int, current: int, due: Sequence[int]) -> SpaceCandidate:
    lower = with_value(topic.settings, config, value)
    frees = segments = 0
    starts = []
    for log, before in zip(topic.logs, due):
        count = max(before, log.due(lower))
        if count > before:
            frees += log.allocated(before, count)
            segments += count - before
            starts.append(KeptFrom(log.usage.key[1], log.start_after(count)))
    left = topic.allocated - frees - sum(log.allocated(0, before) for log, before in zip(topic.logs, due))
    return SpaceCandidate(
        topic=topic.name,
        config=config,
        value=value,
        current=current,
        frees=frees,
        segments=segments,
        leaves=left,
        logStartOffsets=tuple(starts),
        command=alter_topic(topic.name, f"--add-config {config}={value}"),
        undo=undo(topic, config),
        isRecommended=False,
    )


def alter_topic(topic: str, change: str) -> str:
    """Return the command that changes a config of a topic."""
    name = shlex.quote(topic)
    return f"kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name {name} {change}"


def undo(topic: RetainedTopic, config: str) -> str:
    """Return the command that restores the config."""
    before = topic.settings.values[config]
    if before.source == TOPIC:
        return alter_topic(topic.name, f"--add-config {config}={before.value}")
    return alter_topic(topic.name, f"--delete-config {config}")


def _spread(found: list[SpaceCandidate]) -> list[SpaceCandidate]:
    """Return at most SHOWN of them: the first, the last, and some between."""
    if len(found) <= SHOWN:
        return found
    places = sorted({round(each * (len(found) - 1) / (SHOWN - 1)) for each in range(SHOWN)})
    return [found[each] for each in places]
