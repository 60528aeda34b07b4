"""For what reads certificates: all that the package cryptography raises for one that it cannot read.

OpenSSL accepts more, and has verified a peer's certificate before: so a reader meets what its authority signed.
"""

from __future__ import annotations

from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

#: Reading any part may raise these: names and times ValueError, a key or a digest UnsupportedAlgorithm or TypeError,
#: extensions the others. A part that a certificate lacks is ExtensionNotFound, which is not among them.
UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
