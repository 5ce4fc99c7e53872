"""Writes a log directory for a controller: meta.properties, and a metadata log that is one snapshot and an empty
segment after it.

Source: RecordsSnapshotWriter (control records, base offsets from 0), Snapshots (names), KafkaRaftLog
.truncateFullyAndStartAt (the files after that), FileQuorumStateStore, PropertiesUtils, PartitionMetadataFile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from kdump.format.batch_writer import new_batch
from kdump.format.control_record import CONTROL_TYPES, KEY, ControlRecordKey
from kdump.format.kafka_uuid import ZERO_UUID
from kdump.format.message_writer import encode
from kdump.format.schema import load
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.output_directory import OutputDirectory
from kdump.state.metadata_image import Voter

HEADER, FOOTER, KRAFT_VERSION, VOTERS = "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"
TYPES = {control.name: number for number, control in CONTROL_TYPES.items()}
MAX_RECORDS, MAX_BYTES = 1000, 512 * 1024
"""Limits of a batch: KRaft reads up to 8 MiB."""
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""Uuid.METADATA_TOPIC_ID."""


class NewLog(NamedTuple):
    """The log to write. `offset` and `epoch`: of the snapshot; `timestamp`: of the last record in it,
    epoch ms; `voters`: those of the quorum, with directories and endpoints if `kraft_version` is not 0."""

    offset: int
    epoch: int
    timestamp: int
    kraft_version: int
    voters: Sequence[Voter]

    @property
    def quorum_state(self) -> bytes:
        """The contents of quorum-state: no leader and no vote in this epoch."""
        if self.kraft_version:
            state: dict[str, Any] = {"leaderId": -1, "leaderEpoch": self.epoch, "votedId": -1}
            state |= {"votedDirectoryId": ZERO_UUID, "data_version": 1}
        else:
            state = {"clusterId": "", "leaderId": -1, "leaderEpoch": self.epoch, "votedId": -1, "appliedOffset": 0}
            state |= {"currentVoters": [{"voterId": voter.voterId} for voter in self.voters], "data_version": 0}
        return json.dumps(state, separators=(",", ":")).encode()


class NewDirectory(NamedTuple):
    """A log directory to write. `directory_id`: None before Kafka 3.7."""

    name: str
    cluster_id: str
    node_id: int
    directory_id: str | None

    @property
    def meta_properties(self) -> bytes:
        lines = ["#", f"node.id={self.node_id}"]
        lines += [f"directory.id={self.directory_id}"] if self.directory_id is not None else []
        return "\n".join([*lines, "version=1", f"cluster.id={self.cluster_id}", ""]).encode()


def write_logs(out: OutputDirectory, directories: Sequence[NewDirectory], log: NewLog, records: Iterable[bytes]) -> int:
    """Write the log directories, and return the number of records. Raises OutputError, and ValueError for a record that
    cannot be encoded."""
    count = 0
    with ExitStack() as stack:
        name = f"{log.offset:020}-{log.epoch:010}.checkpoint"
        files = [
            stack.enter_context(out.writing(f"{directory.name}/{METADATA_LOG}/{name}")) for directory in directories
        ]
        for data, records_in_it in snapshot_batches(log, records):
            count += records_in_it
            for file in files:
                file.write(data)
    for directory in directories:
        folder = f"{directory.name}/{METADATA_LOG}"
        for suffix in ("log", "index", "timeindex"):
            out.write(f"{folder}/{log.offset:020}.{suffix}", b"")
        out.write(f"{folder}/leader-epoch-checkpoint", b"0\n0\n")
        out.write(f"{folder}/partition.metadata", f"version: 0\ntopic_id: {METADATA_TOPIC_ID}".encode())
        out.write(f"{folder}/quorum-state", log.quorum_state)
        out.write(f"{directory.name}/meta.properties", directory.meta_properties)
    return count


def snapshot_batches(log: NewLog, records: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield the batches of the snapshot, each with its number of records that are not control records."""
    controls = [_control(HEADER, {"version": 0, "lastContainedLogTimestamp": log.timestamp})]
    if log.kraft_version:
        controls.append(_control(KRAFT_VERSION, {"version": 0, "kRaftVersion": log.kraft_version}))
        controls.append(_control(VOTERS, {"version": 0, "voters": list(map(_voter, log.voters))}))
    yield new_batch(0, log.epoch, log.timestamp, controls, is_control=True), 0
    offset, values, size = len(controls), list[tuple[bytes | None, bytes | None]](), 0
    for value in records:
        if values and (len(values) == MAX_RECORDS or size + len(value) > MAX_BYTES):
            yield new_batch(offset, log.epoch, log.timestamp, values), len(values)
            offset, values, size = offset + len(values), [], 0
        values.append((None, value))
        size += len(value)
    if values:
        yield new_batch(offset, log.epoch, log.timestamp, values), len(values)
    footer = [_control(FOOTER, {"version": 0})]
    yield new_batch(offset + len(values), log.epoch, log.timestamp, footer, is_control=True), 0


def _control(name: str, values: dict[str, Any]) -> tuple[bytes, bytes]:
    number = TYPES[name]
    key = KEY.struct.pack(*ControlRecordKey(0, number))
    return key, encode(load(CONTROL_TYPES[number].message), 0, values)


def _voter(voter: Voter) -> dict[str, Any]:
    return {
        "voterId": voter.voterId,
        "voterDirectoryId": voter.voterDirectoryId or ZERO_UUID,
        "endpoints": [
            {"name": endpoint.name, "host": endpoint.host, "port": endpoint.port} for endpoint in voter.endpoints
        ],
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
    }
