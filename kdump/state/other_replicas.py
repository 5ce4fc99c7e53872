"""The other brokers with a replica of a partition, according to the cluster's metadata on a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.format.count_text import all_of

if TYPE_CHECKING:
    from kdump.state.metadata_image import MetadataImage


class OtherReplicas(NamedTuple):
    """The brokers other than this one that have a replica of a partition, and which of them are in the ISR. All are as
    of the end of the metadata on the disk, which may be out of date. `may_lead`: whether this one is the leader, or in
    the ISR or the ELR."""

    brokers: tuple[int, ...]
    in_sync: tuple[int, ...]
    may_lead: bool = False

    @property
    def text(self) -> str:
        """Who has a replica, as the end of a sentence."""
        if not self.brokers:
            return "by the metadata on the disk no other broker has a replica"
        names = all_of([*map(str, self.brokers)])
        what = f"brokers {names} have replicas" if len(self.brokers) > 1 else f"broker {names} has a replica"
        if not self.in_sync:
            return f"{what}, not in sync"
        if self.in_sync == self.brokers:
            return f"{what}, in sync"
        return f"{what} (in sync: {', '.join(map(str, self.in_sync))})"


def other_replicas(
    metadata: MetadataImage | None, topic: str, partition: int, node: int | None
) -> OtherReplicas | None:
    """Return the other replicas of a partition of the broker `node`; None if the metadata does not assign it to the
    broker, or there is none."""
    described = metadata.topics.get(topic) if metadata is not None else None
    info = described.partitions.get(partition) if described is not None else None
    if info is None or node not in info.replicas:
        return None
    others = tuple(replica for replica in info.replicas if replica != node)
    may_lead = node in (info.leader, *info.isr, *info.eligibleLeaderReplicas)
    return OtherReplicas(others, tuple(replica for replica in others if replica in info.isr), may_lead)


def replica_facts(others: OtherReplicas | None) -> dict[str, bool | None]:
    """Return what the metadata shows of the facts on which actions depend (problems/facts.toml)."""
    is_only = None if others is None else not others.brokers
    may_lead = (others is not None and others.may_lead) or None  # it may have become so since
    return {"onlyReplica": is_only, "intactElsewhere": False if is_only else None, "mayLead": may_lead}


def who_has_it(others: OtherReplicas | None) -> str:
    """Return who may have what is lost on this broker, as the end of a sentence."""
    return "another replica may have it" if others is None else others.text
