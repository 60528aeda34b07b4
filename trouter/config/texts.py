"""Parsers of texts in attributes: each returns the value that the entity holds, or raises BadValue."""

from __future__ import annotations

import ipaddress
import re
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from trouter.config.problems import nearest
from trouter.config.schema import BadValue, Doubt
from trouter.records.schema import AUDIT, KINDS, TELEMETRY

#: From the least to the most severe.
LEVELS: Final = ("trace", "debug", "info", "notice", "warning", "error", "critical")
#: The word in `enable` for the levels of the module DEFAULT.
DEFAULT_LEVELS: Final = "default"
# The order of looking up abbreviations: `d` is default, `n` is none.
_LEVEL_WORDS: Final = (DEFAULT_LEVELS, "none", *LEVELS)

MESSAGE_COMPONENTS: Final = (
    "message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding",
    "absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id", "app-properties",
)  # fmt: skip

WELL_KNOWN_PORTS: Final = {"amqp": 5672, "amqps": 5671}
#: The ports that browsers leave out of an origin, by its scheme.
WEB_PORTS: Final = {"http": "80", "https": "443"}

RESERVED_PROPERTIES: Final = frozenset({"failover-server-list", "network-host", "port", "scheme", "hostname"})
#: Properties of the router's open that an operator may replace: clients of one product refuse any other.
PRODUCT_PROPERTIES: Final = ("product", "version")
MAX_OPEN_PROPERTIES: Final = 64
RESERVED_PREFIXES: Final = ("qd.", "x-opt-qd.")

MAX_ROUTER_ID: Final = 127
#: The most workers of a router, and the word for as many as there are cores.
MAX_WORKERS: Final = 64
AUTO: Final = "auto"
MAX_PORT: Final = 65535
MAX_HOST_NAME: Final = 253
#: A name of a host, of which the first label may be a wildcard.
_LABEL: Final = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_SERVER_NAME: Final = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")

#: Words that stand for several kinds of records.
RECORD_GROUPS: Final[Mapping[str, frozenset[str]]] = {"all": frozenset(KINDS), "audit": AUDIT, "telemetry": TELEMETRY}


@dataclass(frozen=True, slots=True)
class FailoverUrl:
    """Another endpoint for clients; `scheme` is empty if none was given, `port` is a text, as in the open."""

    host: str
    port: str = "5672"
    scheme: str = ""


def random_router_id(mode: str = "standalone") -> str:
    """Return a random id for a router of this mode that has no configured one."""
    return f"{mode.capitalize()}_{''.join(secrets.choice(string.ascii_letters + string.digits) for _ in range(15))}"


def router_id(text: str) -> str:
    if not text:
        raise BadValue("must not be empty", "e.g. Router.A")
    if len(text) > MAX_ROUTER_ID:
        raise BadValue(f"is {len(text)} characters long", f"at most {MAX_ROUTER_ID}")
    if any(char.isspace() or not char.isprintable() for char in text):
        raise BadValue("must not contain blanks or control characters", "leave them out")
    return text


def workers(text: str) -> str:
    """Return a number of workers, or `auto`, as text; BadValue."""
    if text.lower() == AUTO:
        return AUTO
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_WORKERS:
        raise BadValue("is not a number of workers", f"1 to {MAX_WORKERS}, or {AUTO} for one for each core")
    return str(int(text))


def port(text: str) -> str:
    """Return the number of a port, 0 for any free one, or the name of a service, as text; BadValue."""
    if re.fullmatch("[0-9]+", text):
        if len(text) > 5 or int(text) > MAX_PORT:
            raise BadValue("is not a port", "a number from 0 to 65535, or a service name")
        return str(int(text))
    if not re.fullmatch("[A-Za-z0-9_-]*[A-Za-z][A-Za-z0-9_-]*", text):
        raise BadValue("is neither a port number nor a service name", "a number from 0 to 65535, or e.g. amqp")
    return text


def listed_port(text: str) -> str:
    """Parse a port as ``port`` does; Doubt for one above 65535, of which Qpid Dispatch takes the lowest 16 bits."""
    if re.fullmatch("[0-9]{5,20}", text) and int(text) > MAX_PORT:
        cure = "a number from 0 to 65535, or a service name"
        raise Doubt("port-too-high", str(int(text) % (MAX_PORT + 1)), "is not a port", cure)
    return port(text)


