"""Runs what `make test-all` consists of, in parts that each end within half an hour, and goes on where it stopped.

python -m tools.test_parts              every part that is not green at this commit
python -m tools.test_parts PART…        only these
python -m tools.test_parts --list       what is green

docs/test-all.json says at which commit each part was green, how long it took, and the seed of its random samples, if
it draws any: the date. A part stays green at later commits that differ from that one in documents alone. What was run
on files that were not committed is not recorded. The first part that fails ends it."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

RECORD = Path("docs/test-all.json")
LIMIT = 1800
"""Seconds after which a part is stopped, and has failed."""
DOCUMENTS = re.compile(r"docs/|[A-Z]+\.md$")
PYTEST = "env KDUMP_SEED={seed} python -m pytest -n 3"
SHARES = {
    "questions": "tests/questions",
    "incident": "tests/incident",
    "spark": "tests/spark",
    "others": "tests --ignore tests/questions --ignore tests/incident --ignore tests/spark",
}
"""The tests in shares that take less than half of LIMIT on two cores, so that a machine under load ends in time. A
sampled test runs once, in its own part, with all its cases."""
TRIALS = (
    "value-bit,last-batch-cut,zeros-clean,offset-bit,time-index-offset,txn-entry-lost,value-bit-above-recovery-point"
)
SALVAGED = (
    "value-bit,crc-magic-0,overlap-stale,data-outside-transaction,marker-lost,clean-mark-left,two-replicas,two-swapped"
)
PARTS: dict[str, tuple[str, ...]] = {
    "test": ("make test",),
    **{
        f"every-disk-{share}": (f"{PYTEST} -m 'every_disk and not sampled' {paths}",) for share, paths in SHARES.items()
    },
    **{f"sampled-{share}": (f"{PYTEST} -m sampled {paths}",) for share, paths in SHARES.items()},
    "cluster": (f"{PYTEST} -m cluster",),
    "browser": (f"{PYTEST} -m browser",),
    "site": ("python -m pytest -m site",),
    "jars": ("env KDUMP_JARS={releases}/{newest} python -m pytest -m jars",),
    "package": ("python -m pytest -m package tests/test_package.py",),
    **{f"plain-{share}": (f"env KDUMP_ENGINE=plain python -m pytest -n 3 {paths}",) for share, paths in SHARES.items()},
    "sanitize": ("make sanitize",),
    "single-file": (
        "make pex",
        "env KDUMP_CARRIED={root}/dist/kdump-linux-x86_64 python -m pytest -m carried tests/test_single_file.py "
        "tests/test_carried_places.py",
    ),
    "single-file-aarch64": (
        "make pex ARCH=aarch64",
        "python -m tools.carry.emulation dist/kdump-linux-aarch64",
        "env KDUMP_CARRIED={root}/dist/kdump-linux-aarch64 python -m pytest -m carried tests/test_single_file.py",
    ),
    "broker-trials": (f"python -m tools.broker_trials {{jars}} {{disks}} --compare --only {TRIALS}",),
    "reindex-trials": ("python -m tools.reindex_trials {jars} {disks} --compare",),
    "salvage-trials": (f"python -m tools.salvage_trials {{jars}} {{disks}} --compare --only {SALVAGED}",),
    "metadata-trials": ("python -m tools.metadata_trials {releases} --compare --only {newest}",),
    "unit-test-trials": ("python -m tools.unit_test_trials {releases} --compare",),
    "at-work": ("python -m tools.at_work {jars} --minutes 3",),
    "bench": ("make bench",),
    "release": ("make release",),
}
"""The commands of each part. `python` is that of .venv; the names in braces are directories, and the newest release."""


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def is_green(entry: dict[str, object] | None, head: str) -> bool:
    """Return True if a part was green at a commit that differs from `head` in documents alone."""
    if entry is None or subprocess.run(["git", "cat-file", "-e", str(entry["commit"])], check=False).returncode:
        return False
    changed = git("diff", "--name-only", str(entry["commit"]), head).splitlines()
    return all(DOCUMENTS.match(name) for name in changed)


def run(part: str, names: dict[str, str]) -> bool:
    """Run the commands of a part in turn; return False if one fails, or if the part takes longer than LIMIT."""
    ends = time.monotonic() + LIMIT
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in PARTS[part]:
        words = shlex.split(command.format_map(names))
        print(f"{part}: {' '.join(words)}", flush=True)
        with subprocess.Popen(words, env=environment, start_new_session=True) as process:
            try:
                status = process.wait(max(ends - time.monotonic(), 1))
            except BaseException as error:  # a test leaves no processes behind, if it is interrupted, either
                os.killpg(process.pid, signal.SIGTERM)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                return False
        if status:
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jars", default="build/kafka-jars")
    parser.add_argument("--releases", default="build/release-jars")
    parser.add_argument("--disks", default="build/corpus/disks")
    parser.add_argument("--newest", default="")
    options = parser.parse_args()
    if wrong := [part for part in options.parts if part not in PARTS]:
        parser.error(f"no such part: {', '.join(wrong)}")
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    head, is_clean = git("rev-parse", "HEAD"), not git("status", "--porcelain", "--untracked-files=no", "--", ":!docs")
    seed = os.environ.get("KDUMP_SEED") or datetime.date.today().isoformat()
    names = {"root": str(Path.cwd()), "newest": options.newest, "seed": seed}
    names |= {name: str(Path(getattr(options, name)).resolve()) for name in ("jars", "releases", "disks")}
    for part in options.parts or PARTS:
        green = is_clean and is_green(record.get(part), head)
        if options.list or (green and not options.parts):
            print(f"{part}: {'green' if green else 'to be run'}", flush=True)
            continue
        began = time.monotonic()
        passes, seconds = run(part, names), round(time.monotonic() - began)
        print(f"{part}: {seconds} s{'' if passes else ', FAILED'}", flush=True)
        if not passes:
            return 1
        if is_clean:
            drawn = {"seed": seed} if "{seed}" in "".join(PARTS[part]) else {}
            record[part] = {"commit": head, "seconds": seconds, **drawn}
            RECORD.write_text(json.dumps({name: record[name] for name in PARTS if name in record}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
