"""Builds the CPython of the single file: against musl, with all modules of the standard library linked in."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.carry import debian
from tools.carry.programs import run
from tools.carry.target import HOST, Target

HERE = Path(__file__).parent
VERSION = re.compile(r'^#define PY_VERSION\s+"([\d.]+)', re.MULTILINE)
ZLIB = (
    *("adler32", "compress", "crc32", "deflate", "infback", "inffast", "inflate"),
    *("inftrees", "trees", "uncompr", "zutil"),
)
LEFT_OUT = (
    *("_bz2", "_curses", "_curses_panel", "_dbm", "_gdbm", "_hashlib", "_interpchannels", "_interpqueues"),
    *("_interpreters", "_lsprof", "_lzma", "_multibytecodec", "_sqlite3", "_ssl", "_tkinter", "_uuid", "readline"),
    *("syslog", "xxlimited", "xxlimited_35", "xxsubtype"),
    *(f"_codecs_{name}" for name in ("cn", "hk", "iso2022", "jp", "kr", "tw")),
)
"""Modules that neither kdump nor its dependencies import: kdump opens no network connections (_ssl), and hashlib works
without _hashlib."""
BUILD_DATE = "315532800"
"""Epoch seconds of the date in the interpreter: the same inputs give the same bytes."""
CROSS = ("ac_cv_file__dev_ptmx=yes", "ac_cv_file__dev_ptc=no", "ac_cv_buggy_getaddrinfo=no")
"""What configure cannot find out on another machine."""


@dataclass
class Interpreter:
    """CPython, built for a target. `builder`: the one that runs here, and compiles bytecode."""

    target: Target
    version: str
    include: tuple[Path, ...]
    """Directories of its headers."""
    standard: Path
    program: Path
    """The interpreter of the single file: interpreter.c, CPython and its modules."""
    libc: Path
    musl: str
    """Version of its package."""
    builder: Path

    @property
    def suffix(self) -> str:
        """File name suffix of extension modules."""
        return f".cpython-{''.join(self.version.split('.')[:2])}-{self.target.name}-linux-musl.so"


def compiler(target: Target, to: Path, include: Iterable[Path] = (), libc: str = "musl") -> Path:
    """Write a program to use as CC: zig's C compiler for a target and C library, with these directories of headers
    first."""
    zig = Path(_ziglang()) / "zig"
    options = (f"-target {target.name}-linux-{libc}", f"-mcpu={target.cpu}", "-fno-sanitize=undefined")
    text = " ".join([*options, "-Wno-unused-command-line-argument", *(f'-I"{path}"' for path in include)])
    to.write_text(f'#!/bin/sh\nexec "{zig}" cc {text} "$@" -Wno-date-time\n', encoding="utf-8")
    to.chmod(0o755)
    return to


def interpreter(target: Target, work: Path) -> Interpreter:
    """Return the interpreter for a target, which is built below `work` unless it is there."""
    downloads, sources = work / "downloads", work / "sources"
    downloads.mkdir(parents=True, exist_ok=True)
    python = sources / "python3.13"
    if not (python / "Lib").is_dir():
        debian.source("python3.13", downloads, sources)
    version = VERSION.findall((python / "Include/patchlevel.h").read_text(encoding="utf-8"))[0]
    host, place = work / "python" / HOST.name, work / "python" / target.name
    for each in dict.fromkeys((HOST, target)):
        if not (work / "python" / each.name / "done").exists():
            _build(each, python, host, work / "python" / each.name, downloads)
    shutil.copyfile(HERE / "interpreter.c", place / "interpreter.c")
    shutil.copyfile(HERE / "own_path.h", place / "own_path.h")
    include = (python / "Include", place)
    cc = compiler(target, place / "cc", include)
    run(cc, "-O2", "-g0", "-fPIE", "-Wall", "-Werror", "-c", "interpreter.c", "-o", "Programs/python.o", cwd=place)
    # The launcher loads its C library: the name of a loader would only make the bytes depend on this directory.
    linked = f"PY_CORE_LDFLAGS={_linked(place, 'libc.so')}"
    run("make", "--silent", "carried", "BUILDPYTHON=carried", linked, cwd=place)
    musl, program = (place / "done").read_text("utf-8"), place / "carried"
    return Interpreter(target, version, include, python / "Lib", program, place / "libc.so", musl, host / "python")


def _build(target: Target, python: Path, host: Path, place: Path, downloads: Path) -> None:
    """Build CPython in `place`. That for this machine can run here: its loader is the musl beside it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    package, musl = debian.package("musl", target.name, downloads, place / "musl")
    shutil.copy(package / f"usr/lib/{target.name}-linux-musl/libc.so", place / "libc.so")
    cc, system = compiler(target, place / "cc"), place / "system"
    make = {"CC": str(cc), "AR": "ar", "RANLIB": "true"}
    zlib, libffi = (debian.source(name, downloads, place / "sources") for name in ("zlib", "libffi"))
    for name in ZLIB:
        run(cc, "-O3", "-fPIC", "-g0", "-DHAVE_UNISTD_H", "-c", f"{name}.c", "-o", f"{name}.o", cwd=zlib)
    for directory in ("lib", "include"):
        (system / directory).mkdir(parents=True)
    run("ar", "rcs", system / "lib/libz.a", *(f"{name}.o" for name in ZLIB), cwd=zlib)
    for name in ("zlib.h", "zconf.h"):
        shutil.copy(zlib / name, system / "include")
    kind = f"--host={target.name}-linux-musl"
    run("autoreconf", "--install", cwd=libffi, quiet=True)
    static = ("--disable-shared", "--with-pic", "--disable-docs", "--disable-multi-os-directory")
    run("./configure", "--quiet", kind, *static, f"--prefix={system}", cwd=libffi, quiet=True, **make)
    run("make", "--silent", "install", cwd=libffi, quiet=True)
    flags = f"-I{system}/include"
    libraries = {
        "CPPFLAGS": flags,
        "CFLAGS": "-fPIE",
        "LDFLAGS": _linked(place, f"{place}/libc.so"),
        **{f"{name}_CFLAGS": flags for name in ("ZLIB", "LIBFFI")},
        **{f"{name}_LIBS": f"-L{system}/lib -l{short}" for name, short in (("ZLIB", "z"), ("LIBFFI", "ffi"))},
        "MODULE_BUILDTYPE": "static",
    }
    cross = (
        () if target == HOST else (kind, f"--build={HOST.name}-linux-gnu", f"--with-build-python={host}/python", *CROSS)
    )
    left_out = (f"py_cv_module_{name}=n/a" for name in LEFT_OUT)
    options = ("--quiet", "--prefix=/", "--disable-test-modules", "--with-ensurepip=no", "--without-doc-strings")
    configure = os.path.relpath(python / "configure", place)  # the compiled objects have the names of their sources
    run(configure, *options, *cross, *left_out, cwd=place, quiet=True, **make, **libraries)
    make_python = ("make", "--silent", f"--jobs={os.cpu_count()}", "OPT=-DNDEBUG -O3 -g0 -w", "python")
    run(*make_python, cwd=place, quiet=True, SOURCE_DATE_EPOCH=BUILD_DATE)
    (place / "done").write_text(musl, encoding="utf-8")


def _linked(place: Path, loader: str) -> str:
    """Return the options with which CPython is linked."""
    return f"-L{place}/system/lib -pie -dynamic -Wl,--dynamic-linker={loader}"


def _ziglang() -> str:
    import ziglang

    return os.path.dirname(str(ziglang.__file__))