def port_or_service(text: str) -> int | str:
    """Return the number of a port, also of `amqp` and `amqps`; the name of any other service stays."""
    return int(text) if text.isdecimal() else WELL_KNOWN_PORTS.get(text, text)


def host(text: str) -> str:
    if any(char.isspace() or not char.isprintable() for char in text):
        raise BadValue("must not contain blanks or control characters", "leave them out")
    return text.removeprefix("[").removesuffix("]") if text.startswith("[") else text


def hosts(text: str) -> tuple[str, ...]:
    """Return names and addresses of hosts, each once; BadValue."""
    return tuple(dict.fromkeys(host(word) for word in re.split(r"[\s,;]+", text) if word))


def listed(text: str) -> tuple[str, ...]:
    """Return words, separated by blanks, commas or semicolons, each once."""
    return tuple(dict.fromkeys(word for word in re.split(r"[\s,;]+", text) if word))


def server_names(text: str) -> tuple[str, ...]:
    """Return names of hosts in lower case, each once, of which the first label may be `*`; BadValue."""
    found = tuple(name.lower().removesuffix(".") for name in listed(text))
    for name in found:
        if not (len(name) <= MAX_HOST_NAME and _SERVER_NAME.fullmatch(name)):
            raise BadValue(f"'{name[:80]}' is not the name of a host", "e.g. messages.example.com or *.example.com")
    return found


def allowed_hosts(text: str) -> tuple[str, ...]:
    """Return names of hosts in lower case, of which the first label may be `*`, or `*` alone for all; BadValue.

    There are none in `none`.
    """
    words = listed(text)
    if words == ("*",):
        return words
    return () if [word.lower() for word in words] == ["none"] else server_names(text)


def mechanisms(text: str) -> tuple[str, ...]:
    """Return SASL mechanisms in upper case, in the order given, each once; Doubt if one cannot be such a name."""
    names = tuple(dict.fromkeys(name.upper() for name in re.split(r"[\s,;]+", text) if name))
    for name in names:
        if not re.fullmatch("[A-Z0-9_-]{1,20}", name):
            raise Doubt("no-such-mechanism", names, f"'{name}' is not the name of a SASL mechanism", "e.g. PLAIN")
    return names


