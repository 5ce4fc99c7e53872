"""The Python functions transactions, registry and connect of `kdump`. See docs/api.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.check.options import Options
from kdump.format.kafka_release import KafkaRelease, parse_release
from kdump.io.mounted_paths import takes_paths
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.internal_topics import SCHEMAS_TOPIC
from kdump.questions.connect import run as of_connect
from kdump.questions.registry import run as of_registry
from kdump.questions.transactions import run as of_transactions
from kdump.state.as_of import AsOf

Paths = str | Iterable[str]


@takes_paths
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
    kdump.questions.transactions.run.

    `paths`: segments, partition directories, log directories, or directories above them. `now`: epoch ms as of which
    ages are computed, by default the current time; `timeout`: ms without a new batch after which an open transaction is
    old. `kafka_version`: the brokers' release ("3.6"), which decides how to abort; by default what the disk states.
    `topics`, `states` (committed, aborted, open, hanging), `producer_ids` and `transactional_ids` restrict the
    answers; an empty one, except for `states`, restricts nothing. Raises SourceError for input that cannot be read,
    unless you pass a `run` whose `unreadable` is then called with the error, and ValueError for an unknown state or
    release."""
    selected = _set(topics)
    question = of_transactions.TransactionsQuery(
        topic=lambda name: not selected or name in selected,
        states=_states(states, of_transactions.STATES),
        producer_ids=frozenset(producer_ids),
        transactional_ids=_set(transactional_ids),
    )
    options = Options.as_of(run, now, transaction_timeout=timeout, kafka_version=_release(kafka_version))
    return of_transactions.transactions(paths, question, run=options)


@takes_paths
def registry(
    paths: Paths,
    *,
    show: str = of_registry.VERSIONS,
    subjects: Iterable[str] = (),
    ids: Iterable[int] = (),
    topics: Iterable[str] = (),
    as_of: int | None = None,
    carved: str | None = None,
    schemas_topic: str = SCHEMAS_TOPIC,
    run: Run = PLAIN_RUN,
) -> Iterator[of_registry.RegistryAnswer]:
    """Yield what a schema registry holds, as its topic `schemas_topic` on these disks has it, with a Note for what
    could not be read and for what a registry skips.

    `paths`: log directories, directories of that topic, or segments in it. `show`: versions (RegisteredVersion, and
    RegistrySetting), deleted (versions only), history (a RecordedChange for each change), or usage (a SchemaUsage for
    each schema ID in the records of each partition). `subjects`, `ids` and, for usage, `topics` restrict the answers;
    an empty one restricts nothing. `as_of`: an offset or, from 13 digits on, epoch ms, inclusive. `carved`: a directory
    that kdump.carve has written, with further deleted versions. Raises ValueError for an unknown `show`, and for an
    offset if there are several registries, and SourceError as `transactions` does."""
    chosen, numbers, read = _set(subjects), frozenset(ids), _set(topics)
    question = of_registry.RegistryQuery(
        shows=next(iter(_states(show, of_registry.SHOWN, "answer"))),
        schemas_topic=schemas_topic,
        moment=AsOf.of(as_of),
        subject=lambda name: not chosen or name in chosen,
        names_subjects=bool(chosen),
        has_id=lambda number: not numbers or number in numbers,
        names_ids=bool(numbers),
        topic=lambda name: not read or name in read,
        carved=carved,
    )
    return of_registry.registry(paths, question, run)


@takes_paths
def connect(
    paths: Paths,
    *,
    show: Iterable[str] = tuple(of_connect.ROWS),
    connectors: Iterable[str] = (),
    connect_topics: Iterable[str] = (),
    history: bool = False,
    deleted: bool = False,
    as_of: int | None = None,
    run: Run = PLAIN_RUN,
) -> Iterator[of_connect.ConnectAnswer]:
    """Yield what Kafka Connect and MirrorMaker hold, as their topics on these disks have it, with a Note for what could
    not be read and for what their workers skip. Secrets in configs are hidden.

    `paths` and `as_of` as in `registry`. `show`: connectors (Connector), tasks (ConnectorTask), offsets
    (ConnectorOffset), checkpoints (MirrorCheckpoint); `history`: a RecordedChange for each change in place of these;
    `deleted`: only what was deleted. `connectors` restricts the answers. `connect_topics`: topics of Connect with other
    names than usual. Raises ValueError for an unknown `show`, and for an offset if there are several logs, and
    SourceError as `transactions` does."""
    chosen, other = _set(connectors), _set(connect_topics)
    question = of_connect.ConnectQuery(
        rows=frozenset(of_connect.ROWS[name] for name in _states(show, tuple(of_connect.ROWS), "answer")),
        moment=AsOf.of(as_of),
        history=history,
        deleted=deleted,
        connector=lambda name: not chosen or name in chosen,
        topic=lambda name: name in other,
    )
    return of_connect.connect(paths, question, run)


def _release(value: KafkaRelease | str | None) -> KafkaRelease | None:
    return parse_release(value) if isinstance(value, str) else value


def _set(values: Iterable[str]) -> frozenset[str]:
    """Return the values as a set; a single string is one value."""
    return frozenset((values,) if isinstance(values, str) else values)


def _states(values: Iterable[str], known: tuple[str, ...], kind: str = "state") -> frozenset[str]:
    states = _set(values)
    if not states <= set(known):
        raise ValueError(f"unknown {kind} {', '.join(sorted(states - set(known)))}; known are {', '.join(known)}")
    return states
