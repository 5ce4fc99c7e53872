"""Runs the programs that build the single file, and checks first that they are installed.

python -m tools.carry.programs ARCH"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES = {
    "autoreconf": "autoconf",
    "aclocal": "automake",
    "libtoolize": "libtool",
    "make": "make",
    "ar": "binutils",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    KEYRING: "debian-archive-keyring",
}
"""Debian's packages by the program, or file, that is needed of them."""


def missing(architecture: str) -> list[str]:
    """Return the packages that a build for the architecture needs and that are not installed."""
    needed = dict(PACKAGES)
    if architecture != platform.machine():
        needed[f"{architecture}-linux-gnu-strip"] = f"binutils-{architecture.replace('_', '-')}-linux-gnu"
    return [package for name, package in needed.items() if shutil.which(name) is None and not os.path.isfile(name)]


def require(architecture: str) -> None:
    """Exit, with one line, if a package is missing."""
    packages = " ".join(missing(architecture))
    if packages:
        sys.exit(f"kdump: the single file for {architecture} needs more to build: apt-get install {packages}")


def run(*command: str | Path, cwd: Path | None = None, quiet: bool = False, **variables: str) -> None:
    """Run a command with additional environment variables. Exits if it fails, with what it said."""
    output = subprocess.PIPE if quiet else None
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **variables}, stdout=output, stderr=subprocess.STDOUT if quiet else None
    )
    if done.returncode:
        if done.stdout:
            sys.stderr.write(done.stdout.decode(errors="replace")[-4000:])
        sys.exit(f"failed: {' '.join(map(str, command))}")


if __name__ == "__main__":
    require(sys.argv[1])
