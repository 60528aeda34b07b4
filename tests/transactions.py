"""A broker on python-qpid-proton with transactions as part 4 of AMQP 1.0 describes them, and strict about them.

A transaction belongs to the session of its coordinator's link: the broker offers no `amqp:multi-ssns-per-txn`. What
a message or an acceptance of a transaction does is seen when the transaction is committed. Transactions that are not
discharged when the coordinator's link, session or connection ends are rolled back.

It has two habits of qpidd as modes: a session has one transaction at a time, and a transaction outlives the link of
its coordinator until the session ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from proton import Condition, Delivery, Described, Message, Terminus, ulong

from tests.brokers import DECLARED, TRANSACTIONAL, Broker, served

#: The descriptor of the outcome accepted, and those of declare and discharge, as numbers and as symbols.
_ACCEPTED = 0x24
_DECLARE = (0x31, "amqp:declare:list")
_DISCHARGE = (0x32, "amqp:discharge:list")


@dataclass
class Transaction:
    """What a transaction does when it is committed."""

    session: Any
    link: Any
    sent: list[tuple[str, Message]] = field(default_factory=list)
    #: Deliveries to receivers that the transaction accepts, with the sender and the message of each.
    accepted: list[tuple[Any, Any, Message]] = field(default_factory=list)


class TransactionalBroker(Broker):
    """A broker that keeps messages in queues, and works on them by transactions."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.keeps = True
        self.transactions: dict[bytes, Transaction] = {}
        self.committed = 0
        #: Transactions that the controller rolled back, and those whose link, session or connection ended.
        self.rolled_back = 0
        self.abandoned = 0
        #: If set, the broker rolls back the next transaction by itself, and refuses to commit it.
        self.refuses_next_commit = False
        #: Whether a session has one transaction at a time; and whether it keeps that until it ends itself.
        self.one_a_session = False
        self.outlives_its_link = False
        self._count = 0

    def on_message(self, event: Any) -> None:
        delivery: Any = event.delivery
        if event.link.remote_target.type == Terminus.COORDINATOR:
            self._control(event.link, delivery, event.message)
        elif delivery.remote_state == TRANSACTIONAL:
            transaction = self._transaction_of(event.link, delivery)
            if transaction is None:
                return
            transaction.sent.append((event.link.target.address, event.message))
            self._say(delivery, bytes(delivery.remote.data[0]))
            delivery.settle()
        else:
            super().on_message(event)
        self._tell()

    def on_delivery(self, event: Any) -> None:
        """Enlist an acceptance of a transaction by a receiver."""
        delivery: Any = event.delivery
        if (
            not delivery.link.is_sender
            or delivery.remote_state != TRANSACTIONAL
            or delivery.local_state == TRANSACTIONAL
        ):
            return
        transaction = self._transaction_of(delivery.link, delivery)
        if transaction is None:
            return
        assert int(delivery.remote.data[1].descriptor) == _ACCEPTED
        transaction.accepted.append((delivery, *self._sent.pop((delivery.link.name, delivery.tag))))
        self._say(delivery, bytes(delivery.remote.data[0]))
        self._tell()

    def on_released(self, event: Any) -> None:
        """Take an acceptance out of its transaction: the receiver has returned the message after all."""
        self._withdraw(event.delivery)
        super().on_released(event)

    def on_modified(self, event: Any) -> None:
        """Queue the message again: its delivery failed on the way."""
        self._withdraw(event.delivery)
        self._put_back(event.link.name, event.delivery.tag)
        super().on_modified(event)

    def _withdraw(self, delivery: Any) -> None:
        """Take an acceptance out of its transaction."""
        for transaction in self.transactions.values():
            for each in [each for each in transaction.accepted if each[0] == delivery]:
                transaction.accepted.remove(each)
                self._sent[delivery.link.name, delivery.tag] = each[1], each[2]

    def _put_back(self, name: str, tag: str) -> None:
        """Queue a message that was sent without an outcome again."""
        if (name, tag) in self._sent:
            sender, message = self._sent.pop((name, tag))
            self.queues[sender.source.address].appendleft(message)

    def forget(self) -> None:
        """Begin again, with empty queues, no counts and no habits."""
        self.queues.clear()
        self.committed = self.rolled_back = self.abandoned = 0
        self.one_a_session = self.outlives_its_link = False

    @staticmethod
    def _say(delivery: Any, name: bytes) -> None:
        delivery.local.data = [name, Described(ulong(_ACCEPTED), [])]
        delivery.update(TRANSACTIONAL)

    def _transaction_of(self, link: Any, delivery: Any) -> Transaction | None:
        """Return the transaction of a delivery; without one of its session, detach the link (4.5.8)."""
        transaction = self.transactions.get(bytes(delivery.remote.data[0]))
        if transaction is not None and transaction.session == link.session:
            return transaction
        link.condition = Condition("amqp:transaction:unknown-id")
        link.close()
        return None

    def _control(self, link: Any, delivery: Any, message: Message) -> None:
        body: Any = message.body
        if body.descriptor in _DECLARE and self.one_a_session and self._has_transaction(link.session):
            link.condition = Condition("amqp:transaction:rollback", "a session has one transaction at a time")
            link.close()
            return
        if body.descriptor in _DECLARE:
            self._count += 1
            name = f"transaction {self._count}".encode()
            self.transactions[name] = Transaction(link.session, link)
            delivery.local.data = [name]
            delivery.update(DECLARED)
        elif body.descriptor in _DISCHARGE:
            name, failed = bytes(body.value[0]), bool(body.value[1])
            transaction = self.transactions.pop(name, None)
            if transaction is None or transaction.link != link:
                self._reject(delivery, "amqp:transaction:unknown-id")
            elif failed:
                self.rolled_back += 1
                self._roll_back(transaction)
                delivery.update(Delivery.ACCEPTED)
            elif self.refuses_next_commit:
                self.refuses_next_commit = False
                self.rolled_back += 1
                self._roll_back(transaction)
                self._reject(delivery, "amqp:transaction:rollback")
            else:
                self.committed += 1
                self._commit(transaction)
                delivery.update(Delivery.ACCEPTED)
        else:
            self._reject(delivery, "amqp:not-implemented")
        delivery.settle()

    def _has_transaction(self, session: Any) -> bool:
        return any(each.session == session for each in self.transactions.values())

    @staticmethod
    def _reject(delivery: Any, condition: str) -> None:
        delivery.local.condition = Condition(condition)
        delivery.update(Delivery.REJECTED)

    def _commit(self, transaction: Transaction) -> None:
        for delivery, _, _ in transaction.accepted:
            delivery.settle()
        for address, message in transaction.sent:
            self.put(address, message)

    def _roll_back(self, transaction: Transaction) -> None:
        """Forget what was sent; what was accepted is in its queue again."""
        for delivery, sender, message in reversed(transaction.accepted):
            delivery.settle()
            self.queues[sender.source.address].appendleft(message)

    def _abandon(self, over: Callable[[Transaction], bool]) -> None:
        for name in [name for name, each in self.transactions.items() if over(each)]:
            self.abandoned += 1
            self._roll_back(self.transactions.pop(name))
        self._tell()

    def _gone(self, event: Any, closed: bool) -> None:
        if not self.outlives_its_link:
            self._abandon(lambda each: each.link == event.link)
        self._return_sent(lambda sender: sender == event.link)
        super()._gone(event, closed)

    def _return_sent(self, over: Callable[[Any], bool]) -> None:
        """Queue what was sent on links that are over, and has neither an outcome nor a transaction, again."""
        for key in reversed([key for key, (sender, _) in self._sent.items() if over(sender)]):
            self._put_back(*key)
        self._tell()

    def on_session_closing(self, event: Any) -> None:
        self._abandon(lambda each: each.session == event.session)
        self._return_sent(lambda sender: sender.session == event.session)

    def on_disconnected(self, event: Any) -> None:
        self._abandon(lambda each: each.session.connection == event.connection)
        self._return_sent(lambda sender: sender.session.connection == event.connection)


@contextmanager
def transactional_broker(name: str = "B") -> Iterator[TransactionalBroker]:
    """Run a broker with transactions that listens for routers."""
    made = TransactionalBroker(name)
    with served(made):
        yield made
