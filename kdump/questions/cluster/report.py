"""Text report of `kdump cluster`: where the metadata comes from, up to which offset, and what is wrong in the
cluster."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from kdump.format.count_text import first_of, plain_count
from kdump.render.escape import printable
from kdump.render.state_tables import HeadedTables
from kdump.render.stdout import Output
from kdump.render.times import iso

Object = dict[str, Any]
LABEL = 12


class ClusterReport(HeadedTables):
    """Writes the summary of a copy of the metadata, then its tables."""

    def add(self, answer: Any) -> None:
        if isinstance(answer, dict) and answer["type"] == "cluster":
            write_summary(self.output, answer, self.tables.zone)
            self.written = True
        else:
            super().add(answer)


def write_summary(output: Output, cluster: Object, zone: tzinfo) -> None:
    """Write the head of the report, one fact per line."""
    paint = output.paint
    for label, value, style in _lines(cluster, zone):
        for number, line in enumerate(output.wrapped(f"{label:<{LABEL}}{printable(value)}", LABEL)):
            head, rest = line[:LABEL], line[LABEL:]
            output.line((head if number else paint(head, "head")) + paint(rest, style))


def _lines(cluster: Object, zone: tzinfo) -> list[tuple[str, str, str]]:
    lines: list[tuple[str, str, str]] = []
    if cluster["newer"]:
        lines.append(("NEWER", first_of(cluster["newer"]), "torn"))
    node = f", on the disk of node {cluster['nodeId']}" if cluster["nodeId"] is not None else ""
    if cluster["clusterId"] is not None:
        lines.append(("cluster", f"{cluster['clusterId']}{node}", ""))
    begun = (
        "from the start of the log"
        if cluster["snapshot"] is None
        else f"from the snapshot at offset {cluster['snapshot']}"
    )
    time = f", {iso(cluster['endTimestamp'], zone)}" if cluster["endTimestamp"] is not None else ""
    if cluster["endOffset"]:
        lines.append(("as of", f"offset {cluster['endOffset'] - 1}{time}, {begun}", ""))
        lines.append(("committed", _committed(cluster), ""))
    else:
        is_bootstrap = cluster["source"].endswith("bootstrap.checkpoint")
        text = (
            "the output of kafka-storage format: the log has not started" if is_bootstrap else "before the first record"
        )
        lines.append(("as of", text, ""))
    if cluster["leaderId"] is not None:
        lines.append(("quorum", f"leader {cluster['leaderId']}, epoch {cluster['leaderEpoch']}", ""))
    if cluster["metadataVersion"] is not None:
        lines.append(("version", f"metadata.version {cluster['metadataVersion']}", ""))
    fenced = f", {cluster['fencedBrokers']} fenced" if cluster["fencedBrokers"] else ""
    lines.append(("brokers", f"{cluster['brokers']}{fenced}", "torn" if fenced else ""))
    wrong = [
        f"{cluster[name]} {word}"
        for name, word in (
            ("offlinePartitions", "offline"),
            ("underReplicatedPartitions", "under-replicated"),
            ("underMinIsrPartitions", "under-min-isr"),
            ("reassigningPartitions", "reassigning"),
        )
        if cluster[name]
    ]
    state = f": {', '.join(wrong)}" if wrong else ", all online and in sync" if cluster["partitions"] else ""
    style = "bad" if cluster["offlinePartitions"] else "torn" if wrong else ""
    lines.append(
        ("topics", f"{cluster['topics']} with {plain_count(cluster['partitions'], 'partition')}{state}", style)
    )
    others = [
        f"{cluster[name]} {word}{'' if cluster[name] == 1 else 's'}"
        for name, word in (
            ("configs", "config"),
            ("quotas", "quota"),
            ("acls", "ACL"),
            ("scramCredentials", "SCRAM credential"),
            ("delegationTokens", "delegation token"),
        )
        if cluster[name]
    ]
    if others:
        lines.append(("also", ", ".join(others), ""))
    return lines


def _committed(cluster: Object) -> str:
    """Describe up to which offset the metadata is committed; its high watermark is not stored on disk."""
    committed, end = cluster["committedOffset"], cluster["endOffset"]
    if committed is None:
        return "unknown: neither a snapshot nor a later leader is here, so the last records may still be undone"
    if committed >= end:
        return "everything"
    return f"everything below offset {committed}, by snapshots and leader epochs; later records may still be undone"
