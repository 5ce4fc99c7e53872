"""Finds where copies of a partition diverge: compares every pair, takes a vote, and predicts what a follower would
do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import combinations, permutations
from typing import NamedTuple

from kdump.check.options import Options
from kdump.io import file_system
from kdump.io.command_line_paths import no_kafka_files
from kdump.io.directory_listing import parent
from kdump.io.errors import SourceError, is_gone, went_away
from kdump.io.hash_key import HashKey, read_hash_key
from kdump.io.run import Run, ignore
from kdump.kafka.follower_truncation import Truncation, truncation
from kdump.kafka.small_files import properties
from kdump.log.live_files import PAUSES, identity, is_young
from kdump.log.log_directory import META
from kdump.log.partition_directory import NO_SEGMENT
from kdump.log.paths import target
from kdump.query import Query, TopicsQuery, offered, option, topic_option
from kdump.questions.diff.compare_copies import compare
from kdump.questions.diff.copy_facts import CopyFacts, facts_of
from kdump.questions.diff.copy_reader import CopyReader
from kdump.questions.diff.differences import (
    DAMAGE,
    DIVERGENT,
    EPOCHS,
    PREFIX,
    SAME,
    BatchAtOffset,
    Comparison,
    DifferingRange,
    DivergentTail,
)
from kdump.questions.find_copies import Copy, CopyGroup, Side, groups, relisted, side

__all__ = ["Diff", "diff"]

LITTLE = frozenset({"offsets"})
"""Rule families for which as little as possible is read from the files around a partition."""


class FollowerOutcome(NamedTuple):
    """What a follower does when it fetches from a leader; copies are given by number."""

    leader: int
    follower: int
    does: Truncation
    mends: bool | None
    """Whether the follower then has what the leader has, all of it valid; None if unknown."""


class LaterLeader(NamedTuple):
    """Copies, by number, with the log of the later leader from the first divergent offset on, and the others."""

    epoch: int
    copies: list[int]
    earlier: list[int]


@dataclass
class Diff:
    """Copies of a partition, compared with each other.

    `relation` is same, prefix or divergent; None if unknown (nothing in common, something unread).
    `firstDivergentOffset`: the first offset at which any two of them diverge, None if none do. `votes`: the copies that
    contain that offset, or begin before it and are damaged, in groups that agree on it, the largest first."""

    topic: str | None
    partition: int | None
    copies: list[CopyFacts]
    pairs: dict[tuple[int, int], Comparison]
    relation: str | None
    firstDivergentOffset: int | None
    votes: list[list[int]]
    choices: list[FollowerOutcome]
    notes: list[str] = field(default_factory=list)

    @property
    def is_read(self) -> bool:
        """Whether everything could be read."""
        return not any(copy.unread for copy in self.copies)

    @property
    def has_deleted_segment(self) -> bool:
        """Whether a segment was deleted during the comparison."""
        return any(is_gone(problem) for copy in self.copies for problem in copy.unread)

    @property
    def has_remarks(self) -> bool:
        """Whether there is something to report about the copies even if they are the same."""
        remarks = self.notes or any(choice.does.loses for choice in self.choices)
        return bool(remarks) or any(copy.damaged or copy.unread or copy.notes for copy in self.copies)

    @property
    def cause(self) -> str:
        """The kind of the first divergence: records, missing, damage or epochs; empty without one."""
        first = self.first
        return first[1].kind if first else ""

    @property
    def first(self) -> tuple[tuple[int, int], DifferingRange] | None:
        """The pair that diverges first, and the difference; None without one."""
        found = [(pair, each.first) for pair, each in self.pairs.items() if each.first is not None]
        return min(((pair, each) for pair, each in found if each), key=lambda item: item[1].first, default=None)

    @property
    def history(self) -> int | None:
        """The first offset at which the histories of two copies diverge, apart from damage; None if they do not."""
        return min((comparison.history.first for comparison in self.pairs.values() if comparison.history), default=None)

    @property
    def majority(self) -> list[int]:
        """The copies of the group with more than half of the votes, if there are at least three; else empty."""
        all_votes = sum(len(group) for group in self.votes)
        return self.votes[0] if self.votes and len(self.votes[0]) * 2 > all_votes and all_votes > 2 else []

    def batch_at(self, number: int) -> BatchAtOffset | None:
        """Return the batch of a copy that contains the first divergent offset."""
        for (one, other), comparison in self.pairs.items():
            if number in (one, other) and self.firstDivergentOffset in comparison.batches_at:
                batch = comparison.batches_at[self.firstDivergentOffset][0 if number == one else 1]
                if batch is not None:
                    return batch
        return None

    def epoch_at(self, number: int) -> int | None:
        """Return the epoch in the header of the copy's batch that contains the first divergent offset; None if it has
        none."""
        batch, offset = self.batch_at(number), self.firstDivergentOffset
        if batch is None and offset is not None and self.cause == EPOCHS:
            return self.copies[number].batch_epoch(offset)
        return None if batch is None else batch.leaderEpoch

    @property
    def later_leader(self) -> LaterLeader | None:
        """The copies of the later leader, by the epochs where the copies diverge; None if these do not show it."""
        epochs = [self.epoch_at(number) for number in range(len(self.copies))]
        stated = [each for each in epochs if each is not None]
        if self.first is None or self.first[1].kind == DAMAGE or len(stated) < len(epochs) or len(set(stated)) < 2:
            return None
        latest = max(stated)
        later = [number for number, epoch in enumerate(epochs) if epoch == latest]
        return LaterLeader(latest, later, [number for number, epoch in enumerate(epochs) if epoch != latest])

    def tail(self, number: int) -> DivergentTail | None:
        """Return what a copy contains from the first divergence of histories on; None if it is not part of it."""
        for (one, other), comparison in self.pairs.items():
            if number in (one, other) and comparison.history is not None and comparison.history.first == self.history:
                return comparison.tails[0 if number == one else 1]
        return None


@dataclass(frozen=True)
class DiffQuery(TopicsQuery):
    """Which partitions to compare, and how."""

    paths_option = {**Query.paths_option, "metavar": "A B…"}
    options: Run | None = None
    _: KW_ONLY
    topics: Iterable[str] = topic_option("Compare only these topics")
    hash_key: HashKey | str | None = option(
        "--hash-key",
        metavar="FILE",
        help="Compare records by their hashes under this key, with which the bundles were made; needed to compare a "
        "bundle with a disk.",
    )
    on_unpaired: Callable[[CopyGroup, bool], None] = ignore

    @cached_property
    def key(self) -> HashKey | None:
        return read_hash_key(self.hash_key) if isinstance(self.hash_key, str) else self.hash_key


def answers(query: DiffQuery) -> Iterator[Diff]:
    """Yield the comparison of each partition that two or more of the paths have. `paths`: segments, partition
    directories, log directories, or directories above them. `hash_key`: also a key that was read.

    `run.unreadable` is called with the SourceError for what could not be read, `on_unpaired` with a partition that only
    one path has, and whether that is a difference, as it is between copies of one log directory. Raises SourceError,
    and ValueError for fewer than two paths."""
    options = Options.given(query.run, only=LITTLE)
    named = list(query.paths)
    if len(named) < 2:
        raise ValueError(f"diff compares two or more paths, not {named[0]} alone")
    sides = sides_of(named, options)
    if sides is None:
        return
    identities = [one.directory_ids for one in sides]
    one_disk = all(identities) and all(ids & identities[0] for ids in identities)
    for group in groups(sides):
        topic = group.key[0] if group.key else group.copies[0].known.topic
        if not query.has_topic(topic):
            continue
        if len(group.copies) < 2:
            query.on_unpaired(group, one_disk)
        elif copies := _with_segments(group.copies):
            yield _compared(copies, options, query.key)
        else:
            for copy in group.copies:
                is_there = file_system.lexists(copy.path)
                lack = no_kafka_files(copy.path, f"{copy.path}: {NO_SEGMENT}")
                options.unreadable(lack if is_there else SourceError(went_away(copy.path)))


diff = offered("diff", DiffQuery, answers)


def _with_segments(copies: list[Copy]) -> list[Copy]:
    """Return the copies, listed again if none has a segment, and a few times more while one has changed just now: a
    broker may be creating or deleting the partition. Empty if none has one then."""
    for pause in (0, *PAUSES):
        if any(copy.segments for copy in copies):
            return copies
        if pause and not any(is_young(identity(copy.path)) for copy in copies):
            break
        time.sleep(pause)
        copies = [relisted(copy) for copy in copies]
    return copies if any(copy.segments for copy in copies) else []


def _compared(copies: list[Copy], options: Options, hash_key: HashKey | None) -> Diff:
    """Compare the copies; repeat this a few times if a segment is deleted during the comparison."""
    made = diff_copies(copies, options, hash_key)
    for pause in PAUSES:
        if not made.has_deleted_segment:
            break
        time.sleep(pause)
        copies = [relisted(copy) for copy in copies]
        made = diff_copies(copies, options, hash_key=hash_key)
    return made


def sides_of(paths: list[str], options: Options) -> list[Side] | None:
    """Return what is at each path; None if a path has nothing, because then there is nothing to compare."""
    sides = []
    for path in paths:
        try:
            sides.append(side(path, options))
        except SourceError as error:
            options.unreadable(error)
            return None
    return sides


def diff_copies(
    copies: list[Copy], options: Options, hash_key: HashKey | None = None, *, asks_keys: bool = True
) -> Diff:
    """Compare every pair: with n copies each is read n - 1 times; twice as often, if `asks_keys`, where the log cleaner
    may have removed records. Never raises SourceError: see `unread`."""
    pairs: dict[tuple[int, int], Comparison] = {}
    read: dict[int, CopyReader] = {}
    for one, other in combinations(range(len(copies)), 2):
        pairs[(one, other)] = comparison = compare(copies[one], copies[other], options, hash_key, asks_keys=asks_keys)
        read.setdefault(one, comparison.left)
        read.setdefault(other, comparison.right)
    facts = [facts_of(read[number]) for number in range(len(copies))]
    apart = _not_replicas(copies)
    choices = [] if apart else list(_choices(facts, pairs))
    for choice in choices:
        _add_epochs(choice, facts, pairs)
    first = min((compared.first.first for compared in pairs.values() if compared.first), default=None)
    topic, partition = copies[0].key or (None, None)
    made = Diff(topic, partition, facts, pairs, _relation(pairs), first, _votes(facts, pairs, first), choices)
    made.notes = [*([apart] if apart else []), *_notes(made)]
    return made


def _relation(pairs: dict[tuple[int, int], Comparison]) -> str | None:
    relations = {comparison.relation for comparison in pairs.values()}
    if DIVERGENT in relations:
        return DIVERGENT
    if None in relations:
        return None
    return PREFIX if PREFIX in relations else SAME


def _votes(facts: list[CopyFacts], pairs: dict[tuple[int, int], Comparison], offset: int | None) -> list[list[int]]:
    if offset is None:
        return []
    voters = [number for number, copy in enumerate(facts) if copy.logStartOffset <= offset]
    ends = [copy.logEndOffset for copy in facts]
    voters = [n for n in voters if facts[n].damaged or ((end := ends[n]) is not None and offset < end)]
    groups_of: list[list[int]] = []
    for number in voters:
        for group in groups_of:
            differences = pairs[(group[0], number)].differences
            if not any(
                difference.parts and difference.first <= offset <= difference.last for difference in differences
            ):
                group.append(number)
                break
        else:
            groups_of.append([number])
    return sorted(groups_of, key=lambda group: -len(group))


def _choices(facts: list[CopyFacts], pairs: dict[tuple[int, int], Comparison]) -> Iterator[FollowerOutcome]:
    for leader, follower in permutations(range(len(facts)), 2):
        one, other = facts[leader], facts[follower]
        if one.lineage is None or other.lineage is None:
            continue
        does = truncation(one.lineage, other.lineage)
        pair = pairs[(min(leader, follower), max(leader, follower))]
        divergence = pair.first_in_records
        mends: bool | None = None
        if does.offset is not None and pair.relation is not None:
            mends = divergence is None or does.by == "logStart" or does.offset <= divergence.first
            if divergence is not None and divergence.kind == DAMAGE and divergence.lacking != int(follower > leader):
                mends = False  # the leader is damaged, or both are
        yield FollowerOutcome(leader, follower, does, mends)


def _add_epochs(choice: FollowerOutcome, facts: list[CopyFacts], pairs: dict[tuple[int, int], Comparison]) -> None:
    """Add to the differences of a pair that the follower truncates offsets which both have."""
    one, other = sorted((choice.leader, choice.follower))
    end = min(facts[one].logEndOffset or 0, facts[other].logEndOffset or 0)
    if choice.does.by == "epochs" and choice.does.offset is not None and choice.does.offset < end:
        pairs[(one, other)].add_epochs(choice.does.offset, end)


def _not_replicas(copies: list[Copy]) -> str:
    """Return why no broker replicates one of the copies from another; empty if they may be replicas."""
    names = list(dict.fromkeys(f"{copy.key[0]}-{copy.key[1]}" for copy in copies if copy.key is not None))
    clusters = list(dict.fromkeys(filter(None, map(_cluster, copies))))
    if len(names) < 2 and len(clusters) < 2:
        return ""
    what = f"{' and '.join(names)} are not replicas of one partition"
    if len(names) < 2:
        what = f"these are not replicas of one partition, but of clusters {' and '.join(clusters)}"
    return f"{what}: a mirror has other offsets, so compare its records by key, value and timestamp"


def _cluster(copy: Copy) -> str:
    """Return the cluster.id next to a copy; empty if it is not known. Lists nothing: there may be thousands of copies
    in one directory."""
    path = os.path.join(parent(copy.path), META)
    return properties(target(path) if file_system.isfile(path) else None).get("cluster.id", "")


def _notes(made: Diff) -> Iterator[str]:
    ids = {copy.topicId for copy in made.copies if copy.topicId}
    if len(ids) > 1:
        yield f"partition.metadata has different topic IDs, {' and '.join(sorted(ids))}: two topics with the same name"
    for copy in made.copies:
        if copy.copy.epochs is not None and copy.epochs is None:
            yield f"{copy.path}: leader-epoch-checkpoint is not in ascending order and was not used"
        if copy.epochs is not None and copy.batchEpochs:
            for seen in copy.batchEpochs:
                checkpointed = copy.checkpoint_epoch(seen.offset)
                if checkpointed is not None and checkpointed != seen.epoch:
                    where = f"the batch at byte {seen.place.position} of {seen.place.file}"
                    yield (
                        f"{copy.path}: leader-epoch-checkpoint has epoch {checkpointed} for offset {seen.offset}, but"
                        f" {where} has {seen.epoch}"
                    )
                    break
