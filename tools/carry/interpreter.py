"""The CPython that goes into the single file and the one that builds it: where their files are."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.carry.target import Target, target_of

VERSION = re.compile(r'^#define PY_VERSION\s+"([\d.]+)', re.MULTILINE)
ASKED = "import sys; print('%d.%d' % sys.version_info[:2])"


@dataclass
class Interpreter:
    """CPython with its headers and a shared libpython (--enable-shared). It may be for another architecture: none of
    its programs are run."""

    target: Target
    version: str
    prefix: Path
    include: Path
    standard: Path
    dynload: Path
    suffix: str
    """File name suffix of extension modules."""
    library: Path
    builder: Path
    """Program that compiles for it: a CPython of the same minor version that runs here."""

    @classmethod
    def of(cls, python: Path, builder: Path) -> Interpreter:
        """Return the interpreter found below the prefix of the program `python`. Exits if a part of it is missing."""
        prefix = python.resolve().parent.parent
        include = _only(prefix, "include/python3.*/Python.h").parent
        built = _only(prefix, "lib/python3.*/_sysconfigdata_*.py")
        variables = runpy.run_path(str(built))["build_time_vars"]
        name = variables["INSTSONAME"]
        found = [path for place in ("lib", ".") if (path := prefix / place / name).is_file()]
        if not found:
            sys.exit(f"{prefix}: {name} is missing; CPython built with --enable-shared is needed")
        version = VERSION.findall((include / "patchlevel.h").read_text(encoding="utf-8"))[0]
        said = subprocess.run([builder, "-I", "-c", ASKED], check=True, capture_output=True, text=True).stdout.strip()
        if said != version.rpartition(".")[0]:
            sys.exit(f"{builder} is Python {said}; building for {version} needs the same minor version")
        standard, suffix = built.parent, variables["EXT_SUFFIX"]
        dynload = standard / "lib-dynload"
        return cls(target_of(found[0]), version, prefix, include, standard, dynload, suffix, found[0], builder)


def _only(prefix: Path, pattern: str) -> Path:
    """Return the only file that matches. Exits if there is none or more than one."""
    found = [*prefix.glob(pattern)]
    if len(found) != 1:
        sys.exit(f"{prefix}: {len(found)} files match {pattern}; CPython with its headers is needed")
    return found[0]
