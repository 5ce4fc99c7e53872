"""The files in a log's directory during loading: what an interrupted compaction, split or deletion has left is
completed or deleted.

Source: LogLoader.removeTempFilesAndCollectSwapFiles and load, LogFileUtils.offsetFromFile."""

from __future__ import annotations

import os
from contextlib import suppress

from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.numbers import parse_long
from kdump.io import file_system
from kdump.io.errors import SourceError, is_missing, listing_error
from kdump.io.unreadable_paths import note
from kdump.kafka.log_segment import segment_at
from kdump.log.live_files import Open, SeenDirectory
from kdump.log.paths import seen_file
from kdump.log.served_files import is_complete
from kdump.questions.restart_plan.answer import EXIT, PartitionPlan, StartupFailed, Step, failure
from kdump.questions.restart_plan.node.access_rights import (
    ENTER,
    READ,
    WRITE,
    Rights,
    denied,
    directory_stop,
    not_opened,
)
from kdump.state.releases import SWAP_RENAMED

FOREVER = (1 << 63) - 1
INDEXES = (".index", ".timeindex", ".txnindex")
REPLACED = "replaced by a .swap file: compaction was almost finished"


def padded(offset: int) -> str:
    """Return LogFileUtils.filenamePrefixFromOffset: at least 20 digits, after a minus sign if negative."""
    return f"{'-' * (offset < 0)}{abs(offset):020}"


