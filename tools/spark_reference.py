"""Writes the tables and options of the data source into docs/spark.md, from their declarations."""

from pathlib import Path

from kdump.spark.data_source_options import ABOUT
from kdump.tables.declarations import RESULTS, TABLES, SparkColumn, SparkTable

PAGE = Path(__file__).parent.parent / "docs" / "spark.md"
BEGIN, END = "<!-- made by tools/spark_reference.py -->\n", "<!-- end -->\n"


def reference() -> str:
    """Return the options, and the columns of every table."""
    parts = ["\n## Options of the data source\n\n| option | meaning |\n| --- | --- |\n"]
    parts += [f"| `{name}` | {about} |\n" for name, about in ABOUT.items()]
    parts.append("\n## Tables\n")
    for table in TABLES.values():
        parts += _table(table)
    parts.append("\n## Tables that only a scan has\n")
    for name, table in RESULTS.items():
        if name not in TABLES:
            parts += _table(table)
    return "".join(parts) + "\n"


def _table(table: SparkTable) -> list[str]:
    heading = f"\n### {table.name}\n\nA row is {table.row}.\n\n| column | type | unit | meaning |\n"
    on_request = [_line(each._replace(meaning=each.meaning + "; only if it is named")) for each in table.on_request]
    return [heading, "| --- | --- | --- | --- |\n", *map(_line, table.columns), *on_request]


def _line(column: SparkColumn) -> str:
    return f"| `{column.name}` | {column.type} | {column.unit} | {column.meaning} |\n"


def page(text: str) -> str:
    """Return the text of the page with the generated part replaced."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + reference() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
