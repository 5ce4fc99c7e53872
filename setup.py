"""The compiled core. The modules whose first line begins with `# cython:` are compiled if there is a C compiler, all of
them or none; without one, or with KDUMP_COMPILE=0, they run as the Python that they are.

Manual pages go where man looks for them, below the prefix of the installation."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

GENERATED = Path("build/core")
"""Where the C code goes."""
UTILITY = "kdump._cyutility"
"""What Cython needs at run time (memoryviews, above all), compiled once: otherwise it is part of every module."""
FLAGS = {True: ["-O1", "-g0", "-w"], False: ["-O2", "-g0", "-w"]}
"""For that one, which has no loop over bytes, and for the others."""


def core() -> list[Extension]:
    """Return the extensions of the core, the shared one first; none if they are not to be compiled."""
    if os.environ.get("KDUMP_COMPILE") == "0":
        return []
    try:
        import Cython  # noqa: F401
    except ImportError:
        print("kdump: no Cython, so the core stays plain Python", file=sys.stderr)
        return []
    sources = {UTILITY: UTILITY.replace(".", "/") + ".c"} | {
        ".".join(path.with_suffix("").parts): str(path)
        for path in sorted(Path("kdump").rglob("*.py"))
        if path.read_text(encoding="utf-8").startswith("# cython:")
    }
    return [Extension(name, [file], extra_compile_args=FLAGS[name == UTILITY]) for name, file in sources.items()]


class BuildCore(build_ext):
    """Generates the C code and compiles it, on all cores."""

    core: tuple[str, ...] = ()
    """The names of the modules."""

    def build_extensions(self) -> None:
        """Compile all modules; if one fails, none is installed: they call each other."""
        from Cython.Build import cythonize
        from Cython.Compiler.Errors import CompileError

        self.core = tuple(extension.name for extension in self.extensions)
        self.parallel = self.parallel or os.cpu_count()
        changed = os.path.getmtime(__file__)
        stale = any(path.stat().st_mtime < changed for path in GENERATED.rglob("*.c"))
        # Another start method would run this file again in each process.
        processes = self.parallel if multiprocessing.get_start_method() == "fork" else 0
        try:
            generated = cythonize(
                self.extensions,
                build_dir=str(GENERATED),
                shared_utility_qualified_name=UTILITY,
                force=stale or self.force or None,
                quiet=True,
                nthreads=processes,
            )
            by_name = {extension.name: extension for extension in generated}
            for extension in self.extensions:
                extension.sources = by_name[extension.name].sources
                extension.depends = by_name[extension.name].depends
            # The largest first, so that none of them is compiled alone at the end.
            self.extensions.sort(key=lambda extension: -os.path.getsize(extension.sources[0]))
            super().build_extensions()
        except (BaseError, CCompilerError, CompileError) as error:
            print(f"kdump: the core stays plain Python: {error}", file=sys.stderr)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions.clear()

    def copy_extensions_to_source(self) -> None:
        """Replace what was compiled before, also where nothing was compiled now: it is of older sources."""
        for name in self.core:
            Path(self.get_ext_filename(name)).unlink(missing_ok=True)
        for path in Path("kdump").rglob("*.so"):
            module = path.with_name(path.name.partition(".")[0] + ".py")
            if not module.exists() and not path.name.startswith(UTILITY.rpartition(".")[2]):
                path.unlink()  # its module was moved or removed
        super().copy_extensions_to_source()


manuals = [("share/man/man1", sorted(map(str, Path().glob("man/*.1"))))]
setup(ext_modules=core(), data_files=manuals, cmdclass={"build_ext": BuildCore})
