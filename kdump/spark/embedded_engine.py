"""Answers a query of a local result with DuckDB, which starts without a JVM, if every part of it means there what it
means in Spark. What this module does not list is left to Spark, and so is what DuckDB refuses: the rows are the same,
but for an order that SQL leaves open. Timestamps are without a zone here, and in UTC."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timezone
from typing import Any, NamedTuple

import duckdb
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from kdump.idle import is_idle

MAX_ROWS, MAX_BYTES = 100_000, 64 * 1024 * 1024
"""Rows and bytes of a result up to which it is held until it is complete; Spark computes larger ones."""
BATCH_ROWS = 10_000
SETTINGS: dict[str, Any] = {
    "default_null_order": "nulls_last",
    "memory_limit": "1GB",
    "temp_directory": "",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
Columns = list[tuple[str, str]]
"""Names, and types in Spark's DDL; VOID is that of null."""
VOID, BOOLEAN, INT, BIGINT, DOUBLE = "void", "boolean", "int", "bigint", "double"
STRING, BINARY, TIMESTAMP = "string", "binary", "timestamp"
WHOLE = (INT, BIGINT)
NUMBERS = (*WHOLE, DOUBLE)
"""From the narrowest to the widest."""
ORDERED = (*NUMBERS, STRING, TIMESTAMP, BOOLEAN)
"""Types with the same order in both."""
CASTS = {(BINARY, "TEXT"): STRING, (INT, "TEXT"): STRING, (BIGINT, "TEXT"): STRING, (INT, "BIGINT"): BIGINT}
TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?Z?)?")
"""Texts that are the same time in both."""
UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY")
COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
PARTS: dict[type[Any], tuple[str, ...]] = {
    **dict.fromkeys((exp.Paren, exp.Boolean, exp.Neg, exp.Not, exp.Sum, exp.Min, exp.Max, exp.ArraySize), ("this",)),
    **dict.fromkeys((exp.And, exp.Or, exp.Is, exp.Like, exp.Add, exp.Sub, exp.Mul, exp.Mod), ("this", "expression")),
    **dict.fromkeys((*COMPARED, exp.StartsWith, exp.EndsWith, exp.ArrayContains), ("this", "expression")),
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank, exp.Null, exp.CurrentTimestamp), ()),
    **dict.fromkeys((exp.Cast, exp.TryCast), ("this", "to")),
    **dict.fromkeys((exp.Lag, exp.Lead), ("this", "offset")),
    exp.Column: ("this", "table"),
    exp.Literal: ("this", "is_string"),
    exp.Anonymous: ("this",),
    exp.Div: ("this", "expression", "typed", "safe"),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions", "query"),
    exp.Exists: ("this",),
    exp.Subquery: ("this",),
    exp.Case: ("ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Coalesce: ("this", "expressions"),
    exp.Count: ("this", "big_int"),
    exp.Substring: ("this", "start", "length"),
    exp.Window: ("this", "partition_by", "order", "alias", "over"),
}
"""Expressions that are known, and their arguments."""


class Unlike(Exception):
    """Raised for a query that is not known to have the same result in both."""


class TableFiles(NamedTuple):
    """The columns of a table, and the paths of its Parquet files."""

    columns: Columns
    paths: list[str]


class Scope(NamedTuple):
    """What names stand for in a query: those of `with`; the columns of its tables, which of them a join has made one,
    its results; and the same of the query around it."""

    queries: dict[str, Columns]
    tables: dict[str, Columns]
    joined: set[str]
    results: dict[str, str]
    outer: Scope | None


def answer(sql: str, tables: Mapping[str, TableFiles], limit: int | None) -> tuple[Columns, list[tuple[Any, ...]]]:
    """Return the columns and the first `limit` rows of a query. Raises Unlike."""
    translated, columns = translate(sql, {name: table.columns for name, table in tables.items()})
    try:
        config = SETTINGS | ({"threads": "1"} if is_idle() else {})
        with duckdb.connect(config=config) as connection, ThreadPoolExecutor(1) as pool:
            for name, table in tables.items():
                connection.execute(_view(name, table))
            # In the main thread, DuckDB makes a RuntimeError of the exception that a signal raises.
            rows = pool.submit(_rows, connection, translated, limit)
            try:
                return columns, rows.result()
            except BaseException:
                while not rows.done():  # it may not have begun
                    connection.interrupt()
                    wait([rows], 0.1)
                raise
    except duckdb.Error as error:
        raise Unlike(str(error)) from None


