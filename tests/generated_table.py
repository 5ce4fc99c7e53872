"""Tables in docs/ that are generated from declarations or recorded trials."""

from __future__ import annotations

import os
import re
from pathlib import Path


def check_table(page: Path, source: str, table: str) -> None:
    """Check that a page has this table between the comments `made from SOURCE` and `end`. With KDUMP_REWRITE=1, write
    it there."""
    text = page.read_text()
    found = re.search(rf"<!-- made from {re.escape(source)} [^>]*-->\n(.*?)<!-- end", text, re.DOTALL)
    assert found
    made = text[: found.start(1)] + table + text[found.end(1) :]
    if os.environ.get("KDUMP_REWRITE"):
        page.write_text(made)
    else:
        assert text == made