def bind_addresses(text: str) -> tuple[str, ...]:
    """Return addresses, networks, host names and `*` in lower case, each once; BadValue."""
    found = tuple(dict.fromkeys(item.lower() for item in re.split(r"[\s,]+", text) if item))
    for item in found:
        if item == "*":
            continue
        try:
            ipaddress.ip_network(item)
        except ValueError:
            if "/" in item or not re.fullmatch(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?", item):
                cure = "e.g. 127.0.0.1, 10.1.0.0/16, ::1, or a name"
                raise BadValue(f"'{item}' is no address, network or host name", cure) from None
    return found


class ListedPlugin(NamedTuple):
    """A plugin that may be loaded, and the ``sha256`` that its code must have, in hexadecimal; empty for any code."""

    name: str
    sha256: str


def plugin_list(text: str) -> tuple[ListedPlugin, ...]:
    """Return the plugins in a list of `NAME` and `NAME@sha256:HASH`; BadValue."""
    found: dict[str, ListedPlugin] = {}
    for item in re.split(r"[\s,]+", text):
        if not item:
            continue
        name, at, digest = item.partition("@")
        pinned = re.fullmatch("sha256:([0-9a-fA-F]{64})", digest)
        if not re.fullmatch(r"[\w.-]{1,100}", name) or (at and not pinned):
            raise BadValue(f"'{item}' does not name a plugin", "NAME or NAME@sha256:HASH; `trouter plugins` tells both")
        if name in found:
            raise BadValue(f"the plugin '{name}' appears twice", "leave one of them out")
        found[name] = ListedPlugin(name, pinned[1].lower() if pinned else "")
    return tuple(found.values())


def plugin_settings(settings: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    """Return the settings of each plugin by its name; BadValue if those of one are not a map."""
    for name, own in settings.items():
        if not isinstance(own, Mapping):
            raise BadValue(f"the settings of '{name}' must be a map", "write: { PLUGIN: { setting: value } }")
    return MappingProxyType({name: MappingProxyType(dict(own)) for name, own in settings.items()})  # type: ignore[call-overload]


def message_components(text: str) -> tuple[str, ...]:
    """Return the parts of a message to log, in the order of ``MESSAGE_COMPONENTS``; Doubt if one is unknown."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words in ([], ["none"]):
        return ()
    if words == ["all"]:
        return MESSAGE_COMPONENTS
    known = tuple(part for part in MESSAGE_COMPONENTS if part in words)
    for word in words:
        if word not in MESSAGE_COMPONENTS:
            suggestion = nearest(word, MESSAGE_COMPONENTS) or "all, none, or a list of parts"
            raise Doubt("unknown-component", known, f"'{word}' is not a part of a message", suggestion)
    return known


def failover_urls(text: str) -> tuple[FailoverUrl, ...]:
    """Return the endpoints in a list of `[scheme://]host[:port]` with commas; BadValue."""
    return tuple(_failover_url("".join(item.split())) for item in text.split(","))


def _failover_url(item: str) -> FailoverUrl:
    scheme, found, rest = item.rpartition("://")
    if found and not scheme:
        raise BadValue(f"'{item}' has an empty scheme", "[scheme://]host[:port]")
    match = re.fullmatch(r"(\[[^\]]+\]|[^:\[\]/@]+)(?::([^:/]+))?", rest)
    if match is None:
        raise BadValue(f"'{item}' has no usable host", "[scheme://]host[:port], an IPv6 address in brackets")
    return FailoverUrl(host(match[1]), port(match[2]) if match[2] else "5672", scheme)


def open_properties(properties: Mapping[str, object]) -> Mapping[str, object]:
    """Return properties for the open; BadValue for too many, or a key that is not ASCII or is the router's own."""
    if len(properties) > MAX_OPEN_PROPERTIES:
        raise BadValue(f"has {len(properties)} entries", f"at most {MAX_OPEN_PROPERTIES}")
    for key in properties:
        if not key.isascii():
            raise BadValue("Property keys must be ASCII encoded", "write the name in ASCII")
        if key in RESERVED_PROPERTIES or key.startswith(RESERVED_PREFIXES):
            raise BadValue(f"Reserved key '{key}' not allowed in openProperties", "give it another name")
        if key in PRODUCT_PROPERTIES and not isinstance(properties[key], str):
            raise BadValue(f"'{key}' must be text", "put it in quotes")
    return MappingProxyType(dict(properties))


def levels(text: str) -> frozenset[str]:
    """Return the levels in an `enable` list; DEFAULT_LEVELS stands for those of the module DEFAULT. BadValue."""
    enabled: set[str] = set()
    for word in re.split(r"[\s,;:]+", text.strip()):
        if word:
            enabled |= _levels_of(word)
    return frozenset(enabled)


def _levels_of(word: str) -> set[str]:
    stem = word.removesuffix("+").lower()
    level = next((name for name in _LEVEL_WORDS if stem and name.startswith(stem)), None)
    if level is None:
        suggestion = nearest(stem, _LEVEL_WORDS) or f"one of {', '.join(_LEVEL_WORDS)}"
        raise BadValue(f"'{word}' is not a log level", suggestion)
    if level == "none":
        return set()
    if level == DEFAULT_LEVELS:
        return {DEFAULT_LEVELS}
    return set(LEVELS[LEVELS.index(level) :]) if word.endswith("+") else {level}


def folder(text: str) -> str:
    """Return the path of a folder, which need not exist; BadValue if it is empty."""
    if not text:
        raise BadValue("must not be empty", "the path of a folder")
    return text


def file_name(text: str) -> str:
    """Return the name of a file in a folder that is fixed; BadValue for a path, which could lead out of it."""
    if "/" in text:
        raise BadValue("is a path, not a name", "write the name alone, without a folder")
    return text


def record_kinds(text: str) -> frozenset[str] | None:
    """Return the kinds of records in a list, None for all kinds; BadValue for an unknown one."""
    kinds: set[str] = set()
    for word in re.split(r"[\s,;]+", text.strip()):
        if word in KINDS:
            kinds.add(word)
        elif word in RECORD_GROUPS:
            kinds |= RECORD_GROUPS[word]
        else:
            known = (*RECORD_GROUPS, *KINDS)
            raise BadValue(f"'{word}' is no kind of record", nearest(word, known) or f"one of {', '.join(known)}")
    return None if kinds == RECORD_GROUPS["all"] else frozenset(kinds)


def names(text: str) -> frozenset[str]:
    """Return the names in a text with commas; BadValue if it has none."""
    found = frozenset(filter(None, map(str.strip, text.split(","))))
    if not found:
        raise BadValue("holds no name", "names, separated by commas")
    return found


def remote_host(text: str) -> str:
    """Return a host that the router can dial; BadValue if it is empty."""
    if not text:
        raise BadValue("must not be empty", "the name or the address of a host")
    return host(text)


def remote_port(text: str) -> str:
    """Return a port that the router can dial; BadValue for port 0."""
    number = listed_port(text)
    if number == "0":
        raise BadValue("is not a port that a router can dial", "a number from 1 to 65535, or a service name")
    return number


def split_host_and_port(text: str) -> tuple[str, str]:
    """Return the host and the port of `host[:port]`, `amqp` if it has no port; BadValue."""
    match = re.fullmatch(r"(\[[^\]]+\]|[^:\[\]/@\s]+)(?::([^:/]+))?", text.strip())
    if match is None:
        raise BadValue("is not a host and a port", "write: host:port, an IPv6 address in brackets")
    return host(match[1]), remote_port(match[2]) if match[2] else "amqp"


def host_and_port(text: str) -> str:
    split_host_and_port(text)
    return text


def web_socket_origins(text: str) -> tuple[str, ...]:
    """Return the origins in a list of `http[s]://host[:port]`, `null` and `*`, as browsers send them; BadValue.

    There are none in `none`.
    """
    words = [word for word in re.split(r"[\s,]+", text.strip().lower()) if word]
    return () if words == ["none"] else tuple(map(_origin, words))


def _origin(word: str) -> str:
    if word in {"*", "null"}:
        return word
    match = re.fullmatch(r"(https?)://(\[[0-9a-f:.]+\]|[^\[\]:/@?#*]+)(?::(\d{1,5}))?/?", word)
    if match is None:
        raise BadValue(f"'{word}' is not the origin of a page", "https://host[:port], * for every page, none")
    scheme, name, number = match.groups()
    return f"{scheme}://{name}" + ("" if number in {None, WEB_PORTS[scheme]} else f":{number}")


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(text: str) -> tuple[Network, ...]:
    """Return the addresses and networks in a text with commas or blanks, none for `none`; BadValue."""
    words = [word for word in re.split(r"[\s,;]+", text) if word]
    return () if [word.lower() for word in words] == ["none"] else tuple(_network(word) for word in words)


def _network(word: str) -> Network:
    try:
        return ipaddress.ip_network(word)
    except ValueError:
        raise BadValue(f"'{word}' is not an address or a network", "e.g. 192.0.2.7, 10.0.0.0/8, ::1") from None


TLS_PROTOCOLS: Final = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")


def tls_protocols(text: str) -> str | None:
    """Return versions of TLS, each once, None for an empty text; Doubt if one is unknown."""
    words = dict.fromkeys(word for word in re.split(r"[\s,;]+", text) if word)
    for word in words:
        if word not in TLS_PROTOCOLS:
            raise Doubt("unknown-tls-version", " ".join(words), f"'{word}' is not a version of TLS")
    return " ".join(words) or None


UID_LETTERS: Final = "csloun125"
#: Those that stand for a digest of the whole certificate.
UID_DIGESTS: Final = "125"


def uid_format(text: str) -> str | None:
    """Return the letters of parts of a certificate, None for no letter; Doubt if the router cannot use them."""
    for letter in text:
        if letter not in UID_LETTERS:
            raise Doubt("unknown-uid-letter", None, f"'{letter}' is not a part of a certificate")
    if len(text) > len(UID_LETTERS):
        raise Doubt("unknown-uid-letter", None, f"has {len(text)} letters")
    if sum(text.count(digest) for digest in "125") > 1:
        raise Doubt("unknown-uid-letter", None, "has more than one digest")
    return text or None
