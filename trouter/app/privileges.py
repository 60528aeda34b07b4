"""Gives up root for an unprivileged user for good, once the sockets are bound, and forbids core dumps."""

from __future__ import annotations

import ctypes
import grp
import os
import pwd
import resource
from dataclasses import dataclass
from typing import Final

#: prctl(2).
_SET_DUMPABLE: Final = 4
_SET_NO_NEW_PRIVS: Final = 38


class PrivilegeError(Exception):
    """The process cannot take the wanted account or rights; ``lines`` holds the reasons."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Account:
    """The user and the group to run as."""

    user: str
    uid: int
    gid: int


def account_of(user: str, group: str = "") -> Account:
    """Return the account of ``user``, with its own group or ``group``; PrivilegeError if either is unknown."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise PrivilegeError(f"there is no user {user!r}") from None
    try:
        gid = grp.getgrnam(group).gr_gid if group else entry.pw_gid
    except KeyError:
        raise PrivilegeError(f"there is no group {group!r}") from None
    return Account(user, entry.pw_uid, gid)


def switch_user(account: Account) -> None:
    """Change the process to this user, in all threads, with its groups only; PrivilegeError."""
    if (os.getuid(), os.geteuid(), os.getgid()) == (account.uid, account.uid, account.gid):
        return
    try:
        os.initgroups(account.user, account.gid)
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
    except PermissionError:
        group = grp.getgrgid(account.gid).gr_name
        raise PrivilegeError(f"the process may not become user {account.user}, group {group}") from None
    if account.uid != 0:
        _no_way_back()


def _no_way_back() -> None:
    try:
        os.setresuid(-1, 0, -1)
    except PermissionError:
        return
    raise PrivilegeError("the process gave up root, but could become root again")


def forbid_new_privileges() -> None:
    """Deny further rights to every program started from now on, even if it is setuid; PrivilegeError."""
    _prctl(_SET_NO_NEW_PRIVS, 1)


def forbid_core_files() -> None:
    """Forbid core files, as they would hold every secret."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def forbid_inspection() -> None:
    """Forbid other processes of the same user to attach, and the kernel to pipe a core to a program; PrivilegeError."""
    _prctl(_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "prctl"):
        return  # another system than Linux
    if library.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise PrivilegeError(f"prctl({option}): {os.strerror(number)}")
