"""Records changes of the configuration: the requester, the change, and its result.

The values of secret attributes are left out; all others are shown as management shows them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trouter.config import ChangeRefused, Configuration, Entity, VhostEntity, row
from trouter.management.ports import REQUESTER, REQUESTER_ELSEWHERE
from trouter.net.view import ConnectionView
from trouter.records import ConfigReloaded, ManagementChange, PolicyLoaded

from .recorder import Recorder

CREATED, OK, DELETED, BAD_REQUEST = 201, 200, 204, 400
_STATUS = {"CREATE": CREATED, "UPDATE": OK, "DELETE": DELETED}


class Changing:
    """One change being made: the entity before and after it, None if it does not exist then."""

    def __init__(self) -> None:
        self.before: Entity | None = None
        self.after: Entity | None = None


class ChangeRecords:
    """The records of configuration changes, made or refused."""

    def __init__(self, recorder: Recorder, connections: Mapping[int, ConnectionView]) -> None:
        self._recorder = recorder
        self._connections = connections

    @contextmanager
    def recording(self, operation: str, kind: str, name: str, requested: Mapping[str, object]) -> Iterator[Changing]:
        """Record the change that the block makes; ``requested`` are the attributes in the request."""
        change = Changing()
        status = _STATUS[operation]
        try:
            yield change
        except ChangeRefused as refused:
            status = refused.status
            raise
        finally:
            if self._recorder.active:
                self._record(operation, kind, name, requested, change, status)

    def _record(
        self, operation: str, kind: str, name: str, requested: Mapping[str, object], change: Changing, status: int
    ) -> None:
        before = None if change.before is None else row(change.before)
        after = None if change.after is None else row(change.after)
        entity = change.after or change.before
        secret = set() if entity is None else {each.name for each in entity.type.own if each.secret}
        known = after or {}
        changed = [
            each for each in known if each not in {"type", "identity"} and known[each] != (before or {}).get(each)
        ]
        attributes = list(dict.fromkeys([*changed, *requested])) if operation != "DELETE" else []
        values = {each: str(known[each]) for each in changed if each not in secret and known[each] is not None}
        self._recorder.emit(
            ManagementChange(
                **self.requester(),
                op=operation,
                entity_type=kind,
                entity_name=name if entity is None else entity.identity,
                attrs=attributes,
                status=status,
                before_hash=hash_of(before),
                after_hash=hash_of(after),
                values=values or None,
            )
        )

    def done(self, operation: str, kind: str, identity: str, values: Mapping[str, str]) -> None:
        """Record a change of something that is not configured, such as closing a connection."""
        self._emit(operation, kind, identity, _STATUS[operation], values)

    def refused(self, operation: str, kind: str, identity: str) -> None:
        """Record a refused change of something that is not configured."""
        self._emit(operation, kind, identity, BAD_REQUEST, {})

    def _emit(self, operation: str, kind: str, identity: str, status: int, values: Mapping[str, str]) -> None:
        if self._recorder.active:
            self._recorder.emit(
                ManagementChange(
                    **self.requester(),
                    op=operation,
                    entity_type=kind,
                    entity_name=identity,
                    attrs=list(values),
                    status=status,
                    values=dict(values) or None,
                )
            )

    def network_change(self, operation: str, change: str, status: int, values: Mapping[str, str]) -> None:
        """Record a step of a change of the whole configuration that came over the network; ``change`` is its id."""
        self._emit(operation, "configuration", change, status, values)

    def reloaded(self, source: str, *, by: str, changed: int = 0, errors: int = 0) -> None:
        """Record that the configuration ``source`` was read; ``by``: start, signal or management."""
        is_asked = REQUESTER.get() or REQUESTER_ELSEWHERE.get() is not None
        by = "management" if by == "signal" and is_asked else by
        digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._recorder.emit(ConfigReloaded(path_hash=digest, ok=not errors, changed=changed, errors=errors, by=by))

    def vhosts(self, before: Configuration | None, after: Configuration) -> None:
        """Record the rules of each vhost that is new or changed, and no rules for each that is gone."""
        if not self._recorder.active:
            return
        known = {} if before is None else _in_force(before)
        wanted = _in_force(after)
        for hostname, vhost in wanted.items():
            if known.get(hostname) != vhost:
                self._recorder.emit(PolicyLoaded(vhost=hostname, rules=list(rules_of(vhost))))
        for hostname in known.keys() - wanted.keys():
            self._recorder.emit(PolicyLoaded(vhost=hostname, rules=[]))

    def requester(self) -> dict[str, Any]:
        """Return the record fields of the connection whose request is being answered."""
        elsewhere = REQUESTER_ELSEWHERE.get()
        if elsewhere is not None:
            return dict(elsewhere)
        number = REQUESTER.get()
        connection = self._connections.get(number)
        return {"conn": number} if connection is None else connection.describe_connection()


def _in_force(configuration: Configuration) -> dict[str, VhostEntity]:
    """Return the vhosts whose rules are enforced."""
    if not configuration.policy.enable_vhost_policy:
        return {}
    return {vhost.hostname: vhost for vhost in configuration.vhosts}


def rules_of(vhost: VhostEntity) -> Iterator[str]:
    """Yield the ids of a vhost's rules, as decisions name them."""
    for name, group in vhost.groups.items():
        for attribute, entries in (
            ("remoteHosts", group.remote_hosts),
            ("sources", group.sources),
            ("targets", group.targets),
            ("sourcePattern", group.source_pattern),
            ("targetPattern", group.target_pattern),
        ):
            for number in range(1, len(entries) + 1):
                yield f"{vhost.hostname}:{name}:{attribute}:{number}"


def hash_of(shown: Mapping[str, object] | None) -> str | None:
    """Return a hash of an entity's attributes as management shows them; None for no entity."""
    if shown is None:
        return None
    text = json.dumps(shown, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
