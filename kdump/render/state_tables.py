"""Tables of the state's JSON objects: their columns, and the styles of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from typing import Any

from kdump.answer import ANSWERS, Key, Shown, answer_keys, answer_object, answer_type, shown_keys
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink, is_problem, objects_of
from kdump.render.stdout import Output
from kdump.render.table import NAME, PATH, TEXT, VALUE, Column, Table, check_names
from kdump.render.times import iso

Object = dict[str, Any]


ARROW = "→"


def cell_text(key: Key, zone: tzinfo) -> Callable[[Any], str]:
    """Return what formats the values of a key, empty for None. The text contains nothing that could change how a
    terminal shows the rest."""
    if key.unit == "epoch ms":
        return lambda value: "" if value is None else iso(value, zone)
    special = _special(key.name)

    def text(value: Any) -> str:
        if isinstance(value, str):
            return printable(value)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int):
            return str(value)
        return "" if value is None else printable(special(value))

    return text


def plain_text(value: Any) -> str:
    if isinstance(value, list):
        return (",".join if all(isinstance(item, int) for item in value) else ", ".join)(map(plain_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={plain_text(item)}" for name, item in value.items())
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def _endpoint(value: Object) -> str:
    shown = f"{value['name']}://{value['host']}:{value['port']}"
    return shown if value["securityProtocol"] in ("", value["name"]) else f"{shown} ({value['securityProtocol']})"


def _assigned(value: list[Object]) -> str:
    return "; ".join(f"{assigned['topic']} {plain_text(assigned['partitions'])}".rstrip() for assigned in value)


def _features(value: list[Object]) -> str:
    return ", ".join(f"{each['name']} {each['minSupportedVersion']}..{each['maxSupportedVersion']}" for each in value)


def _pending(value: list[Object]) -> str:
    return ", ".join(f"{commit['offset']} by producer {commit['producerId']}" for commit in value)


def _entity(value: list[Object]) -> str:
    return ", ".join(f"{part['type']}={'<default>' if part['name'] is None else part['name']}" for part in value)


def _references(value: list[Object]) -> str:
    return ", ".join(f"{reference.get('subject')} {reference.get('version')}" for reference in value)


def _fields(value: list[Object]) -> str:
    """Changed fields, as in "offset 10 → 20, isr 1,2 → 1"; for something deleted, its last values."""
    if all(field["new"] is None for field in value):
        value = [{**field, "old": None, "new": field["old"]} for field in value]
    return ", ".join(f"{field['name']} {_pair(field['name'], field['old'], field['new'])}" for field in value)


def _pair(name: str, old: Any, new: Any) -> str:
    show = _special(name)
    before, after = (_quoted(side, show) for side in (old, new))
    if old is None:
        return after
    return f"{before} {ARROW} {after}"


def _quoted(value: Any, show: Callable[[Any], str]) -> str:
    if value is None:
        return "none"
    shown = show(value) if isinstance(value, (list, dict)) else plain_text(value)
    return "none" if value == [] else shown or '""'


SPECIAL: dict[str, Callable[[Any], str]] = {
    "endPoints": lambda value: ", ".join(map(_endpoint, value)),
    "endpoints": lambda value: ", ".join(map(_endpoint, value)),
    "assigned": _assigned,
    "revoking": _assigned,
    "target": _assigned,
    "standby": _assigned,
    "warmup": _assigned,
    "features": _features,
    "pending": _pending,
    "entity": _entity,
    "fields": _fields,
    "references": _references,
}
"""Formatters by key name, for values that are not a plain list or number."""


def _special(name: str) -> Callable[[Any], str]:
    """Return the formatter of a key. What Connect and a registry store may have any value under that name."""
    special = SPECIAL.get(name)
    if special is None:
        return plain_text

    def text(value: Any) -> str:
        try:
            return special(value)
        except (AttributeError, KeyError, TypeError):
            return plain_text(value)

    return text


NAMES = (
    *("groupId", "memberId", "instanceId", "topic", "transactionalId", "name", "entity", "resourceName"),
    *("principal", "tokenId", "subject", "subjects", "connector", "group", "partition"),
)
CUT_AS = {
    **dict.fromkeys(NAMES, NAME),
    **dict.fromkeys(("source", "path", "file"), PATH),
    **dict.fromkeys(("message", "remark", "remarks", "doubt"), TEXT),
}
"""How cells are shortened, by key: those that identify what a row is about, and our own sentences."""
BAD = ("offline", "under-min-isr")
BROKEN = ("gap", "duplicate", "fenced", "epochStart")


def style(value: Object) -> str:
    """Return the style of a row."""
    kind = value["type"]
    if kind in ("groupOffset", "groupShare"):
        return "bad" if value["remark"] and value.get("startOffset") != -1 else ""
    if kind == "group":
        return "torn" if value["remarks"] else ""
    if kind == "clusterPartition":
        return "" if not value["state"] else "bad" if any(word in value["state"] for word in BAD) else "torn"
    if kind == "clusterTopic":
        return "bad" if value["offline"] else "torn" if value["underReplicated"] or value["underMinIsr"] else ""
    if kind == "clusterBroker":
        return "" if value["state"] == "active" else "torn"
    for kinds, of_kind in STYLES.items():
        if kind.startswith(kinds):
            return of_kind(value)
    if kind == "change" and _moved_back(value):
        return "torn"
    return "dim" if value.get("action") == "aborted" else ""


def forensic_style(value: dict[str, Any]) -> str:
    """Return the style of a row."""
    if value["type"] == "transaction":
        return {"aborted": "dim", "open": "torn", "hanging": "bad", "lost": "bad"}.get(value["state"], "")
    if value["type"] == "transactionPartition":
        return "bad" if value["hanging"] else "torn" if value["open"] or value["damages"] else ""
    if value["type"] in ("producer", "producerPartition"):
        if value["gaps"] or value["duplicates"] or value["fenced"] or value["epochStarts"]:
            return "bad"
        if value["type"] == "producerPartition":
            return "torn" if value["damages"] else ""
        open_from = value["currentTxnFirstOffset"]
        return "torn" if open_from is not None and open_from >= 0 else "" if value["state"] == "live" else "dim"
    if value["type"] == "producerEvent":
        return "bad" if value["event"] in BROKEN else "control" if value["event"] in ("COMMIT", "ABORT") else ""
    return "torn" if value.get("age") is not None else ""


def registry_style(value: dict[str, Any]) -> str:
    """Return the style of a row."""
    if value["type"] == "schemaUsage":
        return "dim" if value["doubt"] and value["state"] == "none" else "bad" if value["state"] == "none" else ""
    return "dim" if value.get("state") in ("softDeleted", "hardDeleted", "ignored") else ""


def retention_style(value: dict[str, Any]) -> str:
    """Return the style of a row."""
    if value["type"] == "retention":
        return {"held": "bad", "unknown": "torn"}.get(value["verdict"], "")
    if value["type"] == "retentionHold":
        return "bad" if value["isAgainstPolicy"] else "torn"
    return {"held": "bad", "unknown": "torn", "now": "dim"}.get(value["deletion"], "")


def connect_style(value: dict[str, Any]) -> str:
    """Return the style of a row."""
    if value.get("deleted") or value.get("state") in ("deleted", "connectorDeleted", "unknownConnector"):
        return "dim"
    return "bad" if value.get("state") == "FAILED" else "torn" if value.get("remarks") else ""


STYLES = {
    ("transaction", "producer"): forensic_style,
    ("schema", "registry"): registry_style,
    ("connector", "mirror"): connect_style,
    ("retention",): retention_style,
}
"""Styles of the rows of types that begin with these words."""


def columns(kind: str, zone: tzinfo, names: list[str] | None = None, without: tuple[str, ...] = ()) -> list[Column]:
    """Return the columns of a table of such objects: the default ones, or those in `names`. Raises UnknownColumn."""
    keys = {key.name: key for key in answer_keys(ANSWERS[kind])}
    if names is None:
        return [_column(key, zone) for key in shown_keys(ANSWERS[kind]) if key.name not in without]
    check_names(names, keys)
    return [_column(keys[name], zone) for name in names]


def _column(key: Key, zone: tzinfo) -> Column:
    right = key.type.startswith("number") and key.unit != "epoch ms"
    shown = key.shown or Shown()
    cuts = CUT_AS.get(key.name, VALUE)
    return Column(key.name, shown.label or key.name, _text(key, zone), right, shown.rank, shown.least, cuts)


def _text(key: Key, zone: tzinfo) -> Callable[[Object], str]:
    """Return what formats the cells of a key: of hundreds of thousands of rows."""
    name, show = key.name, cell_text(key, zone)
    if name == "fields":
        return lambda value: _moved_back(value) + show(value[name])
    if name == "isr":
        return lambda value: show(value[name]) if value[name] else "none"
    if key.optional:
        return lambda value: show(value[name]) if name in value else ""
    if key.shown is None or key.shown.blank is None:
        return lambda value: show(value[name])
    blank = key.shown.blank
    return lambda value: "" if value[name] == blank else show(value[name])


def _moved_back(value: Object) -> str:
    """Return a remark on a committed offset that went back, which is what one looks for in a history."""
    if value.get("entity") != "offset" or value.get("action") != "changed":
        return ""
    old, new = next(((each["old"], each["new"]) for each in value["fields"] if each["name"] == "offset"), (None, None))
    return f"BACK by {old - new}: " if isinstance(old, int) and isinstance(new, int) and new < old else ""


class StateTables:
    """Writes tables of objects to an output, one after the other. Raises UnknownColumn."""

    def __init__(self, output: Output, zone: tzinfo, names: list[str] | None, full: bool) -> None:
        self.output, self.zone, self.names, self.full = output, zone, names, full

    def open(self, kind: str, without: tuple[str, ...] = ()) -> Table:
        """Return a table for such objects, without the default columns in `without`."""
        shown = columns(kind, self.zone, self.names, without)
        return Table(shown, self.output, full=self.full, chosen=self.names is not None)

    def write_summary(self, kind: str, values: Sequence[Object]) -> None:
        """Write a whole table of partitions; their source is a column only if there are several."""
        several = len({value["source"] for value in values}) > 1
        self.write(kind, values, () if several else ("source",))

    def write(self, kind: str, values: Iterable[Object], without: tuple[str, ...] = ()) -> int:
        """Write a whole table, or nothing if there are no rows. Return the number of rows."""
        table = self.open(kind, without)
        rows = 0
        for value in values:
            table.add(value, style(value))
            rows += 1
        if rows:
            table.flush()
        return rows


class TableRows(Sink[Any]):
    """Writes tables, each for adjacent answers of one type."""

    def __init__(self, output: Output, tables: StateTables) -> None:
        self.output, self.tables = output, tables
        self.written = False
        """Whether something has been written that a blank line separates from the next table."""
        self._table: Table | None = None
        self._type = ""

    def add(self, answer: Any) -> None:
        for value in objects_of(answer):
            if self._table is None or value["type"] != self._type:
                self.end()
                if self.written:
                    self.output.line("")
                self._table, self._type, self.written = self.tables.open(value["type"]), value["type"], True
            self._table.add(value, style(value))

    def tick(self) -> None:
        if self._table is not None:
            self._table.tick()

    def end(self) -> None:
        if self._table is not None:
            self._table.flush()
            self._table = None


class HeadedTables(TableRows):
    """The same for several logs, each below a heading with its path."""

    def __init__(self, output: Output, tables: StateTables) -> None:
        super().__init__(output, tables)
        self._begun = False

    def part(self, name: str, *, was_named: bool = False) -> None:
        self.end()
        head = self.output.paint(printable(path_text(name)) + ":", "head")
        self.output.line(("\n" if self._begun else "") + head)
        self._begun, self.written = True, False


class OneTable(Sink[Any]):
    """Writes a single table of all answers of one class. Counts the findings and other problems that are left out, and
    passes their number to `on_left_out` at the end. Raises UnknownColumn."""

    def __init__(self, tables: StateTables, row: type, on_left_out: Callable[[int], None]) -> None:
        self.row, self.on_left_out = row, on_left_out
        self._table = tables.open(answer_type(row))
        self._problems = 0

    def add(self, answer: Any) -> None:
        value = answer_object(answer)
        if isinstance(answer, self.row):
            self._table.add(value, style(value))
        else:
            self._problems += is_problem(value)

    def end(self) -> None:
        self._table.flush()
        if self._problems:
            self.on_left_out(self._problems)
