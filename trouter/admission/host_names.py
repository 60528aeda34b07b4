"""The addresses of the host names in ``remoteHosts``, looked up beforehand and at intervals, never while a client waits
to be admitted (security.md R-4.5).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import trio

from trouter.net.sockets import look_up

if TYPE_CHECKING:
    from trouter.policy.router_policy import RouterPolicy

#: Seconds for all look-ups of one round; slower threads end by themselves.
ROUND_S: Final = 5.0
#: Look-ups at the same time.
MAX_LOOKUPS: Final = 16

log = logging.getLogger("trouter.POLICY")


class HostNames:
    """The addresses of names, as last found."""

    def __init__(self) -> None:
        self.found: Mapping[str, tuple[str, ...]] = {}
        self._limiter = trio.CapacityLimiter(MAX_LOOKUPS)

    async def look_up(self, names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the addresses of ``names``: those found now, else those found before, else none."""
        wanted = {name: self.found.get(name, ()) for name in names}
        missing = set(wanted)

        async def ask(name: str) -> None:
            try:
                answers = await look_up(name, 0, None, limiter=self._limiter)
            except OSError:
                return
            wanted[name] = tuple(sorted({str(address[0]) for *_, address in answers}))
            missing.discard(name)

        with trio.move_on_after(ROUND_S):
            async with trio.open_nursery() as nursery:
                for name in wanted:
                    nursery.start_soon(ask, name)
        for name in sorted(missing):
            kept = ", ".join(wanted[name]) or "no host"
            log.warning(
                "remoteHosts: the host name %s cannot be resolved; the policy uses the addresses it had: %s", name, kept
            )
        self.found = wanted
        return wanted


async def look_names_up_again(router_policy: RouterPolicy, names: HostNames) -> None:
    """Look the policy's names up again, and apply what is found."""
    policy, before = router_policy.compiled, names.found
    if not policy.host_names:
        return
    found = await names.look_up(policy.host_names)
    if found != before and router_policy.compiled is policy:
        router_policy.replace_addresses(policy.with_addresses(found))
        log.info("remoteHosts: the addresses of host names have changed")
