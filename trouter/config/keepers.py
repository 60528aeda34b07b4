"""Judges whether a stranger on this machine could change a file, or put another one in its place.

A stranger is every user but root and the router's own: the keepers. A file is safe if keepers own it, and every folder
on the way to it from the root, and strangers may write to none of them. Each symbolic link is followed, and the folder
that holds it is judged too. In a folder with the sticky bit, as /tmp, strangers may make names, but not replace those
of keepers; so a name must exist there, and a keeper must own it.

In a container the users outside of it are unknown: what is mounted there, and all that is mounted read-only, counts as
the choice of who started the container. Kubernetes mounts Secrets as ``drwxrwsrwt`` and an emptyDir as ``drwxrwsrwx``.
"""

from __future__ import annotations

import os
import stat
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

#: Accounts of packages: the router's, and that of Qpid Dispatch, which files of it belong to.
SERVICE_ACCOUNTS: Final = ("trouter", "qdrouterd")
#: Folders of the kernel and of devices, which are not judged, but what a path through them leads to is; everybody may
#: write to the folder of shared memory.
ROOT: Final = Path("/")
_PROCESSES: Final = Path("/proc")
_KERNEL: Final = (_PROCESSES, Path("/sys"))
_DEVICES: Final = Path("/dev")
_DESCRIPTORS: Final = (Path("/dev/pts"), Path("/proc"))
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # it is judged, not used
#: Links that one path may follow, as in the kernel.
_MAX_LINKS: Final = 40
#: Files of a folder that are judged one by one.
MAX_LISTED: Final = 10_000
#: The extended attribute of an access control list (acl(5)): a version, then tag, rights and number of each entry.
_ACL: Final = "system.posix_acl_access"
_ACL_ENTRY: Final = struct.Struct("<HHI")
_ACL_HEADER: Final = 4
_ACL_USER, _ACL_OWN_GROUP, _ACL_GROUP, _ACL_MASK = 2, 4, 8, 16
_ACL_WRITE: Final = 2
#: Where engines of containers leave a file or a variable.
_CONTAINER_FILES: Final = ("/.dockerenv", "/run/.containerenv")
_CONTAINER_VARIABLES: Final = ("KUBERNETES_SERVICE_HOST", "container")
#: The rights to a file of passwords: its owner's; in a container, where Kubernetes mounts Secrets with mode 0440 or
#: 0644, all may read it, because who started the container chose its users.
_SECRET_MODE: Final = 0o600
_SECRET_MODE_IN_CONTAINER: Final = 0o644


class Danger(NamedTuple):
    """What a stranger can do, as a sentence that names the file or the folder, and the cure."""

    message: str
    cure: str


class _Hop(NamedTuple):
    """One name on the way to a file: its folder, which has no link in its own path, and its state if it exists."""

    folder: Path
    path: Path
    status: os.stat_result | None


class _NotJudgedError(Exception):
    """What a path leads to cannot be judged; the text names where."""


@dataclass(frozen=True, slots=True)
class Keepers:
    """The users and groups that may change the router's files."""

    uids: frozenset[int]
    gids: frozenset[int]
    #: This process runs in a container.
    contained: bool = False
    #: Every user is one.
    everybody: bool = False

    @property
    def secret_mode(self) -> int:
        """The rights that the mode of a file of passwords may give."""
        return _SECRET_MODE_IN_CONTAINER if self.contained else _SECRET_MODE

    def danger_of(self, status: os.stat_result) -> str:
        """Return why an opened file may not be written to; empty if it is a keeper's, under one name, or no file."""
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_uid not in self.uids:
            return f"it belongs to {_user(status.st_uid)}, neither root nor the router's user"
        return "" if status.st_nlink == 1 else "it has another name besides (a hard link)"


#: For a command that only explains what a configuration says.
EVERYBODY: Final = Keepers(frozenset(), frozenset(), everybody=True)


def keepers_of_process(*uids: int) -> Keepers:
    """Return root, the user of this process, and ``uids``, with the groups that they have on their own."""
    contained = any(map(os.path.exists, _CONTAINER_FILES)) or any(map(os.environ.get, _CONTAINER_VARIABLES))
    gids = {0, os.getegid(), *(os.getgroups() if contained else ())}
    for uid in uids:
        gids |= _own_group(uid)
    return Keepers(frozenset({0, os.geteuid(), *uids}), frozenset(gids), contained)


