"""Metadata records that Kafka refuses: each handler declares as a Rule what a node throws for a record that it cannot
apply.

Two classes apply every record, each with a picture of its own. QuorumController (of nodes with the controller role)
checks more; its exception ends the process. MetadataLoader (of every node) feeds MetadataDelta; on nodes with the
controller role its exception ends the process, too; a broker alone logs it, leaves the record out, and takes no more
snapshots (SharedServer.metadataLoaderFaultHandler). tools/metadata_trials.py compares the rules with these classes."""

from __future__ import annotations

from typing import NamedTuple

Line = tuple[int, int]

OLDEST, NO_LIMIT = (0, 0), (99, 99)
READ_FIRST = (3, 8)


class Rule(NamedTuple):
    """Why a record is refused in the releases from `since` to `until`. `controller` and `loader`: the exceptions of
    QuorumController and MetadataLoader, with names of values in braces; empty: it applies the record. `reader`: the one
    of MetadataRecordSerde, with which the record cannot even be read. `is_certain`: whatever is missing before it."""

    controller: str = ""
    loader: str = ""
    reader: str = ""
    since: Line = OLDEST
    until: Line = NO_LIMIT
    is_certain: bool = False


class Refusal(NamedTuple):
    """A record that nodes of the releases from `since` to `until` cannot apply, with the exceptions of its Rule.
    `offset`: None in a snapshot; `position`: of its batch in the `file`; `number`: in a snapshot, as MetadataLoader
    counts its records, from 0 on. `of_newer`: a newer release than the newest known one has written it."""

    record: str
    offset: int | None
    file: str
    position: int
    controller: str = ""
    loader: str = ""
    reader: str = ""
    since: Line = OLDEST
    until: Line = NO_LIMIT
    number: int | None = None
    of_newer: bool = False

    @property
    def exception(self) -> str:
        """The exception with which a node with the controller role ends; if both classes refuse the record, that of
        either, because each has a thread of its own."""
        return ", or ".join(self.exceptions)

    @property
    def exceptions(self) -> tuple[str, ...]:
        """The exceptions of which a node with the controller role ends with one."""
        either = filter(None, (self.controller, self.loader))
        return (self.reader,) if self.reader else tuple(dict.fromkeys(either))

    def holds(self, line: Line) -> bool:
        """Return whether nodes of this minor release refuse it."""
        return self.since <= line <= self.until

    @property
    def by_every_release(self) -> bool:
        """Whether no known release applies it, so that none has written it so."""
        return (self.since, self.until) == (OLDEST, NO_LIMIT)

    def stops_broker(self, line: Line) -> bool:
        """Return whether a broker without the controller role does not start, either: since 3.8, KafkaRaftClient reads
        the whole log before anything else."""
        return bool(self.reader) and line >= READ_FIRST
