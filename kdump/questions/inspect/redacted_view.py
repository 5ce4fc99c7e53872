"""The output of `kdump inspect --json --redact`: JSON Lines without what is in records and, on request, names."""

from __future__ import annotations

from kdump.answer import Object
from kdump.decode.record_decoder import RecordDecoder
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.questions.inspect.views import JsonView
from kdump.render.redaction import Redaction, redacted_record
from kdump.render.stdout import Output

PATHS = ("file", "source")
"""Keys whose values are paths."""


class RedactedView(JsonView):
    """JSON Lines in which the redaction replaces what it applies to. Nothing is decoded."""

    def __init__(self, output: Output, redaction: Redaction, *, records: bool) -> None:
        super().__init__(output, records=records)
        self.redaction = redaction

    def _record(self, target: Target, record: Record, decoding: RecordDecoder | None) -> None:
        super()._write(redacted_record(self.redaction, target, record))

    def _write(self, answer: Object) -> None:
        for name in PATHS:
            if name in answer:
                answer[name] = self.redaction.path(answer[name])
        if isinstance(answer.get("topic"), str):
            answer["topic"] = self.redaction.topic(answer["topic"])
        super()._write(answer)
