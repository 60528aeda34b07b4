"""Passes messages to the plugins that consume their address, from permitted senders only, one at a time.

The permission of a sender is checked when its message comes, while its connection is there. One task decodes the
messages later, between two turns of the data path. A user that may not send can neither fill the queue nor use up the
rate of the permitted senders.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import trio

from trouter._bell import Bell
from trouter._buckets import Bucket
from trouter._bugs import BUGS
from trouter.admission.decisions import Decisions
from trouter.core.inprocess import InsideMessage, Subscription
from trouter.core.outcomes import ACCEPTED, ACCEPTED_STATE, REJECTED, RELEASED, RELEASED_STATE, rejected_state
from trouter.core.router import Router
from trouter.core.terms import ROUTER_ROLES
from trouter.hooks import Consumer, ConsumerTerms, Decision, IncomingMessage, Plugins, Rejected
from trouter.management.ports import REQUESTER
from trouter.net.rates import NewBucket
from trouter.policy.router_policy import RouterPolicy
from trouter.records.text import clean
from trouter.wire.constants import AMQP_VALUE, APPLICATION_PROPERTIES, DATA, FOOTER, PROPERTIES
from trouter.wire.errors import DecodeError
from trouter.wire.message import SectionReader

#: Limit of the messages that wait to be decoded, of all consumers together.
MAX_WAITING: Final = 100
UNAUTHORIZED: Final = "amqp:unauthorized-access"
TOO_LARGE: Final = "amqp:link:message-size-exceeded"
_SUBJECT, _CONTENT_TYPE = 3, 6

log = logging.getLogger("trouter.POLICY")


class Waiting(NamedTuple):
    """A message of a permitted sender that waits to be decoded."""

    consumer: Consumer
    received: InsideMessage
    user: str


class ConsumerAddress:
    """The subscription of one consumer to its address; ``Consumers`` owns it."""

    def __init__(self, consumer: Consumer, terms: ConsumerTerms, consumers: Consumers) -> None:
        self.consumer = consumer
        self.terms = terms
        self._consumers = consumers
        self.bucket = consumers.new_bucket(("consumed", terms.address), terms.per_second, consumers.now(), None)

    def receive(self, received: InsideMessage) -> None:
        """Reject or release a message at once, or put it into the queue."""
        terms = self.terms
        user = self._consumers.sender(received, terms)
        if user is None:
            _reject(received, "the plugin does not list this user as a sender", UNAUTHORIZED)
        elif len(received.message) > terms.max_bytes:
            _reject(
                received,
                f"the message has {len(received.message)} bytes, at most {terms.max_bytes} are allowed",
                TOO_LARGE,
            )
        elif not self._consumers.put(Waiting(self.consumer, received, user), self.bucket):
            received.settle(RELEASED, RELEASED_STATE)


class Consumers:
    """The consumers of all plugins. ``now`` returns the time in seconds, ``flush`` writes settlements to sockets."""

    def __init__(
        self,
        router: Router,
        plugins: Plugins,
        policy: RouterPolicy,
        decisions: Decisions,
        flush: Callable[[], None],
        new_bucket: NewBucket,
        now: Callable[[], float] = trio.current_time,
    ) -> None:
        self.now = now
        self.new_bucket = new_bucket
        self._router = router
        self._plugins = plugins
        self._policy = policy
        self._decisions = decisions
        self._flush = flush
        self._places: list[tuple[ConsumerAddress, Subscription]] = []
        self._line: deque[Waiting] = deque()
        self._bell = Bell()

    def replace_consumers(self, consumers: tuple[Consumer, ...]) -> None:
        """Replace the served consumers by ``consumers``."""
        for place, subscription in self._places:
            self._router.inside.unsubscribe(subscription)
            place.bucket.give_up()
        places = [ConsumerAddress(consumer, consumer.terms, self) for consumer in consumers]
        self._places = [(place, self._router.inside.subscribe(place.terms.address, place)) for place in places]
        for place in places:
            log.info(
                "the router accepts decisions at the address %r from %d users",
                place.terms.address,
                len(place.terms.senders),
            )

    def sender(self, received: InsideMessage, terms: ConsumerTerms) -> str | None:
        """Return the user that sent a message; record a denial and return None if it may not or is unknown."""
        held = self._policy.policy_of(received.origin)
        request = None if held is None else held.request
        if (
            held is not None
            and request is not None
            and received.tenant is None
            and request.authenticated
            and request.user in terms.senders
            and not request.outgoing
            and request.role not in ROUTER_ROLES
            and held.admission.may_send(terms.address).allowed
        ):
            return request.user
        self._policy.deny_consumer(held, terms.address)
        return None

    def put(self, waiting: Waiting, bucket: Bucket) -> bool:
        """Append a message to the queue; return False if the queue is full or the rate of its address is exceeded."""
        if len(self._line) >= MAX_WAITING or not bucket.take_tokens(1, self.now()):
            return False
        self._line.append(waiting)
        self._bell.ring()
        return True

    async def run(self) -> None:
        """Pass one message after another to its consumer, until cancelled."""
        while True:
            while not self._line:
                await self._bell.wait()
            waiting = self._line.popleft()
            with BUGS.contained("internal error in a plugin's consumer"):
                self._consume(waiting)
            waiting.received.settle(RELEASED, RELEASED_STATE)  # it has no outcome only after a bug
            await trio.lowlevel.checkpoint()

    def _consume(self, waiting: Waiting) -> None:
        consumer, received, user = waiting
        REQUESTER.set(received.origin)
        rejected = self._answer(consumer, received.message, user)
        if rejected is None:
            received.settle(ACCEPTED, ACCEPTED_STATE)
        else:
            _reject(received, rejected.reason, rejected.condition)
        REQUESTER.set(0)
        self._flush()

    def _answer(self, consumer: Consumer, message: bytes, user: str) -> Rejected | None:
        try:
            read = read_message(message, user)
        except DecodeError as error:
            return Rejected(f"the message is malformed: {error}", "amqp:decode-error")
        answer = self._plugins.objects.consume(consumer, read)
        if isinstance(answer, Decision):
            return self._decisions.carry_out(answer, user, consumer.terms.max_standing)
        log.warning(
            "plugin refused the message of user %.128r to %.128r: %s",
            user,
            consumer.terms.address,
            clean(answer.reason),
        )
        return answer


def _reject(received: InsideMessage, reason: str, condition: str) -> None:
    received.settle(REJECTED, rejected_state(condition, reason))


def read_message(data: bytes, user: str) -> IncomingMessage:
    """Return the message in ``data`` as a consumer sees it; DecodeError if it is malformed."""
    bodies, subject, content_type = 0, "", ""
    body: bytes | None = None
    reader = SectionReader(data)
    while code := reader.next_section():
        value = reader.read_value()
        if code == PROPERTIES and isinstance(value, list):
            row = [*value, *[None] * (_CONTENT_TYPE + 1)]
            subject, content_type = (
                str(each) if isinstance(each, str) else "" for each in (row[_SUBJECT], row[_CONTENT_TYPE])
            )
        elif APPLICATION_PROPERTIES < code < FOOTER:
            bodies += 1
            if code == DATA and isinstance(value, bytes):
                body = value
            elif code == AMQP_VALUE and isinstance(value, str):
                body = value.encode("utf-8", "surrogatepass")
    return IncomingMessage(body if bodies == 1 else None, subject, content_type, user)
