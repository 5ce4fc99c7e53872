"""Lines of JSON for answers and findings."""

from __future__ import annotations

from typing import Any

from kdump.answer import answer_object
from kdump.check.finding import Finding
from kdump.render import jsonl
from kdump.render.objects import finding_object


def answer_line(found: Any) -> str:
    """Return the line of JSON of an answer, or of a finding."""
    return jsonl.line(finding_object(found) if isinstance(found, Finding) else answer_object(found))
