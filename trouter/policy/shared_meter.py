"""What a meter of one worker shares with the meters of the same rule at the other workers (docs/workers.md)."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Final

from trouter.net.tallies import SharedNumber, Tallies

#: An address whose links are at several workers: the most that are looked at in one check.
PORTION: Final = 1000
#: What the number of an address at a worker says: links of it are there; the worker counts it; or both.
USED: Final = 1
COUNTED: Final = 2


class SharedMeter:
    """The numbers of one meter at all workers; the meter writes those that a limit of its rule needs."""

    __slots__ = ("addresses", "buffered", "links", "senders")

    def __init__(self, tallies: Tallies, key: tuple[str, ...]) -> None:
        self.links = SharedNumber(tallies, "links", *key)
        #: Links on which the counted peers send.
        self.senders = SharedNumber(tallies, "senders", *key)
        #: Bytes held for messages and sessions.
        self.buffered = SharedNumber(tallies, "buffered", *key)
        self.addresses = SharedAddresses(tallies, key)

    def give_up(self) -> None:
        """Forget the numbers of this worker."""
        for number in (self.links, self.senders, self.buffered):
            number.write(0)
        self.addresses.use_only(())


class SharedAddresses:
    """The different addresses that the links of a meter have at all workers.

    An address is counted by one of the workers, the first that used it; that one goes on counting it while another one
    uses it. ``check_counted`` moves the count if a worker has ended. If two use an address at the same moment, both
    may count it until then, so together they never have more than the limit.
    """

    __slots__ = ("_apart", "_counted", "_key", "_numbers", "_tallies", "_total")

    def __init__(self, tallies: Tallies, key: tuple[str, ...]) -> None:
        self._tallies = tallies
        self._key = key
        #: The addresses that this worker uses or counts.
        self._numbers: dict[str, SharedNumber] = {}
        #: Those that it uses and does not count, or the other way round.
        self._apart: dict[str, None] = {}
        self._counted = 0
        self._total = SharedNumber(tallies, "addresses", *key)

    def __len__(self) -> int:
        """Return how many addresses this worker uses or counts."""
        return len(self._numbers)

    def count_all(self) -> int:
        """Return how many addresses all workers use."""
        return self._counted + self._total.sum_others()

    def is_used(self, address: str) -> bool:
        """Return whether a worker uses or counts the address."""
        return address in self._numbers or bool(self._number_of(address).list_others())

    def use_only(self, addresses: Collection[str]) -> None:
        """Use these addresses at this worker and no others."""
        for address in [each for each in self._numbers if each not in addresses]:
            self._write(address, 0)
        for address in addresses:
            self.begin_use(address)

    def begin_use(self, address: str) -> None:
        """Note that this worker uses an address; count it if no other worker does."""
        number = self._numbers.setdefault(address, self._number_of(address))
        counts = int(number.own) & COUNTED
        self._write(address, USED | counts)
        if not counts and not self._is_counted_elsewhere(number):
            self._write(address, USED | COUNTED)

    def end_use(self, address: str) -> None:
        """Note that this worker does not use an address any more; it counts it on if it did and another one uses it."""
        number = self._numbers.get(address)
        if number is None:
            return
        if not int(number.own) & COUNTED or self._is_used_elsewhere(number):
            self._write(address, int(number.own) & COUNTED)
            return
        self._write(address, 0)
        if self._is_used_elsewhere(number):  # since just now
            self._numbers[address] = number
            self._write(address, COUNTED)

    def check_counted(self) -> None:
        """See that each address that is used is counted by one worker; call once a second."""
        for address in list(islice(self._apart, PORTION)):
            del self._apart[address]
            number = self._numbers[address]
            own = int(number.own)
            if own == USED and not self._is_counted_elsewhere(number):
                own = USED | COUNTED
            elif own == COUNTED and (self._is_counted_elsewhere(number) or not self._is_used_elsewhere(number)):
                own = 0
            self._write(address, own)

    def _number_of(self, address: str) -> SharedNumber:
        return self._numbers.get(address) or SharedNumber(self._tallies, "address", *self._key, address)

    def _is_counted_elsewhere(self, number: SharedNumber) -> bool:
        self._tallies.put_in_order()
        return any(int(each) & COUNTED for each in number.list_others())

    def _is_used_elsewhere(self, number: SharedNumber) -> bool:
        self._tallies.put_in_order()
        return any(int(each) & USED for each in number.list_others())

    def _write(self, address: str, value: int) -> None:
        """Write the number of an address, and count the address or do not any more."""
        number = self._numbers[address]
        self._counted += (value & COUNTED) // COUNTED - (int(number.own) & COUNTED) // COUNTED
        number.write(value)
        self._total.write(self._counted)
        self._apart.pop(address, None)
        if not value:
            del self._numbers[address]
        elif value != USED | COUNTED:
            self._apart[address] = None
