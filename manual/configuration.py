"""The manual's pages on configuration, written from the table of attributes; `make docs` puts them into docs/."""

from __future__ import annotations

from typing import Final

from manual.examples import NOTHING, SHOWN
from trouter.config.configuration import HOLDS
from trouter.config.entities import GROUP_SETTINGS, QUOTAS
from trouter.config.load import DEFAULT_TEXT
from trouter.config.schema import Attribute, EntityType, Kind, Reload
from trouter.config.types import CONFIGURED

INTRODUCTION: Final = """\
# Configuration

*This page is generated from the configuration schema (`make docs`).*

`trouter run -c FILE` starts a router with a file. `trouter check FILE` only checks it, and reports all errors at
once, each with file, line, column, section, attribute and a cure, and what it finds in the rest of the file.
`trouter check --strict FILE` also fails on what is unsafe: passwords that cross the network in clear or stand in the
file, listeners that admit every client, no TLS or no policy, groups of a vhost for every user from every host, private
files that all users of the machine can read, rules that apply to no connection. A comment in the file
[accepts](running.md#what-is-not-served-and-what-is-unsafe) what is meant so. [migration.md](migration.md) has the list,
and what `secureDefaults` changes about each. Without a file the router uses this:

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
  `maxFrameSize` are the same. If an attribute is given twice, the last one counts, with a warning.
- A value counts without the blanks around it. `#` begins a comment anywhere, except in the first word of `pattern`,
  `bindingKey` and `hostname`. Quotes around the whole value keep `#`, braces and blanks.
- A backslash begins an escape of JSON, in double quotes and without quotes: `DOMAIN\\\\user` is `DOMAIN\\user`. Without
  quotes, an escape that JSON does not know is taken literally, with a warning. In single quotes a backslash is a
  backslash, and `''` is a quote.
- Nothing in a value is expanded: `${{HOSTNAME}}` is text, with a warning. `${{user}}` in the addresses of a vhost is
  the policy's own, and passwords may be `env:NAME`.
- A relative path begins at the working directory of the router's process, not at the file; `qdrouterd -d` works in
  `/`. Write absolute paths for services.
- An attribute without a value counts as not given, with a warning.
- Several attributes may share the line of the opening brace, separated by `,` or `;`.
- In maps a value without quotes is a number, `true`, `false` or `null` if it reads like one in JSON, else text. A
  value shared by commas in a one-line map ends before the next `name: `; where that is doubtful it is an error, and
  so is a `#` that may be a wildcard of `sourcePattern` or `targetPattern`: quotes settle it.
- A file named `*.json` holds the JSON form: an array of `["sectionName", {{"attribute": value}}]`, in which values
  may be typed, comments may stand anywhere, and the last comma may stay. A comma that is missing is an error.
- The file is UTF-8; lines end in LF or CRLF.

Integers are decimal. `yes`, `true` and `on` mean yes, `no`, `false` and `off` mean no, in any case. Names are unique
among all sections; those of addresses, link routes, auto links and exchanges are unique among their own kind, and
those of bindings among the bindings of their exchange.

Sections may stand in any order. They take effect in this order: {order}.

The router accepts an attribute that is *without effect*, with a warning. It checks a section that is *not served* and
shows it in management, but does not put it into service, and logs a warning at the start; it refuses a management
request for one. Attributes marked + are trouter's own; all others are those of Qpid Dispatch, with its defaults
unless the text says otherwise.

## Changes

On the signal HUP, or the operation RELOAD of the management node, the router reads the file again. It applies all
changes or, if one of them cannot be applied, none. Afterwards the configuration is what the file says: the router
undoes what management created or changed meanwhile. The log, and the answer to RELOAD, list what was created, updated
and deleted, how much was kept, and what needs a restart. [running.md](running.md) has the details.

The column *change* says when a changed value takes effect after a reload or UPDATE: *live* at once, *next* for
connections, links or addresses that come afterwards, *restart* with the next start of the program.
"""

