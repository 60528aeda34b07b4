"""Denies management requests for files and hosts of this machine that a file may name (security.md 8.10).

The right to manage the router includes no right to read its disk; with secureDefaults, none to write to it or to open
its network. Values that an entity has already may stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address, ip_network
from typing import Any, Final

from trouter.config.configuration import Configuration
from trouter.config.entities import Entity, ListenerEntity, LogEntity, RecordLogEntity
from trouter.config.files import is_below, is_special
from trouter.config.hosts import is_loopback
from trouter.config.passwords import Secret, source_of
from trouter.config.problems import Problem
from trouter.config.rules import LOG_STREAMS
from trouter.config.schema import Attribute, Kind

#: Attributes that name a file or a folder of this machine that is read.
FILES: Final = frozenset({
    "ca_cert_file", "cert_file", "private_key_file", "uid_name_mapping_file", "crl_file", "trusted_certs_file",
    "sample_key_file", "policy_dir", "http_root_dir", "tenant_from",
})  # fmt: skip
EVERYWHERE: Final = "*"
SPECIAL: Final = "log.outputFile: management may choose no device and no other special file"
#: The attribute that names the file of a secret.
FIELD_OF_FILE: Final = "password_file"
#: Attributes of the router that say what management may do, code that runs in it, and names that lead to the users who
#: may log in; beside its files and folders.
BOUNDS: Final = frozenset({
    "secure_defaults", "allowed_bind_addresses", "allow_network_changes", "plugins", "plugin_settings",
    "sasl_config_name", "pam_service", "oauth_jwks",
})  # fmt: skip


def withheld(configuration: Configuration, entity: Entity, present: Entity | None) -> str:
    """Return why management may not have ``entity`` in the place of ``present``; empty if it may."""
    for kind, field, judge in JUDGES:
        if type(entity) is kind:
            wanted = getattr(entity, field)
            new = present is None or getattr(present, field) != wanted
            if new and (reason := judge(configuration, wanted)):
                return reason
    return ""


def beyond_management(present: Configuration, wanted: Configuration) -> Iterator[Problem]:
    """Yield what management may not have of a configuration as a whole that is to take the place of the present one.

    Besides what holds for each entity, the bounds of management are not among what it changes: they are changed in the
    file, on the machine.
    """
    router = wanted.router
    for attribute in router.type.fields:
        is_bound = attribute.field in BOUNDS or attribute.kind is Kind.PATH
        if is_bound and getattr(router, attribute.field) != getattr(present.router, attribute.field):
            why = "management may not change it: write it into the file on the router's machine, and start it again"
            yield Problem(router.place, why, router.type.section, attribute.name)
    for kind, field, judge in JUDGES:
        known = {getattr(entity, field) for entity in present.entities if type(entity) is kind}
        name = next(attribute.name for attribute in kind.type.fields if attribute.field == field)
        for entity in wanted.entities:
            new = type(entity) is kind and getattr(entity, field) not in known
            if new and (reason := judge(present, getattr(entity, field))):
                yield Problem(entity.place, reason.partition(": ")[2], kind.type.section, name)


def withheld_secret(configuration: Configuration, attribute: Attribute, text: str) -> str:
    """Return why management may not have the secret that this text would be read from; empty if it may.

    Call this before it is read: a client that may send the first line of a file to any peer could read every file.
    """
    source, name = ("file", text) if attribute.field == FIELD_OF_FILE else source_of(text)
    if not source or (source, name) in _named_sources(configuration):
        return ""
    if source == "env":
        return f"{attribute.name}: management may name only variables that the configuration names already"
    folder = configuration.router.secret_dir
    if folder and is_below(name, folder):
        return ""
    return f"{attribute.name}: management may name only files below the secretDir of the router"


def withheld_file(configuration: Configuration, attribute: Attribute, text: str) -> str:
    """Return why management may not have the file or the folder that this text names; empty if it may.

    Call this before the file is opened, so that the answer does not show whether it exists and what it holds.
    Attributes of Qpid Dispatch are held to it with secureDefaults only.
    """
    if attribute.field not in FILES or not (text := _path_in(attribute, text)):
        return ""
    if attribute.field == "http_root_dir":
        return _root(configuration, text).removeprefix("listener.")  # the caller names the section
    router = configuration.router
    if not (router.secure_defaults or attribute.extra) or text in _named_files(configuration):
        return ""
    if router.secret_dir and is_below(text, router.secret_dir):
        return ""
    return f"{attribute.name}: management may name only files below the secretDir of the router"


def _path_in(attribute: Attribute, text: str) -> str:
    """Return the path in the text of an attribute; empty if there is none."""
    if attribute.field != "tenant_from":
        return text
    kind, _, path = text.partition(":")
    return path if kind == "file" else ""


def _named_files(configuration: Configuration) -> Iterator[str]:
    """Yield the files and folders that the configuration names."""
    for entity in configuration.entities:
        for attribute in entity.type.fields:
            if attribute.field in FILES:
                written = entity.written.get(attribute.field, getattr(entity, attribute.field))
                if isinstance(written, str) and written:
                    yield _path_in(attribute, written)


def holds_secret(attribute: Attribute) -> bool:
    """Return whether an attribute is a secret, or names the file of one."""
    return attribute.secret or attribute.field == FIELD_OF_FILE


def _named_sources(configuration: Configuration) -> Iterator[tuple[str, str]]:
    """Yield the sources of the configuration's secrets."""
    for entity in configuration.entities:
        for attribute in filter(holds_secret, entity.type.fields):
            written = entity.written.get(attribute.field)
            if isinstance(written, Secret):
                yield source_of(written.reveal())
            elif value := getattr(entity, attribute.field):
                yield "file", str(value)


