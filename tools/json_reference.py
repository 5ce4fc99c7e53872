"""Prints docs/json.md: every key of every JSON object, from the declarations that produce them."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby, islice

from kdump.all_answers import TYPES
from kdump.answer import EPOCH_MS, FILE_BYTE, Key
from tools.text_columns import WIDTH, block, columns

HEAD = """# The JSON objects

`--json` writes one object per line (JSON Lines), in UTF-8, while it reads. Every object has a `type`; the lists below
have all other keys of each type, in the order in which they are written.

- `inspect --json` writes a `batch` for each matching batch, or v0 or v1 message; `inspect --json --records` writes a
  `record` for each record, and no `batch`. Bytes that belong to no batch are a `region` in their place. Problems in a
  batch are `finding` objects: a checksum that does not match comes before the records of its batch, a decoding error
  after the records that were decoded.
- Names are those of the specification. A v0 or v1 message is a `batch`, too, with null for fields that its format does
  not have.
- Bytes (`key`, `value`, and those of headers) are lossless: text if they are valid UTF-8, otherwise base64, with the
  value `"base64"` in `keyEncoding` or `valueEncoding` next to it.
- `keyDecoded` and `valueDecoded` contain what a decoder returns, in addition to the bytes: see
  [decoders.md](decoders.md).
- A key without a type is a number (of what is named, or in the unit after the name), or a boolean if it is described
  as *whether*; *time* is in epoch ms, and *byte* a position in the file that the object names. One with `?` may be
  null: if there is none, or if it is unknown, unless stated otherwise. One with `*` is absent if it has no value.
- Control characters are escaped, including U+007F to U+009F. A key never changes its meaning; new keys may be added.

## Several paths

The order of paths on the command line, and how they are spelled, change no fact. What does change:

| what | with the order or spelling of the paths |
| --- | --- |
| paths, in keys and in texts | begin as the path was given |
| lists of partitions, next commands, numbers of log directories in a bundle | are in the order of the paths |
| `mostAt`, `newestAt` and `oldestAt` of `stats` | of equal values, are the place of the first |

## CSV

`--format csv` writes the objects of one type as CSV, for spreadsheets and databases: a header with the names of the
keys, then one line per object, with the values that `--json` writes. `--columns` selects keys, and orders them.

- null and absent keys are empty; an empty text is `""`. Booleans, numbers, objects and arrays are JSON. Text is written
  as it is, control characters included; on a terminal they are escaped.
- Lines end with LF. Values with commas, quotes or line breaks are in double quotes, in which `""` is a quote.
- Findings, bytes without a batch and notes have no row. They are printed or counted on standard error, and the exit
  status is the same as with `--json`.

