"""The commands that read a whole segment, partition or topic in the background."""

from __future__ import annotations

from kdump.browse.background_jobs import Job
from kdump.browse.histogram_screen import HistogramScreen
from kdump.browse.key_search import Hit, KeySearch, plan, run_search, typed_key
from kdump.browse.key_search_screen import KeySearchScreen
from kdump.browse.level_stack import NotFound
from kdump.browse.marks import Mark
from kdump.browse.save_actions import SaveActions
from kdump.browse.scopes import SCOPES, TOPIC, Here, scope_of
from kdump.browse.time_histogram import Bin
from kdump.log.errors import SourceError
from kdump.render.amounts import duration_text
from kdump.render.escape import printable
from kdump.render.times import iso


class ScopeActions(SaveActions):
    """Shows the histogram of time, and searches for keys."""

    search: KeySearch | None = None
    """The last search for a key."""

    def run_find(self, argument: str) -> None:
        """Search for a key; without one, show the last search again."""
        if argument:
            self._search(argument)
        if self.search is None:
            raise ValueError("type a key to search for")
        self._show_search(self.search)

    def _search(self, text: str) -> None:
        here = Here.of(self.browser)
        if here.directory is None and here.segment is None:
            raise ValueError("no topic is selected; select one of its partitions to search it for a key")
        places = self.browser.places
        search = self.search = KeySearch(text, typed_key(text))

        def work(job: Job) -> None:
            try:
                scope = scope_of(here, TOPIC)
                job.total = scope.size
                run_search(search, plan(search, scope), places.limits, job.add)
            except (SourceError, OSError, NotFound) as error:
                search.note(str(error))

        def done(_: None) -> None:
            search.running = False
            self.trouble(search.summary())
            if isinstance(self.screen, KeySearchScreen):
                self.screen.fill()

        self.jobs.start("find", f"searching for key {printable(text)}", work, done)

    def _show_search(self, search: KeySearch) -> None:
        def progress() -> str:
            job = self.jobs.running.get("find")
            if job is None or search is not self.search:
                search.running = False
                return ""
            return f"searching … {100 * min(job.done, job.total) // job.total}%: " if job.total else "searching …: "

        def chosen(hit: Hit | None) -> None:
            if hit is not None:
                self.to_place(hit.mark, f"key {search.text!r}: {hit.mark.label}")

        self.push_screen(KeySearchScreen(search, progress, self.browser.places.maker.zone, self.jobs), chosen)

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
