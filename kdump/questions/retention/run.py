"""`kdump.retention`: yields the answers for paths, partition by partition, as each has been read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from kdump.answer import Note
from kdump.check.options import Options
from kdump.cluster.remote_mount import missing_segments
from kdump.io import file_system
from kdump.io.directory_listing import is_url
from kdump.kafka.server_properties import ServerProperties
from kdump.log.file_kinds import SEGMENT
from kdump.log.paths import is_live, target
from kdump.log.remote_objects import RemoteStorage
from kdump.query import offered
from kdump.questions.find_partitions import find_partitions, is_away, of_topics, release_doubts
from kdump.questions.retention.clusters import Clusters
from kdump.questions.retention.partition import NOT_KNOWN, OLD_CONFIGS, OnePartition, RetentionAnswer, RetentionQuery
from kdump.state.metadata_problem import Kind
from kdump.state.releases import CLEANS_BELOW_HIGH_WATERMARK, DELETE_HORIZON, EMPTY_POLICY_OF_TIERED

__all__ = ["retention"]

RULES = (DELETE_HORIZON, CLEANS_BELOW_HIGH_WATERMARK, EMPTY_POLICY_OF_TIERED)
"""Where releases differ in what is deleted or cleaned."""


def answers(
    query: RetentionQuery, *, servers: Sequence[ServerProperties] = (), remote: RemoteStorage | None = None
) -> Iterator[RetentionAnswer]:
    """Yield what retention and the cleaner do with the partitions that `paths` stand for: for each every
    SegmentRetention, every RetentionBlocker, and PartitionRetention; before these a Note for what could not be taken
    into account. Reads lazily, in bounded memory.

    `config`: values by the name of a topic config, which override all others, or of a broker config, which override the
    broker's but not the topic's own; `properties`: the broker's server.properties. `deep=False` does not read records,
    and counts no tombstones; `keys=True` reads compacted logs twice more, to find what the next cleaning would remove.
    Raises ValueError for a config that does not exist, or a value that a broker would reject."""
    # `servers`: the server.properties of the nodes, if there are several; `remote`: the bucket to compare with.
    options = Options.as_of(
        query.run,
        query.now,
        only=frozenset({"transactions"}),
        transaction_timeout=query.timeout,
        kafka_version=query.kafka_version,
    )
    named, only = _whole(list(query.paths))
    places, disks = find_partitions(named, options, everything=True)
    chosen = of_topics(places, query.of_topic)
    if servers:
        disks.configure(servers)
    clusters = Clusters(query.metadata, disks, options)
    if remote is not None:
        clusters.missing = missing_segments(disks, remote, options)
    yielded: set[Note] = set()
    yield from release_doubts(chosen, RULES)
    query.run.expect(sum(place.size for place in chosen))
    for place in chosen:
        query.run.begin(place)
        place, _ = place.now()
        if is_away(place):
            continue
        made = OnePartition(place, query, clusters, only.get(place.partition.path))
        for note in _around(made, clusters):
            if note not in yielded:
                yielded.add(note)
                yield note
        yield from made.answers()


retention = offered("retention", RetentionQuery, answers)


def _around(made: OnePartition, clusters: Clusters) -> Iterator[Note]:
    """Yield notes on what could not be taken into account in the log directory; they are the same for each of its
    partitions."""
    metadata = made.metadata
    doubt = None if metadata is None else metadata.doubt
    if not (made.config.is_known or (doubt and doubt.kind == Kind.EMPTIED) or made.place.partition.state):
        yield Note(made.directory or "-", NOT_KNOWN)
    if doubt is not None:
        yield Note(made.directory, f"{OLD_CONFIGS}: {doubt.text}")
    for problem in clusters.checkpoint_problems(made.directory):
        yield Note(made.directory, f"{problem}: its entries are unknown, at least some of them")


def _whole(paths: list[str]) -> tuple[list[str], dict[str, set[str]]]:
    """Return the paths to read, and by directory the segment files that were selected. A single segment of a partition
    directory is not enough: the whole directory is read, and only that segment is shown."""
    chosen: dict[str, None] = {}
    only: dict[str, set[str]] = {}
    directories = {os.path.abspath(path) for path in paths if not is_url(path) and file_system.isdir(path)}
    for path in paths:
        directory = os.path.dirname(path)
        is_segment = path != "-" and not is_url(path) and file_system.isfile(path) and target(path).kind is SEGMENT
        if is_segment and is_live(os.path.basename(path)) and target(path).name_offset is not None:
            chosen[directory or "."] = None
            if os.path.abspath(directory) not in directories:
                only.setdefault(directory or ".", set()).add(os.path.basename(path))
        else:
            chosen[path] = None
    return list(chosen), only
