"""`kdump inspect`: shows batches, records or annotated bytes of segments."""

from __future__ import annotations

import re
from datetime import tzinfo
from typing import Any

import click
from click.core import ParameterSource

from kdump.commands.completion_words import one_of
from kdump.commands.exits import exit_with
from kdump.commands.overview import OverviewOptions, is_log_directory, show_overview
from kdump.commands.params import RangeParam, ZoneParam, limit_options, read_once, time_range
from kdump.commands.show import Show, ShowOptions
from kdump.cores import usual_jobs
from kdump.decode.decoding import FRAMED, DecodeOptions
from kdump.log.kinds import KINDS
from kdump.log.region import Limits
from kdump.log.select import Range, Selection
from kdump.render.template import shows_decoded

AS_HELP = f"Take the files for this, whatever their names: {', '.join(KINDS)}."
DECODER_HELP = (
    "Decode records as offsets, transaction-log, share-group-state, cluster-metadata, remote-log-metadata, or by a "
    "decoder that is installed.  [by the topic's name]"
)
FORMAT_HELP = (
    "What keys are: auto (text, else hex), utf-8, json, hex, base64, int8 to int64, uint8 to uint64, float32, float64, "
    "uuid, boolean, avro or protobuf (as Confluent's clients frame them), or a decoder that is installed."
)
SCHEMA_HELP = (
    "Schema of avro (.avsc) or protobuf (a descriptor set); of the values, or of the keys if only they have one."
)
COMMITTED_HELP = "Only what a read_committed consumer sees: no aborted records, none behind the last stable offset."
FILE = click.Path(exists=True, dir_okay=False)
EXAMPLES = """
\b
Examples:
  kdump inspect 00000000000000000000.log
  kdump inspect payments-0 --records --offset 40..60
  kdump inspect 00000000000000000000.log --json --records | jq -r .key
  kdump inspect 00000000000000000000.log --hex --offset 42
  kdump inspect __consumer_offsets-7 --records --last 20
  kdump inspect 00000000000000000000.log --offset 42 --extract value > poison

\b
Exit status: 0; 1 if no record or batch matches; 2: usage, an offset outside the log, or something could not be read
(the rest was).
"""


def _decoders() -> list[str]:
    from kdump.decode.plugins import plugin_names
    from kdump.decode.topics import KAFKA

    return [*KAFKA, *plugin_names()]


