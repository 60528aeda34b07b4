"""The addresses of this router: as they are, as last advertised, and the routers that requested all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .messages import MobileAddressUpdate

#: Addresses sent between two ticks to the routers that request them.
ADDRESSES_PER_TICK: Final = 1_000_000


class OwnAddresses:
    """The addresses of the router ``me`` for the other routers."""

    def __init__(self, me: str) -> None:
        self._me = me
        #: Counts the advertised changes.
        self.sequence = 0
        self._addresses: dict[str, int] = {}
        #: The addresses as advertised at ``sequence``, and the keys touched since.
        self._advertised: dict[str, int] = {}
        self._touched: dict[str, None] = {}
        #: The routers that requested all addresses and wait; and the message for them, made once.
        self._requesters: dict[str, None] = {}
        self._left = ADDRESSES_PER_TICK
        self._full_update: MobileAddressUpdate | None = None

    def add_address(self, key: str, hint: int) -> None:
        """Note that a local receiver listens on ``key``."""
        self._addresses[key] = hint
        self._touched[key] = None

    def delete_address(self, key: str) -> None:
        """Note that no local receiver listens on ``key`` any longer."""
        if self._addresses.pop(key, None) is not None:
            self._touched[key] = None

    def collect_changes(self) -> MobileAddressUpdate | None:
        """Return the changes since the last call, with their sequence; None if there are none."""
        touched, self._touched = self._touched, {}
        added = {key: self._addresses[key] for key in touched if key in self._addresses and key not in self._advertised}
        deleted = tuple(key for key in touched if key in self._advertised and key not in self._addresses)
        if not (added or deleted):
            return None
        self.sequence += 1
        self._advertised.update(added)
        for key in deleted:
            del self._advertised[key]
        self._full_update = None
        return MobileAddressUpdate(self._me, self.sequence, None, tuple(added), deleted, tuple(added.values()))

    # --- answers to other routers

    def note_request(self, router: str) -> None:
        """Note that ``router`` requested all addresses."""
        self._requesters[router] = None

    def renew_allowance(self) -> None:
        """Allow another tick's amount of answers."""
        self._left = ADDRESSES_PER_TICK

    def due_answers(self) -> Iterator[tuple[str, MobileAddressUpdate]]:
        """Yield requesting routers, each with its update; if that is much, the rest wait for the next tick."""
        while self._requesters and self._left > 0:
            router = next(iter(self._requesters))
            del self._requesters[router]
            if self._full_update is None:
                keys, hints = tuple(self._advertised), tuple(self._advertised.values())
                self._full_update = MobileAddressUpdate(self._me, self.sequence, keys, hints=hints)
            self._left -= len(self._advertised) + 1
            yield router, self._full_update
