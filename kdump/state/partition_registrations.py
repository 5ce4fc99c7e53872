"""The partitions of a topic in two arrays: a cluster may have hundreds of thousands."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, MutableMapping, Sequence, ValuesView
from itertools import chain
from typing import Annotated, Any, NamedTuple, TypeAlias

from kdump.answer import Doc, Shown
from kdump.format.numbers import int32
from kdump.state.name_numbers import Names


class PartitionRegistration(NamedTuple):
    """A partition. `directories`: the log directory ID of each replica, in the same order; empty if the record has
    none. `leader` is -1 if there is none. The eligible leader replicas are those outside the ISR that have all
    committed records (KIP-966)."""

    replicas: Annotated[
        tuple[int, ...], Doc("brokers with a replica, the preferred leader first", after="isr"), Shown(rank=8)
    ]
    directories: Annotated[tuple[str, ...], Doc("ID of the log directory of each replica", after="partitionEpoch")]
    leader: Annotated[int, Doc("broker that leads it; -1: none"), Shown()]
    leaderEpoch: Annotated[int, Doc("leader epoch, raised with each change of leader"), Shown("epoch", 4)]
    isr: Annotated[tuple[int, ...], Doc("brokers with an in-sync replica"), Shown()] = ()
    addingReplicas: Annotated[tuple[int, ...], Doc("replicas being added"), Shown("adding", 6)] = ()
    removingReplicas: Annotated[tuple[int, ...], Doc("replicas being removed"), Shown("removing", 6)] = ()
    eligibleLeaderReplicas: Annotated[
        tuple[int, ...], Doc("replicas out of sync, but with all committed records (KIP-966)"), Shown("elr", 5)
    ] = ()
    lastKnownElr: Annotated[
        tuple[int, ...],
        Doc("last leader, stored when the ISR became empty; empty if there is a leader"),
        Shown("last known elr", 3),
    ] = ()
    leaderRecoveryState: Annotated[str, Doc("RECOVERING after an unclean election, else RECOVERED")] = "RECOVERED"
    partitionEpoch: Annotated[int, Doc("partition epoch, raised with each change of the partition")] = -1

    @property
    def is_under_replicated(self) -> bool:
        """Whether it has fewer in-sync replicas than replicas, not counting those being added (TopicCommand)."""
        adding = len(self.addingReplicas)
        return len(self.isr) < len(self.replicas) - (adding if adding < len(self.replicas) else 0)

    @property
    def is_offline(self) -> bool:
        return self.leader < 0

    @property
    def is_reassigning(self) -> bool:
        return bool(self.addingReplicas or self.removingReplicas)


SAME = -1
"""As the size of the ISR: it is the same as the replicas."""
HEAD = 8
"""Numbers before the lists of a row: leader, leader epoch, partition epoch, recovery state, and the sizes of replicas,
directories, ISR and of the rest: four sizes and their lists, if one of them is not empty."""

Row: TypeAlias = "array[int]"


class PartitionTable(MutableMapping[int, PartitionRegistration]):
    """Partitions by number, in order. Three replicas with directories take 64 bytes. `names` has the texts of all
    topics."""

    __slots__ = ("_index", "_names", "_unused", "_values")

    def __init__(self, names: Names) -> None:
        self._names = names
        self._index = array("q")
        """Partition numbers in the upper half, where the row begins in the lower one; in order."""
        self._values = array("i")
        self._unused = 0

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[int]:
        return (each >> 32 for each in self._index)

    def _place(self, number: int) -> tuple[int, int]:
        """Return where a number is, or would be, in the index, and where its row begins, -1 if there is none."""
        place = bisect_left(self._index, number << 32)
        if place < len(self._index) and self._index[place] >> 32 == number:
            return place, self._index[place] & 0xFFFFFFFF
        return place, -1

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self._place(number)[1] >= 0

    def _size(self, at: int) -> int:
        replicas, directories, isr, rest = self._values[at + 4 : at + HEAD]
        return HEAD + replicas + directories + max(0, isr) + rest

    def __getitem__(self, number: int) -> PartitionRegistration:
        found: PartitionRegistration | None = self.get(number)
        if found is None:
            raise KeyError(number)
        return found

    def get(self, number: int, default: Any = None) -> Any:
        _, at = self._place(number)
        return default if at < 0 else self._registration(at)

    def _registration(self, at: int) -> PartitionRegistration:
        """Return the partition in the row that begins at `at`."""
        values, texts = self._values, self._names.texts
        leader, leader_epoch, partition_epoch, recovery, replicas_size, directories_size, isr_size, rest = values[
            at : at + HEAD
        ]
        at += HEAD
        isr = replicas = tuple(values[at : at + replicas_size])
        at += replicas_size
        directories: tuple[str, ...] = ()
        if directories_size:
            directories = tuple([texts[each] for each in values[at : at + directories_size]])
            at += directories_size
        if isr_size != SAME:
            isr = tuple(values[at : at + isr_size])
            at += isr_size
        adding, removing, eligible, last_known = self._moving(at) if rest else ((), (), (), ())
        return PartitionRegistration(
            replicas,
            directories,
            leader,
            leader_epoch,
            isr,
            adding,
            removing,
            eligible,
            last_known,
            texts[recovery],
            partition_epoch,
        )

    def _moving(self, at: int) -> list[tuple[int, ...]]:
        """Return the lists at the end of a row."""
        sizes, at = self._values[at : at + 4], at + 4
        lists = []
        for size in sizes:
            lists.append(tuple(self._values[at : at + size]))
            at += size
        return lists

    def values(self) -> ValuesView[PartitionRegistration]:
        return _Registrations(self)

    def registrations(self) -> list[PartitionRegistration]:
        """Return the partitions in order."""
        return [self._registration(each & 0xFFFFFFFF) for each in self._index]

    def __setitem__(self, number: int, info: PartitionRegistration) -> None:
        self.put(number, self._row(info))

    def row(self, number: int) -> Row | None:
        """Return a copy of the row of a number, None if there is none."""
        index = self._index
        if not index or number > index[-1] >> 32:
            return None
        _, at = self._place(number)
        return None if at < 0 else self._values[at : at + self._size(at)]

    def put(self, number: int, row: Row) -> None:
        """Store a row."""
        index = self._index
        if not index or number > index[-1] >> 32:  # partitions are created in order
            index.append(number << 32 | len(self._values))
            self._values.extend(row)
            return
        place, at = self._place(number)
        if at >= 0 and self._size(at) == len(row):
            self._values[at : at + len(row)] = row
            return
        entry = number << 32 | len(self._values)
        if at >= 0:
            self._unused += self._size(at)
            self._index[place] = entry
        else:
            self._index.insert(place, entry)
        self._values.extend(row)
        if 2 * self._unused > len(self._values):
            self._compact()

    def __delitem__(self, number: int) -> None:
        place, at = self._place(number)
        if at < 0:
            raise KeyError(number)
        self._unused += self._size(at)
        del self._index[place]
        if 2 * self._unused > len(self._values):
            self._compact()

    def _row(self, info: PartitionRegistration) -> Row:
        replicas, directories, leader, leader_epoch, isr, *moving, recovery, partition_epoch = info
        row = self.plain_row(replicas, directories, leader, leader_epoch, isr, recovery, partition_epoch)
        if any(moving):
            row[HEAD - 1] = 4 + sum(map(len, moving))
            row.extend(chain(map(len, moving), *moving))
        return row

    def plain_row(
        self,
        replicas: Sequence[int],
        directories: Sequence[str],
        leader: int,
        leader_epoch: int,
        isr: Sequence[int],
        recovery: str,
        partition_epoch: int,
    ) -> Row:
        """Return the row of a partition that is not reassigned and has no ELR."""
        is_same = isr == replicas
        row = [leader, leader_epoch, partition_epoch, self._names.add(recovery)]
        row += (len(replicas), len(directories), SAME if is_same else len(isr), 0, *replicas)
        if directories:
            row += map(self._names.add, directories)
        if not is_same:
            row += isr
        return array("i", row)

    def _compact(self) -> None:
        """Drop the rows that are not used any more."""
        values = array("i")
        for place, entry in enumerate(self._index):
            at = entry & 0xFFFFFFFF
            self._index[place] = entry >> 32 << 32 | len(values)
            values.extend(self._values[at : at + self._size(at)])
        self._values, self._unused = values, 0


class _Registrations(ValuesView[PartitionRegistration]):
    """The partitions of a table, without a search for each."""

    _mapping: PartitionTable

    def __iter__(self) -> Iterator[PartitionRegistration]:
        return iter(self._mapping.registrations())


def is_plain(row: Row) -> bool:
    """Return True if the partition in a row is not reassigned and has no ELR."""
    return not row[HEAD - 1]


def sizes(row: Row) -> tuple[int, bool]:
    """Return how many replicas and directories a row has, and whether its ISR is the replicas, in the same order."""
    return row[4] + row[5], row[6] == SAME


def with_leader_and_isr(row: Row, leader: int | None, isr: list[int] | None) -> Row:
    """Return the row of a plain partition after a change of its leader and its ISR; None for what does not change.
    Changes `row`."""
    if leader is not None:
        row[0] = leader
        row[1] = int32(row[1] + 1)
    row[2] = int32(row[2] + 1)
    if isr is not None:
        stop = HEAD + row[4]
        changed = array("i", isr)
        is_same = changed == row[HEAD:stop]
        row[6] = SAME if is_same else len(isr)
        del row[stop + row[5] :]
        if not is_same:
            row += changed
    return row
