"""What `kdump reindex` did, as JSON objects."""

from __future__ import annotations

from typing import Any

from kdump.forensics.reindex.run import Reindexed
from kdump.forensics.reindex.segment import Ending
from kdump.forensics.reindex.verdict import Verdict
from kdump.render.escape import path_text

Object = dict[str, Any]


def reindex_object(made: Reindexed) -> Object:
    rebuilt = made.rebuilt
    return {
        "type": "reindex",
        "topic": made.topic,
        "partition": made.partition,
        "file": path_text(made.file),
        "baseOffset": made.baseOffset,
        "size": rebuilt.size,
        "validSize": rebuilt.valid,
        "batches": rebuilt.batches,
        "lastOffset": rebuilt.lastOffset,
        "indexInterval": made.interval,
        "endings": [_ending(each) for each in rebuilt.endings],
        "segmentsBehind": made.segmentsBehind,
        "indexes": [_index(each) for each in made.verdicts],
        "notes": [path_text(note) for note in made.notes],
    }


def _ending(ending: Ending) -> Object:
    return {
        "position": ending.position,
        "reason": ending.reason,
        "does": ending.does,
        "isUsual": ending.is_usual,
        "sound": ending.sound,
    }


def _index(verdict: Verdict) -> Object:
    return {
        "kind": verdict.kind.name,
        "file": None if verdict.path is None else path_text(verdict.path),
        "status": verdict.status,
        "size": verdict.size,
        "entries": verdict.entries,
        "rebuiltSize": verdict.rebuiltSize,
        "rebuiltEntries": verdict.rebuiltEntries,
        "reasons": verdict.reasons,
        "wrong": [
            {
                "entry": each.number,
                "position": each.position,
                "found": each.found,
                "expected": each.expected,
                "reason": each.what,
            }
            for each in verdict.wrong
        ],
        "wrongEntries": verdict.wrongCount,
        "written": None if verdict.written is None else path_text(verdict.written),
    }
