"""Lets this machine run single files for another kind of machine: by QEMU, from Debian's packages.

    python -m tools.carry.emulation ARCH

The kernel has to know of QEMU (binfmt_misc). Installing the packages tells it where systemd runs; elsewhere, as in a
container or a small virtual machine, this does, for root."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

from tools.carry.target import TARGETS, Target

PACKAGES = {"aarch64": "qemu-user-static libc6-arm64-cross libgcc-s1-arm64-cross binutils-aarch64-linux-gnu"}
KERNEL = Path("/proc/sys/fs/binfmt_misc")


def root_of(target: Target) -> Path:
    """Where Debian's packages put the libraries of the target."""
    return Path(f"/usr/{target.name}-linux-gnu")


def environment(target: Target) -> dict[str, str]:
    """The variables with which the target's programs find their loader; none on a machine of that kind."""
    return {} if target.name == platform.machine() else {"QEMU_LD_PREFIX": str(root_of(target))}


def runs(target: Target) -> bool:
    """Whether programs for the target run. Its loader is one."""
    if target.name == platform.machine():
        return True
    try:
        command = [str(root_of(target) / "lib" / target.loader), "--version"]
        return not subprocess.run(command, env=environment(target), capture_output=True, check=False).returncode
    except OSError:
        return False


def register(target: Target) -> None:
    """Tell the kernel of QEMU, as the package would have. Raises OSError."""
    if not (KERNEL / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", KERNEL], check=True, capture_output=True)
    (KERNEL / "register").write_text(Path(f"/usr/lib/binfmt.d/qemu-{target.name}.conf").read_text())


def main() -> None:
    """The command line."""
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
            " and run this again as root if that does not tell the kernel of QEMU"
        )


if __name__ == "__main__":
    main()
