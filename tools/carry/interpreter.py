"""The CPython that is carried along: what it says of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ASKED = """
import json, os, sys, sysconfig
paths, get = sysconfig.get_paths(), sysconfig.get_config_var
print(json.dumps([
    "%d.%d.%d" % sys.version_info[:3], sys.base_prefix, paths["include"], paths["stdlib"],
    os.path.join(paths["platstdlib"], "lib-dynload"), get("EXT_SUFFIX"), get("INSTSONAME"),
]))
"""


@dataclass
class Interpreter:
    """A CPython with its headers and a shared libpython, as --enable-shared makes it."""

    python: Path
    version: str
    prefix: Path
    include: Path
    standard: Path
    dynload: Path
    suffix: str
    library: Path

    @classmethod
    def of(cls, python: Path) -> Interpreter:
        """Asks the program `python`. Exits when something of it is missing."""
        said = subprocess.run([python, "-I", "-c", ASKED], check=True, capture_output=True, text=True).stdout
        version, prefix, include, standard, dynload, suffix, name = json.loads(said)
        found = [path for place in ("lib", ".") if (path := Path(prefix, place, name)).is_file()]
        if not found or not Path(include, "Python.h").is_file():
            sys.exit(
                f"{python}: {name} or Python.h is missing: a CPython of --enable-shared, with its headers, is needed"
            )
        return cls(python, version, Path(prefix), Path(include), Path(standard), Path(dynload), suffix, found[0])
