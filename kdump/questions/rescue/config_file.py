"""Reads the file of --configs: the output of kafka-configs.sh --describe and kafka-topics.sh --describe, or JSON.

Source: ConfigCommand.describeResourceConfig, TopicCommand.TopicDescription and PartitionDescription."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from kdump.format.count_text import count_text
from kdump.io.source import open_source
from kdump.questions.rescue.answer import RescueError

LARGEST = 64 * 1024 * 1024
"""Maximum size of the file in bytes."""
MOST_PARTITIONS = 100_000
"""Maximum number of partitions of a topic that is believed."""
OF_TOPIC = re.compile(r"(?:Dynamic|All) configs for topic (\S+) are:")
OF_BROKER = re.compile(
    r"(?:Dynamic|All) configs for broker (\d+) are:|(?:Default|Dynamic|All) configs for brokers in the cluster are:"
)
SETTING = re.compile(r"\s+([\w.-]+)=(.*?)(?: sensitive=(true|false) synonyms=\{(.*)\})?")
TOPIC = re.compile(
    r"Topic:\s*(\S+)\s+(?:TopicId:\s*(\S+)\s+)?PartitionCount:\s*(\d+)\s+ReplicationFactor:\s*\d+\s*(?:Configs:\s*(.*))?"
)
PARTITION = re.compile(r"\s*Topic:\s*(\S+)\s+Partition:\s*(\d+)\s+Leader:.*?Replicas:\s*([\d,]+)\b.*")
OTHER = re.compile(r"(Quota|SCRAM credential|Dynamic) configs for (.*?) are.*")
NAME = re.compile(r"(?:^|,)([a-z][a-z.]*)=")


@dataclass
class GivenTopic:
    """What the file states of a topic. `configs`: its own, None if the file does not list them; `partitions`: their
    number, 0 if it is not stated; `replicas`: of each, in order."""

    configs: dict[str, str] | None = None
    topic_id: str | None = None
    partitions: int = 0
    replicas: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class GivenConfigs:
    """What the file states. `brokers`: dynamic configs by node ID as text, "" for all; `skipped`: what in it is not
    used; `unsure`: topics whose configs may be those of server.properties."""

    topics: dict[str, GivenTopic] = field(default_factory=dict)
    brokers: dict[str, dict[str, str]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)

    def topic(self, name: str) -> GivenTopic:
        return self.topics.setdefault(name, GivenTopic())


def given_configs(path: str) -> GivenConfigs:
    """Read the file. Raises SourceError, and RescueError if it is neither."""
    source = open_source(path)
    try:
        data = source.read_at(0, LARGEST + 1)
    finally:
        source.close()
    if len(data) > LARGEST:
        raise RescueError(f"--configs {path}: larger than {LARGEST} bytes")
    try:
        text = data.decode("utf-8-sig")
        return _of_json(json.loads(text)) if text.lstrip()[:1] == "{" else _of_text(text)
    except (ValueError, RecursionError) as error:
        raise RescueError(f"--configs {path}: {error}") from error


def _of_json(parsed: Any) -> GivenConfigs:
    """Read {"topics": {name: {config: value}}, "brokers": {node ID, or "": {config: value}}}. Raises ValueError."""
    given = GivenConfigs()
    for kind in parsed:
        if kind not in ("topics", "brokers"):
            raise ValueError(f"{kind!r} is neither topics nor brokers")
    for name, configs in _objects(parsed, "topics"):
        given.topic(name).configs = configs
    given.brokers = dict(_objects(parsed, "brokers"))
    for name in given.brokers:
        if name and not name.isdecimal():
            raise ValueError(f"{name!r} is not a node ID")
    return given


def _objects(parsed: Any, kind: str) -> list[tuple[str, dict[str, str]]]:
    rows = parsed.get(kind, {})
    if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
        raise ValueError(f"{kind} is not an object of objects")
    for configs in rows.values():
        if not all(isinstance(value, str) for value in configs.values()):
            raise ValueError(f"a value in {kind} is not a string")
    return list(rows.items())


def _of_text(text: str) -> GivenConfigs:
    given = GivenConfigs()
    current: dict[str, str] | None = None
    own = ""
    for number, row in enumerate(text.splitlines(), 1):
        if match := OF_TOPIC.fullmatch(row.rstrip()):
            topic = given.topic(match[1])
            current = topic.configs = {} if match[1] in given.unsure else topic.configs or {}
            given.unsure.discard(match[1])
            own = "DYNAMIC_TOPIC_CONFIG"
        elif match := OF_BROKER.fullmatch(row.rstrip()):
            current = given.brokers.setdefault(match[1] or "", {})
            own = "DYNAMIC_BROKER_CONFIG" if match[1] else "DYNAMIC_DEFAULT_BROKER_CONFIG"
        elif match := TOPIC.fullmatch(row.rstrip()):
            topic = given.topic(match[1])
            topic.topic_id, topic.partitions = match[2], int(match[3])
            if topic.partitions > MOST_PARTITIONS:
                count = count_text(topic.partitions, "partition is", "partitions are")
                raise ValueError(f"line {number}: {count} more than {MOST_PARTITIONS:,}")
            if topic.configs is None:
                topic.configs = _inline(match[4] or "")
                given.unsure |= {match[1]} if topic.configs else set()
        elif match := PARTITION.fullmatch(row.rstrip()):
            replicas = list(map(int, match[3].strip(",").split(",")))
            given.topic(match[1]).replicas[int(match[2])] = list(dict.fromkeys(replicas))
        elif current is not None and (match := SETTING.fullmatch(row.rstrip())):
            if match[4] is None or f"{own}:{match[1]}=" in match[4]:
                if match[3] == "true":
                    given.skipped.append(f"{match[1]}: its value is hidden")
                else:
                    current[match[1]] = match[2]
        elif match := OTHER.fullmatch(row.rstrip()):
            given.skipped.append(f"{match[1]} configs of {match[2]}")
            current = None
        elif row.strip():
            raise ValueError(
                f"line {number} is not one of kafka-configs.sh --describe or kafka-topics.sh --describe: {row[:80]!r}"
            )
    return given


def _inline(text: str) -> dict[str, str]:
    """Return the configs of a topic in the form name=value,name=value: values, too, may have commas."""
    marks = list(NAME.finditer(text))
    ends = [*(each.start() for each in marks[1:]), len(text)]
    return {mark[1]: text[mark.end() : end] for mark, end in zip(marks, ends)}
