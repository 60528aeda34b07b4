"""A plugin that keeps each request that it gets for ever: the leak that a soak must detect."""

from __future__ import annotations

from trouter.hooks import AttachRequest, hookimpl


class Plugin:
    """The plugin of one router; it keeps every link."""

    def __init__(self) -> None:
        self.kept: list[AttachRequest] = []

    @hookimpl
    def judge_attach(self, request: AttachRequest) -> None:
        self.kept.append(request)
