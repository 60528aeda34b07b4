"""`trouter passwd`: edit and list a users file. Passwords come from the terminal, a pipe or a file, not arguments."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trouter.mechanisms import PLAIN, SCRAM

if TYPE_CHECKING:
    from trouter_plugins.users import Entry

#: Limit of a password: a response of PLAIN has room for it and twice the longest user name.
MAX_PASSWORD_BYTES: Final = 512

EPILOG: Final = """examples:
  trouter passwd add users alice                     asks for the password, twice
  trouter passwd add users robot --password-file robot.secret --expires 2027-01-31
  trouter passwd disable users alice                 within seconds alice's connections are closed
  trouter passwd import-sasldb users /etc/sasldb2 --realm example.com

A router takes a changed file into use within seconds; connections of users who stay go on.
"""


class Unusable(Exception):
    """The command cannot be carried out; the text gives the reason."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "passwd",
        help="add, remove, disable and list the users of a users file",
        description="Keep the file of users that `router.usersFile` names.",
        epilog=EPILOG,
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commands with their options to a parser."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, text: str, act: Callable[[argparse.Namespace], str], *, user: bool = True) -> Any:
        one = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        one.add_argument("file", metavar="FILE", type=Path, help="the users file")
        if user:
            one.add_argument("user", metavar="USER")
        one.set_defaults(run=run, act=act)
        return one

    add = command("add", "add a user, or give one another password", _add)
    add.add_argument("--password-file", metavar="PATH", type=Path, help="the password is the first line of this file")
    add.add_argument("--expires", metavar="WHEN", help="until when, e.g. 2027-01-31 or 2027-01-31T12:00:00Z (UTC)")
    _add_scram(add)
    command("remove", "remove a user", _remove)
    command("disable", "disable a user, and keep the entry", _disable)
    command("enable", "enable a disabled user again", _enable)
    listed = command("list", "list the users and their state", _list, user=False)
    listed.add_argument("--json", action="store_true", help="one JSON object")
    imported = command("import-sasldb", "import the users of Cyrus SASL", _import, user=False)
    imported.add_argument("sasldb", metavar="SASLDB", type=Path, help="the database, e.g. /etc/sasldb2")
    imported.add_argument("--realm", help="only the users of this realm, by their bare names")
    imported.add_argument("--with-realm", action="store_true", help="call them USER@REALM")
    imported.add_argument("--replace", action="store_true", help="also users who are in FILE already")
    _add_scram(imported)


def _add_scram(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scram",
        metavar="NAMES",
        default=" ".join(SCRAM[:2]),
        help=f"what to serve besides PLAIN, of {', '.join(SCRAM)}; default %(default)s; '' for none",
    )


def run(arguments: argparse.Namespace) -> int:
    """Carry out a command and print its result; return the exit status, 1 for a failure."""
    from trouter_plugins.sasldb import SasldbError  # noqa: PLC0415  # other commands do not need them
    from trouter_plugins.users import UsersFileError  # noqa: PLC0415

    try:
        print(arguments.act(arguments))
    except (Unusable, SasldbError, UsersFileError, ValueError, OSError) as error:
        print(f"{arguments.command_parser.prog}: {arguments.file}: {error}", file=sys.stderr)
        return 1
    return 0


def _add(arguments: argparse.Namespace) -> str:
    from trouter_plugins.users_file import put_user  # noqa: PLC0415

    scram = _scram(arguments.scram)
    expires_at_s = _moment(arguments.expires) if arguments.expires else float("inf")
    path = arguments.password_file
    password = _from_input() if path is None else _from_file(path)
    known = put_user(arguments.file, arguments.user, password, scram, expires_at_s=expires_at_s)
    return f"{arguments.file}: user {arguments.user} {'changed' if known else 'added'}"


def _remove(arguments: argparse.Namespace) -> str:
    def remove(entries: dict[str, Entry]) -> None:
        _entry(entries, arguments.user)
        del entries[arguments.user]

    return _edited(arguments, remove, "removed")


def _disable(arguments: argparse.Namespace) -> str:
    return _edited(arguments, lambda entries: _set_disabled(entries, arguments.user, disabled=True), "disabled")


def _enable(arguments: argparse.Namespace) -> str:
    return _edited(arguments, lambda entries: _set_disabled(entries, arguments.user, disabled=False), "enabled")


def _set_disabled(entries: dict[str, Entry], user: str, *, disabled: bool) -> None:
    from dataclasses import replace  # noqa: PLC0415

    entries[user] = replace(_entry(entries, user), disabled=disabled)


def _entry(entries: dict[str, Entry], user: str) -> Entry:
    entry = entries.get(user)
    if entry is None:
        raise Unusable(f"there is no user {user!r}")
    return entry


