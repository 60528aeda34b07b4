"""The table of the files that grant trust or are written, and their judgement when a configuration is read.

Who can change one of them can admit a user, name another one, or have the router write where the stranger may not.
Each is judged with the folders on its way (``keepers.py``). One that strangers can change is reported as the point
`writable-by-others`; with secureDefaults it is an error, unless the file accepts the point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from trouter.config.acceptances import Acceptance, Accepted
from trouter.config.cyrus import OTHER_USERS, cyrus_site_of
from trouter.config.draft import Draft
from trouter.config.entities import (
    ConnectorEntity,
    Entity,
    ListenerEntity,
    LogEntity,
    PolicyEntity,
    RecordLogEntity,
    RouterEntity,
    SslProfileEntity,
    VhostEntity,
)
from trouter.config.keepers import Danger, Keepers, Walk, keepers_of_process
from trouter.config.passwords import Secret
from trouter.config.problems import Findings, Problem, SourcePosition
from trouter.config.rules import LOG_STREAMS
from trouter.config.strictness import POINTS, REFUSED
from trouter.hooks import ENTRY_POINT_GROUP, code_of_plugin

POINT: Final = POINTS["writable-by-others"]
PAM_FOLDER: Final = "/etc/pam.d"


class Values(Protocol):
    """A section, or the entity that was made of it."""

    @property
    def written(self) -> Mapping[str, Any]:
        """The values as they were written, by field."""

    def value(self, field_name: str, /) -> Any:
        """Return the value of a field, or its default; None if it is invalid."""


@dataclass(frozen=True, slots=True)
class _Made:
    """The values of an entity."""

    entity: Entity

    @property
    def written(self) -> Mapping[str, Any]:
        return self.entity.written

    def value(self, field_name: str, /) -> Any:
        return getattr(self.entity, field_name)


@dataclass(frozen=True, slots=True)
class TrustedFile:
    """An attribute that names files: its section, its field, and ``paths``, which makes them of its value.

    ending: in a folder the files that end so count; None if the names in it do not.
    """

    kind: type[Entity]
    field: str
    paths: Callable[[Values, Any], Iterable[str]]
    ending: str | None = None


def _plain(_: Values, value: str) -> Iterator[str]:
    yield value


def _of_secret(_: Values, value: Secret) -> Iterator[str]:
    if value.path:
        yield value.path


def _tenants(values: Values, _: object) -> Iterator[str]:
    kind, _colon, path = str(values.written.get("tenant_from", "")).partition(":")
    if kind == "file":
        yield path


def _keys(_: Values, value: str) -> Iterator[str]:
    if "://" not in value:
        yield value


def _cyrus(values: Values, name: str) -> Iterator[str]:
    """Yield the file of Cyrus SASL that counts, and its database of users."""
    others = any(map(values.value, ("secure_defaults", *OTHER_USERS)))
    site = cyrus_site_of(values.value("sasl_config_dir"), name, others=others)
    if site is not None:
        yield str(site.path)
        yield from filter(None, (site.sasldb,))


def _pam(_: Values, service: str) -> Iterator[str]:
    yield str(Path(PAM_FOLDER, service))


def _code(_: Values, plugins: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, _hash in plugins:
        yield from code_of_plugin(name, ENTRY_POINT_GROUP)


def _output(_: Values, output: str) -> Iterator[str]:
    if output not in LOG_STREAMS:
        yield output


#: Every attribute whose files grant trust or are written.
TABLE: Final = (
    TrustedFile(RouterEntity, "users_file", _plain),
    TrustedFile(RouterEntity, "oauth_jwks", _keys),
    TrustedFile(RouterEntity, "sasl_config_name", _cyrus),
    TrustedFile(RouterEntity, "pam_service", _pam),
    TrustedFile(RouterEntity, "plugins", _code),
    TrustedFile(RouterEntity, "debug_dump_file", _plain),
    TrustedFile(PolicyEntity, "policy_dir", _plain, ".json"),
    TrustedFile(SslProfileEntity, "ca_cert_file", _plain, ""),
    TrustedFile(SslProfileEntity, "crl_file", _plain, ""),
    TrustedFile(SslProfileEntity, "cert_file", _plain),
    TrustedFile(SslProfileEntity, "private_key_file", _plain),
    TrustedFile(SslProfileEntity, "password_file", _plain),
    TrustedFile(SslProfileEntity, "password", _of_secret),
    TrustedFile(SslProfileEntity, "uid_name_mapping_file", _plain),
    TrustedFile(ListenerEntity, "trusted_certs_file", _plain, ""),
    TrustedFile(ListenerEntity, "metrics_token", _of_secret),
    TrustedFile(ListenerEntity, "tenant_from", _tenants),
    TrustedFile(ConnectorEntity, "sasl_password", _of_secret),
    TrustedFile(VhostEntity, "sample_key_file", _plain),
    TrustedFile(LogEntity, "output_file", _output),
    TrustedFile(RecordLogEntity, "dir", _plain),
)


def judge_files(
    drafts: Iterable[Draft],
    findings: Findings,
    keepers: Keepers,
    accepted: Sequence[Acceptance] = (),
    read: Iterable[str] = (),
) -> None:
    """Report each file of ``drafts`` that strangers can change, and each of the files that were ``read`` for them."""
    if keepers.everybody:
        return
    walk = Walk(keepers)
    covering = Accepted(accepted)
    for path in read:
        if danger := walk.danger(path):
            _report(Problem(SourcePosition(path), danger.message), danger, findings, covering)
    for draft in drafts:
        for field, danger in _dangers(walk, draft.type.entity, draft):
            key = draft.given[field].key if field in draft.given else ""
            found = Problem(draft.place(field), danger.message, draft.section.name, key)
            _report(found, danger, findings, covering)


def danger_of(entity: Entity, others: Iterable[str] = ()) -> str:
    """Return what strangers can do to the first such file of an entity in service, or of ``others``; "" for nothing."""
    walk = Walk(keepers_of_process())
    for _, danger in _dangers(walk, type(entity), _Made(entity)):
        return danger.message
    found = (walk.danger(path, ending="") for path in others)
    return next((danger.message for danger in found if danger), "")


def refusal_of_file(keepers: Keepers, path: str) -> str:
    """Return why a file is refused with secureDefaults; "" if only ``keepers`` can change it. Blocks."""
    danger = Walk(keepers).danger(path)
    return "" if danger is None else f"{danger.message}; {REFUSED}"


def _dangers(walk: Walk, kind: type[Entity] | None, values: Values) -> Iterator[tuple[str, Danger]]:
    """Yield field and danger of each file that the values of a section name."""
    for row in TABLE:
        if row.kind is kind and (value := values.value(row.field)):
            for path in row.paths(values, value):
                if danger := walk.danger(path, ending=row.ending):
                    yield row.field, danger


def _report(found: Problem, danger: Danger, findings: Findings, covering: Accepted) -> None:
    found = replace(found, suggestion=danger.cure, severity=POINT.severity, point=POINT.name)
    if findings.secure and covering.find(found) is None:
        findings.errors.append(replace(found, message=f"{found.message}; {REFUSED}"))
    else:
        findings.warnings.append(found)
