"""Shows the segments in remote storage as files of the directories of their partitions, so that every reader takes both
for one log: those that __remote_log_metadata states below the local segments, where a broker fetches them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kdump.cluster.disks import Disks
from kdump.cluster.remote_log import COPY_FINISHED, MAX_OFFSET, RemoteLog, RemoteSegment, offsets_in, uncovered
from kdump.io import file_system
from kdump.io.directory_listing import is_url
from kdump.io.errors import SourceError
from kdump.io.file_system import AddedFiles, add_files
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.source import open_source
from kdump.kafka.checkpoint_file import accepted_epochs
from kdump.kafka.small_files import OffsetCheckpoints
from kdump.log import file_kinds
from kdump.log.log_directory import LogDirectory, log_directory_above
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.log.remote_files import RemoteFile, RemoteFiles
from kdump.log.remote_objects import INDEXES, RemoteListing, RemoteObject, RemoteStorage, has_segment, list_objects
from kdump.state.effective_config import is_tiered
from kdump.state.metadata_image import MetadataImage

ENDINGS = {
    file_kinds.SEGMENT.name: "log",
    file_kinds.INDEX.name: "index",
    file_kinds.TIME_INDEX.name: "timeindex",
    file_kinds.TXN_INDEX.name: "txnindex",
}
"""Of the objects that are shown: the rest is for replicas, not for readers."""


def mount_remote(paths: Iterable[str], storage: RemoteStorage, run: Run = PLAIN_RUN) -> RemoteListing:
    """Show what remote storage has of the partitions at or below the paths, and return what was listed. Raises
    SourceError if nothing states which segments these are."""
    add_files({})
    roots: dict[str, None] = {}
    absent = []
    for path in paths:
        above = None if is_url(path) else log_directory_above(os.path.abspath(path))
        roots[path if above is None else above.path] = None
        if above is not None and not file_system.exists(path):
            absent.append(partition(path, above.path))
    disks = Disks.at(roots, run)
    metadata, remote, listing = listed_objects(disks, storage, run)
    added: dict[str, AddedFiles] = {}
    for directory in disks.directories:
        here = [place for place in absent if place.source == directory.path]
        for place in (*directory.partitions, *here):
            if not place.state and is_tiered(metadata, place.topic or ""):
                files = _files(directory, place, metadata, remote, listing)
                files.is_directory = place in here
                if files or files.both:
                    added[os.path.abspath(place.path)] = files
    add_files(added, storage.url)
    return listing


def listed_objects(
    disks: Disks, storage: RemoteStorage, run: Run = PLAIN_RUN
) -> tuple[MetadataImage, RemoteLog, RemoteListing]:
    """Return the metadata, the segments that it states, and the objects. Raises SourceError if nothing states which
    segments these are."""
    disks.refuse_other_clusters()
    _, metadata = disks.newest_metadata(run=run)
    remote = disks.whole_remote_log(metadata, run.limits)
    if metadata is None or not (remote.segments or remote.is_complete):
        raise SourceError.at(
            storage.url,
            "these disks have no __cluster_metadata or no __remote_log_metadata, which state what is "
            "in remote storage; pass log directories that have them, too",
        )
    for problem in remote.problems:
        run.unreadable(SourceError(problem))
    listing = list_objects(storage)
    was = remote.copied_ids
    if not was <= {each.segment_id for here in listing.objects.values() for each in here}:
        remote = disks.whole_remote_log(metadata, run.limits)  # perhaps they have expired since
        for here in remote.segments.values():
            for segment in [each for each in here.values() if each.state == COPY_FINISHED and each.id not in was]:
                del here[segment.id]  # copied since
    listing.expect(len(remote.copied_ids), remote.segments)
    for error in listing.unread:
        run.unreadable(error)
    return metadata, remote, listing


def missing_segments(disks: Disks, storage: RemoteStorage, run: Run = PLAIN_RUN) -> frozenset[str] | None:
    """Return the IDs of the segments that a broker may read and that have no object; None if not all were listed.
    Raises SourceError. What the metadata states later, it may have copied or deleted meanwhile."""
    _, remote, listing = listed_objects(disks, storage, run)
    if listing.unread:
        return None
    return frozenset(
        segment.id
        for place, segments in remote.segments.items()
        for objects, _ in [listing.by_segment(place)]
        for segment in segments.values()
        if segment.state == COPY_FINISHED and not has_segment(objects.get(segment.id, ()))
    )


def _files(
    directory: LogDirectory,
    place: PartitionDirectory,
    metadata: MetadataImage,
    remote: RemoteLog,
    listing: RemoteListing,
) -> RemoteFiles:
    """Return the files of the segments from which a broker reads what is below the local log."""
    described = metadata.topics[place.topic or ""]
    key = described.id, place.partition or 0
    checkpoint = OffsetCheckpoints(directory).of(place).get("log-start-offset")
    start = remote.start_of(*key, None if checkpoint is None else checkpoint.offset)
    lineage = lineage_of(place)
    stop = place.segments[0].offset if place.segments else (1 << 63) - 1
    objects, _ = listing.by_segment(key)
    files = RemoteFiles()
    for segment, end in remote.served(*key, start, stop, lineage):
        for kind, file in _of_segment(segment, objects.get(segment.id, []), listing):
            files[f"{segment.first:020}-{segment.id}.{ENDINGS[kind]}"] = file._replace(
                stop=end if end <= segment.last else None
            )
    here = (segment for segment in remote.in_log(*key, lineage) if has_segment(objects.get(segment.id, ())))
    lacking = uncovered((each for segment in here for each in offsets_in(segment, lineage)), 0, MAX_OFFSET)
    files.both = frozenset(
        os.path.basename(each.log.path)
        for each, after in zip(place.segments, place.segments[1:])
        if each.log is not None and not any(low < after.offset and each.offset <= high for low, high in lacking)
    )
    return files


def lineage_of(place: PartitionDirectory) -> tuple[tuple[int, int], ...]:
    """Return the leader epochs of a log, each with its first offset."""
    epochs = place.text("leader-epoch-checkpoint")
    lines = None if epochs is None else accepted_epochs(epochs.path, open_source)
    return tuple((line.values["epoch"], line.values["startOffset"]) for line in lines or ())


def _of_segment(
    segment: RemoteSegment, objects: list[RemoteObject], listing: RemoteListing
) -> Iterable[tuple[str, RemoteFile]]:
    here = {each.kind: each for each in objects}
    log = here.get(file_kinds.SEGMENT.name)
    if log is None:
        where = f"in {listing.url}" if not listing.unread else f"in what could be listed of {listing.url}"
        problem = f"the object of this segment, which __remote_log_metadata states, is not {where}"
        yield file_kinds.SEGMENT.name, RemoteFile("", segment.size, segment.time, problem=problem)
        return
    yield file_kinds.SEGMENT.name, RemoteFile(log.path, segment.size if INDEXES in here else log.size, segment.time)
    for kind, ending in ENDINGS.items():
        if kind in here and kind != file_kinds.SEGMENT.name:
            yield kind, RemoteFile(here[kind].path, here[kind].size, segment.time)
        elif INDEXES in here and kind != file_kinds.SEGMENT.name and (ending != "txnindex" or segment.has_txn_index):
            yield kind, RemoteFile(f"{log.path[:-3]}{ending}", 0, segment.time)
