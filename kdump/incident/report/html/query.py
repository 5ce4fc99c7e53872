"""What `kdump report` is asked. Apart from what answers it, which is slow to import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, MISSING, dataclass
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING

from kdump.query import OptionsQuery, jobs_option, option, topic_option

if TYPE_CHECKING:
    from kdump.render.redaction import Redaction


@dataclass(frozen=True)
class ReportQuery(OptionsQuery):
    """What a page is about, and where it goes. Raises ValueError for an unknown `chart_format`."""

    out: str = option(
        "--out", metavar="FILE", required=True, otherwise=MISSING, help="Write the page to this new file."
    )
    _: KW_ONLY
    charts: str | None = option("--charts", metavar="DIR", help="Also write the charts as files to this new directory.")
    chart_format: str = option(
        "--chart-format", choices=("png", "svg"), default="png", help="Select the format of these files.  [png]"
    )
    title: str | None = option("--title", metavar="TEXT", help="Set the title of the page.  [Post-mortem: the paths]")
    topics: Iterable[str] | Callable[[str], bool] = topic_option("Report only these topics")
    jobs: int | None = jobs_option("Read")
    max_rate: int | None = None
    zone: tzinfo = timezone.utc
    redaction: Redaction | None = None
