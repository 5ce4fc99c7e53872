"""Writes the tables of docs/format.md, between its marks, and the whole of docs/messages.md, from the declarations that
kdump's parsers use. A mark is <!-- struct NAME -->, <!-- file KIND --> or <!-- kinds -->, and ends at <!-- end -->."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path

from kdump.format.enum_names import enum_names
from kdump.format.kafka_release import NEWEST
from kdump.format.struct_fields import NOT_GIVEN, StructField, rows
from kdump.format.structs import TEXT_FIELDS, NamedStruct, structs
from kdump.log.file_kinds import KINDS
from kdump.questions.schema.answer import versions_text
from tools.text_columns import block, columns

DOCS = Path(__file__).resolve().parents[1] / "docs"
MARK = re.compile(r"<!-- (struct|file|kinds) ?([\w-]*) -->\n.*?<!-- end -->", re.DOTALL)
HEAD = """# Kafka's messages

Every message of Kafka's protocol that is stored on disk, by the schemas of Kafka NEWEST: records of internal topics,
values of control records, and quorum-state, with its versions and fields. `kdump schema NAME --version N` shows the
fields of one version with their types, in the order of their bytes. [The format](format.md) describes the prefixes of
the messages, and [decoders](decoders.md) how kdump prints them.

*key N*, *value N*: a key of type N, and a value for such a key; before it is its type, or its version, an INT16. Keys
are not flexible (KIP-482); all other messages are in each version, unless stated otherwise.
"""


def table(head: tuple[str, ...], lines: list[list[str]], right: int = 0) -> str:
    """Return a table as `kdump schema` prints it; the first `right` columns are numbers."""
    return block(columns([head, *lines], right)) + "\n"


def layout_table(struct: NamedStruct) -> str:
    """Return a table with the position, size, type, name and meaning of each field, and of its bits."""
    lines = []
    behind = ""
    for row in rows(struct):
        position = str(row.position) if row.position is not None else f"after {behind}" if behind else ""
        name = f"{'  ' * row.depth}{row.name}"
        unit = f" ({row.unit})" if row.unit == "epoch ms" else ""  # the meaning includes other units
        lines.append([position, str(row.size or ""), row.type, name, row.meaning + unit])
        for bits in row.bits:
            last = bits.shift + bits.width - 1
            where = f"bit {bits.shift}" if bits.width == 1 else f"bits {bits.shift}-{last}"
            said = bits.about
            if bits.width > 1:
                values = ", ".join(f"{number} {text}" for number, text in bits.meanings.items())
                said = f"{said}: {values}" if said else values
            lines.append(["", "", where, f"  {bits.name}", said])
        behind = row.name
    size = f"{struct.size} bytes. " if struct.size is not None else ""
    return f"*{struct.name}*: {size}{struct.about} Source: {struct.source}.\n\n" + table(
        ("position", "size", "type", "field", "meaning"), lines, right=2
    )


def message_row(struct: NamedStruct, row: StructField) -> list[str]:
    said = [row.meaning] if row.meaning else []
    known = enum_names(struct.name, row.name)
    if known:
        said.append(", ".join(f"{number} {name}" for number, name in known.items()))
    tag = "" if row.tag is None else str(row.tag) + (f" ({row.tagged})" if row.tagged != row.versions else "")
    default = "" if row.default is NOT_GIVEN else json.dumps(row.default).strip('"')
    name = f"{'  ' * row.depth}{row.name}"
    return [name, row.type, row.versions, row.nullable, tag, default, "; ".join(said)]


def message_table(struct: NamedStruct) -> str:
    """Return a table of the fields of all versions of a message."""
    heads = ("field", "type", "versions", "nullable", "tag", "default", "meaning")
    lines = [message_row(struct, row) for row in rows(struct)]
    if not lines:
        return "No fields.\n"
    kept = [number for number in range(len(heads)) if number < 3 or any(line[number] for line in lines)]
    return table(tuple(heads[number] for number in kept), [[line[number] for number in kept] for line in lines])


SHORT = (
    (re.compile(r"; its version is an INT16 before it|, an INT16 before it"), ""),
    (re.compile(r"\b(key of|value for a key of) type (\d+)"), lambda match: f"*{match[1].split()[0]} {match[2]}*"),
    (re.compile(r"\brecord of apiKey\b"), "apiKey"),
)
"""What many descriptions have, and how it is written here."""


def message(struct: NamedStruct) -> str:
    assert struct.schema is not None
    versions, flexible = versions_text(struct.schema.valid), versions_text(struct.schema.flexible)
    usual = "none" if struct.name.endswith("Key") else f"{struct.schema.valid.lowest}+"
    said = (
        versions
        if flexible == usual
        else f"{versions}, {'not flexible' if flexible == 'none' else f'flexible {flexible}'}"
    )
    text = struct.about
    for pattern, brief in SHORT:
        text = pattern.sub(brief, text)
    about = f": {text[0].upper()}{text[1:]}" if text else ""
    fields = ", ".join(f"`{row.name}`" for row in rows(struct))
    return f"- **{struct.name}** ({said}){about}. {fields or 'No fields'}.\n"


def messages_page() -> str:
    found = [struct for struct in structs() if struct.schema is not None]
    parts = [HEAD.replace("NEWEST", f"{NEWEST.major}.{NEWEST.minor}")]
    for group, members in groupby(found, key=lambda each: each.group):
        parts += [f"## {group}\n", "".join(map(message, members))]
    return "\n".join(parts)


def file_table(kind: str) -> str:
    return table(("name", "type", "meaning"), [[name, said, text] for name, said, text in TEXT_FIELDS[kind]])


def kinds_table() -> str:
    return table(("kind", "file"), [[kind.name, kind.title] for kind in KINDS.values()])


def page(text: str) -> str:
    """Return the text of docs/format.md with its tables replaced."""
    known = {struct.name: struct for struct in structs()}

    def made(match: re.Match[str]) -> str:
        what, name = match[1], match[2]
        mark = f"<!-- {what}{' ' + name if name else ''} -->"
        if what == "kinds":
            inner = kinds_table()
        elif what == "file":
            inner = file_table(name)
        else:
            inner = message_table(known[name]) if known[name].schema else layout_table(known[name])
        return f"{mark}\n\n{inner}\n<!-- end -->"

    return MARK.sub(made, text)


if __name__ == "__main__":
    (DOCS / "messages.md").write_text(messages_page(), encoding="utf-8")
    (DOCS / "format.md").write_text(page((DOCS / "format.md").read_text(encoding="utf-8")), encoding="utf-8")
