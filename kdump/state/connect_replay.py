"""Replays the records of Connect's topics. A record that Connect skips changes nothing, and is noted as a problem.
Values have their secrets: what shows them hides these (kdump.state.connect_records).

Source: org.apache.kafka.connect.storage.KafkaConfigBackingStore (ConsumeCallback), KafkaStatusBackingStore.read,
KafkaOffsetBackingStore.consumedCallback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdump.log.record import Record
from kdump.state.as_of import Change, ChangeListener, differences
from kdump.state.connect_records import BadRecord, connect_value, offset_key, text_key, without_secrets
from kdump.state.internal_records import ENTRY, MAX_PROBLEMS, ROOM_ALONE, memory

LIVE, DELETED, CONNECTOR_DELETED, UNKNOWN_CONNECTOR = "live", "deleted", "connectorDeleted", "unknownConnector"


class Stored(NamedTuple):
    """A value, and the place and time of its record. `at`: the number of its log."""

    value: Any
    offset: int
    timestamp: int | None
    at: int = 0


class RemovedConnector(NamedTuple):
    """A connector that was deleted: its last config, and the record that deleted it."""

    config: Stored
    removed: Stored


class StoredOffset(NamedTuple):
    """A source offset: the JSON of key and value, and, if it was deleted, the record that did."""

    value: bytes
    offset: int
    timestamp: int | None
    at: int
    removed: Stored | None = None


@dataclass
class ConnectState:
    """What the workers of a Connect cluster know. By connector, unless stated otherwise."""

    configs: dict[str, Stored] = field(default_factory=dict)
    removed: dict[str, RemovedConnector] = field(default_factory=dict)
    target_states: dict[str, Stored] = field(default_factory=dict)
    task_counts: dict[str, Stored] = field(default_factory=dict)
    """Numbers of tasks, as of the last commit."""
    tasks: dict[str, dict[int, Stored]] = field(default_factory=dict)
    """Committed configs of tasks."""
    deferred: dict[str, dict[int, Stored]] = field(default_factory=dict)
    """Configs of tasks that no commit follows: they are not in effect."""
    applied: dict[str, Stored] = field(default_factory=dict)
    """The config of the connector at its last complete commit."""
    inconsistent: set[str] = field(default_factory=set)
    """Connectors whose last commit lacks configs of tasks: workers run none of their tasks."""
    statuses: dict[str, Stored] = field(default_factory=dict)
    task_statuses: dict[str, dict[int, Stored]] = field(default_factory=dict)
    topics: dict[str, dict[str, Stored]] = field(default_factory=dict)
    offsets: dict[bytes, StoredOffset] = field(default_factory=dict)
    """By the JSON of the key."""
    problems: list[str] = field(default_factory=list)
    end_offsets: list[int] = field(default_factory=list)
    """Of each log: the offset after its last record that was read."""

    def effective_tasks(self, connector: str) -> dict[int, Stored]:
        """Return the configs with which the tasks run. Source: ClusterConfigState.tasks."""
        if connector in self.inconsistent or connector not in self.task_counts:
            return {}
        mine, count = self.tasks.get(connector, {}), self.task_counts[connector].value
        return {number: mine[number] for number in sorted(mine) if number < count}

    def state_of(self, connector: str) -> str:
        """Return whether there is such a connector."""
        if connector in self.configs:
            return LIVE
        return CONNECTOR_DELETED if connector in self.removed else UNKNOWN_CONNECTOR


TARGET_STATES = ("STARTED", "PAUSED", "STOPPED")
STATES = ("UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "DESTROYED", "RESTARTING", "STOPPED")
HIGHEST = (1 << 31) - 1


class ConnectReplay:
    """Applies records to `state`; calls `on_change` with each change. `room`: bytes of memory for what is kept."""

    def __init__(self, state: ConnectState, on_change: ChangeListener | None = None, room: int = ROOM_ALONE) -> None:
        self.state, self.on_change = state, on_change
        self.room = self.all_room = room
        self.log = 0
        self.offset = 0
        self.timestamp: int | None = None
        self.record = ""

    def note(self, problem: str) -> None:
        if len(self.state.problems) < MAX_PROBLEMS:
            self.state.problems.append(problem)

    def apply(self, decoder: str, record: Record) -> str:
        """Apply a record of the log number `self.log`, whose records have this decoder. Returns why Connect skips it;
        empty if it does not. Never raises for what is in it."""
        assert record.offset is not None
        self.offset, self.timestamp = record.offset, record.timestamp
        try:
            if decoder == "connect-offsets":
                self._offset(record.key, record.value)
                return ""
            self.record, rest = text_key(record.key, decoder)
            value = None if record.value is None else connect_value(record.value)
            getattr(self, "_" + self.record.replace("-", "_"))(rest, value)
        except BadRecord as error:
            return f"at offset {self.offset}: skipped: {error}"
        return ""

    def _stored(self, value: Any, old: Stored | None = None) -> Stored:
        """Return what to keep of a record, in place of `old`. Raises BadRecord if there is no room."""
        self._charge(ENTRY + memory(value))
        self._free(old)
        return Stored(value, self.offset, self.timestamp, self.log)

    def _charge(self, size: int) -> None:
        if size > self.room:
            raise BadRecord(f"too much to keep in memory ({self.all_room} bytes)")
        self.room -= size

    def _free(self, *old: Stored | None) -> None:
        self.room += sum(ENTRY + memory(entry.value) for entry in old if entry is not None)

    # Configs

    def _connector(self, name: str, value: Any) -> None:
        state = self.state
        old = state.configs.get(name)
        if value is None:
            self._remove(name)
            self._change("connector", name, old, None)
            return
        config = _properties(value)
        state.configs[name] = new = self._stored(config, old)
        before = state.removed.pop(name, None)
        self._free(before and before.config)
        state.target_states.setdefault(name, Stored("STARTED", self.offset, self.timestamp, self.log))
        self._change("connector", name, old, new)

    def _remove(self, name: str) -> None:
        state = self.state
        config = state.configs.pop(name, None)
        if config is not None:
            state.removed[name] = RemovedConnector(config, Stored(None, self.offset, self.timestamp, self.log))
        self._free(state.task_counts.pop(name, None))
        for states in (state.tasks, state.deferred):
            self._free(*states.pop(name, {}).values())
        state.applied.pop(name, None)

    def _task(self, rest: str, value: Any) -> None:
        name, number = task_id(rest)
        if value is None:
            raise BadRecord("the config of a task is null")
        mine = self.state.deferred.setdefault(name, {})
        mine[number] = new = self._stored(_properties(value), mine.get(number))
        self._change("pendingTask", rest, self.state.tasks.get(name, {}).get(number), new)

    def _commit(self, name: str, value: Any) -> None:
        state = self.state
        config = state.configs.get(name)
        if config is None:  # the connector was deleted, and compaction has removed both its config and its tombstone
            self._remove(name)
            return
        count = _number(_mapping(value), "tasks")
        deferred = state.deferred.pop(name, {})
        old, was_inconsistent = state.task_counts.get(name), name in state.inconsistent
        state.task_counts[name] = self._stored(count, old)
        if all(number in deferred for number in range(min(count, len(deferred) + 1))):
            mine = state.tasks.setdefault(name, {})
            self._free(*(mine.get(number) for number in deferred))
            mine.update(deferred)
            state.inconsistent.discard(name)
            state.applied[name] = config
        else:
            self._free(*deferred.values())
            state.inconsistent.add(name)
            self.note(
                f"at offset {self.offset}: {name}: the commit of {count} tasks lacks configs of tasks, so workers run "
                "none of them until the next one"
            )
        before = {} if old is None else {"tasks": old.value, "inconsistent": was_inconsistent}
        self._report("commit", name, before, {"tasks": count, "inconsistent": name in state.inconsistent})

    def _target_state(self, name: str, value: Any) -> None:
        state = self.state
        old = state.target_states.get(name)
        if value is None:
            state.target_states.pop(name, None)
            new = Stored("STARTED", self.offset, self.timestamp, self.log) if name in state.configs else None
        else:
            fields = _mapping(value)
            target = fields.get("state.v2")
            target = target if isinstance(target, str) else fields.get("state")
            if target not in TARGET_STATES:
                raise BadRecord(f"invalid target state {str(target)[:40]!r}")
            new = Stored(target, self.offset, self.timestamp, self.log)
        if new is not None:
            state.target_states[name] = new
        self._change("targetState", name, old, new)

    def _tasks_fencing(self, name: str, value: Any) -> None:
        self._report("taskCount", name, {}, {"task-count": _number(_mapping(value), "task-count")})

    def _session_key(self, name: str, value: Any) -> None:
        self._report("sessionKey", "session-key", {}, without_secrets(_mapping(value), "session-key"))

    def _restart_connector(self, name: str, value: Any) -> None:
        self._report("restart", name, {}, _mapping(value))

    def _logger_cluster(self, name: str, value: Any) -> None:
        self._report("logger", name, {}, _mapping(value))

    # Statuses

    def _status_connector(self, name: str, value: Any) -> None:
        self._status("connectorStatus", name, self.state.statuses, name, value)
        if value is None:
            self._free(*self.state.task_statuses.pop(name, {}).values())

    def _status_task(self, rest: str, value: Any) -> None:
        name, number = task_id(rest)
        mine = self.state.task_statuses.setdefault(name, {})
        old = mine.get(number)
        if value is not None and old is not None and old.value["state"] == "RUNNING":
            new = _mapping(value)
            # Another worker has the task already.
            generation = _number(new, "generation", least=-HIGHEST)
            if new.get("state") == "UNASSIGNED" and old.value["generation"] >= generation:
                return
        self._status("taskStatus", rest, mine, number, value)

    def _status(self, entity: str, name: str, place: dict[Any, Stored], key: Any, value: Any) -> None:
        old = place.get(key)
        if value is None:
            self._free(place.pop(key, None))
            self._change(entity, name, old, None)
            return
        fields = _mapping(value)
        if fields.get("state") not in STATES:
            raise BadRecord(f"invalid state {str(fields.get('state'))[:40]!r}")
        _number(fields, "generation", least=-HIGHEST)
        place[key] = new = self._stored(fields, old)
        self._change(entity, name, old, new)

    def _status_topic(self, rest: str, value: Any) -> None:
        topic, colon, name = rest.partition(":connector-")
        if not colon or not topic or not name:
            raise BadRecord("invalid key of a topic's status")
        mine = self.state.topics.setdefault(name, {})
        old = mine.get(topic)
        if value is None:
            self._free(mine.pop(topic, None))
        else:
            mine[topic] = self._stored(_mapping(_mapping(value).get("topic")), old)
        if old is None or value is None:  # each worker reports it again
            self._change("topic", f"{name} {topic}", old, mine.get(topic))

    # Offsets

    def _offset(self, key: bytes | None, value: bytes | None) -> None:
        name, partition = offset_key(key)
        assert key is not None
        state, old = self.state, self.state.offsets.get(key)
        self.record = "offset"
        if value is not None:
            connect_value(value)
            self._charge(ENTRY + len(key) + len(value))
            self.room += 0 if old is None else ENTRY + len(key) + len(old.value)
            state.offsets[key] = StoredOffset(value, self.offset, self.timestamp, self.log)
        elif old is not None:
            state.offsets[key] = old._replace(removed=Stored(None, self.offset, self.timestamp, self.log))
        if self.on_change is not None:
            before = None if old is None or old.removed else _offset_fields(old.value)
            self._report("sourceOffset", f"{name} {partition}", before or {}, _offset_fields(value) if value else {})

    # Changes

    def _change(self, entity: str, name: str, old: Stored | None, new: Stored | None) -> None:
        if self.on_change is not None and (old is not None or new is not None):
            self._report(entity, name, *({} if entry is None else _as_fields(entry.value) for entry in (old, new)))

    def _report(self, entity: str, name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        if self.on_change is None:
            return
        pairs = differences(old or None, new or None)
        hidden = {field: tuple(without_secrets({field: each})[field] for each in pair) for field, pair in pairs.items()}
        action = "created" if not old else "removed" if not new else "changed"
        self.on_change(Change(self.offset, self.timestamp, self.record, entity, name, action, hidden))


def task_id(text: str) -> tuple[str, int]:
    """Parse CONNECTOR-NUMBER. Raises BadRecord."""
    name, _, number = text.rpartition("-")
    if not name or not number.isascii() or not number.isdecimal() or len(number) > 10 or int(number) > HIGHEST:
        raise BadRecord(f"invalid task {text[:80]!r}")
    return name, int(number)


def _as_fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"state": value}


def _offset_fields(value: bytes) -> dict[str, Any]:
    offset = connect_value(value)
    return offset if isinstance(offset, dict) else {"offset": offset}


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRecord("its value is not a JSON object" if value is not None else "its value is null")
    return value


def _properties(value: Any) -> dict[str, Any]:
    properties = _mapping(value).get("properties")
    if not isinstance(properties, dict):
        raise BadRecord("its properties are not a JSON object")
    return properties


def _number(value: dict[str, Any], name: str, least: int = 0) -> int:
    number = value.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= HIGHEST:
        raise BadRecord(f"its {name} is not a number from {least} to {HIGHEST}")
    return number
