"""Runs tests on a core compiled with AddressSanitizer and UndefinedBehaviorSanitizer: `make sanitize`.

    python tools/sanitize.py DIR TEST…

Builds kdump in DIR, apart from the core in use, and runs pytest on it. The sanitizer's library has to be loaded before
the interpreter, which is not built with it. Memory comes from malloc, so that the sanitizer knows the bounds of each
block. Memory that the interpreter does not free at exit is not reported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Python's own -fwrapv would define the overflows that the sanitizer is to detect.
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-wrapv -fno-omit-frame-pointer -O1"
LIBRARY = "libasan.so"
# kdump is imported before pytest puts the checkout at the beginning of sys.path.
RUN = """
import sys
sys.path[:1] = [sys.argv[1]]
import kdump, kdump.engine, pytest
assert kdump.__file__.startswith(sys.argv[1]), kdump.__file__
assert kdump.engine.running() == kdump.engine.COMPILED
sys.exit(pytest.main(sys.argv[2:]))
"""


def build(home: Path) -> Path:
    """Compile kdump into `home` and return the directory to import it from."""
    library = home / "lib"
    options = ["--build-base", str(home / "base"), "--build-lib", str(library)]
    environment = os.environ | {"CFLAGS": FLAGS, "LDFLAGS": "-fsanitize=address,undefined"}
    subprocess.run([sys.executable, "setup.py", "-q", "build", *options], cwd=ROOT, env=environment, check=True)
    return library


def preloaded() -> str:
    """Return the path of the sanitizer's library, according to the compiler. Raises RuntimeError."""
    command = [os.environ.get("CC", "gcc"), f"-print-file-name={LIBRARY}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(found):
        raise RuntimeError(f"{command[0]} has no {LIBRARY}; install gcc's sanitizers (libasan)")
    return found


def main(arguments: list[str]) -> int:
    home, *tests = arguments
    library = build(Path(home).resolve())
    environment = os.environ | {
        "LD_PRELOAD": preloaded(),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "KDUMP_ENGINE": "compiled",
    }
    run = [sys.executable, "-c", RUN, str(library), "-p", "no:cacheprovider", *tests]
    return subprocess.run(run, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
