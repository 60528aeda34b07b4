"""Web consoles as processes: rhea over a WebSocket, one dynamic receiver, one anonymous sender, and requests.

`ask` sends the requests of a console: each is a message of rhea (`to`, `application_properties`, `body`). Options:
`username` with `password` or `token`, `external`, the files `ca`, `cert` and `key` for wss, `subprotocol`, `origin`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.routers import DEADLINE_S

PROGRAM = Path(__file__).parent / "rhea" / "console.js"
PREFIX = "org.apache.qpid.dispatch."
NODE = {"type": "org.amqp.management", "name": "self"}


class LoginFailed(AssertionError):
    """The router refused or ended the console's connection."""


def ask(url: str, requests: Sequence[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    """Return the replies, in the order of the requests; raise LoginFailed."""
    given = {"url": url, "requests": list(requests), "subprotocol": "binary", **options}
    command = ["node", str(PROGRAM), json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    told = json.loads(done.stdout)
    if "failed" in told:
        raise LoginFailed(told["failed"])
    replies: list[dict[str, Any]] = told["replies"]
    return replies


def operation(name: str, to: str = "/$management", body: Any = (), **properties: Any) -> dict[str, Any]:
    """Return a request for an operation of the node; its body is the empty list unless one is given."""
    return {"to": to, "body": body, "application_properties": {"operation": name, **NODE, **properties}}


def query(entity: str, attributes: Any = (), to: str = "/$management") -> dict[str, Any]:
    """Return a query for a type, by its full name."""
    return operation("QUERY", to, {"attributeNames": attributes}, entityType=PREFIX + entity)


def rows(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a reply as maps."""
    assert reply["status"] == 200, reply
    names = reply["body"]["attributeNames"]
    return [dict(zip(names, values, strict=True)) for values in reply["body"]["results"]]
