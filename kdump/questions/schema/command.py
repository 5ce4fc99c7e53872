"""Show the fields of a layout or message: type, position, bits, meaning, versions."""

from __future__ import annotations

from dataclasses import dataclass

import click

from kdump.command_line.completion import one_of
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.typed_options import takes
from kdump.format.structs import NamedStruct, UnknownStruct, find, structs
from kdump.query import CommandOptions, added, argument, option
from kdump.questions.schema.answer import FieldAnswer, StructAnswer, schema_answers, struct_answer, versions_text
from kdump.render.stdout import Output

EXAMPLES = """
\b
Examples:
  kdump schema
  kdump schema BatchHeader
  kdump schema OffsetCommitValue --version 3
  kdump schema --json PartitionRecord | jq -r 'select(.type=="structField") | .name'

\b
Exit status: 0 on success, 2 for a usage error, or if there is no structure of that name.
"""


@dataclass(frozen=True)
class SchemaOptions(CommandOptions):
    """The options of the command."""

    name: str | None = argument(
        metavar="[STRUCT]", required=False, shell_complete=one_of(lambda: [struct.name for struct in structs()])
    )
    version: int | None = option("--version", type=int, metavar="N", help="Show this version of a message.")
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: a struct, then its fields.", columns=CSV_COLUMNS_HELP, full="", zone=False
        )
    )


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("disk", 4), mounts=False)
@takes(SchemaOptions)
def command(options: SchemaOptions) -> None:
    """Show the fields of a structure: type, position, size, bits and meaning, and for Kafka's messages the versions
    that have each field. Without a name, list all structures. A name may be in upper or lower case, and may be
    shortened to a part that no other name contains."""
    output = options.output.output(headline=False)
    if options.name is None:
        if options.version is not None:
            raise click.UsageError("--version needs the name of a message")
        _list(options, output)
    else:
        try:
            struct = find(options.name)
        except UnknownStruct as error:
            raise click.UsageError(str(error)) from None
        _refuse_version(struct, options.version)
        _show(options, output, struct)
    output.flush()


def _list(options: SchemaOptions, output: Output) -> None:
    from kdump.questions.schema.report import StructList

    sink = options.output.sink(
        output, lambda: StructList(output), (StructAnswer,), objects=lambda struct: [struct_answer(struct)], report=True
    )
    for struct in structs():
        sink.add(struct)
    sink.end()


def _show(options: SchemaOptions, output: Output, struct: NamedStruct) -> None:
    from kdump.questions.schema.report import StructReport

    sink = options.output.sink(
        output,
        lambda: StructReport(output, options.version),
        (FieldAnswer,),
        objects=lambda struct: schema_answers(struct, options.version),
        report=True,
    )
    sink.add(struct)
    sink.end()


def _refuse_version(struct: NamedStruct, version: int | None) -> None:
    if version is None:
        return
    if struct.schema is None:
        raise click.UsageError(f"{struct.name} is a layout and has no versions")
    if not struct.schema.valid.hold(version):
        raise click.UsageError(f"{struct.name} has only versions {versions_text(struct.schema.valid)}")