ADDRESS_RULES: Final = """\
Give exactly one of `prefix` and `pattern`. A prefix `a.b` is the pattern `a.b/#`. `.` and `/` mean the same, and the
router ignores them at either end; `#.#` is `#`, and `#.*` is `*.#`. No two sections may have the same addresses. A
fallback cannot be combined with a waypoint or phases.
"""

LISTENER_RULES: Final = """\
A standalone router accepts neither the role `inter-router` nor `edge`; an edge router accepts no listener with one of
them. The keys of openProperties are ASCII, are none of `failover-server-list`, `network-host`, `port`, `scheme` and
`hostname`, and do not begin with `qd.` or `x-opt-qd.`; `product` and `version`, texts, replace the router's own, for
clients that serve one product alone; listeners and connectors for other routers have no openProperties. `requireSsl`
and `requireEncryption` need an `sslProfile`, or no client can log in. `multiTenant` needs enableVhostPolicy, or
`authenticatePeer` and `tenantFrom`; without them the router does not open the listener
([multi-tenancy.md](../multi-tenancy.md)).
"""

SSL_PROFILE_RULES: Final = """\
A profile needs a name. While its files cannot be read, the router does not serve the listeners and connectors that
name it. `certFile` and `privateKeyFile` are given together; if both `password` and `passwordFile` are given, `password`
counts.
"""

CONNECTOR_RULES: Final = """\
When a connector changes, the router closes its connection and dials again. It does not use a `saslPassword` without a
`saslUsername`.
"""

LINK_ROUTE_RULES: Final = """\
Give exactly one of `prefix` and `pattern`, as for addresses, and not both `connection` and `containerId`.
"""

VHOST_RULES: Final = """\
The case of a host name, and a dot at its end, do not count. No two vhosts may have the same host name or alias. With
`enableVhostNamePatterns` in the policy host names are patterns, and no two may be the same. `allowUnknownUser`
needs a group `$default`. Without `enableVhostPolicy` in the policy vhosts have no effect.
"""

GROUP_RULES: Final = """\
A user belongs to one group. Give `sources` or `sourcePattern`, not both, and `targets` or `targetPattern`, not both.
`{user}` means the same as `${user}`, the name of the user; `$${user}` is the plain text. An entry may have it once;
in a pattern it is the first or the last token. Lists may be written in brackets.

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

#: The note below the heading of each section's page.
NOTE: Final = """\
*This page is generated from the configuration schema (`make docs`).
[Configuration](../configuration.md) describes the file, the columns, and when a change takes effect.*"""

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
    shown = SHOWN.get(kind.section, NOTHING)
    lines = [f"# {kind.section}", "", NOTE, "", kind.doc, ""]
    if kind.unserved:
        lines += [f"**Not served**: {kind.unserved}. {kind.instead.capitalize()}.", ""]
    if shown.example:
        lines += ["```", f"{shown.example}```", ""]
    lines += _attributes("Attributes", kind, RULES.get(kind.section, ""))
    if kind.section == "vhost":
        lines += _attributes("groups", GROUP_SETTINGS, GROUP_RULES)
        lines += _attributes("perUser, perHost", QUOTAS, "")
    about = ["## See also", "", *(f"- `{command}`" for command in shown.commands)]
    about += [f"- `{name}` among the [metrics](../metrics.md)" for name in shown.metrics]
    about += [f"- [{page}](../{page})" for page in shown.pages]
    return "\n".join([*lines, *(about if shown.pages else ()), ""])


def _attributes(title: str, kind: EntityType, rules: str) -> list[str]:
    """Return a chapter with the table of attributes, and the rules between them."""
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
    """Return one line for each reason, with the attributes that it applies to."""
    if not rows:
        return []
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        by_reason.setdefault(row.inert, []).append(f"`{row.name}`")
    reasons = [f"- {', '.join(names)}: {reason}." for reason, names in by_reason.items()]
    return ["Without effect, with a warning:", "", *reasons, ""]
