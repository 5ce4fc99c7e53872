"""Writes the tables and options of the data source into docs/spark.md, from their declarations."""

from pathlib import Path

from kdump.all_answers import TYPES
from kdump.spark.data_source import ABOUT
from kdump.tables.declarations import RESULTS, TABLES, SparkColumn, SparkTable

MEANINGS = {(key.name, key.meaning) for keys in TYPES.values() for key in keys}
TABLES_HEAD = """
## Tables

Of each table, the columns that no JSON object and no table before it has come first, then those that are as in a table
before, and as in the JSON objects. *Origin* is cluster, broker, logDirectory, source, copyOf and identifiedBy. A column
that is named after another one, such as oldestTime after oldestTimestamp, is the same as a timestamp; null outside the
years 1 to 9999.
"""
ON_REQUEST = "; only if it is named"
ORIGIN = ("cluster", "broker", "logDirectory", "source", "copyOf", "identifiedBy")
PAGE = Path(__file__).parent.parent / "docs" / "spark.md"
BEGIN, END = "<!-- made by tools/spark_reference.py -->\n", "<!-- end -->\n"


def reference() -> str:
    """Return the options, and the columns of every table."""
    parts = ["\n## Options of the data source\n\n| option | meaning |\n| --- | --- |\n"]
    parts += [f"| `{name}` | {about} |\n" for name, about in ABOUT.items()]
    parts.append(TABLES_HEAD)
    known: set[SparkColumn] = set()
    for table in TABLES.values():
        parts += _table(table, known)
    parts.append("\n## Tables that only a scan has\n")
    for name, table in RESULTS.items():
        if name not in TABLES:
            parts += _table(table, known)
    return "".join(parts) + "\n"


def _table(table: SparkTable, known: set[SparkColumn]) -> list[str]:
    """Return the columns of a table; those in `known`, which it adds its own to, are in a table before it."""
    own, listed, in_json, named, times = list[str](), list[str](), list[str](), list[str](), list[str]()
    on_request = [each._replace(meaning=each.meaning + ON_REQUEST) for each in table.on_request]
    for column in (*table.columns, *on_request):
        kind = f"{column.type}, {column.unit}" if column.unit else column.type
        if column.of:
            times.append(column.name)
        elif column in known:
            listed.append(column.name)
        elif (column.name, column.meaning) in MEANINGS:
            in_json.append(column.name)
        elif (column.name, column.meaning.removesuffix(ON_REQUEST)) in MEANINGS:
            named.append(column.name)
        else:
            own.append(f"- `{column.name}` `{kind}`" + (f": {column.meaning}" if column.meaning else "") + "\n")
        known.add(column)
    if set(ORIGIN) <= set(listed):
        listed = ["*origin*", *(name for name in listed if name not in ORIGIN)]
    same = {"before": listed, "[JSON](json.md)": in_json, "JSON, only if they are named": named, "times": times}
    own += [f"- {where}: {', '.join(names)}\n" for where, names in same.items() if names]
    return [f"\n### {table.name}\n\nA row is {table.row}.\n\n", *own]


def page(text: str) -> str:
    """Return the text of the page with the generated part replaced."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + reference() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
