"""HTTP beside AMQP: metrics and health pages, files, and WebSockets for AMQP clients in browsers."""

from .figures import CertificateExpiry, Figures, Histogram, ListenerFigures, MemoryOwner
from .listener import HttpListener
from .ports import PagesOnly, Site

__all__ = [
    "CertificateExpiry", "Figures", "Histogram", "HttpListener", "ListenerFigures", "MemoryOwner", "PagesOnly", "Site",
]  # fmt: skip