def keepers_for_operator() -> Keepers:
    """Return the same with the accounts of packages, for an operator who is not the user of the router."""
    import pwd  # noqa: PLC0415 - other systems, on which the client runs, lack it

    found: list[int] = []
    for name in SERVICE_ACCOUNTS:
        try:
            found.append(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue
    return keepers_of_process(*found)


@dataclass(slots=True)
class Walk:
    """Judges paths; each folder on the way to several of them is judged once."""

    keepers: Keepers
    _folders: dict[Path, Danger | None] = field(default_factory=dict)

    def danger(self, path: str, *, ending: str | None = None) -> Danger | None:
        """Return what a stranger can do to the file or folder at a path; None for nothing.

        Of a folder the files with this ``ending`` are judged too, none if it is None. A path whose folders this user
        cannot list is judged as far as they can be.
        """
        if self.keepers.everybody:
            return None
        try:
            return self._danger_on_the_way(path, ending)
        except _NotJudgedError as hidden:
            return Danger(f"{hidden} leads to what cannot be judged", "name the file by its own path")
        except (OSError, ValueError):  # it cannot be used, which others report
            return None

    def _danger_on_the_way(self, path: str, ending: str | None) -> Danger | None:
        last: _Hop | None = None
        for hop in _hops(path):
            if found := self._folder(hop.folder) or self._name(hop):
                return found
            last = hop
        if last is None or last.status is None or stat.S_ISLNK(last.status.st_mode):
            return None
        if not stat.S_ISDIR(last.status.st_mode):
            return self._node(last.path, last.status)
        return self._folder(last.path) or self._foreign_names(last) or self._listed(last.path, ending)

    def _folder(self, path: Path) -> Danger | None:
        """Return what a stranger can do to the names in a folder; the sticky bit keeps those that exist."""
        if path not in self._folders:
            status = path.lstat()
            sticky = bool(status.st_mode & stat.S_ISVTX)
            self._folders[path] = self._node(path, status, writable=sticky)
        return self._folders[path]

    def _name(self, hop: _Hop) -> Danger | None:
        """Return what a stranger can do to a name in a folder with the sticky bit."""
        if not self._strangers_make_names(hop.folder):
            return None
        if hop.status is None:
            return Danger(
                f"{hop.path} does not exist, and every user of this machine can make it in {hop.folder}",
                "name a path in a folder of the router's own",
            )
        if hop.status.st_uid not in self.keepers.uids:
            owner = _user(hop.status.st_uid)
            return Danger(f"{hop.path} belongs to {owner}, who can replace it", f"chown -h root {hop.path}")
        return None

    def _foreign_names(self, hop: _Hop) -> Danger | None:
        """Return what a stranger can add to a folder whose files count, though the sticky bit keeps those there."""
        if not self._strangers_make_names(hop.path):
            return None
        return Danger(f"every user of this machine can make files in {hop.path}", f"chmod o-w {hop.path}")

    def _strangers_make_names(self, folder: Path) -> bool:
        status = folder.lstat()
        return bool(status.st_mode & stat.S_ISVTX) and self._writer(folder, status) is not None

    def _listed(self, folder: Path, ending: str | None) -> Danger | None:
        if ending is None:
            return None
        with os.scandir(folder) as entries:
            names = [entry.path for number, entry in enumerate(entries) if number < MAX_LISTED]
        for path in sorted(names):
            if path.endswith(ending) and (found := self._danger_on_the_way(path, None)):
                return found
        return None

    def _node(self, path: Path, status: os.stat_result, *, writable: bool = False) -> Danger | None:
        """Return what a stranger can do to a file or folder itself; ``writable``: without what its rights allow."""
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return None  # a pipe or a device keeps nothing
        if self._is_mounted(path):
            return None
        if status.st_uid not in self.keepers.uids:
            owner = _user(status.st_uid)
            return Danger(f"{path} belongs to {owner}, neither root nor the router's user", f"chown root {path}")
        return None if writable else self._writer(path, status)

    def _writer(self, path: Path, status: os.stat_result) -> Danger | None:
        """Return the danger of rights to write that strangers have."""
        if self._is_mounted(path):
            return None
        if status.st_mode & stat.S_IWOTH:
            return Danger(f"all users of this machine can change {path}", f"chmod o-w {path}")
        if not status.st_mode & stat.S_IWGRP:
            return None
        allowed = self.keepers.gids | _own_group(status.st_uid)
        for tag, number in _writers_in_list(path, status):
            if tag == _ACL_USER and number not in self.keepers.uids:
                return Danger(
                    f"user {_user(number)} can change {path}, by its access control list", f"setfacl -b {path}"
                )
            if tag == _ACL_GROUP and number not in allowed:
                return Danger(f"the group {_group(number)} can change {path}", f"chmod g-w {path}")
        return None

    def _is_mounted(self, path: Path) -> bool:
        """Return whether a path is a mount of this container, or on one that is read-only."""
        if not self.keepers.contained:
            return False
        mounted = path.lstat().st_dev != path.parent.lstat().st_dev
        return mounted or bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def is_device(path: Path) -> bool:
    """Return whether a path is in a folder of devices, where nothing is judged: a stream, a terminal."""
    folder = path.parent.resolve()
    return folder == _DEVICES or any(folder.is_relative_to(each) for each in _DESCRIPTORS)


def _hops(path: str) -> Iterator[_Hop]:
    """Yield every name on the way from the root to a path, links and their targets too; OSError, ValueError.

    Names of the kernel and of devices are passed over; _NotJudgedError if one leads to what has no path here.
    """
    left = deque((Path.cwd() / path).parts[1:])
    at, links = ROOT, 0
    while left:
        name = left.popleft()
        if name == "..":
            at = at.parent
            continue
        here, of_kernel = at / name, _is_of_kernel(at / name)
        try:
            status = here.lstat()
        except FileNotFoundError:
            if not of_kernel:
                yield _Hop(at, here, None)
            return
        if not of_kernel:
            yield _Hop(at, here, status)
        elif at == _PROCESSES and name.isdecimal() and int(name) != os.getpid():
            raise _NotJudgedError(here)  # a link in it leads where that process wants
        if not stat.S_ISLNK(status.st_mode):
            at = here
            continue
        if at.name == "fd" and of_kernel and not left:
            return  # an open descriptor: who started this process chose it
        links += 1
        if links > _MAX_LINKS:
            return
        target = here.readlink()
        if of_kernel and not _is_same(here, at / target):
            raise _NotJudgedError(here)
        at = ROOT if target.is_absolute() else at
        left.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))


