"""The manual's pages on configuration, written from the table; `make docs` puts them where they belong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from trouter.config.configuration import HOLDS
from trouter.config.entities import GROUP_SETTINGS, QUOTAS
from trouter.config.examples import SHOWN
from trouter.config.load import DEFAULT_TEXT
from trouter.config.schema import Attribute, EntityType, Kind, Reload
from trouter.config.types import CONFIGURED

INTRODUCTION: Final = """\
# Configuration

*This page is written from the table that the router reads its configuration by (`make docs`).*

`trouter run -c FILE` reads a file; `trouter check FILE` only says what is wrong with it, everything at once, each
error with its file, line, column, section and attribute, and with what to do about it. `trouter check --strict FILE`
also fails on what is unsafe: passwords that cross the network in clear or stand in the file, listeners for other
machines that let every client in, groups of a vhost for every user from every host, private files that all users of the
machine can read, rules that hold no connection. [migration.md](migration.md) has the list, with what `secureDefaults`
makes of each. Without a file the router uses this:

```
{default}```

## The file

```
# a comment
listener {{                           # the brace may also stand on the next line
    host: 127.0.0.1                  # a value runs to the end of its line or to `#`
    port: amqp
    openProperties: {{                # a map: `key: value`, JSON, or any mixture; commas as you like
        "site": "north # 1", rack: 7
    }}
}}
address {{ pattern: news/#, distribution: multicast }}
```

- Sections and attributes are names of letters, digits, `-` and `_`; `max-frame-size`, `max_frame_size` and
  `maxFrameSize` are the same. An attribute given twice counts as given last, with a warning.
- A value is taken literally, without the blanks around it. `#` begins a comment anywhere, except in the first word
  of `pattern`, `bindingKey` and `hostname`. Quotes around the whole value keep `#`, braces and blanks: in double
  quotes with the escapes of JSON, in single quotes with `''` for a quote. Nothing in a value is expanded.
- An attribute without a value counts as not given, with a warning.
- Several attributes may share the line of the opening brace, separated by `,` or `;`.
- In maps a value without quotes is a number, `true`, `false` or `null` if it reads like one in JSON, else text. A
  value shared by commas in a one-line map ends before the next `name: `; where that is doubtful it is an error, and
  so is a `#` that may be a wildcard of `sourcePattern` or `targetPattern`: quotes settle it.
- A file named `*.json` holds the JSON form: an array of `["sectionName", {{"attribute": value}}]`, in which values
  may be typed, comments may stand anywhere, and the last comma may stay.
- The file is UTF-8; lines end in LF or CRLF.

Integers are decimal. `yes`, `true`, `on` and `no`, `false`, `off` are the truth values, in any case. Names are
unique among all sections; those of addresses, link routes, auto links and exchanges are unique among their own kind,
and those of bindings among the bindings of their exchange.

Sections may stand in any order. They take effect in this one: {order}.

What is *without effect* is accepted with a warning. What is *not served* yet is understood and checked in full, shown
by management, and not put into service, with a warning at the start: a listener that asks for TLS is not opened
rather than opened without it. Asked for over management, it is refused. Attributes marked + are trouter's own; all
others are those of the older router, with its defaults where the text does not say otherwise.

## Changes

The signal HUP, or the operation RELOAD of the management node, reads the file again: everything changes or, if
anything is wrong, nothing. Afterwards the file is the truth: what was created or changed over management and does not
stand in it is undone. The log, and the answer to RELOAD, tell what was created, updated and deleted, how much was
kept, and what needs a restart.

The column *change* tells when a changed value takes effect, by a reload or by UPDATE: *live* at once, *next* for
connections, links or addresses that come afterwards, *restart* with the next start of the program.
"""

ADDRESS_RULES: Final = """\
Exactly one of `prefix` and `pattern` is given. A prefix `a.b` is the pattern `a.b/#`. `.` and `/` mean the same,
those at either end do not count, and `#.#` is `#`, `#.*` is `*.#`. The same addresses cannot be configured twice. A
fallback goes with neither a waypoint nor phases.
"""

LISTENER_RULES: Final = """\
A standalone router accepts neither of the roles `inter-router` and `edge`, an edge router no listener with one of
them. The keys of openProperties are ASCII, none of `product`, `version`, `failover-server-list`, `network-host`,
`port`, `scheme` and `hostname`, and do not begin with `qd.` or `x-opt-qd.`; listeners and connectors for other routers
have none. `requireSsl` and `requireEncryption` need an `sslProfile`, or no client gets in. `multiTenant`
needs enableVhostPolicy, or `authenticatePeer` and `tenantFrom`; without them the listener is not opened
([multi-tenancy.md](../multi-tenancy.md)).
"""

SSL_PROFILE_RULES: Final = """\
It needs a name. What names a profile whose files cannot be read is not served until they can be. `certFile` and
`privateKeyFile` go together; `password` is preferred to `passwordFile`.
"""

CONNECTOR_RULES: Final = """\
A connector of which anything changes closes its connection and calls anew. A `saslPassword` without a
`saslUsername` is not used.
"""

LINK_ROUTE_RULES: Final = """\
Exactly one of `prefix` and `pattern` is given, as with addresses, and not both of `connection` and `containerId`.
"""

VHOST_RULES: Final = """\
Host names are compared without regard to case and to a dot at their end; no two vhosts share one, aliases included.
With `enableVhostNamePatterns` in the policy they are patterns, which must not be the same either. `allowUnknownUser`
needs a group `$default`. Without `enableVhostPolicy` in the policy no client is held to a vhost.
"""

GROUP_RULES: Final = """\
A user belongs to one group. Of `sources` and `sourcePattern` one is given, and of `targets` and `targetPattern`.
`{user}` is `${user}`; `$${user}` is text. It stands at most once in an entry, in a pattern as its first or its last
token. Lists may be written in brackets.

```
vhost {
    hostname: example.com
    allowUnknownUser: true
    groups: {
        admin: {
            users: alice, bob
            remoteHosts: 127.0.0.1, ::1, 10.0.0.0/8
            sources: *
            targets: *
        }
        $default: {
            remoteHosts: *
            sources: news*, inbox.${user}
        }
    }
}
```
"""

#: Below the heading of each section's page.
NOTE: Final = """\
*This page is written from the table that the router reads its configuration by (`make docs`).
[Configuration](../configuration.md) tells how a file is written, what the columns mean, and when a change takes
effect.*"""

CHANGE: Final = {Reload.LIVE: "live", Reload.NEXT: "next", Reload.RESTART: "restart"}

RULES: Final = {
    "address": ADDRESS_RULES,
    "listener": LISTENER_RULES,
    "connector": CONNECTOR_RULES,
    "sslProfile": SSL_PROFILE_RULES,
    "linkRoute": LINK_ROUTE_RULES,
    "autoLink": "Not both of `connection` and `containerId` are given.\n",
    "vhost": VHOST_RULES,
}


def pages() -> dict[str, str]:
    """Return every page by its name in docs/: the one about the file, and one for each section."""
    sections = {_page_of(kind): _section(kind) for kind in CONFIGURED}
    return {"configuration.md": _configuration(), **sections}


def _page_of(kind: EntityType) -> str:
    return f"reference/{kind.section}.md"


def _configuration() -> str:
    """Return the page about the file, with a table of the sections."""
    order = ", ".join(kind.type.section for kind in HOLDS.values())
    rows = [f"| [{kind.section}]({_page_of(kind)}) | {kind.doc} |" for kind in CONFIGURED]
    sections = ["## Sections", "", "| section | |", "|---|---|", *rows, ""]
    return "\n".join([INTRODUCTION.format(default=DEFAULT_TEXT, order=order), *sections])


def _section(kind: EntityType) -> str:
    """Return the page of a section."""
    shown = SHOWN[kind.section]
    lines = [f"# {kind.section}", "", NOTE, "", kind.doc, ""]
    if kind.unserved:
        lines += [f"**Not served**: {kind.unserved}. {kind.instead.capitalize()}.", ""]
    lines += ["```", f"{shown.example}```", ""]
    lines += _attributes("Attributes", kind, RULES.get(kind.section, ""))
    if kind.section == "vhost":
        lines += _attributes("groups", GROUP_SETTINGS, GROUP_RULES)
        lines += _attributes("perUser, perHost", QUOTAS, "")
    about = ["## See also", "", *(f"- `{command}`" for command in shown.commands)]
    about += [f"- `{name}` among the [metrics](../metrics.md)" for name in shown.metrics]
    about += [f"- [{page}](../{page})" for page in shown.pages]
    return "\n".join([*lines, *about, ""])


def _attributes(title: str, kind: EntityType, rules: str) -> list[str]:
    """Return a chapter with the table of attributes, and what holds for them together."""
    rows = sorted(kind.fields, key=lambda row: (row.name == "name", row.extra))
    lines = [f"## {title}", ""]
    if title != "Attributes":
        lines += [kind.doc, ""]
    lines += ["| attribute | value | default | change | |", "|---|---|---|---|---|"]
    lines += [*(_row(row) for row in rows if not row.inert), ""]
    if rules:
        lines += [rules]
    lines += _without_effect([row for row in rows if row.inert])
    shown = [row.name for row in kind.own if not row.settable]
    if shown:
        lines += [f"Shown by management, never set: {', '.join(f'`{name}`' for name in shown)}.", ""]
    return lines


def _row(row: Attribute) -> str:
    doc = row.doc
    if row.deprecated:
        doc += " Kept from older files."
    if row.old_names:
        doc += f" Old name: {', '.join(f'`{name}`' for name in row.old_names)}."
    name = f"`{row.name}`{' +' if row.extra else ''}"
    return f"| {name} | {_value(row)} | {_default(row)} | {CHANGE[row.reload]} | {doc} |"


def _value(row: Attribute) -> str:
    if row.kind is Kind.ENUM:
        return ", ".join(f"`{value}`" for value in row.values)
    if row.kind is Kind.INTEGER:
        return f"{row.low} to {row.high}"
    return str(row.kind.value)


def _default(row: Attribute) -> str:
    if row.default_doc:
        return row.default_doc
    if row.required:
        return "must be given"
    if row.default in (None, "", (), frozenset()):
        return "none"
    if row.kind is Kind.BOOLEAN:
        return "`yes`" if row.default else "`no`"
    return f"`{row.default}`"


def _without_effect(rows: list[Attribute]) -> list[str]:
    """Return one line for each reason, naming the attributes it holds for."""
    if not rows:
        return []
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        by_reason.setdefault(row.inert, []).append(f"`{row.name}`")
    reasons = [f"- {', '.join(names)}: {reason}." for reason, names in by_reason.items()]
    return ["Without effect, with a warning:", "", *reasons, ""]


if __name__ == "__main__":
    for name, text in pages().items():
        path = Path(sys.argv[1]) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
