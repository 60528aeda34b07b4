"""How this environment's python-qpid-proton was compiled: the headers that were there decide what it can do."""

from __future__ import annotations

from typing import Final

import proton
import pytest

_COMPILE: Final = "and `make venv` compiles it with them"
#: For tests of a mechanism other than ANONYMOUS, PLAIN and EXTERNAL.
WITH_CYRUS: Final = pytest.mark.skipif(
    not proton.SASL.extended(),
    reason=f"python-qpid-proton is compiled without Cyrus SASL here: install its headers (libsasl2-dev), {_COMPILE}",
)
WITH_TLS: Final = pytest.mark.skipif(
    not proton.SSL.present(),
    reason=f"python-qpid-proton is compiled without TLS here: install OpenSSL's headers (libssl-dev), {_COMPILE}",
)
