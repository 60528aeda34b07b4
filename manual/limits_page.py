"""The manual's page on limits, written from the tables of limits and rungs; `make docs` puts it into docs/."""

from __future__ import annotations

import re
from dataclasses import astuple
from typing import Final

from manual.configuration import CHANGE
from manual.ladder import LADDER, Rung
from manual.limits import LIMITS, Limit
from trouter.config.schema import Attribute
from trouter.config.types import CONFIGURED

INTRODUCTION: Final = """\
# Limits

*This page is written from the tables in `manual/limits.py` and `manual/ladder.py` (`make docs`).*

Everything that could grow has a limit. The column *at it* says what the router does at the limit. If it sends the
peer an AMQP error, the next column has its condition; the error ends the link, session or connection that *at it*
names. The column *metric* names what counts these events, a metric or an attribute of management. *Change* says when
a new value of the attribute takes effect, as in [configuration.md](configuration.md): *live* at once, *next* for what
comes afterwards, *restart* with the next start.

| limit | default | at it | condition sent | metric | set by | change |
|---|---|---|---|---|---|---|
"""
NOTES: Final = """
A host is an IPv4 address or an IPv6 network of 64 bits. [authentication.md](authentication.md) says which of these
limits exempt this machine, and how to change that.

The limits of HTTP listeners are listed in [metrics.md](metrics.md).
"""

_LADDER: Final = """
## The overload ladder

Under a flood of clients or messages the router takes these steps one after the other. It slows senders down before it
stops them, and refuses links before it refuses connections; existing ones go on. It never closes a link or connection
of another router because of the memory of the process.

| budget | from | what happens | condition sent | seen by | ends |
|---|---|---|---|---|---|
"""

_KEPT: Final = """
## Memory for each byte that a client sends

The router decodes a frame to objects that take more memory than its bytes. It keeps of an attach only what it reads
later, and nothing of a link that it refused but its handles. What it keeps is charged to the connection, and with it
to the user, the vhost and the process: a session, a link, and the bytes of an open or an attach beyond ordinary ones
(`trouter stat --memory`, column `kept`). No frame leaves more than 100 bytes of memory for each byte of it; the fuzz
target `kept` checks this, and that at least half of it is charged. Measured by tracemalloc on the compiled router:

| frames | bytes of memory for each byte sent |
|---|---|
| shortest attaches (53 bytes), each with a dynamic address | 67 |
| shortest attaches (56 bytes), each with an address of its own: receivers, senders | 62, 54 |
| shortest begins (25 bytes) | 54 |
| attaches with 2,500 capabilities of a terminus | 28 |
| attaches with names and addresses of 16 kB | 1 to 4 |
| shortest attaches that are refused, never detached | 4 |
| attaches with 8,000 values in properties, filters or unsettled maps | 0.3 |

Memory that Python and the C library keep for new objects does not count as taken when the router refuses links and
connections.
"""

_CONDITION: Final = re.compile(r"(?:,| with)? `(amqp:[\w:-]+)`")


def page() -> str:
    """Return the whole page."""
    ladder = _LADDER + "".join(map(_rung_row, LADDER))
    return INTRODUCTION + "".join(_row(limit) for limit in LIMITS) + NOTES + ladder + _KEPT


def attributes_of(limit: Limit) -> list[Attribute]:
    """Return the attributes that set a limit, from the table of attributes; raise KeyError for an unknown one."""
    names = re.findall(r"`(\w+)`", limit.set_by)
    kinds = [kind for kind in CONFIGURED if kind.section in re.findall(r"\w+", limit.set_by)]
    found = [row for kind in kinds for name in names if (row := kind.field_spelled(name)) is not None]
    if names and {row.name for row in found} != set(names):
        raise KeyError(limit.set_by)
    return found


def conditions_of(limit: Limit) -> list[str]:
    """Return the conditions that peers get at a limit, each once."""
    return list(dict.fromkeys(_CONDITION.findall(limit.at)))


def _row(limit: Limit) -> str:
    changes = dict.fromkeys(CHANGE[row.reload] for row in attributes_of(limit))
    cells = (
        limit.name,
        limit.value,
        _CONDITION.sub("", limit.at),
        ", ".join(f"`{condition}`" for condition in conditions_of(limit)) or "-",
        limit.metric or "-",
        limit.set_by or "-",
        ", ".join(changes) or "-",
    )
    return f"| {' | '.join(cells)} |\n"


def _rung_row(rung: Rung) -> str:
    return f"| {' | '.join(astuple(rung))} |\n"
