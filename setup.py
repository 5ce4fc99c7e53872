"""The compiled core. A module whose first line begins with `# cython:` is compiled when there is a C compiler, and runs
as the Python that it is when there is none. KDUMP_COMPILE=0 leaves it so.

Manual pages and completions go where man and the shells look for them, below the prefix of the installation."""

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


SHARED = {
    "share/man/man1": "man/*.1",
    "share/bash-completion/completions": "kdump/shells/bash/*",
    "share/zsh/site-functions": "kdump/shells/zsh/*",
    "share/fish/vendor_completions.d": "kdump/shells/fish/*",
}

data_files = [(place, sorted(map(str, Path().glob(pattern)))) for place, pattern in SHARED.items()]
setup(ext_modules=core(), data_files=data_files)
