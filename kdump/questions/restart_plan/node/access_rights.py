"""What the broker may read and write: it may lack rights on files restored as root, or on a disk mounted read-only.

The user that the broker runs as is not stored on disk. It is assumed to be the user of this process, unless that is
root, or owns nothing here while everything belongs to one other user. In these cases it is assumed to be the owner of
the log directories, and the modes of the files decide what that user may do. So it is for a bundle, which is of another
host."""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from kdump.io import file_system
from kdump.io.directory_listing import is_inside
from kdump.questions.restart_plan.answer import OFFLINE, StartupFailure, failure

MOUNTS = "/proc/self/mountinfo"
ESCAPED = re.compile(r"\\([0-7]{3})")
READ, WRITE, ENTER = os.R_OK, os.W_OK, os.X_OK
MOST_RESERVED = 0.1
"""Share of a file system above which something else than tune2fs reserves its blocks, such as a quota, from root too:
mke2fs reserves 5 %."""


class Rights:
    """The rights of one user. `own`: it is the user of this process, so that the operating system can decide."""

    def __init__(self, user: int, own: bool = True) -> None:
        self.user, self.own = user, own
        self.is_foreign = False
        """Whether it is a user of the host of a bundle, whose names and groups are not known."""
        self.mounts_count = True
        """Whether a read-only mount denies writing. The plan reports such a mount once, and is otherwise computed as if
        it were writable."""
        self.roots: list[str] = []
        """Absolute paths of the log directories. The plan reports once that the user cannot enter a directory above
        them (`barrier`); apart from that, it is computed as if it were possible."""
        self._entered: dict[str, bool] = {}
        self.groups: set[int] = set()
        if not own:
            with suppress(KeyError, OSError):
                entry = pwd.getpwuid(user)
                self.groups = set(os.getgrouplist(entry.pw_name, entry.pw_gid))

    @property
    def is_root(self) -> bool:
        return self.user == 0

    @property
    def name(self) -> str:
        if self.is_foreign and not self.is_root:
            return str(self.user)
        try:
            return pwd.getpwuid(self.user).pw_name
        except KeyError:
            return str(self.user)

    def can(self, path: str, want: int) -> bool:
        """Return True if the user has all rights in `want` (READ | WRITE | ENTER) on an existing path."""
        if want & WRITE and (read_only_here(path) or (not self.mounts_count and read_only(path))):
            want &= ~WRITE
        if self.user == 0 and file_system.tree_at(path) is not None:
            return True
        if self.own or self.user == 0:
            return os.access(path, want, effective_ids=os.access in os.supports_effective_ids)
        if file_system.islink(path):
            return all(self._enters(above) for above in _above(path)) and self._can(path, want)
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in self._entered:
            self._entered[folder] = all(self._enters(above) for above in (*_above(folder), folder))
        return self._entered[folder] and self._can(path, want)

    def barrier(self, directory: str) -> str | None:
        """Return the topmost directory above a log directory that the user may not enter; None if there is none, or if
        it is in a bundle."""
        if self.own or self.user == 0 or file_system.tree_at(directory) is not None:
            return None
        return next((above for above in _above(directory) if not self._can(above, ENTER)), None)

    def _enters(self, directory: str) -> bool:
        below = any(os.path.commonpath((directory, root)) == root for root in self.roots)
        return self._can(directory, ENTER) if below or not self.roots else True

    def _can(self, path: str, want: int) -> bool:
        try:
            status = file_system.stat(path)
            if want & WRITE and read_only(path):
                return False
        except OSError:
            return False
        shift = 0
        if status.st_uid == self.user:
            shift = 6
        elif status.st_gid in self.groups:
            shift = 3
        return (stat.S_IMODE(status.st_mode) >> shift) & want == want

    def java_error(self, path: str, want: int = READ) -> JavaError | None:
        """Return the exception that Java throws when it opens an existing file; None if it can, or there is no file."""
        try:
            mode = file_system.stat(path).st_mode
        except FileNotFoundError:
            return None
        except PermissionError:
            return access_denied(path)
        except OSError as error:
            more = " or unable to access attributes of symbolic link" if error.errno == errno.ELOOP else ""
            return JavaError(f"FileSystemException: {path}: {error.strerror}{more}", str(error.strerror))
        if stat.S_ISDIR(mode):
            is_written = bool(want & WRITE)
            text = f"FileSystemException: {path}: Is a directory" if is_written else "IOException: Is a directory"
            return JavaError(text, "Is a directory")
        return None if self.can(path, want) else access_denied(path)

    def open_error(self, path: str, want: int) -> JavaError | None:
        """Return the exception that Java throws when it opens a file, or creates a missing one; None if it can."""
        if file_system.lexists(path):
            return self.java_error(path, want)
        return None if self.can(os.path.dirname(path), WRITE | ENTER) else access_denied(path)


class JavaError(NamedTuple):
    """Why Java cannot open a file. `reason`: the operating system's, unless a right is missing."""

    exception: str
    reason: str = ""


def access_denied(path: str) -> JavaError:
    """Return the error for a right that is missing."""
    return JavaError(f"AccessDeniedException: {path}")


def _above(path: str) -> Iterator[str]:
    """Yield the directories that are entered on the way to a path, topmost first: by its name, and through links."""
    for name in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        above = []
        while (parent := os.path.dirname(name)) != name:
            above.append(parent)
            name = parent
        yield from reversed(above)


def read_only(path: str) -> bool:
    """Return True if the path is on a file system that is read-only for every process, as far as it is known."""
    return _mounted_read_only(path) and not _writable_elsewhere(path)


