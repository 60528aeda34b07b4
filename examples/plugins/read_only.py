"""Vote on every link that a client attaches: deny sending to the addresses under the prefix in pluginSettings."""

from __future__ import annotations

from trouter.hooks import AttachRequest, RouterFacts, Vote, hookimpl


class Plugin:
    """The plugin of one router; its state is the prefix."""

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
            return Vote.DENY  # a sender without an address could name a read-only one in each message
        return Vote.ALLOW
