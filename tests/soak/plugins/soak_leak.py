"""Keeps what it is asked about, for ever: the leak that a soak must find."""

from __future__ import annotations

from trouter.hooks import AttachRequest, hookimpl


class Plugin:
    """One router's instance: it forgets no link."""

    def __init__(self) -> None:
        self.kept: list[AttachRequest] = []

    @hookimpl
    def judge_attach(self, request: AttachRequest) -> None:
        self.kept.append(request)
