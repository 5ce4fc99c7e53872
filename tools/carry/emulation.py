"""Lets this machine run a single file for another architecture, with QEMU from Debian's packages.

    python -m tools.carry.emulation FILE

QEMU has to be registered with the kernel (binfmt_misc). Installing the packages does that where systemd runs;
elsewhere, as in a container or a small virtual machine, this script does, and needs to be run as root."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.carry.target import Target, target_of

PACKAGES = {"aarch64": "qemu-user-static binutils-aarch64-linux-gnu"}
KERNEL = Path("/proc/sys/fs/binfmt_misc")


def runs(file: Path) -> bool:
    """Return True if the file runs here. Runs it to find out."""
    try:
        return not subprocess.run([file, "--version"], env={}, capture_output=True, check=False).returncode
    except OSError:
        return False


def register(target: Target) -> None:
    """Register QEMU with the kernel, as the package would have. Raises OSError."""
    if not (KERNEL / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", KERNEL], check=True, capture_output=True)
    (KERNEL / "register").write_text(Path(f"/usr/lib/binfmt.d/qemu-{target.name}.conf").read_text())


def main() -> None:
    """Run the command line."""
    file = Path(sys.argv[1]).absolute()
    if runs(file):
        return
    target = target_of(file)
    try:
        register(target)
    except (OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
    if not runs(file):
        sys.exit(
            f"programs for {target.name} do not run here: apt-get install {PACKAGES.get(target.name, '')},"
            " and, if that does not register QEMU with the kernel, run this again as root"
        )


if __name__ == "__main__":
    main()
