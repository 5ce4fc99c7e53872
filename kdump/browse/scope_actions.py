"""The commands that read a whole segment, partition or topic in the background."""

from __future__ import annotations

from kdump.browse.histogram_screen import HistogramScreen
from kdump.browse.marks import Mark
from kdump.browse.save_actions import SaveActions
from kdump.browse.scopes import SCOPES, Here
from kdump.browse.time_histogram import Bin
from kdump.render.amounts import duration_text
from kdump.render.times import iso


class ScopeActions(SaveActions):
    """Shows the histogram of time."""

    def run_histogram(self, argument: str) -> None:
        here = Here.of(self.browser)
        if argument and argument not in SCOPES:
            raise ValueError(f"{argument!r} is not a scope; use {', '.join(SCOPES)}")
        places = self.browser.places
        zone = places.maker.zone

        def chosen(each: Bin | None) -> None:
            if each is not None:
                label = f"first batch of {duration_text(each.width)} from {iso(each.start, zone)} on"
                self.to_place(Mark(each.path, each.position, None, None, label), label)

        self.push_screen(HistogramScreen(here, argument or here.scope, places.limits, zone, self.jobs), chosen)