def _edited(arguments: argparse.Namespace, change: Callable[[dict[str, Entry]], None], done: str) -> str:
    from trouter_plugins.users_file import edit_users  # noqa: PLC0415

    edit_users(arguments.file, change)
    return f"{arguments.file}: user {arguments.user} {done}"


def _list(arguments: argparse.Namespace) -> str:
    from trouter_plugins.users_file import read_users  # noqa: PLC0415

    entries = read_users(arguments.file).entries
    if arguments.json:
        return json.dumps({"users": [_as_map(user, entries[user]) for user in sorted(entries)]}, indent=2)
    return "\n".join([*(_described(user, entries[user]) for user in sorted(entries)), f"{len(entries)} user(s)"])


def _as_map(user: str, entry: Entry) -> dict[str, object]:
    """Return a user without what the password is checked against."""
    endless = entry.expires_at_s == float("inf")
    return {
        "user": user,
        "mechanisms": [PLAIN, *(mechanism for mechanism in SCRAM if mechanism in entry.mechanisms)],
        "disabled": entry.disabled,
        "expires": None if endless else datetime.fromtimestamp(entry.expires_at_s, UTC).isoformat(),
    }


def _described(user: str, entry: Entry) -> str:
    words = [user, PLAIN, *(mechanism for mechanism in SCRAM if mechanism in entry.mechanisms)]
    if entry.disabled:
        words.append("disabled")
    if entry.expires_at_s != float("inf"):
        words.append(f"expires {datetime.fromtimestamp(entry.expires_at_s, UTC):%Y-%m-%d %H:%M:%S} UTC")
    return "  ".join(words)


def _import(arguments: argparse.Namespace) -> str:
    from trouter_plugins.sasldb import read_sasldb  # noqa: PLC0415
    from trouter_plugins.users import Entry, check_user  # noqa: PLC0415
    from trouter_plugins.users_file import edit_users, hashed  # noqa: PLC0415

    scram = _scram(arguments.scram)
    fresh: dict[str, Entry] = {}
    for account in read_sasldb(arguments.sasldb):
        if arguments.realm is not None and account.realm != arguments.realm:
            continue
        user = f"{account.user}@{account.realm}" if arguments.with_realm else account.user
        if user in fresh:
            raise Unusable(f"user {user!r} is in several realms: give --realm, or --with-realm")
        check_user(user)
        _check_password(account.password, f"the password of {user!r}")
        fresh[user] = Entry(hashed(account.password, scram))
    skipped: list[str] = []

    def put(entries: dict[str, Entry]) -> None:
        skipped.extend(user for user in fresh if user in entries and not arguments.replace)
        entries.update({user: entry for user, entry in fresh.items() if user not in skipped})

    edit_users(arguments.file, put)
    left = f", {len(skipped)} left as they were" if skipped else ""
    return f"{arguments.file}: {len(fresh) - len(skipped)} user(s) imported{left}"


def _scram(text: str) -> tuple[str, ...]:
    names = dict.fromkeys(text.upper().replace(",", " ").split())
    for name in names:
        if name not in SCRAM:
            raise Unusable(f"{name!r} is not one of {', '.join(SCRAM)}")
    return tuple(names)


def _moment(text: str) -> float:
    """Return seconds since 1970, for a date without a time those of its end; Unusable."""
    from trouter_plugins.users import parse_moment  # noqa: PLC0415

    try:
        return parse_moment(f"{text}T00:00:00Z") + 86400 if len(text) == len("2027-01-31") else parse_moment(text)
    except ValueError as error:
        raise Unusable(f"--expires: {error}, or as 2027-01-31") from None


def _from_input() -> bytes:
    """Return the password: typed twice at the terminal, else the first line of standard input; Unusable."""
    if not sys.stdin.isatty():
        return _password(os.fsencode(sys.stdin.readline(MAX_PASSWORD_BYTES + 2)), "the password")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise Unusable("the passwords differ")
    return _password(os.fsencode(password), "the password")


def _from_file(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return _password(file.readline(MAX_PASSWORD_BYTES + 2), f"the password in {path}")


def _password(line: bytes, which: str) -> bytes:
    password = line.rstrip(b"\r\n")
    _check_password(password, which)
    return password


def _check_password(password: bytes, which: str) -> None:
    """Raise Unusable, without the password in its text, for a password that is empty, too long or not UTF-8."""
    try:
        password.decode()
    except UnicodeDecodeError:
        password = b"\0"
    if not password or b"\0" in password:
        raise Unusable(f"{which} must not be empty, must be UTF-8, and must have no NUL")
    if len(password) > MAX_PASSWORD_BYTES:
        raise Unusable(f"{which} is longer than {MAX_PASSWORD_BYTES} bytes")
