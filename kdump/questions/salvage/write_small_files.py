"""Writes leader-epoch-checkpoint and partition.metadata, with notes on them and on the source's log directory."""

from __future__ import annotations

from collections.abc import Sequence

from kdump.kafka.small_files import topic_id
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.output_directory import OutputDirectory
from kdump.questions.salvage.answer import Salvaged
from kdump.questions.salvage.leader_epochs import EpochsWritten, checkpoint_text
from kdump.questions.salvage.source.sources import FoundCopy

METADATA = "partition.metadata"
EPOCHS = "leader-epoch-checkpoint"
KRAFT = (
    "a controller also needs .checkpoint files and quorum-state, and a metadata log without offset gaps; copy it from"
    " another voter if you can"
)


def write_epochs(out: OutputDirectory, directory: str, made: Salvaged, copy: FoundCopy, epochs: EpochsWritten) -> None:
    """Write leader-epoch-checkpoint; `made.logEndOffset` must be known. Raises OutputError."""
    entries, made.leaderEpochs = epochs.entries(made.logEndOffset or 0)
    if made.leaderEpochs == "batches" and copy.copy.epochs is not None:
        made.notes.append("leader-epoch-checkpoint does not match the batches and is rebuilt from them")
    if entries:
        out.write(f"{directory}/{EPOCHS}", checkpoint_text(entries))


def write_topic_id(out: OutputDirectory, directory: str, made: Salvaged, copies: Sequence[FoundCopy]) -> None:
    """Write partition.metadata: the topic ID is that of the cluster's metadata on the same disk, or else of the first
    valid partition.metadata among the copies. Raises OutputError."""
    known_id = next((each.copy.known.topic_id for each in copies if each.copy.known.topic_id), None)
    for given in copies:
        target = given.place.text(METADATA) if given.place is not None else None
        if target is None or given.place is None:
            continue
        own = topic_id(given.place)
        if own is None:
            made.notes.append(f"{target.path} is invalid and was not used")
        elif known_id is not None and own != known_id:
            made.notes.append(f"{target.path} has topic ID {own}, but the cluster's metadata has {known_id}")
        else:
            known_id = own
            break
    made.topicId = known_id
    if known_id is not None:
        out.write(f"{directory}/{METADATA}", f"version: 0\ntopic_id: {known_id}".encode())
    else:
        made.notes.append(
            "no valid partition.metadata: from Kafka 3.7.1 on, a broker with KRaft renames such a directory to -stray; "
            "write 'version: 0' and 'topic_id: ID' (kafka-topics.sh --describe) to it before you use it"
        )


def note_surroundings(made: Salvaged, copy: FoundCopy) -> None:
    """Add notes on the log start offset in the source's log directory, and on the other files of a metadata log."""
    start, first, end = copy.copy.known.log_start, made.logStartOffset, made.logEndOffset or 0
    checkpoint = f"log-start-offset-checkpoint has offset {start} for it"
    if start is not None and start > end:
        made.notes.append(f"{checkpoint}, above its log end offset: with that line, a broker deletes the whole log")
    elif start is not None and first is not None and first < start:
        deleted = f"offsets {first}..{start - 1} were deleted"
        made.notes.append(f"{checkpoint}: {deleted}, and become readable again unless you copy that line, too")
    if made.topic == METADATA_TOPIC:
        made.notes.append(KRAFT)
