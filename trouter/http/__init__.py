"""HTTP beside AMQP: metrics and health pages, files, and WebSockets for AMQP clients in browsers."""

from .figures import CertificateExpiry, Figures, ListenerFigures, MemoryOwner
from .listener import HttpListener

__all__ = ["CertificateExpiry", "Figures", "HttpListener", "ListenerFigures", "MemoryOwner"]
