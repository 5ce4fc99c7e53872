"""What differs between two releases, as Markdown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tools.adopt.bytecode import CHANGED, GONE, NEW, ORDER, Change
from tools.adopt.oracle import Compared

HEADINGS = {
    "features": "Features: lowest and highest level that a node registers, level of a new cluster",
    "levels": "Levels of metadata.version",
    "changed": "Levels that changed the metadata",
    "unstable": "Levels that need unstable.feature.versions.enable",
    "messages": "Versions of messages that can be on a disk",
    "fields": "Fields of these messages",
    "files": "Versions of small files, by class",
    "topicConfigs": "Configs of topics",
    "synonyms": "Configs of a broker that are a topic's defaults, in order of precedence",
    "brokerConfigs": "Configs of brokers",
}
DULL = {
    *("dup", "pop", "aload", "iload", "lload", "astore", "istore", "lstore", "goto", "areturn", "ireturn"),
    *("lreturn", "return"),
}
"""Instructions that say little: they are left out of a method's summary."""
WORDS = (
    (re.compile(r"invoke\w+ (Interface)?Method "), "call "),
    (re.compile(r"get(static|field) Field "), "read "),
    (re.compile(r"put(static|field) Field "), "write "),
    (re.compile(r"invokedynamic InvokeDynamic:"), "lambda "),
)
"""What is told instead of the beginning of an instruction."""
MOST = 8
"""Maximum number of instructions that are told of a method."""


def flat(known: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return what a release knows as texts, by section of the report and name."""
    found: dict[str, dict[str, str]] = {"fields": {}}
    for section, values in known.items():
        if isinstance(values, dict):
            found[section] = {
                name if not isinstance(value, dict) else f"{name}: {inner}": str(text)
                for name, value in values.items()
                for inner, text in (value.items() if isinstance(value, dict) else [("", value)])
            }
        elif isinstance(values, list):
            found[section] = {str(value): "yes" for value in values}
    for package in schemas.values():
        for name, message in package.items():
            found["fields"].update(_fields(name, message["fields"]))
            for struct, fields in message.get("commonStructs", {}).items():
                found["fields"].update(_fields(f"{name}.{struct}", fields))
    return found


def _fields(where: str, fields: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for field in fields:
        name = f"{where}.{field['name']}"
        yield name, ", ".join(f"{key} {value}" for key, value in field.items() if key not in ("name", "fields"))
        yield from _fields(name, field.get("fields", []))


def knowledge(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> Iterator[str]:
    """Yield the sections about what is known."""
    for section, heading in HEADINGS.items():
        old, new = before.get(section, {}), after.get(section, {})
        rows = [(name, old.get(name, "-"), new.get(name, "-")) for name in dict.fromkeys([*old, *new])]
        rows = [row for row in rows if row[1] != row[2]]
        yield f"### {heading}\n"
        yield from table(("name", "before", "now"), rows) if rows else ["nothing new\n"]


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield the lines of a table, and an empty one."""
    for row in (heads := tuple(heads), ["---"] * len(heads), *rows):
        yield "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") or " " for cell in row) + " |"
    yield ""


def bytecode(changes: list[Change]) -> Iterator[str]:
    """Yield the section about classes: those that are new and gone, then the others with their members. A difference
    that several methods have is told once."""
    for what in (NEW, GONE):
        owners = [each.owner for each in changes if not each.member and each.what == what]
        yield f"### Classes that are {what}: {len(owners)}\n"
        yield from (f"- {owner}" for owner in owners)
        yield ""
    alike = defaultdict(list)
    for each in changes:
        if each.member and each.what == CHANGED:
            alike[each.gone, each.new].append(f"{each.owner.rpartition('.')[2]}.{_short(each.member)}")
    often = {key: where for key, where in alike.items() if len(where) > 2}
    yield f"### Differences that several methods have: {len(often)}\n"
    for (gone, new), where in sorted(often.items(), key=lambda item: -len(item[1])):
        yield f"- {len(where)} methods, such as {', '.join(where[:3])}: {_instructions(gone, new)}"
    yield ""
    owned = defaultdict(list)
    for each in changes:
        if (each.gone, each.new) not in often and (each.member or each.what in (CHANGED, ORDER)):
            owned[each.owner].append(each)
    yield f"### Classes that changed otherwise: {len(owned)}\n"
    for owner, own in owned.items():
        yield f"#### {owner}\n"
        for what in (NEW, GONE, ORDER):
            names = [f"`{_short(each.member) or 'declaration'}`" for each in own if each.what == what]
            if names:
                yield f"- {what}: {', '.join(names)}"
        for each in own:
            if each.what == CHANGED:
                yield f"- `{_short(each.member) or 'declaration'}`: {_instructions(each.gone, each.new)}"
        yield ""


def _short(member: str) -> str:
    """Return a declaration without its modifiers and packages."""
    words = re.sub(r"\b(?:[a-z]\w*\.)+(?=\w)", "", member).split()
    return " ".join(word for word in words if word not in ("public", "private", "protected", "final", "static"))


def _instructions(gone: tuple[str, ...], new: tuple[str, ...]) -> str:
    parts = []
    for sign, every in (("−", gone), ("+", new)):
        telling = [each for each in dict.fromkeys(every) if each not in DULL]
        for each in telling[:MOST]:
            for pattern, word in WORDS:
                each = pattern.sub(word, each)
            parts.append(f"{sign} `{each}`")
        if len(telling) > MOST:
            parts.append(f"{sign} {len(telling) - MOST} more")
    return "; ".join(parts) or "moves values otherwise"


def oracle(disk: str, files: int, compared: list[Compared]) -> Iterator[str]:
    """Yield the section about one disk."""
    yield f"### {disk}: {files} files, {len(compared)} differ\n"
    if compared:
        yield from table(("file", "dump-log", "inspect"), compared)


def ways(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the table of what tools.upgrade_trials found of two releases."""
    told = []
    for row in rows:
        nodes = [
            f"{role}: kdump says {row[role]['predicted']}, it {'starts' if row[role]['starts'] else 'ends'}"
            for role in ("controller", "broker")
        ]
        why = [*row.get("features", ()), *(line for role in ("controller", "broker") for line in row[role]["log"][:2])]
        told.append((row["step"], row["startedBy"], "; ".join(nodes), "; ".join(row["differences"]), "; ".join(why)))
    yield from table(("step", "started", "nodes", "differences", "kafka-features, and logs"), told)
