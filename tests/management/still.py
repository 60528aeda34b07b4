"""A management node on a router without a process: connections in memory, a clock that a test moves, no sockets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import trio
import trio.testing

from trouter.columns.security import AlarmFacts, DenialFacts, VhostFacts
from trouter.config import Configuration, Problem, load
from trouter.config.changes import ChangeRefused, created, deleted, updated
from trouter.config.entities import Entity
from trouter.config.schema import EntityType
from trouter.logs import book
from trouter.management import Agent, ReloadReport
from trouter.management.ports import DRAINING, SERVING, DrainReport, Holdups, OpenChange, PlanReport, Rights
from trouter.net.view import ConnectionView
from trouter.policy.compiled import Policy
from trouter.policy.explain import explained
from trouter.testing.memory import MemoryRouter
from trouter.wire.codec import decode, encode
from trouter.wire.types import Described, ULong


class NoHoldups:
    """Neither failed logins nor decisions."""

    def list_keys(self) -> Sequence[object]:
        return ()

    def identity_of(self, key: object) -> str:
        return str(key)

    def find_facts(self, key: object) -> None:
        return None

    def lift_holdup(self, key: object) -> bool:
        return False


class NoChanges:
    """A router to which no changes come over the network."""

    async def open_change(self) -> None:
        return None

    async def check_policy(self, text: str, name: str, expectations: str) -> PlanReport:
        raise ChangeRefused(403, "this router has no file")

    async def apply(
        self,
        id: str,  # noqa: A002
        by: str,
        routers: tuple[str, ...],
        text: str,
        state: str,
        part: str,
    ) -> ReloadReport:
        raise ChangeRefused(403, "this router has no file")

    async def confirm(self, id: str) -> OpenChange:  # noqa: A002
        raise ChangeRefused(404, "no change is open")

    async def revert(self, id: str) -> OpenChange:  # noqa: A002
        raise ChangeRefused(404, "no change is open")


class StillControl:
    """A control that changes the configuration and nothing else; create and check wait for ``gate``."""

    def __init__(self, text: str = "router { id: R1 }\n") -> None:
        self.configuration: Configuration = load(text=text)
        self.behind: Mapping[int, str] = {}
        self.gate: trio.Event | None = None
        self.waiting = 0
        #: The rights of all users, and the denials so far: connection and action.
        self.allowed = Rights("admin")
        self.refusals: list[tuple[int, str]] = []
        #: The users of connections; each of the others has a user of its own.
        self.users: dict[int, str] = {}
        #: The connections that are those of neighbour routers.
        self.neighbours: set[int] = set()
        self.drain = DrainReport(SERVING)
        self.network_changes = NoChanges()

    @property
    def running(self) -> StillControl:
        return self

    async def create(self, kind: EntityType, name: str | None, attributes: Mapping[str, object]) -> Entity:
        if self.gate is not None:
            self.waiting += 1
            await self.gate.wait()
        self.configuration, entity = created(self.configuration, kind, name, attributes)
        return entity

    async def update(self, entity: Entity, attributes: Mapping[str, object]) -> Entity:
        self.configuration, entity = updated(self.configuration, entity, attributes)
        return entity

    async def delete(self, entity: Entity) -> None:
        self.configuration = deleted(self.configuration, entity)

    async def reload(self) -> ReloadReport:
        return ReloadReport(kept=len(self.configuration.entities))

    async def check(self, text: str, name: str, *, may_change: bool) -> PlanReport:
        if self.gate is not None:
            self.waiting += 1
            await self.gate.wait()
        return PlanReport(ReloadReport(kept=len(self.configuration.entities)))

    def connections(self) -> Mapping[int, ConnectionView]:
        return {}

    def memory(self, by: str) -> Sequence[Mapping[str, object]]:
        return ()

    def status(self, entity: Entity) -> Mapping[str, object]:
        return {}

    def vhost_statistics(self) -> Iterable[tuple[str, VhostFacts]]:
        return ()

    def topology(self) -> None:
        return None

    def uplink(self) -> None:
        return None

    def lockouts(self) -> Holdups:
        return NoHoldups()

    def decisions(self) -> Holdups:
        return NoHoldups()

    def rights(self, connection: int) -> Rights:
        return self.allowed

    def may_send(self, connection: int, address: str) -> bool:
        return True

    def uncovered(self, connection: int, pattern: str, direction: str) -> str | None:
        return None

    def denied(self, connection: int, what: str) -> None:
        self.refusals.append((connection, what))

    def user_key(self, connection: int) -> Hashable | None:
        return None if connection in self.neighbours else self.users.get(connection, connection)

    def tell_repeated(self, connection: int, what: str, write: Callable[[int], None]) -> None:
        write(1)

    async def start_drain(self, over_s: float) -> DrainReport:
        self.drain = DrainReport(DRAINING, over_s=over_s)
        return self.drain

    async def cancel_drain(self) -> DrainReport:
        self.drain = DrainReport(SERVING)
        return self.drain

    def drain_report(self) -> DrainReport:
        return self.drain

    def findings(self) -> Sequence[Problem]:
        return ()

    def denials(self) -> Iterable[tuple[int, DenialFacts]]:
        return ()

    def alarms(self) -> Iterable[tuple[int, AlarmFacts]]:
        return ()

    def handshakes_refused(self) -> Mapping[str, int]:
        return {}

    def router_counts(self) -> Mapping[str, int]:
        return {}

    def explain_policy(self, question: Mapping[str, str]) -> Mapping[str, object]:
        policy = Policy.compile(self.configuration.policy, self.configuration.vhosts)
        return explained(policy, question)

    def record_change(self, operation: str, kind: str, identity: str, values: Mapping[str, str]) -> None:
        pass


class Asker:
    """A client of the node, in memory."""

    def __init__(self, memory: MemoryRouter, control: StillControl, agent: Agent) -> None:
        self.memory = memory
        self.control = control
        self.agent = agent
        self.client = memory.connect()
        self.sender = self.client.sender("$management")
        self.receiver = self.client.receiver(dynamic=True, credit=10_000)
        self._taken = 0

    @property
    def reply_to(self) -> str:
        """Return the address for the answers."""
        return self.receiver.address

    def send(self, operation: str, body: object = None, *, reply_to: str = "", **properties: Any) -> Any:
        """Send a request."""
        sent = self.sender.send(message({"operation": operation, **properties}, body, reply_to or self.reply_to))
        self.memory.pump()
        return sent

    async def ask(self, operation: str, body: object = None, **properties: Any) -> tuple[int, str, Any]:
        """Send a request; return the status, description and body of the answer."""
        self.send(operation, body, **properties)
        await trio.testing.wait_all_tasks_blocked()
        self.memory.pump()
        return self.next_answer()

    def next_answer(self) -> tuple[int, str, Any]:
        """Return the next answer that has arrived."""
        sections = sections_of(self.receiver.received[self._taken].payload)
        self._taken += 1
        status = sections[0x74]
        return int(status["statusCode"]), status["statusDescription"], sections[0x77]

    async def page(self, kind: str, offset: int, count: int) -> list[str]:
        """Return the identities on a page of a query."""
        body = {"attributeNames": ["identity"]}
        status, text, answer = await self.ask("QUERY", body, entityType=kind, offset=offset, count=count)
        assert status == 200, text
        return [row[0] for row in answer["results"]]


def message(properties: dict[str, object], body: object, reply_to: str, correlation_id: object = None) -> bytes:
    """Return the bytes of a request."""
    sections = ((0x73, [None, None, None, None, reply_to, correlation_id]), (0x74, properties), (0x77, body))
    return b"".join(encode(Described(ULong(code), content)) for code, content in sections)


def sections_of(data: bytes) -> dict[int, Any]:
    """Return the sections of a message by their code."""
    found: dict[int, Any] = {}
    offset = 0
    while offset < len(data):
        value, offset = decode(data, offset, len(data))
        found[int(value.descriptor)] = value.value
    return found


async def serve(nursery: trio.Nursery, text: str = "router { id: R1 }\n") -> Asker:
    """Start a node that serves until the nursery is cancelled; return a client of it."""
    memory = MemoryRouter()
    control = StillControl(text)
    agent = Agent(memory.core, control, book, lambda: memory.now_s, memory.flush)
    await nursery.start(agent.run)
    return Asker(memory, control, agent)
