"""python -m tools.incident NAME [DIR]

Creates the disk of the incident in docs/incidents/NAME.md, in DIR (a new directory; by default build/incidents/NAME):
real bytes of a broker of Kafka 4.3.1, from fixtures/, damaged as the page describes."""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.incident import INCIDENTS, lay_out
from tools.incident.disk import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(INCIDENTS))
    parser.add_argument("directory", type=Path, nargs="?")
    options = parser.parse_args()
    directory = options.directory or ROOT / "build" / "incidents" / options.name
    if directory.exists():
        parser.error(f"{directory} already exists")
    lay_out(options.name, directory)
    print(f"{directory}: {' '.join(str(INCIDENTS[options.name].__doc__).split())}")
    print("export KDUMP_NOW=2026-11-21T22:00Z: the evening of this disk counts as today")


if __name__ == "__main__":
    main()
