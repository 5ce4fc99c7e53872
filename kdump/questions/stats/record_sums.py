"""Statistics of the records of a segment, as a bundle has them in place of the records (docs/bundle.md)."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any

from kdump.core.column_numbers import EXTREME_ROW, EXTREMES, NEWEST
from kdump.format.errors import DecodeError
from kdump.io.untrusted_json import LONG_MAX, LONG_MIN, integer, natural, text
from kdump.log.histograms import MAX_BUCKETS
from kdump.log.paths import FilePosition
from kdump.questions.stats.totals import Codec, RecordLocation, Stats

STRUCT = "RecordSums"
COUNTS = ("sums", "keySizes", "valueSizes", "late")
"""Fields of Stats that are arrays of numbers."""


def sums_row(stats: Stats, before: int) -> dict[str, Any]:
    """Return what the records of a segment add to statistics, as an object of JSON's types. `before`: the largest
    timestamp of the records before them, from which their lateness was counted."""
    return {
        "before": before,
        **{name: list(getattr(stats, name)) for name in COUNTS},
        "extremes": [
            [which, location.offset, location.place.position, location.place.size]
            for which, location in stats.extremes.items()
        ],
        "times": [stats.moments.step, [[bucket, *counts] for bucket, counts in stats.moments.counts.items()]],
        "unpackedBytes": {name: codec.unpackedBytes for name, codec in stats.codecs.items()},
        "timestampTypes": stats.timestampTypes,
    }


def newest_before(row: Any) -> int:
    """Return the `before` of sums_row. Raises DecodeError."""
    try:
        return integer(row["before"], LONG_MIN, LONG_MAX)
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError(STRUCT, "before", 0, str(error)) from error


def newest(row: Any) -> int:
    """Return the largest timestamp of the records up to the end of the segment. Raises DecodeError."""
    return sums_of(row, "").sums[NEWEST]


def sums_of(row: Any, path: str) -> Stats:
    """Return statistics with nothing but what sums_row has; the records are in the file `path`. Raises DecodeError."""
    stats = Stats(path, partitions=0)
    try:
        for name in COUNTS:
            numbers = array("q", (integer(number, LONG_MIN, LONG_MAX) for number in row[name]))
            if len(numbers) != len(getattr(stats, name)):
                raise ValueError(f"{len(numbers)} numbers in {name}")
            setattr(stats, name, numbers)
        for which, offset, position, size in row["extremes"]:
            if which not in EXTREMES:
                raise ValueError(f"an extreme of kind {which}")
            place = FilePosition(path, natural(position), natural(size))
            stats.extremes[which] = RecordLocation(integer(offset, LONG_MIN, LONG_MAX), place)
        for which in EXTREMES:
            stats.sums[which + EXTREME_ROW] = 0
        _read_times(stats, *row["times"])
        stats.codecs = {text(name): Codec(unpackedBytes=natural(size)) for name, size in row["unpackedBytes"].items()}
        stats.timestampTypes = Counter({text(name): natural(count) for name, count in row["timestampTypes"].items()})
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DecodeError(STRUCT, "", 0, f"{type(error).__name__}: {error}") from error
    return stats


def _read_times(stats: Stats, step: Any, buckets: Any) -> None:
    moments = stats.moments
    if len(buckets) > MAX_BUCKETS:
        raise ValueError(f"{len(buckets)} buckets of time")
    for _ in range(integer(step, 0, 20)):
        moments.widen()
    moments.counts = {integer(bucket, LONG_MIN, LONG_MAX): [natural(count)] for bucket, count in buckets}
