"""The questions as functions of Python: `kdump.transactions` and `kdump.producers`. See docs/api.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.forensics import producers as of_producers
from kdump.forensics import transactions as of_transactions
from kdump.log.errors import Refused, raise_it
from kdump.state.producers import EXPIRATION

Paths = str | Iterable[str]


def transactions(
    paths: Paths,
    *,
    now: int | None = None,
    topics: Iterable[str] = (),
    states: Iterable[str] = of_transactions.STATES,
    producer_ids: Iterable[int] = (),
    transactional_ids: Iterable[str] = (),
    timeout: int = of_transactions.TRANSACTION_TIMEOUT,
    refused: Refused = raise_it,
) -> Iterator[of_transactions.Answer]:
    """The transactions of partitions, one after the other, as they are read: see kdump.forensics.transactions.

    `paths`: segments, directories of partitions, log directories, or directories above. `now`: epoch ms that ages are
    reckoned from, by default the clock; `timeout`: ms after which an open transaction is old. `topics`, `states`
    (committed, aborted, open, hanging), `producer_ids` and `transactional_ids` leave out the others. Raises SourceError
    for what cannot be read, unless `refused` is told of it, and ValueError for a state that there is not.
    """
    wanted = _set(topics)
    question = of_transactions.Question(
        now=now,
        timeout=timeout,
        topic=lambda name: not wanted or name in wanted,
        states=_states(states, of_transactions.STATES),
        producer_ids=frozenset(producer_ids),
        transactional_ids=_set(transactional_ids),
    )
    return of_transactions.transactions(paths, question, refused=refused)


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
    expiration: int = EXPIRATION,
    refused: Refused = raise_it,
) -> Iterator[of_producers.Answer]:
    """The producers of partitions, one partition after the other: see kdump.forensics.producers.

    `paths`, `now`, `topics`, `producer_ids`, `transactional_ids` and `refused` as in `transactions`. `states`: live,
    expired, unknown; `broken`: only producers with a batch that does not follow; `events`: what happened to them, too,
    where it did. `expiration`: producer.id.expiration.ms of the broker.
    """
    wanted = _set(topics)
    question = of_producers.Question(
        now=now,
        expiration=expiration,
        topic=lambda name: not wanted or name in wanted,
        states=_states(states, of_producers.STATES),
        producer_ids=frozenset(producer_ids),
        transactional_ids=_set(transactional_ids),
        broken=broken,
        events=events,
    )
    return of_producers.producers(paths, question, refused=refused)


def _set(values: Iterable[str]) -> frozenset[str]:
    """A text by itself is one value, and not its letters."""
    return frozenset((values,) if isinstance(values, str) else values)


def _states(values: Iterable[str], known: tuple[str, ...]) -> frozenset[str]:
    states = _set(values)
    if not states <= set(known):
        raise ValueError(f"no state {', '.join(sorted(states - set(known)))}; there are {', '.join(known)}")
    return states
