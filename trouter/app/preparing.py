"""Prepares a change of the configuration: does everything that may fail, while the present one stays in force.

Sockets are bound, files are opened, plugins are called. If anything fails, all of it is undone (management.md 10).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import partial
from typing import Final, Protocol

import trio

from trouter import logs
from trouter.config import Configuration, ConfigurationError, ListenerEntity
from trouter.config.facts import listener_facts
from trouter.config.tenant_spaces import tenants_in
from trouter.connections.listeners import Standing
from trouter.hooks import ConfigurationRefused, ListenerFacts
from trouter.net.parts import Change, Step
from trouter.net.sockets import ListenError
from trouter.policy.compiled import Policy
from trouter.policy.entries import EntryError
from trouter.telemetry.sampling import samplings_of
from trouter.tls.problems import TlsProblems

from .draining import Drain
from .parts import ConfiguredParts
from .pending import PendingPlugins, Unfit
from .service import Service, service_of

BAD_REQUEST: Final = 400
#: The status that Qpid Dispatch answers, and its tools expect, if a log file cannot be opened.
FAILED: Final = 500
#: The beginning of the answer then.
C_ERROR: Final = "CError: Configuration: "


class Occasion(Enum):
    """Why a configuration comes into force: the router starts, a management request, or a reload."""

    START = auto()
    REQUEST = auto()
    RELOAD = auto()


class Server(Protocol):
    """The receiver of the entities in service once a change is applied: ``ConfigurationInForce``."""

    drain: Drain

    def serve(self, service: Service) -> None:
        """Replace the entities in service."""

    def make_listener(self, entity: ListenerEntity, sockets: list[socket.socket]) -> Standing:
        """Return a listener that shows this server's state if it serves HTTP."""

    def is_spare(self, entity: ListenerEntity) -> bool:
        """Return whether the router may start although this listener cannot be opened."""


