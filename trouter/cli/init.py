"""`trouter init`: writes a first configuration with secureDefaults."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Final

from trouter.tools.failures import print_problem

NEW: Final = """\
# A router for clients of this machine, until the second listener is opened: `trouter check FILE` says what is wrong,
# docs/hardening.md what to do next. What is not given is secure, because of secureDefaults.
router {
    secureDefaults: yes
    usersFile: {users}
}

# Users are added with `trouter passwd`.
listener {
    host: 127.0.0.1
    port: amqp
    saslMechanisms: SCRAM-SHA-512 SCRAM-SHA-256
}

# The web console for users of this machine: http://127.0.0.1:5680/. It logs in without sending the password.
listener {
    name: console
    host: 127.0.0.1
    port: 5680
    http: yes
    saslMechanisms: SCRAM-SHA-512 SCRAM-SHA-256
}

# For other machines: `trouter certs` makes what this needs.
#sslProfile {
#    name: server
#    certFile: {certificate}
#    privateKeyFile: {key}
#    caCertFile: {authority}
#}
#listener {
#    port: amqps
#    sslProfile: server
#    saslMechanisms: SCRAM-SHA-512 SCRAM-SHA-256
#}

# Clients that ask for no vhost of this file get this one: addresses of their own name, and nothing else. Users whose
# names have `.` or `/` get none, so that alice cannot reach those of alice.x; list such users in a group of their own.
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: *
            sources: "${user}.*"
            targets: "${user}.*"
        }
        # They see and change the whole router, in the console and with `trouter manage`, from this machine.
        operators: {
            users: operator
            remoteHosts: 127.0.0.1, ::1
            sources: *
            targets: *
            allowDynamicSource: yes
            allowAnonymousSender: yes
            management: admin
        }
    }
}
"""
NEXT: Final = """\
{path} and the users file beside it are written; next:
  trouter check {path}
  trouter passwd add {users} operator
  trouter run -c {path}
The web console is then at http://127.0.0.1:5680/, for the user `operator`."""
USERS: Final = "# Written by `trouter passwd`.\n"
#: The files that the configuration names, beside it.
BESIDE: Final = {
    "{users}": "users",
    "{certificate}": "certs/server.crt",
    "{key}": "certs/server.key",
    "{authority}": "certs/ca.crt",
}
#: A gap in ``NEW``: one of the names of ``BESIDE``.
_GAPS: Final = re.compile(r"\{(?:users|certificate|key|authority)\}")
#: A path that means the same without quotes.
_PLAIN: Final = re.compile(r"[\w./-]+")
#: Other users must not read which users exist, or how the router is protected.
MODE: Final = 0o600


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "init",
        help="write a configuration to begin with",
        description="Write a secure configuration, and beside it an empty file of users. Nothing is overwritten.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the configuration to write, for example trouter.conf")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write both files; return the exit status."""
    path: Path = arguments.file.absolute()
    try:
        _write(path, _text_for(path.parent))
        if not os.path.lexists(path.parent / "users"):
            _write(path.parent / "users", USERS)
    except FileExistsError:
        print_problem(arguments, f"{path} exists already, and is left as it is")
        return 1
    except OSError as failure:
        print_problem(arguments, f"{failure.filename or path} cannot be written: {failure.strerror}")
        return 1
    print(NEXT.format(path=path, users=path.parent / "users"))
    return 0


def _text_for(folder: Path) -> str:
    """Return the configuration for a folder, whose name may have any characters."""
    written = {gap: str(folder / name) for gap, name in BESIDE.items()}
    quoted = {gap: each if _PLAIN.fullmatch(each) else json.dumps(each) for gap, each in written.items()}
    return _GAPS.sub(lambda gap: quoted[gap[0]], NEW)


def _write(path: Path, text: str) -> None:
    """Write a new file; FileExistsError if there is one."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)