| command | rows |
| --- | --- |
"""
CSV: dict[str, tuple[str, ...]] = {
    "doctor": ("doctorItem",),
    "ls": ("partitionLog",),
    "ls --by topic": ("topicLogs",),
    "ls --segments": ("logSegment",),
    "inspect": ("batch",),
    "inspect --records": ("record",),
    "inspect --count": ("recordCount",),
    "schema": ("struct",),
    "schema STRUCT": ("structField",),
    "verify": ("finding",),
    "verify --list": ("code",),
    "stats": ("stats",),
    "stats --by hour": ("periodCount",),
    "stats --by key": ("keyCount",),
    "stats --by producer": ("producerCount",),
    "diff": ("diff",),
    "groups": ("group",),
    "groups --offsets": ("groupOffset", "groupShare"),
    "groups --members": ("groupMember",),
    "groups --history": ("change",),
    "registry": ("schemaVersion",),
    "registry --usage": ("schemaUsage",),
    "registry --history": ("change",),
    "connect": ("connector",),
    "connect --show tasks": ("connectorTask",),
    "connect --show offsets": ("connectorOffset",),
    "connect --show checkpoints": ("mirrorCheckpoint",),
    "connect --history": ("change",),
    "cluster --show topics": ("clusterTopic",),
    "cluster --history": ("change",),
    "transactions": ("transaction",),
    "transactions --coordinator": ("transactionCoordinator",),
    "producers": ("producer",),
    "producers --history": ("producerEvent",),
    "retention": ("retention",),
    "retention --list": ("retentionSegment",),
    "retention --holds": ("retentionHold",),
    "space": ("spaceStep",),
    "restart-plan": ("restartPartition",),
    "explain": ("explanation",),
    "explain --list": ("logMessage",),
    "rescue": ("rescueCopy",),
    "salvage": ("salvage",),
    "bundle": ("bundle",),
    "reindex": ("reindex",),
    "find": ("match",),
    "carve": ("batch",),
    "carve --runs": ("run",),
}
"""Types of the rows of CSV, by command; tests compare them with what the commands write."""
CSV_NOTES = """
For a partition directory, `ls` has `logSegment` rows; for an index, a snapshot or another file without batches,
`inspect` has rows of its entries. If rows of both types `groupOffset` and `groupShare` are possible, the first column
is `type`. Where a command shows several tables, choose one: `cluster --show PART`, and `groups --offsets` or
`--members` together with `--group`. `query` writes the columns of the query.
"""


SHARED, LONG = 3, 8
"""A key that so many types have with the same meaning is described once, and one of two types if the description has so
many words; of several meanings, the most frequent."""
AGAIN = 7
"""Adjacent keys with so many words that an earlier type has, too, are described there alone."""
UNITS = {EPOCH_MS: "time", FILE_BYTE: "byte"}
"""Units that many keys have, as the page has them."""
NONE = re.compile(r"; null(?: if|:) (?:there is none|none is known|it is unknown|unknown|not known|none)$")
"""The end of a meaning that holds for every key that may be null."""
PLAIN = {"number", "of", "the", "it", "i", "whether", "in", "total", "all"}
"""A meaning that has only these words and those of the key is not written."""
Described = tuple[str, str, str, str]
ALL = "shared"
"""Where the keys are described that several types share."""


def described(key: Key) -> Described:
    return (key.name, key.type, key.unit or "", key.meaning or "")


def line(key: Key) -> tuple[str, str, str]:
    """Return the name, the type or unit, and the meaning, as they are written."""
    kind, is_null, _ = key.type.partition(" or null")
    meaning = key.meaning
    if kind == "number":
        kind, meaning = "", meaning.removeprefix("number of ")
    elif kind == "boolean" and meaning.startswith("whether "):
        kind = ""
    kind = ", ".join(filter(None, (kind, UNITS.get(key.unit, key.unit))))
    meaning = NONE.sub("", meaning)
    name = f"{key.name}{'?' if is_null else ''}{'*' if key.optional else ''}"
    return name, kind, meaning if words(meaning) - words(key.name) - PLAIN else ""


def words(text: str) -> set[str]:
    """Return the words of a text, or of a name in camelCase."""
    return {word.removesuffix("s") for word in re.findall(r"[a-z]+", re.sub("([A-Z])", r" \1", text).lower())}


def table(keys: Iterable[Key], places: Mapping[Described, str]) -> str:
    """Return the keys of a type. Adjacent keys that are described elsewhere, in `places`, are in one line."""
    groups = list[tuple[str, list[Key]]]()
    for place, adjacent in groupby(keys, lambda key: places.get(described(key), "")):
        there = list(adjacent)
        if place != ALL and sum(len(" ".join(line(key)).split()) for key in there) < AGAIN:
            place = ""
        groups.append((place, there))
    rows = iter(columns([line(key) for place, group in groups if not place for key in group]))
    lines = list[str]()
    for place, group in groups:
        if place:
            listed = ", ".join(f"{key.name}{'*' if key.optional else ''}" for key in group)
            lines += textwrap.wrap(f"{listed}: {place}", WIDTH, subsequent_indent="  ")
        else:
            lines += islice(rows, len(group))
    return block(lines)


def csv_types(command: str, kinds: Collection[str]) -> str:
    """Return the types of the rows of a command, after the options with which it writes them."""
    options = command.partition(" ")[2]
    return (f"`{options}`: " if options else "") + " and ".join(f"`{kind}`" for kind in kinds)


def page() -> str:
    rows = "".join(
        f"| `{name}` | {'; '.join(map(csv_types, commands, kinds))} |\n"
        for name, commands, kinds in (
            (name, *zip(*group)) for name, group in groupby(CSV.items(), lambda item: item[0].split()[0])
        )
    )
    every = {described(key): key for keys in TYPES.values() for key in keys}
    counts = Counter(described(key) for keys in TYPES.values() for key in keys)
    often = [
        key for key, count in counts.most_common() if count >= (SHARED if len(" ".join(key).split()) < LONG else 2)
    ]
    shared = {key[0]: key for key in reversed(often)}.values()
    once = table([every[key]._replace(optional=False) for key in sorted(shared)], {})
    parts = [
        HEAD,
        rows,
        CSV_NOTES,
        "\n## Shared keys\n\nSeveral types have these keys with one meaning: *shared* in the lists below. *As in* ",
        "names an earlier\ntype that has the same keys.\n\n",
        once,
        "\n",
    ]
    places = dict.fromkeys(shared, ALL)
    for name, keys in TYPES.items():
        parts.append(f"\n## {name}\n\n{table(keys, places)}\n")
        for key in keys:
            places.setdefault(described(key), f"as in {name}")
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")
