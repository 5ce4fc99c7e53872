"""Entry point of the single file, started by its launcher: finds extension modules in the archive, then runs kdump.

This file imports only modules that are part of the interpreter."""

import _imp
import sys
import zipimport
from _frozen_importlib import ModuleSpec
from zipimport import zipimporter

# The launcher provides _carry; the build writes carried_table.
import _carry  # type: ignore[import-not-found]
from carried_table import EXTENSIONS, LIBRARIES  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


class Extensions:
    """Finds the extension modules in the archive, before other finders, and loads them from memory."""

    def __init__(self, archive: str) -> None:
        self.archive = archive
        self.members = zipimporter(archive)
        self.libraries: set[str] = set()

    def _read(self, member: str) -> bytes:
        return self.members.get_data(f"{self.archive}/{member}")

    def find_spec(self, name: str, path: "Sequence[str] | None", target: object = None) -> ModuleSpec | None:
        member = EXTENSIONS.get(name)
        return ModuleSpec(name, self, origin=f"{self.archive}/{member}") if member else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> "ModuleType":
        member = EXTENSIONS[spec.name]
        for library in LIBRARIES.get(member, ()):
            if library not in self.libraries:
                self.libraries.add(library)
                _carry.load(library, self._read(library))
        known, spec.origin = spec.origin, _carry.place(spec.name, self._read(member))
        try:
            module: ModuleType = _imp.create_dynamic(spec)
        finally:
            _carry.placed(spec.origin)
            spec.origin = known
        spec.has_location = True
        return module

    def exec_module(self, module: "ModuleType") -> None:
        _imp.exec_dynamic(module)


OF_INTERPRETER = ("from multiprocessing.", "from grpc_tools ")
"""What the code begins with that this file runs as an interpreter does."""


def asked_of_interpreter(arguments: list[str]) -> int | None:
    """Return the index of the code in `arguments` if multiprocessing, or kdump for protoc, runs this file as its
    interpreter ([options] -c code …); else None."""
    for index, argument in enumerate(arguments[:-1]):
        if argument == "-c":
            return index + 1 if arguments[index + 1].startswith(OF_INTERPRETER) else None
        if not argument.startswith("-"):
            return None
    return None


def file_name(importer: zipimporter, name: str) -> str:
    """Return what zipimporter.get_filename does, which loads the module for that: each module would be loaded twice."""
    path = importer.prefix + name.rpartition(".")[2]
    for suffix in ("/__init__.pyc", ".pyc"):
        found = importer._get_files().get(path + suffix)  # type: ignore[attr-defined]
        if found:
            known: str = found[0]
            return known
    raise zipimport.ZipImportError(f"can't find module {name!r}", name=name)


def start() -> None:
    """Run kdump, or what it asks of an interpreter."""
    zipimporter.get_filename = file_name  # type: ignore[method-assign,assignment]
    sys.meta_path.insert(0, Extensions(sys.path[0]))
    at = asked_of_interpreter(sys.argv[1:])
    if at is not None:
        code, sys.argv = sys.argv[1 + at], ["-c", *sys.argv[2 + at :]]
        exec(code, sys.modules["__main__"].__dict__)
        return
    from kdump.__main__ import main

    main()