def _rows(connection: duckdb.DuckDBPyConnection, sql: str, limit: int | None) -> list[tuple[Any, ...]]:
    """Return the first `limit` rows of a query in DuckDB's SQL. Raises Unlike, or what DuckDB raises."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    connection.execute(sql)
    while found := connection.fetchmany(BATCH_ROWS):
        rows += (tuple(map(_in_utc, row)) for row in found)
        size += sum(len(value) for row in found for value in map(_sized, row))
        if limit is not None and len(rows) >= limit:
            break
        if len(rows) > MAX_ROWS or size > MAX_BYTES:
            raise Unlike("a large result")
    return rows[:limit]


def translate(sql: str, tables: Mapping[str, Columns]) -> tuple[str, Columns]:
    """Return a query in DuckDB's SQL, and its columns. Raises Unlike."""
    if "\\" in sql:
        raise Unlike("escapes")
    translation = _Translation()
    try:
        query = parse_one(sql, read="spark")
        columns = translation.query(query, {name.lower(): own for name, own in tables.items()}, None)
        if not all(name for name, _ in columns):
            raise Unlike("a result without a name")
        for node, kind in translation.casts:
            node.replace(_cast(node.copy(), kind))
        return query.sql("duckdb", identify=True), columns
    except (SqlglotError, ValueError, RecursionError) as error:
        raise Unlike(str(error)) from None


def _sized(value: Any) -> str | bytes:
    return value if isinstance(value, (str, bytes)) else str(value)


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value


def _view(name: str, table: TableFiles) -> str:
    """Return the statement that creates a view of a table's files, the largest first, as Spark reads them."""
    if any({*path} & {*"*?["} for path in table.paths):
        raise Unlike("a path that matches others")
    if not table.paths:
        types = {BINARY: "blob", STRING: "text"}
        values = (
            f'null::{"int[]" if "<" in kind else types.get(kind, kind)} as "{own}"' for own, kind in table.columns
        )
        return f'create view "{name}" as select {", ".join(values)} where false'
    values = (
        f'make_timestamp(epoch_us("{own}")) as "{own}"' if kind == TIMESTAMP else f'"{own}"'
        for own, kind in table.columns
    )
    paths = sorted(table.paths, key=os.path.getsize, reverse=True)
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return (
        f'create view "{name}" as select {", ".join(values)} from read_parquet([{listed}], hive_partitioning = false)'
    )


def _cast(value: Any, kind: str) -> Any:
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))


def _only(node: Any, *names: str) -> None:
    """Raise Unlike if a node has more than these arguments."""
    more = {name for name, value in node.args.items() if value} - {*names}
    if more:
        raise Unlike(f"{type(node).__name__} with {', '.join(sorted(more))}")


def _widest(*kinds: str) -> str:
    """Return the type that values of these types have together. Raises Unlike."""
    known = {*kinds} - {VOID}
    if known <= {*NUMBERS}:
        return max(known, key=NUMBERS.index, default=VOID)
    if len(known) != 1:
        raise Unlike(" and ".join(sorted(known)))
    return known.pop()


def _number(node: Any, least: int) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() and int(node.name) >= least


