"""Options of a table in Spark's catalog: CREATE TABLE … USING kdump OPTIONS (…).

Spark passes the options to a Python data source when the table is created, but not when it is read: then there are only
the columns (PythonTable, PythonScanBuilder in Spark 4.3). So they are kept in the comment on the first column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from pyspark.sql.types import StructType

from kdump.spark.data_source_options import OptionError

PREFIX = "option."
"""Prefix of the options among a table's properties (TableCatalog.OPTION_PREFIX in Spark)."""
MARK = " kdump options: "
"""Comes between the comment on the first column and the options."""


def options_of_table(given: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options among the properties that Spark passes when a table is created; None for those of a read.
    LOCATION is the path. Raises OptionError for one that a catalog must not have."""
    properties = {name.lower(): value for name, value in given.items()}
    options = {name[len(PREFIX) :]: value for name, value in properties.items() if name.startswith(PREFIX)}
    if not options and "location" not in properties:
        return None
    if "location" in properties and not {"path", "paths"} & options.keys():
        options["path"] = properties["location"]
    if options.get("path", "").startswith("file:/"):
        options["path"] = unquote(urlsplit(options["path"]).path)
    if "storageoptions" in options:
        raise OptionError("storageOptions may contain secrets, which a catalog shows: set them in the environment")
    return options


def remark(options: Mapping[str, str]) -> str:
    """Return what to add to the comment on the first column."""
    return MARK + json.dumps(options, sort_keys=True)


def options_in(schema: StructType) -> dict[str, str]:
    """Return the options in the `remark` on the first column; none if it has none."""
    comment = schema.fields[0].metadata.get("comment", "") if schema.fields else ""
    found: dict[str, str] = json.loads(comment.partition(MARK)[2] or "{}")
    return found
