"""Overwrites secrets given as arguments in the process's title, which every user of the machine can read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

_SELF: Final = Path("/proc/self")
#: The fields with the bounds of the arguments in memory, counted from the command's name on (proc_pid_stat(5)).
_ARG_START: Final = 48 - 3
_ARG_END: Final = 49 - 3


def cover_arguments(secrets: Iterable[str]) -> None:
    """Write `x` over every argument that is one of these, or ends with `=` and one, or holds `:SECRET@`.

    Without /proc the arguments stay as they are.
    """
    wanted = [secret.encode(errors="surrogateescape") for secret in secrets if secret]
    if not wanted:
        return
    try:
        fields = (_SELF / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
        with (_SELF / "mem").open("r+b", buffering=0) as memory:
            memory.seek(start)
            arguments = memory.read(end - start)
            memory.seek(start)
            memory.write(covered(arguments, wanted))
    except (OSError, ValueError, IndexError):
        return


def passwords_in(urls: Iterable[str]) -> list[str]:
    """Return the passwords in addresses such as `amqp://USER:PASSWORD@HOST`, as they are written."""
    places = [url.rpartition("@")[0].rpartition("://")[2] for part in urls for url in part.split(",")]
    return [password for place in places if (password := place.partition(":")[2])]


def covered(arguments: bytes, secrets: list[bytes]) -> bytes:
    """Return NUL-separated arguments of the same length, without the secrets."""
    return b"\0".join(_covered(each, secrets) for each in arguments.split(b"\0"))


def _covered(argument: bytes, secrets: list[bytes]) -> bytes:
    for secret in secrets:
        hidden = b"x" * len(secret)
        if argument == secret:
            argument = hidden
        elif argument.startswith(b"-") and argument.endswith(b"=" + secret):
            argument = argument[: -len(secret)] + hidden
        argument = argument.replace(b":" + secret + b"@", b":" + hidden + b"@")
    return argument
