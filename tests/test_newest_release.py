"""The newest known release is declared once (kdump/format/releases): sentences of the documents that name it derive
from it. KDUMP_REWRITE=1 writes them again. What was seen in a trial names the release of the trial, and stays."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kdump.format.kafka_release import NEWEST
from tests.conftest import ROOT

LINE = f"{NEWEST.major}.{NEWEST.minor}"
SENTENCES = {
    "docs/index.md": {r"what differs between Kafka 2\.8 and (\d\.\d+)\s": LINE},
    "docs/kafka-releases.md": {
        r"checkpoints from 0\.8 to (\d\.\d+)\. ": LINE,
        r"partition directory, it is (\d\.\d+\.\d+)\. ": NEWEST.number,
        r"writes the same index entries in 2\.8 to\s(\d\.\d+), ": LINE,
        r"after (\d\.\d+\.\d+) are those of that one, with a warning": NEWEST.number,
    },
    "docs/explain.md": {r"\sfrom 2\.8\s+to (\d\.\d+)\. ": LINE},
    "docs/restart-plan.md": {r"- Otherwise it is (\d\.\d+\.\d+)\.": NEWEST.number},
    "docs/dump-log.md": {r"by default the\s+newest, (\d\.\d+\.\d+)[:.] ": NEWEST.number},
}
"""Expressions whose group is the newest release, by file."""


@pytest.mark.parametrize("name", SENTENCES)
def test_the_documents_name_the_newest_release(name: str) -> None:
    path: Path = ROOT / name
    text = path.read_text()
    for expression, number in SENTENCES[name].items():
        (found,) = re.finditer(expression, text)
        if os.environ.get("KDUMP_REWRITE"):
            text = text[: found.start(1)] + number + text[found.end(1) :]
            path.write_text(text)
        else:
            assert found[1] == number, expression
