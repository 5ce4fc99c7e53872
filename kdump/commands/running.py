"""How the commands that read files open them."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from kdump.check.options import Options
from kdump.check.workers import careful_source
from kdump.log.rate import Rate
from kdump.log.region import Limits


def reading(options: dict[str, Any], **more: Any) -> Options:
    """Return the Options for reading files, from --max-rate, --max-batch-size, --max-decompressed-size and --window;
    `now` is the current time. `more`: other fields of Options."""
    rate = Rate(options["max_rate"]) if options["max_rate"] else None
    values = {
        "limits": Limits(options["max_batch_size"], options["max_decompressed_size"]),
        "now": int(time.time() * 1000),
        "window": options["window"],
        "open_source": partial(careful_source, rate=rate),
    }
    return Options(**(values | more))
