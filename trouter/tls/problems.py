"""What goes wrong with TLS: the material of an sslProfile, or one connection."""

from __future__ import annotations


class TlsProblem(Exception):
    """An attribute of an sslProfile, or of who uses it, names something that cannot be used; why, in words."""

    def __init__(self, attribute: str, message: str) -> None:
        super().__init__(f"{attribute}: {message}")
        self.attribute = attribute
        self.message = message


class TlsProblems(Exception):
    """Profiles cannot be used; a line for each."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class TlsFailed(Exception):
    """TLS with one peer is over; why, without anything that the peer wrote. ``alert`` is the one that the peer sent."""

    def __init__(self, why: str, alert: str = "") -> None:
        super().__init__(why)
        self.alert = alert