class LogFiles:
    """Paths by file name, updated with each step; a renamed file keeps its path. Steps are added to the plan."""

    def __init__(
        self, plan: PartitionPlan, open_: Open, rights: Rights, seen: SeenDirectory, release: KafkaRelease = NEWEST
    ) -> None:
        self.plan, self.open, self.rights, self.release = plan, open_, rights, release
        if not rights.can(plan.path, READ):
            raise StartupFailed(denied(plan.path, "list", f"AccessDeniedException: {plan.path}", rights))
        if seen.error is not None:
            if not is_missing(seen.error):
                note(listing_error(seen.error, plan.path))
            raise seen.error
        self.files = dict(seen.files)
        self.directories = seen.directories
        """Subdirectories by name: a broker skips one that has a file's name when listing, but fails when opening it."""

    def step(
        self,
        kind: str,
        file: str,
        reason: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        size: int = 0,
    ) -> None:
        self.plan.steps.append(Step(kind, file, position, offset, size, reason))

    def finish(self) -> list[str]:
        """Complete or delete everything that was left unfinished. Return the names of the .log.swap files that 2.8
        recovers after it has opened the other segments; none in later releases. Raises StartupFailed, SourceError."""
        if not SWAP_RENAMED.applies(self.release):
            return self._recoverable_swaps()
        self._swaps(self._temporary())
        return []

    def _recoverable_swaps(self) -> list[str]:
        """Do what 2.8 does with .swap files before it opens segments (Log.removeTempFilesAndCollectSwapFiles): delete
        the indexes of their segments, and those .log.swap files that a .cleaned file shows to be unfinished."""
        cleaned = [self.offset(name) for name in self.files if name.endswith(".cleaned")]
        swaps = [name for name in sorted(self.files) if name.endswith((".log.swap", *(f"{x}.swap" for x in INDEXES)))]
        for base in dict.fromkeys(self.offset(name) for name in swaps):
            for suffix in INDEXES:
                if f"{padded(base)}{suffix}" in self.files:
                    self.delete(f"{padded(base)}{suffix}", "there is a .swap file: the segment is recovered")
        self._temporary()
        kept = [name for name in swaps if name.endswith(".log.swap") and name in self.files]
        return [name for name in kept if is_complete(self.offset(name), cleaned)]

    def replaced(self, base: int) -> None:
        """Delete the files of a segment that a .swap file replaces."""
        for suffix in (".log", *INDEXES):
            if f"{padded(base)}{suffix}" in self.files:
                self.delete(f"{padded(base)}{suffix}", REPLACED)

    def needs(self, path: str, want: int = READ | WRITE, *, random: bool = False) -> None:
        """Check that the broker's user may open a file, or create it if it is missing; `random`: as a RandomAccessFile.
        Raises StartupFailed if not."""
        error = self.rights.open_error(path, want)
        if error is None or file_system.isdir(path):
            return
        if random and file_system.lexists(path):
            error = error._replace(exception=f"FileNotFoundException: {path} ({error.reason or 'Permission denied'})")
        raise StartupFailed(not_opened(path, "write" if want & WRITE else "read", error, self.rights))

    def offset(self, name: str) -> int:
        """Return the offset in a file name, as LogFileUtils.offsetFromFile does. Raises StartupFailed if there is
        none."""
        number = parse_long(name.partition(".")[0])
        if number is None:
            exception = f'NumberFormatException: For input string: "{name.partition(".")[0]}"'
            raise StartupFailed(failure(EXIT, "startup-file-name", self.files[name], exception, shown=repr(name)))
        return number

    def has_directory(self, base: int) -> bool:
        """Return True if a directory has the name of one of the segment's indexes. Raises StartupFailed if startup
        opens that index: every .txnindex, and all indexes of the last segment."""
        if not self.directories:
            return False
        suffixes = [suffix for suffix in INDEXES if f"{padded(base)}{suffix}" in self.directories]
        is_last = not any(name.endswith(".log") and self.offset(name) > base for name in self.files)
        for suffix in suffixes:
            path = self.directories[f"{padded(base)}{suffix}"]
            if is_last or suffix == ".txnindex":
                raise StartupFailed(directory_stop(path))
            self.plan.unread.append(f"{path}: is a directory; the log directory goes offline when a broker opens it")
        return bool(suffixes)

    def delete(self, name: str, reason: str, kind: str = "delete") -> None:
        path = self.files.pop(name)
        if not self.rights.can(os.path.dirname(path), WRITE | ENTER):
            raise StartupFailed(denied(path, "delete", f"AccessDeniedException: {path}", self.rights))
        size = 0
        with suppress(OSError):
            size = file_system.stat(path).st_size
        self.step(kind, path, reason, size=size)

    def _temporary(self) -> list[str]:
        """Delete temporary files, and return the names of the .swap files that are complete
        (removeTempFilesAndCollectSwapFiles). Raises StartupFailed, SourceError."""
        cleaned: dict[str, int] = {}
        swaps = []
        for name in sorted(self.files):
            if not self.rights.can(self.files[name], READ):
                exception = f"IOException: Could not read file {self.files[name]}"
                raise StartupFailed(denied(self.files[name], "read", exception, self.rights))
            if file_system.tree_at(self.files[name]) is None and not os.access(self.files[name], os.R_OK):
                raise SourceError.at(self.files[name], "permission denied; the broker may be allowed to read it")
            if name.endswith(".deleted") and not name.endswith(".checkpoint.deleted"):
                self.delete(name, "already marked for deletion", "sweep")
            elif name.endswith(".cleaned"):
                cleaned[name] = self.offset(name)
            elif name.endswith(".swap"):
                swaps.append(name)
        good = []
        for name in swaps:
            if not is_complete(self.offset(name), cleaned.values()):
                self.delete(name, "left by an unfinished split or cleaning, whose .cleaned files are still there")
            else:
                good.append(name)
        for name in cleaned:
            self.delete(name, "left by an unfinished cleaning or split")
        return good

    def _swaps(self, swaps: list[str]) -> None:
        """Delete the files that .swap files replace, and rename the .swap files."""
        if not swaps:
            return
        low, high = FOREVER, -FOREVER
        for name in list(swaps):
            if name.endswith(".log.swap"):
                base = self.offset(name)
                segment = segment_at(seen_file(self.files[name]), base, self.open, ".swap", self.release)
                low, high = min(low, base), max(high, segment.next_offset().offset)
                index = f"{padded(base)}.index.swap"
                if index not in self.files:
                    self.files[index] = os.path.join(self.plan.path, index)
                    self.step("create", self.files[index], "missing: created full of zeros, and so not rebuilt")
                    swaps.append(index)
        for name in sorted(self.files):
            if not name.endswith(".swap"):
                offset = parse_long(name.partition(".")[0])
                if offset is not None and low <= offset < high:
                    self.delete(name, REPLACED)
        for name in sorted(swaps):
            path = self.files.pop(name)
            self.files[name.removesuffix(".swap")] = path
            self.step("rename", path, f"to {name.removesuffix('.swap')}: completes the compaction")