def _formats() -> list[str]:
    from kdump.decode.formats import FORMATS
    from kdump.decode.plugins import plugin_names

    return ["auto", *FORMATS, *FRAMED, *plugin_names()]


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option("--records", is_flag=True, help="Show records, not batches.")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines; short for --format json.")
@click.option("--hex", "as_hex", is_flag=True, help="Annotated hexdump; short for --format hex.")
@click.option("--format", "form", type=click.Choice(["table", "json", "hex"]), help="How to show it.  [table]")
@click.option("-f", "template", metavar="FORMAT", help=r"Records by a format string as in kcat: '%o %k %s\n'.")
@click.option("--extract", type=click.Choice(["key", "value"]), help="The bare bytes of the one record chosen.")
@click.option("-o", "--offset", "offsets", type=RangeParam(), help="Offsets N, A..B, A.. or ..B, both ends included.")
@click.option("--position", "positions", type=RangeParam(), help="Batches at these bytes of the file.")
@click.option("--time", "times", metavar="A..B", help="Record timestamps: ISO-8601, epoch ms, or back from now, -2h.")
@click.option("--producer-id", "producer_ids", type=int, multiple=True, help="Batches of this producer; repeatable.")
@click.option("--key", "keys", multiple=True, help="Records with exactly this key; repeatable.")
@click.option("--key-regex", help="Records whose key has a match (of bytes).")
@click.option("--value-regex", help="Records whose value has a match (of bytes).")
@click.option("--header", "headers", metavar="K[=V]", multiple=True, help="Records with this header; all, if several.")
@click.option("--control", is_flag=True, help="Only control batches.")
@click.option("--transactional", is_flag=True, help="Only transactional batches.")
@click.option("--read-committed", is_flag=True, help=COMMITTED_HELP)
@click.option("-n", "--limit", type=click.IntRange(min=1), help="At most so many rows.")
@click.option("--last", type=click.IntRange(min=1), help="The last so many rows, without reading what is before.")
@click.option("--follow", is_flag=True, help="Go on as the last file grows, as tail -f does.")
@click.option("--columns", metavar="NAME,…", help="Columns of the table, in order, by their JSON names.")
@click.option("--full", is_flag=True, help="Cut nothing short.")
@click.option("--decoder", metavar="NAME", shell_complete=one_of(_decoders, ask=True), help=DECODER_HELP)
@click.option("--no-decode", is_flag=True, help="Do not decode the records of Kafka's own topics.")
@click.option("--key-format", metavar="FORMAT", shell_complete=one_of(_formats, ask=True), help=FORMAT_HELP)
@click.option(
    "--value-format", metavar="FORMAT", shell_complete=one_of(_formats, ask=True), help="What values are: the same."
)
@click.option("--schema", metavar="FILE", type=FILE, help=SCHEMA_HELP)
@click.option("--key-schema", metavar="FILE", type=FILE, help="The same for keys, where values have one too.")
@click.option("--tz", "zone", type=ZoneParam(), default="UTC", help="Time zone of tables and hexdumps.  [UTC]")
@limit_options
@click.option("--as", "kind", type=click.Choice(list(KINDS)), metavar="KIND", help=AS_HELP)
@click.option("--jobs", type=click.IntRange(min=1), help="Threads that write records as JSON.  [all cores, 4 at most]")
@click.option("--no-index", is_flag=True, help="Do not use .index and .timeindex to find where to begin.")
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Show what is in segments: files, directories of a partition (segments in offset order) or above, - for standard
    input, or URLs. Of a log directory it shows the overview of kdump ls, unless an option asks for what is in the
    files. A gzip'd or zstd'd file is seen through. Bytes that are no batch stand in their place as torn, junk
    or padding. Nothing is written to the disk that is read."""
    _refuse_contradictions(options, paths)
    zone: tzinfo = options["zone"]
    if _wants_overview(paths, options):
        show_overview(paths, OverviewOptions(as_json=_form(options) == "json", full=options["full"], zone=zone))
    selection = selection_of(options, zone)

    def run() -> int:
        show = Show(_show_options(options), selection, _limits(options), paths)
        if options["extract"]:
            show.extract(options["extract"])
        else:
            show.run()
        return show.status

    exit_with(run)


OF_AN_OVERVIEW = {"paths", "as_json", "form", "full", "zone"}
"""Options that apply to the overview of a log directory, too. All others select contents of the files."""


def _wants_overview(paths: tuple[str, ...], options: dict[str, Any]) -> bool:
    """Return True if all paths are log directories, and no option selects contents of their files."""
    context = click.get_current_context()
    given = {name for name in options if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    return given <= OF_AN_OVERVIEW and _form(options) in ("table", "json") and all(map(is_log_directory, paths))


def _form(options: dict[str, Any]) -> str:
    if options["template"] is not None:
        return "template"
    return "json" if options["as_json"] else "hex" if options["as_hex"] else options["form"] or "table"


def _refuse_contradictions(options: dict[str, Any], paths: tuple[str, ...]) -> None:
    chosen = {name for name in ("as_json", "as_hex", "form", "template", "extract") if options[name]}
    same = {("as_json", "json"), ("as_hex", "hex")}
    if len(chosen) > 1 and not ({*chosen} == {"form", *chosen} and any((c, options["form"]) in same for c in chosen)):
        raise click.UsageError("choose one of --json, --hex, --format, -f and --extract")
    if options["columns"] is not None and _form(options) != "table":
        raise click.UsageError("--columns is for tables")
    if options["limit"] and options["last"]:
        raise click.UsageError("choose one of --limit and --last")
    if options["extract"] and (options["last"] or options["columns"] is not None):
        raise click.UsageError("--extract takes one record, and neither --last nor --columns")
    if options["follow"] and (options["extract"] or options["limit"]):
        raise click.UsageError("--follow does not end, so it goes with neither --extract nor --limit")
    if options["read_committed"] and options["follow"]:
        raise click.UsageError("--follow goes without --read-committed: what comes later decides what is committed")
    if options["read_committed"] and options["control"]:
        raise click.UsageError("choose one of --control and --read-committed: consumers see no control records")
    if options["follow"] and paths[-1] == "-":
        raise click.UsageError("--follow needs a file: standard input is read to its end anyway")
    read_once(paths)
    _refuse_idle_decoders(options)


def _refuse_idle_decoders(options: dict[str, Any]) -> None:
    """Raise UsageError for decoders of something that is not shown, and for schemas that are not used."""
    given = [f"--{name.replace('_', '-')}" for name in ("decoder", "key_format", "value_format") if options[name]]
    if given and options["extract"]:
        raise click.UsageError(f"--extract writes the bytes as they are: it goes without {given[0]}")
    if given and not options["records"] and _form(options) not in ("template", "hex"):
        raise click.UsageError(f"{given[0]} is for records: add --records")
    if given and options["template"] is not None and not shows_decoded(options["template"]):
        raise click.UsageError(f"{given[0]} has nothing to show: the format string has neither %d (key) nor %D (value)")
    if options["decoder"] and options["no_decode"]:
        raise click.UsageError("choose one of --decoder and --no-decode")
    uses = [part for part in ("key", "value") if options[f"{part}_format"] in FRAMED]
    if options["schema"] and not uses:
        raise click.UsageError("--schema is for --key-format or --value-format avro or protobuf")
    if options["key_schema"] and "key" not in uses:
        raise click.UsageError("--key-schema is for --key-format avro or protobuf")


def _decode_options(options: dict[str, Any]) -> DecodeOptions:
    value_has_schema = options["value_format"] in FRAMED
    return DecodeOptions(
        decoder=options["decoder"],
        by_topic=not options["no_decode"],
        key_format=options["key_format"],
        value_format=options["value_format"],
        key_schema=options["key_schema"] or (None if value_has_schema else options["schema"]),
        value_schema=options["schema"] if value_has_schema else None,
    )


def selection_of(options: dict[str, Any], zone: tzinfo) -> Selection:
    """Return the selection that the options describe. Raises click.UsageError."""
    times: Range | None = time_range(options["times"], zone) if options["times"] is not None else None
    headers = []
    for header in options["headers"]:
        key, equals, value = header.partition("=")
        headers.append((_bytes(key), _bytes(value) if equals else None))
    return Selection(
        offsets=options["offsets"],
        positions=options["positions"],
        times=times,
        producer_ids=frozenset(options["producer_ids"]),
        keys=frozenset(_bytes(key) for key in options["keys"]),
        key_regex=_regex("--key-regex", options["key_regex"]),
        value_regex=_regex("--value-regex", options["value_regex"]),
        headers=tuple(headers),
        control=options["control"],
        transactional=options["transactional"],
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _regex(option: str, text: str | None) -> re.Pattern[bytes] | None:
    if text is None:
        return None
    try:
        return re.compile(_bytes(text), re.DOTALL)
    except re.error as error:
        raise click.UsageError(f"{option}: {error}") from None


def _limits(options: dict[str, Any]) -> Limits:
    return Limits(options["max_batch_size"], options["max_decompressed_size"])


def _show_options(options: dict[str, Any]) -> ShowOptions:
    return ShowOptions(
        form=_form(options),
        records=options["records"] or options["template"] is not None,
        template=options["template"],
        columns=[name.strip() for name in options["columns"].split(",")] if options["columns"] is not None else None,
        full=options["full"],
        zone=options["zone"],
        limit=options["limit"],
        last=options["last"],
        follow=options["follow"],
        window=options["window"],
        use_index=not options["no_index"],
        jobs=options["jobs"] or usual_jobs(),
        kind=options["kind"],
        decode=_decode_options(options),
        read_committed=options["read_committed"],
    )
