"""`kdump.retention`: yields the answers for paths, partition by partition, as each has been read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from kdump.answer import Note
from kdump.check.options import Options
from kdump.cluster.remote_mount import missing_segments
from kdump.format.kafka_release import KafkaRelease, parse_release
from kdump.io import file_system
from kdump.io.directory_listing import is_url
from kdump.io.mounted_paths import takes_paths
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.file_kinds import SEGMENT
from kdump.log.paths import is_live, target
from kdump.query import TRANSACTION_TIMEOUT
from kdump.questions.find_partitions import find_partitions, is_away, release_doubts
from kdump.questions.retention.clusters import Clusters
from kdump.questions.retention.configs import ConfigOverrides, check, known_names
from kdump.questions.retention.partition import NOT_KNOWN, OLD_CONFIGS, OnePartition, RetentionAnswer, RetentionQuery
from kdump.state.releases import CLEANS_BELOW_HIGH_WATERMARK, DELETE_HORIZON, EMPTY_POLICY_OF_TIERED

RULES = (DELETE_HORIZON, CLEANS_BELOW_HIGH_WATERMARK, EMPTY_POLICY_OF_TIERED)
"""Where releases differ in what is deleted or cleaned."""


@takes_paths
def retention(
    paths: str | Iterable[str],
    *,
    now: int | None = None,
    topics: Iterable[str] = (),
    config: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    metadata: str | None = None,
    deep: bool = True,
    keys: bool = False,
    timeout: int = TRANSACTION_TIMEOUT,
    kafka_version: KafkaRelease | str | None = None,
    run: Run = PLAIN_RUN,
) -> Iterator[RetentionAnswer]:
    """Yield what retention and the cleaner do with the partitions that `paths` stand for: segments, partition
    directories, log directories, or directories above. For each partition every SegmentRetention, every
    RetentionBlocker, and PartitionRetention; before these a Note for what could not be taken into account. Reads
    lazily, in bounded memory.

    `now`: epoch ms that times are compared with, by default the current time. `config`: values by the name of a topic
    config, which override all others, or of a broker config, which override the broker's but not the topic's own;
    `properties`: the broker's server.properties. `metadata`: path of the KRaft metadata, by default on the same disk.
    `deep=False` does not read records, and counts no tombstones; `keys=True` reads compacted logs twice more, to find
    what the next cleaning would remove. `kafka_version`: the broker's release ("3.6"), by default the one that the disk
    states.

    What cannot be read is passed to `run.unreadable`, which raises it by default. Raises ValueError for a config or a
    release that does not exist, or a value that a broker would reject."""
    unknown = sorted(set(config or {}) - known_names())
    if unknown:
        raise ValueError(f"unknown config {', '.join(unknown)}; known are {', '.join(sorted(known_names()))}")
    for name, text in (config or {}).items():
        try:
            check(name, text)
        except ValueError:
            raise ValueError(f"{name}={text!r}: not a valid value") from None
    selected = frozenset((topics,) if isinstance(topics, str) else topics)
    question = RetentionQuery(
        given=ConfigOverrides(config or {}, properties or {}),
        metadata=metadata,
        deep=deep,
        keys=keys,
        topic=lambda name: not selected or name in selected,
    )
    release = parse_release(kafka_version) if isinstance(kafka_version, str) else kafka_version
    return run_query(paths, question, run=Options.as_of(run, now, transaction_timeout=timeout, kafka_version=release))


def run_query(paths: Iterable[str], question: RetentionQuery, *, run: Run = PLAIN_RUN) -> Iterator[RetentionAnswer]:
    """Like `retention`, with the selection as a RetentionQuery."""
    options = Options.as_of(run, only=frozenset({"transactions"}))
    named, only = _whole(list(paths))
    places, disks = find_partitions(named, options, everything=True)
    chosen = [place for place in places if place.known.topic is None or question.topic(place.known.topic)]
    if question.servers:
        disks.configure(question.servers)
    clusters = Clusters(question.metadata, disks, options)
    if question.remote is not None:
        clusters.missing = missing_segments(disks, question.remote, options)
    yielded: set[Note] = set()
    yield from release_doubts(chosen, RULES)
    run.expect(sum(place.size for place in chosen))
    for place in chosen:
        run.begin(place)
        place, _ = place.now()
        if is_away(place):
            continue
        made = OnePartition(place, question, clusters, only.get(place.partition.path))
        for note in _around(made, clusters):
            if note not in yielded:
                yielded.add(note)
                yield note
        yield from made.answers()


def _around(made: OnePartition, clusters: Clusters) -> Iterator[Note]:
    """Yield notes on what could not be taken into account in the log directory; they are the same for each of its
    partitions."""
    if not made.config.is_known and not made.place.partition.state:
        yield Note(made.directory or "-", NOT_KNOWN)
    if made.metadata is not None and made.metadata.problems:
        yield Note(made.directory, f"{OLD_CONFIGS}: {made.metadata.problems[0]}")
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
