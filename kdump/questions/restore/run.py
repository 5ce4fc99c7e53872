"""`kdump.restore`: plans, produces, compares, and sets the offsets of groups."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from kdump import jsonl
from kdump.core.plain_records import Parts
from kdump.format.count_text import count_text
from kdump.log.skim import key_digest
from kdump.questions.restore.answer import RestoreDifference, RestoreError, RestoreGroup
from kdump.questions.restore.cluster import Position, TargetCluster, TargetRecord, TopicState
from kdump.questions.restore.plan import allowing, copied_configs, key_of
from kdump.questions.restore.source import LEDGER, RestoreSource, SourceRecord, digest
from kdump.state.metadata_image import MetadataImage

MAX_RECORDS, MAX_BYTES, MAX_SECONDS = 50_000, 64 << 20, 20.0
"""What a transaction has, at most."""
TRIES = 10
"""Maximum number of transactions that fail one after the other before the run ends."""
SHOWN = 10
"""Maximum number of differences that are reported per partition."""
REJECTED = ("MSG_SIZE_TOO_LARGE", "INVALID_MSG", "INVALID_TIMESTAMP", "INVALID_RECORD", "RECORD_LIST_TOO_LARGE")
FINAL = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")


class _Failed(Exception):
    """A transaction failed; the next attempt continues after the last one that was committed."""


class _Rejected(NamedTuple):
    source: RestoreSource
    offset: int
    error: Any


class Restore:
    """One run, to topics that exist. `states`: of the topics; `on_records` is called with numbers of records."""

    def __init__(
        self,
        cluster: TargetCluster,
        sources: Sequence[RestoreSource],
        states: Mapping[str, TopicState],
        on_records: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.cluster, self.sources, self.states, self.on_records = cluster, sources, states, on_records
        self.produced = 0
        self._failed: list[_Rejected] = []
        self._positions: dict[str, Position] = {}
        self._touched: dict[str, Position] = {}
        self._count = self._bytes = 0
        self._since = 0.0

    def run(self) -> None:
        """Produce what is missing. Raises RestoreError, SourceError."""
        tries = 0
        while True:
            before = self.produced
            try:
                self._attempt()
                return
            except _Failed as error:
                tries = 1 if self.produced > before else tries + 1
                if tries == TRIES:
                    raise RestoreError(
                        f"{self.cluster.bootstrap}: {error}; run the same command again: it continues after the last "
                        "transaction"
                    ) from None
                time.sleep(min(10.0, 0.2 * 2**tries))

    def _attempt(self) -> None:
        kafka = self.cluster.kafka
        self._failed.clear()
        self._touched, self._count, self._bytes = {}, 0, 0
        before = self.produced
        try:
            producer = self.cluster.producer(self.states.values())
        except kafka.KafkaException as error:
            self._raise(error)
        try:
            self._positions = self.cluster.positions()
            for source in self.sources:
                self._produce(producer, source)
            self._commit(producer)
            if self.produced > before:  # the next producer waits for the markers of what was committed last
                self.cluster.producer(self.states.values())
        except kafka.KafkaException as error:
            self._abort(producer)
            self._raise(error)
        except BaseException:
            self._abort(producer)
            raise

    def _abort(self, producer: Any) -> None:
        if self._count:
            with suppress(self.cluster.kafka.KafkaException):  # then the next producer ends it
                producer.abort_transaction(10)

    def _raise(self, error: Any) -> None:
        """Raise RestoreError for what no further attempt changes, and _Failed for anything else."""
        if self._failed:
            rejected = self._failed[0]
            where = f"{rejected.source.plan.name}, offset {rejected.offset}"
            raise RestoreError(
                f"{where}: {self.cluster.text(rejected.error)}; nothing of its transaction is in the target"
            ) from None
        code = error.args[0]
        if code.name() in FINAL:
            raise RestoreError(
                f"{self.cluster.bootstrap}: {self.cluster.text(error)}: kafka-acls.sh allows it"
            ) from None
        if code.name() == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED":
            resource = f"--transactional-id {self.cluster.transactional_id}"
            action = allowing(self.cluster.bootstrap, resource, "Write", "Describe")
            raise RestoreError(f"{self.cluster.bootstrap}: {self.cluster.text(error)}: {action}") from None
        if code.name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"):
            raise RestoreError(
                f"another kdump restore has begun with transactional.id {self.cluster.transactional_id}; this one ends"
            ) from None
        raise _Failed(self.cluster.text(error)) from None

    def _produce(self, producer: Any, source: RestoreSource) -> None:
        topic, number = source.target_topic, source.target_partition
        key = key_of(source, self.states[topic])
        done = self._positions.get(key)
        if done is None:
            start = None if number is None else self.cluster.end(topic, number)
            done = Position(0, 0, start)
        records, place = done.records, -1 if number is None else number
        for chunk in source.chunks(done.next):
            on_delivery = partial(self._delivered, source, chunk)
            start = 0
            while start < len(chunk):
                if not self._count:
                    producer.begin_transaction()
                    self._since = time.monotonic()
                part = chunk[start : start + min(500, MAX_RECORDS - self._count)]
                start += len(part)
                self._count += len(part)  # first: what is interrupted has a transaction to abort
                self._bytes += self._send(producer, topic, place, part, on_delivery)
                records += len(part)
                self._touched[key] = Position(part[-1][0] + 1, records, done.start)
                producer.poll(0)
                is_late = time.monotonic() - self._since > MAX_SECONDS
                if is_late or self._count >= MAX_RECORDS or self._bytes >= MAX_BYTES:
                    self._commit(producer)

    @staticmethod
    def _send(producer: Any, topic: str, place: int, part: Sequence[Parts], on_delivery: Any) -> int:
        """Produce records, and return the bytes of their keys and values. Arguments by position take half the time."""
        size, produce = 0, producer.produce
        for _, timestamp, key, value, headers in part:
            while True:
                try:
                    produce(topic, value, key, place, on_delivery, None, timestamp or 0, headers)
                    break
                except BufferError:
                    producer.poll(0.1)
            size += len(value or b"") + len(key or b"")
        return size

    def _delivered(self, source: RestoreSource, chunk: Sequence[Parts], error: Any, message: Any) -> None:
        if error is not None and error.name() in REJECTED:
            contents = message.key(), message.value()
            offset = next((record[0] for record in chunk if record[2:4] == contents), chunk[0][0])
            self._failed.append(_Rejected(source, offset, error))

    def _commit(self, producer: Any) -> None:
        """Commit the records so far, and the positions with them."""
        if not self._count:
            return
        for key, position in self._touched.items():
            producer.produce(LEDGER, jsonl.line(position._asdict()), key, partition=0)
        producer.flush(60)
        producer.commit_transaction(60)
        self.produced += self._count
        self.on_records(self._count)
        self._touched, self._count, self._bytes = {}, 0, 0


def create_topics(
    cluster: TargetCluster, sources: Iterable[RestoreSource], existing: set[str], metadata: MetadataImage | None
) -> None:
    """Create the topics that do not exist, with the partitions and configs that the metadata on the disk has."""
    missing: dict[str, list[RestoreSource]] = {}
    for source in sources:
        if source.target_topic not in existing:
            missing.setdefault(source.target_topic, []).append(source)
    for topic, each in missing.items():
        image = metadata.topics.get(each[0].topic) if metadata is not None else None
        count = max([source.partition + 1 for source in each] + ([len(image.partitions)] if image is not None else []))
        cluster.create(topic, count, copied_configs(image))


# -- comparing


class Difference(NamedTuple):
    kind: str
    source: SourceRecord | None
    target: TargetRecord | None
    reason: str = ""


def _what_differs(one: SourceRecord, other: SourceRecord) -> str:
    """Return which parts of two records differ; empty if none does. A record without a timestamp got another one."""
    names = [name for name in ("key", "value", "headers") if getattr(one, name) != getattr(other, name)]
    names += ["timestamp"] if one.timestamp is not None and one.timestamp != other.timestamp else []
    return ", ".join(names)


class _Peeked:
    """An iterator with what comes next, up to a few."""

    def __init__(self, items: Iterator[Any]) -> None:
        self._items, self._next = items, deque[Any]()

    def peek(self, number: int = 0) -> Any:
        while len(self._next) <= number:
            item = next(self._items, None)
            if item is None:
                return None
            self._next.append(item)
        return self._next[number]

    def take(self) -> Any:
        item = self.peek()
        if item is not None:
            self._next.popleft()
        return item


def cleaned(source: RestoreSource, state: TopicState) -> Callable[[SourceRecord], bool]:
    """Return a predicate: True if the log cleaner of the target may have removed a record, because a later one has its
    key, or because it is a tombstone."""
    if "compact" not in state.configs.get("cleanup.policy", ""):
        return lambda record: False
    newest = {key_digest(record.key): record.offset for record in source.records() if record.key is not None}
    return lambda record: (
        record.key is not None and (record.value is None or record.offset < newest[key_digest(record.key)])
    )


def pairs(
    records: Iterator[SourceRecord],
    found: Iterator[TargetRecord],
    may_lack: Callable[[SourceRecord], bool] = lambda record: False,
) -> Iterator[tuple[SourceRecord, TargetRecord | None] | Difference]:
    """Yield the records of a source with those of the target that are equal to them, and what differs, in order; None
    in place of one that the target lacks, if it `may_lack` it."""
    ours, theirs = _Peeked(records), _Peeked(found)
    while True:
        one, other = ours.peek(), theirs.peek()
        if one is None and other is None:
            return
        if one is None:
            yield Difference("extra", None, theirs.take())
        elif (other is None or _what_differs(one, other.record)) and may_lack(one):
            yield ours.take(), None
        elif other is None:
            yield Difference("missing", ours.take(), None)
        elif not (reason := _what_differs(one, other.record)):
            yield ours.take(), theirs.take()
        elif (after := ours.peek(1)) is not None and not _what_differs(after, other.record):
            yield Difference("missing", ours.take(), None)
        elif (later := theirs.peek(1)) is not None and not _what_differs(one, later.record):
            yield Difference("extra", None, theirs.take())
        else:
            yield Difference("differs", ours.take(), theirs.take(), reason)


def check(
    cluster: TargetCluster,
    sources: Sequence[RestoreSource],
    states: Mapping[str, TopicState],
    positions: Mapping[str, Position],
    *,
    append: bool,
) -> Iterator[RestoreDifference]:
    """Read the target back, and yield what differs from the sources; fills `restored` of their plans. With `append`,
    records after those of the source are not a difference."""
    for source in sources:
        topic, number, plan = source.target_topic, source.target_partition, source.plan
        plan.restored = plan.cleaned = 0
        if topic not in states or (number is not None and number >= states[topic].partitions):
            yield RestoreDifference(topic, number, "missing", plan.firstOffset, None, "there is no such partition")
            continue
        if number is None:
            continue
        known = positions.get(key_of(source, states[topic]))
        found = cluster.records(topic, number, None if known is None else known.start)
        shown = 0
        for pair in pairs(source.records(), found, cleaned(source, states[topic])):
            if not isinstance(pair, Difference):
                plan.restored += 1
                plan.cleaned += pair[1] is None
                continue
            if pair.kind == "extra" and append and plan.restored == plan.records:
                break
            offset = None if pair.source is None else pair.source.offset
            at = None if pair.target is None else pair.target.offset
            yield RestoreDifference(topic, number, pair.kind, offset, at, pair.reason)
            shown += 1
            if shown == SHOWN:
                break
    yield from _check_repartitioned(cluster, [each for each in sources if each.target_partition is None], states)


def _check_repartitioned(
    cluster: TargetCluster, sources: Sequence[RestoreSource], states: Mapping[str, TopicState]
) -> Iterator[RestoreDifference]:
    """Compare topics whose records are in other partitions than in the source: as sums, in any order."""
    for topic in sorted({source.target_topic for source in sources if source.target_topic in states}):
        ours, theirs, total, count = 0, 0, 0, 0
        for source in sources:
            if source.target_topic == topic:
                for record in source.records():
                    total, ours = total + 1, ours + digest(record)
        for number in range(states[topic].partitions):
            for found in cluster.records(topic, number, None):
                count, theirs = count + 1, theirs + digest(found.record)
        if ours != theirs:
            kind = "missing" if count < total else "extra" if count > total else "differs"
            yield RestoreDifference(
                topic, None, kind, None, None, f"{count_text(total, 'record')} in the source, {count:,} in the target"
            )
        else:
            for source in sources:
                if source.target_topic == topic:
                    source.plan.restored = source.plan.records


# -- groups

Committed = Mapping[str, Mapping[tuple[str, int], int]]
"""By group, topic and partition of the source: the committed offset."""


def translate(
    cluster: TargetCluster, source: RestoreSource, state: TopicState, offsets: Iterable[int], start: int | None
) -> tuple[dict[int, int], str]:
    """Return the offsets in the target of those in the source, and why some are not known. A record that was left out
    counts as the one after it."""
    waiting, translated = deque(sorted(set(offsets))), dict[int, int]()
    assert source.target_partition is not None
    end = start or 0
    found_there = cluster.records(source.target_topic, source.target_partition, start)
    for pair in pairs(source.records(), found_there, cleaned(source, state)):
        if isinstance(pair, Difference):
            if pair.kind == "extra" and source.plan.lastOffset is not None:
                break
            return translated, "the target differs from the source; kdump restore --check shows where"
        record, found = pair
        if found is None:
            continue
        while waiting and waiting[0] <= record.offset:
            translated[waiting.popleft()] = found.offset
        end = found.offset + 1
    return translated | dict.fromkeys(waiting, end), ""


def restore_groups(
    cluster: TargetCluster,
    sources: Sequence[RestoreSource],
    states: Mapping[str, TopicState],
    positions: Mapping[str, Position],
    committed: Committed,
    *,
    writes: bool,
) -> Iterator[RestoreGroup]:
    """Set the committed offsets of groups in the target, if `writes`, and yield each. Groups that have members are left
    as they are."""
    by_partition = {
        (source.topic, source.partition): source for source in sources if source.target_partition is not None
    }
    translated: dict[tuple[str, int], tuple[dict[int, int], str]] = {}
    for name, source in by_partition.items():
        offsets = [places[name] for places in committed.values() if name in places]
        if offsets and source.target_topic in states:
            known = positions.get(key_of(source, states[source.target_topic]))
            start = None if known is None else known.start
            translated[name] = translate(cluster, source, states[source.target_topic], offsets, start)
    for group, places in committed.items():
        chosen = {name: offset for name, offset in places.items() if name in translated}
        if not chosen:
            continue
        state, before = cluster.group_offsets(group)
        targets = {name: (by_partition[name].target_topic, name[1]) for name in chosen}
        running = f"the group is {state}: stop its members" if state not in ("", "EMPTY", "DEAD") else ""
        new = {targets[name]: translated[name][0][at] for name, at in chosen.items() if at in translated[name][0]}
        if writes and not running and new:
            cluster.set_offsets(group, new)
        for name, at in chosen.items():
            place = targets[name]
            note = running or ("" if place in new else translated[name][1])
            after = new.get(place) if not note else None
            yield RestoreGroup(group, *place, at, before.get(place), after, note)
