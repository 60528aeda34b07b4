"""A vote on every link that a client attaches: nothing is sent to the addresses that pluginSettings call read-only."""

from __future__ import annotations

from trouter.hooks import AttachRequest, RouterFacts, Vote, hookimpl


class Plugin:
    """One router's instance: its state is the prefix of those addresses."""

    def __init__(self) -> None:
        self.prefix = ""

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        self.prefix = str(router.settings.get("prefix", ""))

    @hookimpl
    def judge_attach(self, request: AttachRequest) -> Vote | None:
        if not (self.prefix and request.sends):
            return None
        if request.address is None or request.address.startswith(self.prefix):
            return Vote.DENY  # a sender without an address could name this one in each message
        return Vote.ALLOW
