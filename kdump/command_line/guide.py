"""What people ask, and the command that answers it: `kdump help questions`, and the table in docs/index.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdump.index import PLACES

ELSEWHERE = "Where, and with what?"
"""Title of the questions that no command of kdump answers."""


class Asked(NamedTuple):
    """A question. `command`: what to type; `page`: in docs/, without .md, perhaps with an anchor; `more`: what else the
    table in docs/index.md says, in Markdown."""

    question: str
    command: str
    page: str
    more: str = ""

    @property
    def name(self) -> str:
        """The name of the command; that of another program for one that is not kdump's."""
        program, name, *_ = self.command.split()
        return name if program == "kdump" else program


QUESTIONS = (
    Asked("It is an incident: what is wrong with this disk, and what do I do first?", "kdump doctor DIR", "doctor"),
    Asked("What is on this disk, and which cluster and node does it belong to?", "kdump ls DIR", "ls"),
    Asked(
        "Is it intact? What is damaged, and what is the impact?",
        "kdump verify DIR",
        "verify",
        ", and [every finding](findings.md)",
    ),
    Asked(
        "The broker does not start: because of which file? What will it do at the next start, and what will I lose?",
        "kdump restart-plan DIR",
        "restart-plan",
    ),
    Asked(
        "Several machines went down: which one do I start first?",
        "kdump restart-plan DIR DIR DIR",
        "restart-plan#several-brokers",
        ": it states the order of starts that loses least",
    ),
    Asked(
        "One of a broker's disks is lost: which partitions were on it?",
        "kdump verify DIR",
        "verify",
        ": the other disks, which lack them",
    ),
    Asked(
        "Does an older release start on this disk (downgrade)?",
        "kdump restart-plan DIR --kafka-version 3.9",
        "incidents/downgrade",
    ),
    Asked(
        "This disk was off for weeks: does the next start delete old messages?",
        "kdump restart-plan DIR --properties FILE",
        "restart-plan",
        "; [`kdump retention DIR`](retention.md) states when each segment is due",
    ),
    Asked(
        "The broker recovers its logs: how long does that take, and is it moving?",
        "kdump restart-plan DIR --estimate",
        "restart-plan#how-long-recovery-takes-and-whether-it-moves",
        ", `--follow`",
    ),
    Asked(
        "What does this message in the log of a broker or client mean, and what do I do?",
        "kdump explain LOG --disk DIR",
        "explain",
    ),
    Asked("Which records are in this segment?", "kdump inspect FILE --records", "inspect", "; add `--json` for jq"),
    Asked(
        "Which messages came between two and three o'clock?",
        "kdump inspect DIR --topic T --time 2026-11-28T14:00..2026-11-28T15:00 --records",
        "inspect#selecting-batches-and-records",
    ),
    Asked(
        "Where is the message with this key, or for this order?",
        "kdump find \"key == 'K'\" DIR",
        "find",
        "; by a field of its value, a header, or text anywhere in it",
    ),
    Asked(
        "How many messages are in this topic, and how many of them do consumers receive?",
        "kdump stats DIR --topic T",
        "stats#how-many-messages-are-in-this-topic",
    ),
    Asked(
        "How many messages came per hour, or from each key or producer?",
        "kdump stats DIR --topic T --by hour",
        "stats#counts-by-time-key-or-producer",
    ),
    Asked(
        "Is a person's data gone from these disks? How do I put that in writing?",
        "kdump find \"'K' in any\" DIR --report FILE",
        "incidents/key-is-gone",
    ),
    Asked(
        "Was a message with this key written twice, and by which producers?",
        "kdump inspect DIR --topic T --key K",
        "inspect#selecting-batches-and-records",
        " shows producer, epoch and sequences of each batch; then [`kdump producers`](producers.md)",
    ),
    Asked(
        "What is in this one message that no consumer can read?",
        "kdump inspect DIR/TOPIC-PARTITION --offset N --hex",
        "incidents/undecodable-record",
    ),
    Asked(
        "What is in this .index, .timeindex, .snapshot or checkpoint?",
        "kdump inspect FILE",
        "inspect#indexes-snapshots-and-other-files",
    ),
    Asked(
        "What do these bytes mean?",
        "kdump inspect FILE --hex --offset N",
        "inspect#annotated-bytes",
        " annotates each field; see also [the format](format.md)",
    ),
    Asked("I do not know yet what I am looking for.", "kdump browse DIR", "browse"),
    Asked(
        "Why is a read_committed consumer stuck? Which transaction is hanging?",
        "kdump transactions DIR",
        "transactions",
    ),
    Asked("Which producer wrote this? Is a batch missing, or there twice?", "kdump producers DIR", "producers"),
    Asked(
        "Why is this segment still there, also with tiered storage? Why is it not compacted?",
        "kdump retention DIR",
        "retention",
    ),
    Asked(
        "The disk is full: what may be deleted, and in which order?",
        "kdump space DIR",
        "space",
        ", [the disk is full, now](incidents/disk-full-now.md)",
    ),
    Asked(
        "What is the lag of this consumer group? What had it committed at three o'clock?",
        "kdump groups DIR --as-of …",
        "groups",
    ),
    Asked("A group is one message behind forever: is anything unread?", "kdump groups DIR --group G", "groups"),
    Asked(
        "A group reads everything again: when were its offsets reset?",
        "kdump groups DIR --group G --history",
        "incidents/offsets-reset",
    ),
    Asked(
        "The cluster is lost: where did its consumers stand, to set them in the new one?",
        "kdump groups DIR --format reset-file",
        "groups",
        ", for `kafka-consumer-groups.sh --from-file`; `--offsets` for people",
    ),
    Asked(
        "What did the cluster look like, and when was this topic changed, deleted or created?",
        "kdump cluster DIR --history",
        "cluster",
    ),
    Asked("Which topics, configs, ACLs and users did the cluster have?", "kdump cluster DIR --show all", "cluster"),
    Asked(
        "Tiered storage: what must the bucket have, and what does it have?",
        "kdump verify DIR --remote s3://BUCKET/PREFIX --quick",
        "remote",
    ),
    Asked(
        "Tiered storage: which segments are in the bucket?",
        "kdump ls s3://BUCKET/PREFIX",
        "incidents/missing-remote-segment",
    ),
    Asked(
        "The schema registry lost its topic, or no one knows this schema ID: which schemas are on the disk?",
        "kdump registry DIR",
        "registry",
    ),
    Asked(
        "Which connector wrote this, and where would it continue? Where would a group continue in the other cluster?",
        "kdump connect DIR",
        "connect",
    ),
    Asked("Do two replicas, or copies, have the same records? Where do they diverge?", "kdump diff A B", "diff"),
    Asked(
        "Does the mirror in another cluster lack something?",
        "kdump inspect DIR --topic T --records --json --redact --hash-key FILE",
        "incidents/compare-with-mirror",
        " on both sides, and compare the lists",
    ),
    Asked("Why is this topic so large? Which keys and producers write the most?", "kdump stats DIR", "stats"),
    Asked(
        "One topic into pandas, DuckDB, a spreadsheet or a database?",
        "kdump export DIR --topic T --out FILE.parquet",
        "notebook",
        "; CSV: [`kdump inspect DIR --topic T --records --format csv`](inspect.md#json-and-csv)",
    ),
    Asked("A partition is damaged: what can be salvaged?", "kdump salvage DIR --out NEW", "salvage"),
    Asked(
        "A topic was deleted by mistake: how do I get its messages out?",
        "kdump salvage TOPIC-0.ID-delete --out NEW",
        "incidents/deleted-topic",
    ),
    Asked(
        "How do I get the records on this disk, up to a time or without some, into a running cluster?",
        "kdump restore DIR --to HOST:PORT",
        "restore",
    ),
    Asked(
        "How do I set a topic back to a point in time, or take a person's records out of it?",
        "kdump salvage DIR/TOPIC-0 --until TIME --without EXPR --out NEW",
        "salvage#up-to-a-point-and-without-some-records",
    ),
    Asked(
        "A controller halts at every start, or the controllers' disks are lost: how does the cluster come back?",
        "kdump rescue DIR… --dry-run",
        "rescue",
    ),
    Asked("The indexes are damaged: how do I rebuild them?", "kdump reindex DIR --out NEW", "reindex"),
    Asked("The files are gone, but I have a disk image, a core dump or half a backup.", "kdump carve FILE", "carve"),
    Asked("What do I attach to the post-mortem?", "kdump report DIR --out FILE", "report", ": one page with charts"),
    Asked(
        "The disk is on another host: what do I send to whoever examines it?",
        "kdump bundle DIR --out NEW",
        "bundle",
        ": a small copy without the records",
    ),
    Asked(
        "I want to query a topic with SQL or in a notebook, without a JVM.",
        "kdump export DIR --topic T --out NEW.parquet",
        "notebook",
        ", or `kdump.records(DIR)` in Python",
    ),
    Asked(
        "I have the disks of a hundred brokers: what is damaged across the fleet?",
        "kdump scan 'DIR/*' --out NEW",
        "spark",
        ", `kdump query`, or the Spark data source",
    ),
    Asked(
        "My scripts parse the output of kafka-dump-log.",
        "kdump dump-log --files FILE",
        "dump-log",
        ": the same output, byte for byte",
    ),
    Asked(
        "What fields does this structure have?",
        "kdump schema NAME",
        "schema",
        ", [the format](format.md), [Kafka's messages](messages.md)",
    ),
    Asked(
        "The broker runs in Kubernetes.",
        "kubectl debug POD --image=IMAGE --target=kafka -- kdump doctor",
        "kubernetes",
        ": from a pod's name to an answer",
    ),
    Asked(
        "The broker has no Python and no network access.",
        "make pex; scp dist/kdump-linux-x86_64 BROKER:kdump",
        "carry",
        ": a single file to copy there",
    ),
    Asked(
        "My brokers run an older release: what does that change?",
        "kdump verify DIR --kafka-version 3.6",
        "kafka-releases",
        ", and the same option of others",
    ),
    Asked("I want to call this from Python.", "import kdump", "api"),
)


def by_section() -> Iterator[tuple[str, list[Asked]]]:
    """Yield the questions below the titles of `kdump --help`, in its order."""
    title_of = {name: title for name, (_, title, _) in PLACES.items()}
    for title in (*dict.fromkeys(title_of.values()), ELSEWHERE):
        yield title, [asked for asked in QUESTIONS if title_of.get(asked.name, ELSEWHERE) == title]


def questions_page() -> str:
    """Return the questions with their commands as text."""
    lines: list[str] = []
    for title, questions in by_section():
        lines += [*([""] if lines else []), title]
        for asked in questions:
            lines += [f"  {asked.question}", f"    {asked.command}"]
    return "\n".join(lines)
