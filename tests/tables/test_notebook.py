"""docs/notebook.md: its Python runs in DuckDB without pyarrow and prints what is shown. KDUMP_REWRITE=1 rewrites it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.conftest import FIXTURES, ROOT

PAGE = ROOT / "docs" / "notebook.md"
BLOCKS = re.compile(r"<!-- tested -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
MARK = "=" * 40


def test_its_python_prints_what_is_shown() -> None:
    text = PAGE.read_text()
    blocks = [code for code, _ in BLOCKS.findall(text)]
    code = f"\nprint({MARK!r})\n".join(["import sys; sys.modules['pyarrow'] = None\n" + blocks[0], *blocks[1:]])
    words, utc = [sys.executable, "-c", code], os.environ | {"TZ": "UTC"}
    done = subprocess.run(words, cwd=FIXTURES, capture_output=True, text=True, check=False, env=utc)
    assert (done.returncode, done.stderr) == (0, "")
    printed = iter(done.stdout.split(MARK + "\n"))
    shown = (re.sub(r"\n{2,}", "\n", part).strip("\n") for part in printed)
    new = BLOCKS.sub(lambda match: match[0].replace(f"```text\n{match[2]}```", f"```text\n{next(shown)}\n```"), text)
    if os.environ.get("KDUMP_REWRITE"):
        PAGE.write_text(new)
    assert new == text or os.environ.get("KDUMP_REWRITE")
    assert len(blocks) == 3
