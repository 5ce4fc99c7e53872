"""`kdump schema`: shows the layout of a structure, from the declaration that the reader uses."""

from __future__ import annotations

import click

from kdump.commands.completion_words import one_of
from kdump.format.struct_fields import rows
from kdump.format.structs import Named, UnknownStruct, find, structs
from kdump.render import jsonl
from kdump.render.output import Output
from kdump.render.struct_objects import field_object, struct_object, versions_text

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


@click.command(epilog=EXAMPLES)
@click.argument(
    "name", metavar="[STRUCT]", required=False, shell_complete=one_of(lambda: [each.name for each in structs()])
)
@click.option("--version", "version", type=int, metavar="N", help="Show this version of a message.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON Lines: a struct, then its fields.")
def command(name: str | None, version: int | None, as_json: bool) -> None:
    """Show the fields of a structure: type, position, size, bits and meaning, and for Kafka's messages the versions
    that have each field. Without a name, list all structures. A name may be in upper or lower case, and may be
    shortened to a part that no other name contains."""
    output = Output()
    if name is None:
        if version is not None:
            raise click.UsageError("--version needs the name of a message")
        _list(output, as_json)
        return
    try:
        struct = find(name)
    except UnknownStruct as error:
        raise click.UsageError(str(error)) from None
    _refuse_version(struct, version)
    if as_json:
        output.line(jsonl.line(struct_object(struct)))
        for row in rows(struct, version):
            output.line(jsonl.line(field_object(struct, row)))
        output.flush()
        return
    from kdump.render.structs import write_struct

    write_struct(output, struct, rows(struct, version), version)


def _list(output: Output, as_json: bool) -> None:
    if as_json:
        for struct in structs():
            output.line(jsonl.line(struct_object(struct)))
        output.flush()
        return
    from kdump.render.structs import write_list

    write_list(output, structs())


def _refuse_version(struct: Named, version: int | None) -> None:
    if version is None:
        return
    if struct.schema is None:
        raise click.UsageError(f"{struct.name} is a layout and has no versions")
    if not struct.schema.valid.hold(version):
        raise click.UsageError(f"{struct.name} has only versions {versions_text(struct.schema.valid)}")