class Preparation:
    """One change of the configuration while it is prepared. ``server`` receives the entities in service."""

    def __init__(self, parts: ConfiguredParts, server: Server, occasion: Occasion) -> None:
        self._parts = parts
        self._server = server
        self._occasion = occasion
        self._change = Change()
        self._problems: list[Unfit] = []

    async def prepare(self, present: Configuration, wanted: Configuration, withheld: frozenset[str]) -> Change:
        """Return the prepared change from ``present`` to ``wanted``; Unfit with every problem, and nothing stays open.

        ``withheld`` holds the identities of entities that are withheld now; those are not reported as problems.
        """
        parts, change = self._parts, self._change
        try:
            service = await self._prepare_tls(wanted, withheld)
            with self._collecting():
                open_ones = [each for each in service.listeners if not self._server.drain.closes(each)]
                tolerant = self._occasion is Occasion.START and not wanted.router.secure_defaults
                is_spare = self._server.is_spare if tolerant else None
                change.add(await parts.listeners.prepare(open_ones, self._server.make_listener, is_spare))
            with self._collecting():
                change.add(await self._prepare_policy(wanted))
            change.add(parts.connectors.prepare(service.connectors))
            change.add(parts.addresses.prepare(wanted.addresses))
            change.add(parts.auth_services.prepare(wanted.auth_services))
            change.add(Step(partial(self._server.serve, service)))
            with self._collecting():
                change.add(await parts.record_logs.prepare(wanted.record_logs))
            change.add(Step(partial(parts.guard.configure, wanted.router)))
            resumable = wanted.router.allow_resumable_link_route
            change.add(parts.routes.prepare(wanted.link_routes, wanted.auto_links, resumable=resumable))
            change.add(parts.exchanges.prepare(wanted.exchanges, wanted.bindings))
            if self._occasion is not Occasion.START:  # at the start the log is there already
                with self._collecting():
                    change.add(logs.prepare(wanted.logs, wanted.router))
                    change.add(Step(parts.connections.follow_log))  # its level may be another now
            self._prepare_plugins(present, wanted, service)
            if self._problems:
                lines = [line for problem in self._problems for line in problem.lines]
                raise Unfit(lines, min(problem.status for problem in self._problems))
        except BaseException:
            change.drop()
            raise
        return change

    def _of_system(self, message: str) -> str:
        """Return the text for a failure of the operating system, in Qpid Dispatch's form for its tools."""
        return f"{C_ERROR}{message}" if self._occasion is Occasion.REQUEST else message

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        """Collect the problem that the block raises and go on, so that the operator reads all problems at once."""
        try:
            yield
        except ListenError as error:
            self._problems.append(Unfit(list(error.lines), BAD_REQUEST))
        except ConfigurationError as error:
            messages = dict.fromkeys(
                problem.message for problem in error.problems
            )  # a file fails once, for all modules
            self._problems.append(Unfit([self._of_system(each) for each in messages], FAILED))
        except EntryError as error:
            self._problems.append(Unfit([str(error)], BAD_REQUEST))
        except ConfigurationRefused as error:
            self._problems.append(Unfit(list(error.problems), BAD_REQUEST))
        except TlsProblems as error:
            self._problems.append(Unfit(list(error.lines), BAD_REQUEST))

    async def _prepare_tls(self, wanted: Configuration, withheld: frozenset[str]) -> Service:
        """Load the sslProfiles, and return the entities that can be served with them."""
        starts = self._occasion is Occasion.START
        service = service_of(wanted)
        with self._collecting():
            tolerant = starts and not wanted.router.secure_defaults
            secure = await self._parts.secure.prepare(wanted, tolerant=tolerant)
            self._change.add(secure)
            service = service_of(wanted, secure.faults)
            if not starts:
                new = [each for each in service.withheld if each.entity not in withheld]
                self._problems += [Unfit([str(each)], BAD_REQUEST) for each in new if secure.faults]
        return service

    async def _prepare_policy(self, wanted: Configuration) -> Step:
        """Return the step to the compiled policy, host names looked up; an unchanged policy is not compiled again."""
        in_force = self._parts.policy
        entity, vhosts, before = wanted.policy, wanted.vhosts, in_force.compiled
        tenants = tenants_in(wanted)
        same = list(map(id, vhosts)) == [id(one.entity) for one in before.vhosts.values()]
        secure = wanted.router.secure_defaults
        if same and entity is before.entity and (tenants, secure) == (before.tenants.names, before.secure):
            return Step(partial(in_force.replace_policy, before, in_force.samplings))
        policy = await trio.to_thread.run_sync(
            lambda: Policy.compile(entity, vhosts, previous=before, tenants=tenants, secure=secure)
        )
        enforced = vhosts if entity.enable_vhost_policy else ()
        samplings = await trio.to_thread.run_sync(samplings_of, enforced, trio.current_time())
        if policy.host_names:
            policy = policy.with_addresses(await self._parts.host_names.look_up(policy.host_names))
        return Step(partial(in_force.replace_policy, policy, samplings))

    def _prepare_plugins(self, present: Configuration, wanted: Configuration, service: Service) -> None:
        """Configure the plugins on a reload without problems, as it has effect at once; else check mechanisms only."""
        if self._occasion is not Occasion.RELOAD:
            facts = (listener_facts(entity) for entity in service.listeners)
            conflicts = [line for each in facts for line in self._conflicts(each, wanted)]
            if conflicts:
                self._problems.append(Unfit(conflicts, BAD_REQUEST))
        elif not self._problems:
            with self._collecting():
                self._change.add(PendingPlugins(self._parts.plugins, present, wanted))

    def _conflicts(self, listener: ListenerFacts, wanted: Configuration) -> tuple[str, ...]:
        """Return the problems of a listener's mechanisms, a sentence each."""
        offer = self._parts.plugins.offers.of(listener)
        return (*offer.conflicts, *(offer.unknown if wanted.router.secure_defaults else ()))
