"""Charts as the specifications that they are drawn from: drawing them takes longer than most commands do."""

from __future__ import annotations

import json
from typing import Any

import pytest


class Undrawn:
    """Stands for vl-convert: a picture is the text of its specification."""

    @staticmethod
    def vegalite_to_svg(spec: dict[str, Any]) -> str:
        text = json.dumps(spec, ensure_ascii=False).replace("&", "&amp;").replace("<", "&lt;")
        return f'<svg width="900"><text>{text}</text></svg>'

    @staticmethod
    def vegalite_to_png(spec: dict[str, Any], scale: int) -> bytes:
        return json.dumps(spec).encode()


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write reports with specifications in place of charts, and without Vega. tests/test_report.py draws them."""
    monkeypatch.setattr("kdump.render.postmortem.vega.converter", lambda: Undrawn)
    monkeypatch.setattr("kdump.render.postmortem.page.javascript", lambda: "window.vegaEmbed = null;")