def _is_of_kernel(path: Path) -> bool:
    """Return whether a path without links is one of the kernel or of a device."""
    if any(path.is_relative_to(each) for each in _KERNEL):
        return True
    return path != _DEVICES and path.is_relative_to(_DEVICES) and not path.is_relative_to(_SHARED_MEMORY)


def _is_same(link: Path, target: Path) -> bool:
    """Return whether a link of the kernel leads to the path that it shows, which may be another's or gone; OSError."""
    status = link.stat()
    try:
        return os.path.samestat(status, target.stat())
    except FileNotFoundError:
        return False


def _writers_in_list(path: Path, status: os.stat_result) -> Iterator[tuple[int, int]]:
    """Yield tag and number of each user and group that may write by an access control list, or by the mode alone."""
    try:
        content = os.getxattr(path, _ACL)
    except (OSError, AttributeError):  # no list; another system than Linux
        yield _ACL_GROUP, status.st_gid
        return
    entries = [*_ACL_ENTRY.iter_unpack(content[_ACL_HEADER:])]
    mask = next((rights for tag, rights, _ in entries if tag == _ACL_MASK), _ACL_WRITE)
    for tag, rights, number in entries:
        if not rights & mask & _ACL_WRITE:
            continue
        if tag in {_ACL_USER, _ACL_GROUP}:
            yield tag, number
        elif tag == _ACL_OWN_GROUP:
            yield _ACL_GROUP, status.st_gid


def _own_group(uid: int) -> set[int]:
    """Return the primary group of a user, if the user is known."""
    import pwd  # noqa: PLC0415 - as above

    try:
        return {pwd.getpwuid(uid).pw_gid}
    except KeyError:
        return set()


def _user(uid: int) -> str:
    import pwd  # noqa: PLC0415 - as above

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _group(gid: int) -> str:
    import grp  # noqa: PLC0415 - as above

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
