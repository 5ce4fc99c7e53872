"""A sentence on what follows from a problem, and on what to do, is in the catalogue (kdump/problems), not in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import kdump
from tests.each_case import each_case
from tests.sources import nodes

KDUMP = Path(kdump.__file__).parent
WHO = (
    "consumers?|followers?|replicas?|producers?|brokers?|nodes?|(?:log )?cleaner|coordinators?|controllers?|"
    "(?:a|the) start(?:up)?|recovery|retention(?: check)?"
)
BETWEEN = "then|may|can|cannot|would|also|no longer|that starts|do(?:es)? not|after startup"
DOES = (
    "stops?|truncates?|deletes?|loses?|exits?|misses|receives?|repairs?|detects?|empties|ends?|fails?|treats?|aborts?|"
    "waits?|renames?|skips?|removes?|rejects?|throws|halts?"
)
IMPACT = rf"\b(?:{WHO}) (?:(?:{BETWEEN}) )*(?:{DOES})\b"
ADVICE = (
    r"(?:^|[;:,.(] )(?:then |and )?do not\b|\b(?:(?:re)?start the (?:broker|node)|stop the (?:broker|node)|"
    r"move (?:it|them|the|away)|back (?:it|the|DIR)|restore (?:it|the)|delete (?:it|the|them|one)|"
    r"(?:copy|replace) (?:it|the|them)|kdump salvage|find out|look for|set (?:it|the)|before you|its broker stopped|"
    r"you can)\b"
)
SENTENCE = re.compile(f"{IMPACT}|{ADVICE}", re.IGNORECASE)
DESCRIBED = ("answer.py", "command.py", "options.py", "query.py", "guide.py", "declarations.py")
"""Modules that describe keys, options and questions."""
HELP, KEY, INPUT, FATE, STEP = (
    "what a command or an option does",
    "what a key or a field means",
    "an error message: what the command needs, or that its input changed",
    "what becomes of a file, a record or a transaction: a value of the answer, with or without a problem",
    "why the loader does a step: evidence, next to the title and the actions of the catalogue",
)
EXCEPTIONS = {
    "browse/commands.py": HELP,
    "cluster/lag.py": "why the lag of a group is what it is: with or without a problem",
    "cluster/metadata_log.py": "a note on snapshots that are too old, which is no problem",
    "cluster/segment_answer.py": KEY,
    "command_line/output_options.py": HELP,
    "command_line/redact_options.py": HELP,
    "format/batch_header.py": KEY,
    "index.py": HELP,
    "incident/doctor/read_committed_stops.py": "doctor's summary of a question that found nothing, or several problems",
    "log/region.py": KEY,
    "questions/bundle/directory_writer.py": HELP,
    "questions/find/directory.py": FATE,
    "questions/find/search_report.py": "what was searched",
    "questions/inspect/selected_files.py": INPUT,
    "questions/ls/report.py": FATE,
    "questions/registry/run.py": HELP,
    "questions/reindex/run.py": f"{KEY}; {INPUT}",
    "questions/reindex/verdict.py": "why an index that differs is right: no problem",
    "questions/rescue/rescuer.py": "why rescue writes a value",
    "questions/rescue/topic_configs.py": "why rescue writes a value",
    "questions/restart_plan/log_loading/log_loader.py": STEP,
    "questions/restart_plan/plan_text.py": "a verdict, which counts what the problems of a plan lose",
    "questions/restart_plan/replicas/replica_answer.py": KEY,
    "questions/restart_plan/replicas/replicas_report.py": "a verdict",
    "questions/restart_plan/report.py": "a heading",
    "questions/restore/source.py": INPUT,
    "questions/retention/build_answers.py": "what is unknown of a log, and why",
    "questions/salvage/source/salvage_reader.py": INPUT,
    "questions/salvage/write_segments.py": INPUT,
    "questions/stats/run.py": "what is unknown, and why",
    "spark/data_source.py": INPUT,
    "spark/replica_differences.py": "what differs, with two copies and a range",
    "spark/result_views.py": INPUT,
    "spark/scan_command.py": f"{HELP}; {KEY}",
    "state/read_committed_view.py": FATE,
    "state/releases.py": "what a release does, whatever the disk has (docs/releases.md)",
}
"""Modules with a sentence that looks like advice or an impact, each with what it is."""
SEVERAL = {
    "command_line/output_options.py": 2,
    "format/batch_header.py": 3,
    "incident/doctor/read_committed_stops.py": 2,
    "questions/find/directory.py": 3,
    "questions/inspect/show.py": 2,
    "questions/ls/report.py": 2,
    "questions/reindex/run.py": 4,
    "questions/restart_plan/log_loading/log_loader.py": 4,
    "questions/restart_plan/plan_text.py": 4,
    "spark/scan_command.py": 2,
    "state/read_committed_view.py": 2,
    "state/releases.py": 5,
}
"""How many such sentences a module has, if not one: a new one is a decision."""


def sentences(path: Path) -> Iterator[str]:
    """Yield the strings of a module that look like advice or an impact; docstrings are none."""
    docs = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in docs else None
        if isinstance(text, str) and len(text) > 20 and " " in text and SENTENCE.search(text):
            yield text


MODULES = sorted(path for path in KDUMP.rglob("*.py") if path.name not in DESCRIBED)
FOLDERS = sorted({path.parent for path in MODULES})


@each_case("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(KDUMP)))
def test_advice_and_impacts_are_in_the_catalogue(folder: Path) -> None:
    found = {str(path.relative_to(KDUMP)): [*sentences(path)] for path in MODULES if path.parent == folder}
    allowed = {name: SEVERAL.get(name, 1) if name in EXCEPTIONS else 0 for name in found}
    assert not {name: texts for name, texts in found.items() if len(texts) != allowed[name]}
