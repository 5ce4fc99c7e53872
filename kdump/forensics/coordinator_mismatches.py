"""Transaction markers of a partition that do not match the decisions of their coordinators.

Source: org.apache.kafka.coordinator.transaction.TransactionMetadata (prepareAbortOrCommit, prepareComplete).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdump.cluster.transaction_coordinator import TransactionCoordinatorState
from kdump.forensics.answers import Difference
from kdump.forensics.partition_scan import PartitionScan
from kdump.state.transaction_history import CoordinatorDecision, Life
from kdump.state.transaction_tracker import CompletedTxn

MAX_PRODUCER_EPOCHS = 1_000_000
"""Maximum number of producer epochs whose last marker is compared with the coordinator's decision."""


class _Marker(NamedTuple):
    """The last marker of a producer epoch: COMMIT or ABORT, its offset and its place."""

    type: str
    offset: int
    file: str
    position: int


class CoordinatorMismatches:
    """Collects the markers of a partition and returns those that differ from the coordinator's decision. There are none
    if the coordinator's log is missing or damaged, because its decisions are then unknown."""

    def __init__(self, scan: PartitionScan, coordinator: TransactionCoordinatorState | None) -> None:
        self.scan = scan
        self.known = scan.known
        self.history = coordinator.history if coordinator is not None and not coordinator.problems else None
        self.markers: dict[Life, _Marker] = {}

    def add(self, ended: CompletedTxn, file: str, position: int) -> None:
        """Add a marker at byte `position` of `file`."""
        if self.history is not None and ended.producer_id in self.history.names:
            life = (ended.producer_id, ended.epoch)
            if life in self.markers or len(self.markers) < MAX_PRODUCER_EPOCHS:
                self.markers[life] = _Marker(ended.marker.type, ended.offset, file, position)

    def found(self) -> Iterator[Difference]:
        """Yield the differences. The last marker of a producer epoch must match the coordinator's last decision for
        that epoch, once the coordinator has recorded the transaction as complete: before that, in transaction version
        1, the marker may belong to the previous transaction."""
        known, scan = self.known, self.scan
        if self.history is None or known.topic is None or known.partition is None or known.last is False:
            return
        segments = scan.partition.segments
        is_whole = bool(segments) and not (segments[0].offset or scan.transactions.damages or known.compacted)
        is_whole = is_whole and len(self.markers) < MAX_PRODUCER_EPOCHS
        for life, decision in self.history.decided.get((known.topic, known.partition), {}).items():
            if life not in self.history.done:
                continue
            marker = self.markers.get(life)
            if marker is not None and marker.type != decision.type:
                message = f"the marker is {marker.type}, but its coordinator decided {decision.type}"
                yield self._difference(life, decision, marker, message)
            elif marker is None and is_whole:
                message = f"no marker, though its coordinator recorded that every partition has its {decision.type}"
                yield self._difference(life, decision, None, message)

    def _difference(
        self, life: Life, decision: CoordinatorDecision, marker: _Marker | None, message: str
    ) -> Difference:
        target = self.scan.partition
        return Difference(
            source=target.source,
            topic=self.known.topic,
            partition=self.known.partition,
            transactionalId=decision.transactionalId,
            producerId=life[0],
            producerEpoch=life[1],
            offset=marker.offset if marker else None,
            file=marker.file if marker else target.path,
            position=marker.position if marker else 0,
            coordinator=decision.name,
            coordinatorOffset=decision.offset,
            message=message,
        )
