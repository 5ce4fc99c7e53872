"""`kdump producers`: producers, their history, and the state that a broker would load at startup."""

from __future__ import annotations

from typing import Any

import click

from kdump.answer import answer_object
from kdump.commands.files import complain, output_for
from kdump.commands.params import duration, limit_options, read_once
from kdump.commands.state_options import Teller, carry_out, clock, column_names, shown
from kdump.commands.topics import SelectedProducers, matcher, topic_option
from kdump.commands.transactions import NOW_HELP, is_untold, tell_untold
from kdump.forensics.answers import Note, Producer, ProducerEvent
from kdump.forensics.places import PartitionInput
from kdump.forensics.producers import STATES, ProducersQuery, producers
from kdump.format.counted import many
from kdump.log.region import Limits
from kdump.render.forensic_objects import answer_line
from kdump.render.output import Output
from kdump.render.producer_report import ProducerReport
from kdump.render.progress import Progress
from kdump.render.state_tables import StateTables, style

EXAMPLES = """
\b
Examples:
  kdump producers /var/lib/kafka/payments-0
  kdump producers /var/lib/kafka --broken
  kdump producers /var/lib/kafka/payments-0 --producer-id 11 --history
  kdump producers /var/lib/kafka --state live --json | jq -r .producerId

\b
Exit status: 0 on success, 2 for a usage error, or if a path could not be read (the others are shown).
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--list", "listing", is_flag=True, help="Show one row per producer.  [log directory: one row per partition]"
)
@click.option("--history", is_flag=True, help="Show events in order: new epochs, gaps, duplicates, fencing, markers.")
@click.option("--broken", is_flag=True, help="Show only producers with a sequence or epoch error.")
@click.option(
    "--state", "states", type=click.Choice(STATES), multiple=True, help="Show only producers in this state; repeatable."
)
@topic_option("Read only partitions of these topics")
@click.option("--producer-id", "producer_ids", type=int, multiple=True, help="Show only this producer; repeatable.")
@click.option(
    "--transactional-id", "names", metavar="ID", multiple=True, help="Show only producers with this ID; repeatable."
)
@click.option("--expiration", default="1d", metavar="TIME", help="Assume this producer.id.expiration.ms.  [1d]")
@click.option("--now", metavar="TIME", help=NOW_HELP)
@shown
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Show the producers in partitions: what each wrote, in which epochs and sequences, where these have errors, and
    the producer state that a broker would load at startup, compared with the .snapshot files. A path is a segment, a
    partition directory, a log directory, or a parent directory. Nothing is written."""
    if options["history"] and (options["broken"] or options["states"]):
        raise click.UsageError("--history cannot be combined with --broken or --state")
    read_once(paths)
    output = output_for(options)
    carry_out(_Run(options, output), paths, output)


class _Run:
    """One run of the command."""

    def __init__(self, options: dict[str, Any], output: Output) -> None:
        self.options = options
        self.output = output
        self.teller = Teller(output, options["as_json"])
        self.names = column_names(options["columns"], options["as_json"])
        self.tables = StateTables(output, options["zone"], self.names, options["full"])
        self.wanted = SelectedProducers(options["producer_ids"], options["names"])
        self.question = ProducersQuery(
            now=clock(options["now"], options["zone"]),
            expiration=duration(options["expiration"], "--expiration"),
            topic=matcher(options["topics"]),
            states=frozenset(options["states"] or STATES),
            producer_ids=frozenset(options["producer_ids"]),
            transactional_ids=frozenset(options["names"]),
            broken=options["broken"],
            events=options["history"],
            limits=Limits(options["max_batch_size"], options["max_decompressed_size"]),
            on_producer=self.wanted.add,
        )

    def run(self, paths: tuple[str, ...]) -> None:
        report = ProducerReport(self.output, self.tables, self.question.expiration)
        asked = ("listing", "history", "broken", "states", "producer_ids", "names")
        report.lists = any(self.options[name] for name in asked)
        row = ProducerEvent if self.options["history"] else Producer
        table = (
            None if self.names is None else self.tables.open("producerEvent" if row is ProducerEvent else "producer")
        )
        seen = untold = 0
        waits = not (self.options["as_json"] or self.options["history"])
        with Progress("producers", self.output, always=waits) as progress:

            def started(place: PartitionInput) -> None:
                nonlocal seen
                seen += 1
                report.lists = report.lists or (seen == 1 and place.was_named)

            refuse = self.teller.refuse
            for answer in producers(
                paths, self.question, refused=refuse, met=progress.more, started=started, total=progress.expect
            ):
                if isinstance(answer, Note):
                    self.teller.note(answer.source, answer.message)
                elif row is ProducerEvent and isinstance(answer, Producer):
                    continue
                elif self.options["as_json"]:
                    self.output.line(answer_line(answer))
                elif table is None:
                    report.add(answer)
                elif isinstance(answer, row):
                    value = answer_object(answer)
                    table.add(value, style(value))
                else:
                    untold += is_untold(answer)
        report.finish()
        if table is not None:
            table.flush()
            tell_untold(untold)
        elif self.options["as_json"] or not seen or self.teller.failed or self.wanted.is_unmatched:
            return
        elif not report.shown:
            what = "no producer matches" if report.partitions else "no idempotent producer"
            complain(f"{what} in {many(seen, 'partition')}")
