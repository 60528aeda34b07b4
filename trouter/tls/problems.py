"""Errors of TLS: in the files of an sslProfile, or on one connection."""

from __future__ import annotations


class TlsProblem(Exception):
    """An attribute of an sslProfile, or of its user, is unusable; ``message`` says why."""

    def __init__(self, attribute: str, message: str) -> None:
        super().__init__(f"{attribute}: {message}")
        self.attribute = attribute
        self.message = message


class TlsProblems(Exception):
    """Unusable profiles, a line for each."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class TlsFailed(Exception):
    """TLS with a peer failed; the text has nothing of the peer's. ``alert`` is the alert that the peer sent."""

    def __init__(self, why: str, alert: str = "") -> None:
        super().__init__(why)
        self.alert = alert
