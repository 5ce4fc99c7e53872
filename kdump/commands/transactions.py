"""`kdump transactions`: transactions in partitions, and what blocks the last stable offset."""

from __future__ import annotations

from typing import Any

import click

from kdump.answer import answer_object
from kdump.check.catalogue import INFO
from kdump.check.finding import Finding
from kdump.commands.files import complain, output_for
from kdump.commands.overview import is_log_directory
from kdump.commands.params import duration, limit_options, read_once
from kdump.commands.state_options import Teller, carry_out, clock, column_names, shown
from kdump.commands.topics import SelectedProducers, matcher, topic_option
from kdump.forensics.answers import HANGING, OPEN, CoordinatorTransaction, Difference, Note, Transaction
from kdump.forensics.places import PartitionInput
from kdump.forensics.transactions import STATES, TransactionsQuery, transactions
from kdump.format.counted import many
from kdump.log.internal_topics import TRANSACTION_TOPIC
from kdump.log.region import Limits
from kdump.render.forensic_objects import answer_line
from kdump.render.output import Output
from kdump.render.progress import Progress
from kdump.render.state_tables import StateTables, style
from kdump.render.transaction_report import TransactionReport

ASK_FOR_ROWS = ("listing", "only_open", "states", "producer_ids", "names")
"""Options that ask for one row per transaction."""
NOW_HELP = "Compute ages as of this time: ISO-8601, epoch ms, -2h.  [current time]"
EXAMPLES = """
\b
Examples:
  kdump transactions /var/lib/kafka
  kdump transactions /var/lib/kafka/payments-0
  kdump transactions /var/lib/kafka --open --json | jq -r '.abort // empty'
  kdump transactions /var/lib/kafka --coordinator

\b
Exit status: 0 on success, 2 for a usage error, or if a path could not be read (the others are shown).
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--list", "listing", is_flag=True, help="Show one row per transaction.  [log directory: one row per partition]"
)
@click.option("--open", "only_open", is_flag=True, help="Show only transactions that have not ended: open and hanging.")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES),
    multiple=True,
    help="Show only transactions in this state; repeatable.",
)
@topic_option("Read only partitions of these topics")
@click.option("--producer-id", "producer_ids", type=int, multiple=True, help="Show only this producer's; repeatable.")
@click.option(
    "--transactional-id", "names", metavar="ID", multiple=True, help="Show only transactions with this ID; repeatable."
)
@click.option("--coordinator", is_flag=True, help="Show the coordinator's last record for each transactional ID.")
@click.option("--now", metavar="TIME", help=NOW_HELP)
@click.option(
    "--transaction-timeout",
    default="15m",
    metavar="TIME",
    help="Treat transactions open for longer than this as old.  [15m]",
)
@shown
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Show the transactions in partitions: which were committed or aborted, which are open or hanging, and at which
    offset they block read_committed consumers; compared with the .txnindex, and with the transaction coordinators if
    __transaction_state is on the same disks. A path is a segment, a partition directory, a log directory, or a parent
    directory. Nothing is written."""
    if options["only_open"] and options["states"]:
        raise click.UsageError("choose one of --open and --state")
    if options["coordinator"] and (options["listing"] or options["only_open"] or options["states"]):
        raise click.UsageError("--coordinator cannot be combined with --list, --open or --state")
    read_once(paths)
    output = output_for(options)
    run = _Run(options, output)
    carry_out(run, paths, output)


def is_untold(answer: Any) -> bool:
    """Return True if an answer reports a problem, which a table with selected columns cannot show."""
    return isinstance(answer, Difference) or (isinstance(answer, Finding) and answer.severity != INFO)


def tell_untold(count: int) -> None:
    if count:
        complain(f"{many(count, 'finding')} not shown; omit --columns, or use --json, to show all")


