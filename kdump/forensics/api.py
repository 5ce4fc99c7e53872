"""The Python functions `kdump.transactions` and `kdump.producers`. See docs/api.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.forensics import producers as of_producers
from kdump.forensics import transactions as of_transactions
from kdump.format.kafka_release import KafkaRelease, parse_release
from kdump.log.mounts import takes_bundles
from kdump.log.run import PLAIN_RUN, Run

Paths = str | Iterable[str]


@takes_bundles
def transactions(
    paths: Paths,
    *,
    now: int | None = None,
    topics: Iterable[str] = (),
    states: Iterable[str] = of_transactions.STATES,
    producer_ids: Iterable[int] = (),
    transactional_ids: Iterable[str] = (),
    timeout: int = of_transactions.TRANSACTION_TIMEOUT,
    kafka_version: KafkaRelease | str | None = None,
    run: Run = PLAIN_RUN,
) -> Iterator[of_transactions.TransactionsAnswer]:
    """Yield the transactions of partitions, one partition after the other, as they are read: see
    kdump.forensics.transactions.

    `paths`: segments, partition directories, log directories, or directories above them. `now`: epoch ms as of which
    ages are computed, by default the current time; `timeout`: ms without a new batch after which an open transaction is
    old. `kafka_version`: the brokers' release ("3.6"), which decides how to abort; by default what the disk states.
    `topics`, `states` (committed, aborted, open, hanging), `producer_ids` and `transactional_ids` restrict the
    answers; an empty one, except for `states`, restricts nothing. Raises SourceError for input that cannot be read,
    unless you pass a `run` whose `unreadable` is then called with the error, and ValueError for an unknown state or
    release.
    """
    selected = _set(topics)
    question = of_transactions.TransactionsQuery(
        now=now,
        timeout=timeout,
        topic=lambda name: not selected or name in selected,
        states=_states(states, of_transactions.STATES),
        producer_ids=frozenset(producer_ids),
        transactional_ids=_set(transactional_ids),
        kafka_version=_release(kafka_version),
    )
    return of_transactions.transactions(paths, question, run=run)


@takes_bundles
def producers(
    paths: Paths,
    *,
    now: int | None = None,
    topics: Iterable[str] = (),
    states: Iterable[str] = of_producers.STATES,
    producer_ids: Iterable[int] = (),
    transactional_ids: Iterable[str] = (),
    broken: bool = False,
    events: bool = False,
    expiration: int | None = None,
    kafka_version: KafkaRelease | str | None = None,
    run: Run = PLAIN_RUN,
) -> Iterator[of_producers.ProducersAnswer]:
    """Yield the producers of partitions, one partition after the other: see kdump.forensics.producers.

    `paths`, `now`, `topics`, `producer_ids`, `transactional_ids` and `run` as in `transactions`. `states`:
    live, expired, unknown; `broken`: only producers with a sequence or epoch error; `events`: also yield the events of
    each producer, in log order. `expiration`: the broker's producer.id.expiration.ms, by default that of
    `kafka_version`, the release ("3.6"), by default what the disk states."""
    selected = _set(topics)
    question = of_producers.ProducersQuery(
        now=now,
        expiration=expiration,
        kafka_version=_release(kafka_version),
        topic=lambda name: not selected or name in selected,
        states=_states(states, of_producers.STATES),
        producer_ids=frozenset(producer_ids),
        transactional_ids=_set(transactional_ids),
        broken=broken,
        events=events,
    )
    return of_producers.producers(paths, question, run=run)


def _release(value: KafkaRelease | str | None) -> KafkaRelease | None:
    return parse_release(value) if isinstance(value, str) else value


def _set(values: Iterable[str]) -> frozenset[str]:
    """Return the values as a set; a single string is one value."""
    return frozenset((values,) if isinstance(values, str) else values)


def _states(values: Iterable[str], known: tuple[str, ...]) -> frozenset[str]:
    states = _set(values)
    if not states <= set(known):
        raise ValueError(f"unknown state {', '.join(sorted(states - set(known)))}; known are {', '.join(known)}")
    return states
