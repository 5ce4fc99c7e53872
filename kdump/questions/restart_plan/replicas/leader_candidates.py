"""Which replicas of a partition the controllers may elect as its leader, once brokers have started.

Source: PartitionChangeBuilder.electLeader, ReplicationControlManager.handleBrokerShutdown,
ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic (4.3.1); KIP-966 for eligible leader replicas."""

from __future__ import annotations

from typing import NamedTuple

from kdump.format.numbers import parse_int
from kdump.state.effective_config import effective
from kdump.state.metadata_image import MetadataImage, PartitionRegistration

CURRENT, ISR, ELR, LAST_KNOWN, UNCLEAN = "current", "isr", "elr", "lastKnownLeader", "unclean"
"""Why a replica is elected: it leads, and runs; it is in sync; it is an eligible leader replica and nothing is in sync;
it led last and nothing else is left (balanced recovery, KIP-966); by an unclean election."""

ELR_FEATURE = "eligible.leader.replicas.version"


class ElectionRules(NamedTuple):
    """What decides elections of a topic: its min.insync.replicas, whether unclean elections are enabled, and whether
    the cluster has eligible leader replicas."""

    minInSyncReplicas: int
    unclean: bool
    has_elr: bool


def election_rules(metadata: MetadataImage, topic: str) -> ElectionRules:
    """Return the rules, as far as the metadata states them: the controllers' server.properties may have others."""
    least = parse_int(effective(metadata, topic, "min.insync.replicas", None))
    unclean = (effective(metadata, topic, "unclean.leader.election.enable", None) or "").lower() == "true"
    return ElectionRules(least or 1, unclean, metadata.features.get(ELR_FEATURE, 0) > 0)


class Candidates(NamedTuple):
    """The brokers that the controllers may elect, each with the reason. `by_order`: the first of them that starts
    leads. Otherwise it is the one that the controllers fence last, after all have failed: they remove the others from
    the ISR, in an order that no file shows."""

    reasons: dict[int, str]
    by_order: bool


def candidates(
    partition: PartitionRegistration, rules: ElectionRules, down: set[int], unclean_shutdowns: set[int]
) -> Candidates:
    """Return who may lead. `down`: brokers that are to be started; a leader that is not among them keeps leading.
    `unclean_shutdowns`: those of them that were not shut down cleanly, which are removed from ISR and ELR when they
    register, if there are eligible leader replicas."""
    if partition.leader >= 0 and partition.leader not in down:
        return Candidates({partition.leader: CURRENT}, by_order=True)
    gone = unclean_shutdowns if rules.has_elr else set()
    reasons = {broker: ISR for broker in partition.isr if broker not in gone}
    # With ELR, a fenced replica stays eligible if fewer than min.insync.replicas are left in sync; without, the last
    # one in sync stays in the ISR alone.
    is_certain = len(reasons) < 2
    if rules.has_elr:
        reasons |= {broker: ELR for broker in partition.eligibleLeaderReplicas if broker not in gone}
        is_certain = len(partition.isr) <= rules.minInSyncReplicas
        if not reasons:
            last = partition.isr or partition.eligibleLeaderReplicas
            last = partition.lastKnownElr if len(partition.lastKnownElr) == 1 else last
            reasons, is_certain = dict.fromkeys(last, LAST_KNOWN), len(last) < 2
    by_order = rules.unclean or is_certain or len(reasons) < 2
    if rules.unclean:
        for broker in partition.replicas:
            reasons.setdefault(broker, UNCLEAN)
    return Candidates(reasons, by_order)