def _host(configuration: Configuration, host: str) -> str:
    allowed = configuration.router.allowed_bind_addresses
    if allowed is None:
        if (
            not configuration.router.secure_defaults
            or is_loopback(host)
            or host in {listener.host for listener in configuration.listeners}
        ):
            return ""
    elif _is_among(host.lower(), allowed):
        return ""
    return f"listener.host: {host or 'every interface'!r} is not among the allowedBindAddresses of the router"


def _is_among(host: str, allowed: Iterable[str]) -> bool:
    """Return whether a host is allowed; the address of all interfaces only by `*` or by itself, not by a network."""
    if EVERYWHERE in allowed or host in allowed:
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return not address.is_unspecified and any(address in network for network in map(_network, allowed) if network)


def _network(text: str) -> Any:
    try:
        return ip_network(text)
    except ValueError:
        return None


def _root(configuration: Configuration, folder: str | None) -> str:
    served = [listener.http_root_dir for listener in configuration.listeners if listener.http_root_dir]
    if not folder or any(is_below(folder, root) for root in served):
        return ""
    return "listener.httpRootDir: management may choose only folders that a listener of the file serves already"


def _output(configuration: Configuration, output: str | None) -> str:
    if not output or output in LOG_STREAMS or configuration.router.log_dir:  # logDir is a rule for files too
        return ""
    if not configuration.router.secure_defaults:
        return SPECIAL if is_special(output) else ""
    if any(log.output_file and is_below(output, log.output_file) for log in configuration.logs):
        return ""
    return "log.outputFile: management may choose a new file only where the router has a logDir to keep it in"


def _records(configuration: Configuration, folder: str) -> str:
    allowed = [log.dir for log in configuration.record_logs]
    if configuration.router.log_dir:
        allowed.append(configuration.router.log_dir)
    if any(is_below(folder, each) for each in allowed):
        return ""
    return "recordLog.dir: management may choose only folders below the logDir of the router"


#: Type and field of values that are checked if they are new, with the check.
JUDGES: Final[tuple[tuple[type[Entity], str, Callable[[Configuration, Any], str]], ...]] = (
    (ListenerEntity, "host", _host),
    (ListenerEntity, "http_root_dir", _root),
    (LogEntity, "output_file", _output),
    (RecordLogEntity, "dir", _records),
)
