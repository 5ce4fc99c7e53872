"""JSON lines for answers and findings."""

from __future__ import annotations

from typing import Any

from kdump import jsonl
from kdump.answer import answer_object


def answer_line(answer: Any) -> str:
    """Return the JSON line of an answer or a finding."""
    return jsonl.line(answer_object(answer))