class _Translation:
    """Checks a query, and changes what sqlglot writes in another way than DuckDB needs. `casts`: what has another width
    there, with the type in Spark."""

    def __init__(self) -> None:
        self.casts: list[tuple[Any, str]] = []
        self.now = datetime.now(timezone.utc).isoformat(" ").partition("+")[0]

    def query(self, node: Any, queries: dict[str, Columns], outer: Scope | None) -> Columns:
        """Return the columns of a query. `queries`: the tables, and those of `with`."""
        if isinstance(node, exp.Subquery):
            _only(node, "this", "alias")
            return self.query(node.this, queries, outer)
        queries = dict(queries)
        for each in node.args["with_"].expressions if node.args.get("with_") else ():
            _only(node.args["with_"], "expressions")
            _only(each, "this", "alias")
            _only(each.args["alias"], "this")
            queries[each.alias.lower()] = self.query(each.this, queries, None)
        if isinstance(node, exp.Select):
            return self.select(node, Scope(queries, {}, set(), {}, outer))
        if not isinstance(node, (exp.Union, exp.Except)) or isinstance(node.expression, exp.SetOperation):
            raise Unlike(type(node).__name__)
        _only(node, "this", "expression", "distinct", "with_", "order", "limit", "offset")
        left, right = self.query(node.this, queries, outer), self.query(node.expression, queries, outer)
        if len(left) != len(right):
            raise Unlike("other columns")
        columns = [(name, _widest(kind, other)) for (name, kind), (_, other) in zip(left, right)]
        self.ends(node, Scope(queries, {"": columns}, set(), {}, None))
        return columns

    def select(self, node: Any, scope: Scope) -> Columns:
        parts = ("expressions", "from_", "joins", "where", "group", "having", "windows", "distinct")
        _only(node, *parts, "order", "limit", "offset", "with_")
        given = {name: node.args.get(name) for name in ("from_", "where", "group", "having", "order", "distinct")}
        joins = node.args.get("joins") or []
        for source in (each.this for each in (given["from_"], *joins) if each):
            self.source(source, scope)
        for join in joins:
            _only(join, "this", "on", "using", "side", "kind")
            if join.side not in ("", "LEFT") or join.kind not in ("", "INNER", "OUTER", "CROSS"):
                raise Unlike("a join")
            scope.joined.update(each.name.lower() for each in join.args.get("using") or ())
            self.all_of([join.args.get("on")], (BOOLEAN,), scope)
        self.all_of([given["where"] and given["where"].this], (BOOLEAN,), scope)
        for window in node.args.get("windows") or ():
            _only(window, "this", "partition_by", "order")
            self.window(window, scope)
        columns: Columns = []
        for item in node.expressions:
            if not isinstance(item, exp.Star):
                columns.append((self.name(item), self.kind(item.unalias(), scope)))
            elif len(scope.tables) == len(node.expressions) == 1 and not any(item.args.values()):
                columns += next(iter(scope.tables.values()))
            else:
                raise Unlike("more than *")
        self.results(node, given, scope, columns)
        self.all_of([given["having"] and given["having"].this], (BOOLEAN,), scope)
        if given["distinct"]:
            _only(given["distinct"])
            names = {name.lower() for name, _ in columns}
            order = given["order"].expressions if given["order"] else ()
            if not all(_number(each.this, 1) or each.this.name.lower() in names for each in order):
                raise Unlike("an order by what is not selected")
        self.ends(node, scope)
        return columns

    def results(self, node: Any, given: dict[str, Any], scope: Scope, columns: Columns) -> None:
        """Add the names of results to the scope, and check `group by`. Where a name may be that of a column or of a
        result, they differ."""
        named = [(item, kind) for item, (_, kind) in zip(node.expressions, columns) if isinstance(item, exp.Alias)]
        scope.results.update((item.alias.lower(), kind) for item, kind in named)
        other = {item.alias.lower() for item, _ in named if item.this.name.lower() != item.alias.lower()}
        other |= {item.alias.lower() for item, _ in named if not isinstance(item.this, exp.Column)}
        other &= {name.lower() for own in scope.tables.values() for name, _ in own}
        group, order = given["group"], given["order"].expressions if given["order"] else ()
        later = [*(group.expressions if group else ()), given["having"]]
        later += [each.this for each in order if not isinstance(each.this, exp.Column)]
        later = [column for each in later if each for column in each.find_all(exp.Column)]
        if other & {column.name.lower() for column in later if not column.table}:
            raise Unlike("a name of two")
        if group:
            _only(group, "expressions", "all")
            if any(item.find(exp.Window) for item in node.expressions):
                raise Unlike("windows of groups")
            for each in group.expressions:
                self.kind(each, scope)

    def ends(self, node: Any, scope: Scope) -> None:
        """Check the order and the limit of a query."""
        self.order(node.args.get("order"), scope)
        for end in (node.args.get("limit"), node.args.get("offset")):
            if end:
                _only(end, "expression")
                if not _number(end.expression, 0):
                    raise Unlike("a limit")

    def order(self, order: Any, scope: Scope) -> None:
        for each in order.expressions if order else ():
            _only(each, "this", "desc", "nulls_first")
            self.all_of([each.this], ORDERED, scope)

    def window(self, node: Any, scope: Scope) -> None:
        for each in node.args.get("partition_by") or ():
            self.kind(each, scope)
        self.order(node.args.get("order"), scope)

    def source(self, node: Any, scope: Scope) -> None:
        """Add a table, or a query in its place, to the scope."""
        if node.args.get("alias"):
            _only(node.args["alias"], "this")
        columns: Columns | None = None
        if isinstance(node, exp.Subquery):
            columns = self.query(node, scope.queries, None)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            _only(node, "this", "alias")
            columns = scope.queries.get(node.name.lower())
        name = node.alias_or_name.lower()
        if columns is None or name in scope.tables:
            raise Unlike(f"table {name}")
        scope.tables[name] = columns

    def name(self, item: Any) -> str:
        """Return the name that Spark gives to a column of a result; empty if that is not known."""
        if isinstance(item, (exp.Alias, exp.Column)):
            return str(item.alias_or_name)
        if isinstance(item, exp.Count) and isinstance(item.this, exp.Star):
            return "count(1)"
        of, distinct = item.this, ""
        if isinstance(of, exp.Distinct) and len(of.expressions) == 1:
            of, distinct = of.expressions[0], "DISTINCT "
        if isinstance(item, (exp.Count, exp.Sum, exp.Min, exp.Max)) and isinstance(of, exp.Column):
            return f"{type(item).__name__.lower()}({distinct}{of.name})"
        return ""

    def column(self, node: Any, scope: Scope | None) -> str:
        if scope is None or isinstance(node.this, exp.Star):
            raise Unlike(f"column {node.name}")
        name, table = node.name.lower(), node.table.lower()
        own = [columns for alias, columns in scope.tables.items() if table in ("", alias)]
        found = [kind for columns in own for each, kind in columns if each.lower() == name]
        if len(found) > 1 and (table or name not in scope.joined):
            raise Unlike(f"several {name}")
        # In `order by`, a result comes before a column; elsewhere, a name of both was refused.
        if not table and name in scope.results and (not found or isinstance(node.parent, exp.Ordered)):
            return scope.results[name]
        return found[0] if found else self.column(node, scope.outer)

    def all_of(self, nodes: Iterable[Any], kinds: tuple[str, ...], scope: Scope) -> str:
        """Return the widest type of those values that are there. Raises Unlike if one has none of these types."""
        found = [self.kind(node, scope) for node in nodes if node is not None]
        if not {*found} <= {*kinds}:
            raise Unlike(f"{' and '.join(found)} where {' or '.join(kinds)} are known")
        return _widest(*found)

    def compare(self, nodes: list[Any], scope: Scope) -> str:
        """Check values that are compared: a text that is compared with a time becomes one."""
        kinds = [self.kind(node, scope) for node in nodes]
        for number, node in enumerate(nodes):
            if TIMESTAMP in kinds and isinstance(node, exp.Literal):
                kinds[number] = self.time(node, node)
        if _widest(*kinds) not in (*ORDERED, BINARY, VOID):
            raise Unlike("a comparison")
        return BOOLEAN

    def time(self, node: Any, text: Any) -> str:
        """Replace a node by the time that a text states."""
        if not text.is_string or not TIME.fullmatch(text.name):
            raise Unlike("a time")
        time = text.name.rstrip("Z")
        node.replace(_cast(exp.Literal.string(time + ":00" if time.count(":") == 1 else time), TIMESTAMP))
        return TIMESTAMP

    def kind(self, node: Any, scope: Scope) -> str:
        """Return the type of an expression. Raises Unlike unless its value is known to be the same in both."""
        if type(node) not in PARTS:
            raise Unlike(type(node).__name__)
        _only(node, *PARTS[type(node)])
        this, other = node.this, node.args.get("expression")
        if isinstance(node, COMPARED):
            return self.compare([this, other], scope)
        match node:
            case exp.Column():
                return self.column(node, scope)
            case exp.Literal():
                if node.is_string:
                    return STRING
                if not _number(node, 0) or int(node.name) >> 63 or int(node.name) == 1 << 31:  # -2147483648 is an int
                    raise Unlike("a number")
                return BIGINT if int(node.name) >> 31 else INT
            case exp.Null():
                return VOID
            case exp.Boolean():
                return BOOLEAN
            case exp.Paren():
                return self.kind(this, scope)
            case exp.Not() | exp.And() | exp.Or():
                self.all_of([this, other], (BOOLEAN,), scope)
                return BOOLEAN
            case exp.Is():
                if not isinstance(other, exp.Null):
                    raise Unlike("is")
                self.kind(this, scope)
                return BOOLEAN
            case exp.Between():
                return self.compare([this, node.args["low"], node.args["high"]], scope)
            case exp.In(expressions=several):
                if node.args.get("query"):
                    ((_, kind),) = self.single(node.args["query"], scope)
                    _widest(kind, self.all_of([this], ORDERED, scope))
                    return BOOLEAN
                return self.compare([this, *several], scope)
            case exp.Exists():
                self.query(this, scope.queries, scope)
                return BOOLEAN
            case exp.Subquery():
                return self.single(node, scope)[0][1]
            case exp.Like() | exp.StartsWith() | exp.EndsWith():
                self.all_of([this, other], (STRING,), scope)
                if isinstance(node, exp.Like) and not isinstance(other, exp.Literal):
                    raise Unlike("a pattern")
                return BOOLEAN
            case exp.If() | exp.Case() | exp.Coalesce():
                if isinstance(node, exp.If):
                    self.all_of([this], (BOOLEAN,), scope)
                    values = [node.args["true"], node.args.get("false")]
                else:
                    values = [this, *node.expressions, *node.args.get("ifs", ()), node.args.get("default")]
                return _widest(*(self.kind(each, scope) for each in values if each is not None))
            case exp.Sub() | exp.Add() if isinstance(other, exp.Interval):
                _only(other, "this", "unit")
                if not other.this.name.isdigit() or other.args["unit"].name.upper().rstrip("S") not in UNITS:
                    raise Unlike("an interval")
                return self.all_of([this], (TIMESTAMP,), scope)
            case exp.Div() | exp.Mod():
                if not _number(other, 1):
                    raise Unlike("a division")
                kind = self.all_of([this, other], WHOLE, scope)
                return kind if isinstance(node, exp.Mod) else DOUBLE
            case exp.Neg() | exp.Add() | exp.Sub() | exp.Mul():
                return self.all_of([this, other], WHOLE, scope)
            case exp.Count():
                if isinstance(this, exp.Distinct):
                    self.all_of(this.expressions, (*ORDERED, BINARY), scope)
                    _only(this, "expressions")
                    this = this.expressions[0] if len(this.expressions) == 1 else this
                return BIGINT if isinstance(this, exp.Star) else self.kind(this, scope) and BIGINT
            case exp.Sum():
                self.all_of([this], WHOLE, scope)
                return self.as_wide(node, BIGINT)
            case exp.Min() | exp.Max():
                return self.all_of([this], ORDERED, scope)
            case exp.Substring():
                if not _number(node.args["start"], 1) or not _number(node.args.get("length"), 0):
                    raise Unlike("substring")
                return self.all_of([this], (STRING,), scope)
            case exp.ArraySize():
                if not self.kind(this, scope).startswith("array"):
                    raise Unlike("size")
                return self.as_wide(node, INT)
            case exp.ArrayContains():
                above = node.parent
                while isinstance(above, (exp.And, exp.Paren)):
                    above = above.parent
                if not isinstance(above, (exp.Join, exp.Where)):
                    raise Unlike("array_contains, which may be null")
                if self.kind(this, scope) != f"array<{self.kind(other, scope)}>":
                    raise Unlike("array_contains")
                return BOOLEAN
            case exp.Cast(this=exp.Literal() as text) | exp.TryCast(this=exp.Literal() as text):
                if node.to.this != exp.DataType.Type.TIMESTAMPTZ:
                    raise Unlike("a cast")
                return self.time(node, text)
            case exp.Cast() | exp.TryCast():
                return self.cast(node, self.kind(this, scope))
            case exp.Anonymous() | exp.CurrentTimestamp():
                if isinstance(this, str) and this.lower() != "now":
                    raise Unlike(this)
                node.replace(_cast(exp.Literal.string(self.now), TIMESTAMP))
                return TIMESTAMP
            case exp.Lag() | exp.Lead() | exp.RowNumber() | exp.Rank() | exp.DenseRank():
                offset = node.args.get("offset")
                if not isinstance(node.parent, exp.Window) or not (offset is None or _number(offset, 1)):
                    raise Unlike("a window")
                return self.as_wide(node, INT) if this is None else self.kind(this, scope)
            case exp.Window():
                self.window(node, scope)
                return self.kind(this, scope)
        raise Unlike(type(node).__name__)

    def as_wide(self, node: Any, kind: str) -> str:
        """Have a value cast to its type in Spark, if that is not its type in DuckDB."""
        self.casts.append((node.parent if isinstance(node.parent, exp.Window) else node, kind))
        return kind

    def single(self, node: Any, scope: Scope) -> Columns:
        """Return the column of a query that has one."""
        columns = self.query(node, scope.queries, scope)
        if len(columns) != 1 or columns[0][1] not in ORDERED:
            raise Unlike("a subquery")
        return columns

    def cast(self, node: Any, kind: str) -> str:
        wanted = CASTS.get((kind, node.to.sql("duckdb")))
        if wanted is None:
            raise Unlike(f"a cast of {kind}")
        # Of bytes that are not UTF-8, Spark makes a text, and `decode` fails.
        value = node.this.copy()
        made = exp.Anonymous(this="decode", expressions=[value]) if kind == BINARY else _cast(value, wanted)
        node.replace(made)
        return wanted