class _Run:
    """One run of the command."""

    def __init__(self, options: dict[str, Any], output: Output) -> None:
        self.options = options
        self.output = output
        self.teller = Teller(output, options["as_json"])
        self.names = column_names(options["columns"], options["as_json"])
        self.tables = StateTables(output, options["zone"], self.names, options["full"])
        states = frozenset((OPEN, HANGING)) if options["only_open"] else frozenset(options["states"] or STATES)
        self.wanted = SelectedProducers(options["producer_ids"], options["names"])
        self.question = TransactionsQuery(
            now=clock(options["now"], options["zone"]),
            timeout=duration(options["transaction_timeout"], "--transaction-timeout"),
            topic=matcher(options["topics"]),
            states=states,
            producer_ids=frozenset(options["producer_ids"]),
            transactional_ids=frozenset(options["names"]),
            limits=Limits(options["max_batch_size"], options["max_decompressed_size"]),
            on_producer=self.wanted.add,
        )
        self.seen = self.untold = 0

    def run(self, paths: tuple[str, ...]) -> None:
        coordinators: list[CoordinatorTransaction] = []
        report: TransactionReport | None = None
        flat = self._flat()
        with Progress("transactions", self.output, always=self._waits(paths)) as progress:

            def started(place: PartitionInput) -> None:
                nonlocal report
                self.seen += 1
                if place.was_named and place.partition.topic == TRANSACTION_TOPIC:
                    self.options["coordinator"] = True  # contains only the state of transactions, and none of its own
                if report is None:
                    ledger = self._lists(place)
                    selected = bool(self.options["producer_ids"] or self.options["names"])
                    report = TransactionReport(self.output, self.tables, ledger=ledger, selected=selected)

            refused = self.teller.refuse
            for answer in transactions(
                paths, self.question, refused=refused, met=progress.more, started=started, total=progress.expect
            ):
                if isinstance(answer, Note):
                    self.teller.note(answer.source, answer.message)
                elif self.options["as_json"]:
                    self._json(answer)
                elif isinstance(answer, CoordinatorTransaction):
                    coordinators.append(answer)
                elif self.options["coordinator"]:
                    break
                elif flat is not None:
                    flat(answer)
                elif report is not None:
                    report.add(answer)
        if self.options["as_json"]:
            return
        self._end(report, coordinators, flat is not None)

    def _json(self, answer: Any) -> None:
        if self.options["coordinator"] and not isinstance(answer, CoordinatorTransaction):
            return
        self.output.line(answer_line(answer))

    def _waits(self, paths: tuple[str, ...]) -> bool:
        """Return True if the rows come at the end, one per partition."""
        rows_come = self.options["as_json"] or any(self.options[name] for name in ASK_FOR_ROWS)
        return not rows_come and all(map(is_log_directory, paths))

    def _lists(self, place: PartitionInput) -> bool:
        """Return True if each transaction gets a row: the path is not a directory of several partitions, or an option
        asks for it."""
        return place.was_named or any(self.options[name] for name in ASK_FOR_ROWS)

    def _flat(self) -> Any:
        """Return the function that adds an answer to the single table of --columns, which covers all partitions; None
        without that option."""
        if self.names is None or self.options["coordinator"]:
            return None
        kind = "transaction"
        table = self.tables.open(kind)

        def add(answer: Any) -> None:
            if isinstance(answer, Transaction):
                row = answer_object(answer)
                table.add(row, style(row))
            else:
                self.untold += is_untold(answer)

        self.table = table
        return add

    def _end(self, report: TransactionReport | None, found: list[CoordinatorTransaction], flat: bool) -> None:
        if self.options["coordinator"]:
            if (
                not self.tables.write("transactionCoordinator", map(answer_object, found))
                and not self.wanted.is_unmatched
            ):
                complain("no __transaction_state on these disks, or nothing in it matches")
        elif flat:
            self.table.flush()
            tell_untold(self.untold)
        elif report is not None:
            report.finish()
            if self.teller.failed or self.wanted.is_unmatched:
                return
            if not report.partitions:
                complain(f"no transaction in {many(self.seen, 'partition')}")
            elif not report.shown:
                complain("no transaction matches")