def read_only_here(path: str) -> bool:
    """Return True if only this mount of the path's file system is read-only, as in a container that got it so: the
    broker has another one."""
    return _mounted_read_only(path) and _writable_elsewhere(path)


def _mounted_read_only(path: str) -> bool:
    if file_system.tree_at(path) is not None:
        return False
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


_writable: dict[int, bool] = {}
"""By device, whether the file system itself can be written to."""


def _writable_elsewhere(path: str) -> bool:
    try:
        device = os.stat(path).st_dev
        if device not in _writable:
            with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
                _writable[device] = is_writable(os.path.realpath(path), mounts)
    except OSError:
        return False
    return _writable[device]


def is_writable(path: str, mounts: Iterable[str]) -> bool:
    """Return True if the file system of a real path can be written to, whatever the options of its mount. `mounts`: the
    lines of /proc/PID/mountinfo (proc_pid_mountinfo(5)); of several mounts at one place, the last one counts."""
    found = "", ""
    for line in mounts:
        own, _, of_file_system = line.rstrip("\n").partition(" - ")
        place = ESCAPED.sub(lambda match: chr(int(match[1], 8)), own.split(" ")[4])
        if is_inside(path, place) and len(place) >= len(found[0]):
            found = place, of_file_system.rpartition(" ")[2]
    return "rw" in found[1].split(",")


def free_space(path: str, *, as_root: bool) -> tuple[int, int | None] | None:
    """Return the bytes and the inodes that are free on the path's file system (None: it has no limit of inodes); None
    if unknown. Root may use what is reserved for it, but not what ext4 keeps for itself and counts as free."""
    if file_system.tree_at(path) is not None:
        return None
    try:
        state = os.statvfs(path)
        kept = _kept_by_ext4(os.stat(path).st_dev) if as_root else 0
    except OSError:
        return None
    is_for_root = as_root and state.f_bfree - state.f_bavail <= state.f_blocks * MOST_RESERVED
    blocks = max(state.f_bavail, state.f_bfree - kept) if is_for_root else state.f_bavail
    inodes = state.f_ffree if as_root else state.f_favail
    return blocks * state.f_frsize, inodes if state.f_files else None


def _kept_by_ext4(device: int) -> int:
    """Return the number of blocks that a file system keeps for its own metadata; 0 if it is not ext4. The kernel counts
    clusters, which are blocks unless mkfs was given another size (bigalloc)."""
    name = os.path.basename(os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"))
    try:
        with open(f"/sys/fs/ext4/{name}/reserved_clusters", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def broker_rights(directories: Iterable[str]) -> Rights:
    """Return the rights of the user that the broker with these log directories is assumed to run as."""
    paths = list(directories)
    rights = _rights(paths)
    rights.roots = [written for path in paths for written in (os.path.abspath(path), os.path.realpath(path))]
    return rights


def _rights(directories: list[str]) -> Rights:
    owners: Counter[int] = Counter()
    for directory in directories:
        with suppress(OSError):
            owners[file_system.stat(directory).st_uid] += 1
            names = file_system.listdir(directory)
            owners.update(file_system.stat(os.path.join(directory, name), follow=False).st_uid for name in names)
    own = os.geteuid()
    users = [user for user, _ in owners.most_common() if user != 0]
    if any(file_system.tree_at(each) is not None for each in directories):
        rights = Rights(users[0] if users else 0, own=False)
        rights.is_foreign, rights.groups = True, set()
        return rights
    if own == 0:
        return Rights(users[0], own=False) if users else Rights(0)
    return Rights(users[0], own=False) if set(owners) == set(users[:1]) and own not in owners and users else Rights(own)


def denied(
    path: str, verb: str, exception: str, rights: Rights, code: str = "startup-permission-denied"
) -> StartupFailure:
    """Return the stop for a file access (`verb`) that the broker's user has no right to; `exception` is the
    exception."""
    where = path if file_system.isdir(path) else os.path.dirname(path) or os.curdir
    case = "" if file_system.lexists(path) else "absent"
    return failure(OFFLINE, code, path, exception, case=case, user=rights.name, verb=verb, where=where)


def not_opened(path: str, verb: str, error: JavaError, rights: Rights) -> StartupFailure:
    """Return the stop for a file that cannot be opened, for want of a right (see `denied`) or for another reason."""
    if not error.reason:
        return denied(path, verb, error.exception, rights)
    if file_system.isdir(path):
        return directory_stop(path)
    return failure(OFFLINE, "startup-file-not-opened", path, error.exception, reason=error.reason)


def temporary_file_stop(path: str, rights: Rights) -> StartupFailure | None:
    """Return the stop if the temporary file that a broker writes before it renames it to `path` exists, and cannot be
    overwritten (FileOutputStream); None if it can."""
    path += ".tmp"
    if file_system.isdir(path):
        return directory_stop(path)._replace(exception=f"FileNotFoundException: {path} (Is a directory)")
    if not file_system.exists(path) or rights.can(path, WRITE):
        return None
    return denied(path, "write", f"FileNotFoundException: {path} (Permission denied)", rights, "startup-temporary-file")


def directory_stop(path: str) -> StartupFailure:
    """Return the stop for a directory in the place of a file."""
    mapped = path.endswith((".index", ".timeindex"))
    exception = (
        f"FileNotFoundException: {path} (Is a directory)" if mapped else f"FileSystemException: {path}: Is a directory"
    )
    return failure(OFFLINE, "startup-directory-in-place", path, exception)
