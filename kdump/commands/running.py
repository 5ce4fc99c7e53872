"""What the runs of reading commands have in common: how files are read, and how a run ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from kdump.check.options import Options
from kdump.check.workers import careful_source
from kdump.commands.files import complain
from kdump.log.errors import SourceError
from kdump.log.rate import Rate
from kdump.log.region import Limits


def exit_with(run: Callable[[], int], *trouble: type[Exception]) -> NoReturn:
    """Exit with what `run` gives; with 130 when it is interrupted; with 2, and a line on stderr, for a path that cannot
    be read, and for the other errors named."""
    errors: tuple[type[Exception], ...] = (SourceError, *trouble)
    try:
        status = run()
    except KeyboardInterrupt:
        sys.exit(130)
    except errors as error:
        complain(str(error))
        sys.exit(2)
    sys.exit(status)


def reading(options: dict[str, Any], **more: Any) -> Options:
    """How files are read, by what --max-rate, --max-batch-size, --max-decompressed-size and --window say; `now` is the
    clock. `more`: other fields of Options."""
    rate = Rate(options["max_rate"]) if options["max_rate"] else None
    values = {
        "limits": Limits(options["max_batch_size"], options["max_decompressed_size"]),
        "now": int(time.time() * 1000),
        "window": options["window"],
        "open_source": partial(careful_source, rate=rate),
    }
    return Options(**(values | more))
