"""The compiled core. A module whose first line begins with `# cython:` is compiled when there is a C compiler, and runs
as the Python that it is when there is none. KDUMP_COMPILE=0 leaves it so."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup


def core() -> list[Extension]:
    """The extensions: each is optional, so that one that does not compile stops no installation."""
    if os.environ.get("KDUMP_COMPILE") == "0":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("kdump: no Cython, so the core stays plain Python", file=sys.stderr)
        return []
    extensions = [
        Extension(".".join(path.with_suffix("").parts), [str(path)], extra_compile_args=["-O3", "-g0"], optional=True)
        for path in sorted(Path("kdump").rglob("*.py"))
        if path.read_text(encoding="utf-8").startswith("# cython:")
    ]
    compiled: list[Extension] = cythonize(extensions, build_dir="build/cython")
    for extension in compiled:
        extension.optional = True
    return compiled


setup(ext_modules=core())
