"""Entry point of the single file, started by its launcher: finds modules in the archive, then runs kdump.

This file imports only modules that are part of the interpreter."""

import _imp
import marshal
import sys
import zlib
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder

# The interpreter provides _carry; the build writes carried_table.
import _carry  # type: ignore[import-not-found]
from carried_table import EXTENSIONS, LIBRARIES  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType
    from typing import Any

BYTECODE_HEADER = 16
ENDS = (".pyc", "/__init__.pyc", "/")
"""Of a module's member: a module, a package, a package without a module of its own."""


class Members:
    """Finds modules in the archive, in place of Python's search in directories and archives, and loads them: what is a
    library from memory. It knows where each member is, and opens nothing."""

    def __init__(self, archive: str) -> None:
        self.archive = archive
        self.places: dict[str, tuple[int, int, int]] = marshal.loads(_carry.read(_carry.MEMBERS, _carry.MEMBERS_SIZE))
        self.libraries: set[str] = set()

    def _read(self, member: str) -> bytes:
        place, size, inflated = self.places[member]
        data: bytes = _carry.read(place, size)
        return zlib.decompress(data, -zlib.MAX_WBITS, inflated) if inflated else data

    def find_spec(self, name: str, path: "Sequence[str] | None", target: object = None) -> ModuleSpec | None:
        at = name.replace(".", "/")
        member = next((at + end for end in ENDS if at + end in self.places), EXTENSIONS.get(name))
        if member is None:
            return None
        spec = ModuleSpec(name, self, origin=f"{self.archive}/{member}")  # type: ignore[arg-type]
        if "/" in member[len(at) :]:
            spec.submodule_search_locations = [f"{self.archive}/{at}"]
        spec.loader_state = member
        spec.has_location = not member.endswith("/")
        return spec

    def create_module(self, spec: ModuleSpec) -> "ModuleType | None":
        member = EXTENSIONS.get(spec.name)
        if member is None:
            return None
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
        return module

    def exec_module(self, module: "ModuleType") -> None:
        assert module.__spec__ is not None
        member = module.__spec__.loader_state
        if member.endswith(".pyc"):
            exec(marshal.loads(memoryview(self._read(member))[BYTECODE_HEADER:]), module.__dict__)
        elif not member.endswith("/"):
            _imp.exec_dynamic(module)

    def get_data(self, path: str) -> bytes:
        """Return a member by the path that a module's __file__ leads to."""
        try:
            return self._read(path.removeprefix(self.archive + "/"))
        except KeyError:
            raise FileNotFoundError(path) from None

    def get_resource_reader(self, name: str) -> "Any":
        """Return what lists a package's files, which few commands do."""
        from zipimport import zipimporter

        parent = name.rpartition(".")[0].replace(".", "/")
        return zipimporter(f"{self.archive}/{parent}" if parent else self.archive).get_resource_reader(name)

    def find_distributions(self, *context: "Any") -> "Iterable[Any]":
        """Return the packages in the archive, for importlib.metadata."""
        return PathFinder.find_distributions(*context)


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


def start() -> None:
    """Run kdump, or what it asks of an interpreter."""
    sys.meta_path[:] = [*(finder for finder in sys.meta_path if finder is not PathFinder), Members(sys.path[0])]
    at = asked_of_interpreter(sys.argv[1:])
    if at is not None:
        code, sys.argv = sys.argv[1 + at], ["-c", *sys.argv[2 + at :]]
        exec(code, sys.modules["__main__"].__dict__)
        return
    from kdump.__main__ import main

    main()
