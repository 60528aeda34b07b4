"""Gives up root for an unprivileged user once the sockets are bound, for good, and forbids core dumps."""

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
    """The process cannot become who it is to be; ``lines`` tell why."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Account:
    """A user and the group to run with."""

    user: str
    uid: int
    gid: int


def account_of(user: str, group: str = "") -> Account:
    """Return the account of this user, with its own group or another; PrivilegeError if there is no such."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise PrivilegeError(f"there is no user {user!r}") from None
    try:
        gid = grp.getgrnam(group).gr_gid if group else entry.pw_gid
    except KeyError:
        raise PrivilegeError(f"there is no group {group!r}") from None
    return Account(user, entry.pw_uid, gid)


def become(account: Account) -> None:
    """Be this user, in all threads, with its groups and no others; PrivilegeError."""
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
    """Let no program that is called from now on have more rights than the process, setuid or not."""
    _prctl(_SET_NO_NEW_PRIVS, 1)


def forbid_core_files() -> None:
    """Leave no core file: it would hold every secret."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def forbid_inspection() -> None:
    """Be no process that others of the same user may attach to, or that the kernel hands to a collector of cores."""
    _prctl(_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "prctl"):
        return  # another system than Linux
    if library.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise PrivilegeError(f"prctl({option}): {os.strerror(number)}")
