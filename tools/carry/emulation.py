"""Lets this machine run single files for another architecture, with QEMU from Debian's packages.

    python -m tools.carry.emulation ARCH

QEMU has to be registered with the kernel (binfmt_misc). Installing the packages does that where systemd runs;
elsewhere, as in a container or a small virtual machine, this script does, and needs to be run as root."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

from tools.carry.target import TARGETS, Target

PACKAGES = {"aarch64": "qemu-user-static libc6-arm64-cross libgcc-s1-arm64-cross binutils-aarch64-linux-gnu"}
KERNEL = Path("/proc/sys/fs/binfmt_misc")


def root_of(target: Target) -> Path:
    """Return the directory where Debian's packages install the target's libraries."""
    return Path(f"/usr/{target.name}-linux-gnu")


def environment(target: Target) -> dict[str, str]:
    """Return the environment variables with which the target's programs find their loader; none on a machine of that
    architecture."""
    return {} if target.name == platform.machine() else {"QEMU_LD_PREFIX": str(root_of(target))}


def runs(target: Target) -> bool:
    """Return True if programs for the target run here. Runs the target's loader to find out."""
    if target.name == platform.machine():
        return True
    try:
        command = [str(root_of(target) / "lib" / target.loader), "--version"]
        return not subprocess.run(command, env=environment(target), capture_output=True, check=False).returncode
    except OSError:
        return False


def register(target: Target) -> None:
    """Register QEMU with the kernel, as the package would have. Raises OSError."""
    if not (KERNEL / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", KERNEL], check=True, capture_output=True)
    (KERNEL / "register").write_text(Path(f"/usr/lib/binfmt.d/qemu-{target.name}.conf").read_text())


def main() -> None:
    """Run the command line."""
    (target,) = (each for each in TARGETS if each.name == sys.argv[1])
    if runs(target):
        return
    try:
        register(target)
    except (OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
    if not runs(target):
        sys.exit(
            f"programs for {target.name} do not run here: apt-get install {PACKAGES[target.name]},"
            " and, if that does not register QEMU with the kernel, run this again as root"
        )


if __name__ == "__main__":
    main()
