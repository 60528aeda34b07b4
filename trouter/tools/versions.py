"""The versions of trouter and of what it runs on, found without importing any of it."""

from __future__ import annotations

import ctypes
import platform
import ssl
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any, Final

import trouter
from trouter import _twin

#: Name in the report -> the distribution.
_DISTRIBUTIONS: Final = {
    "trio": "trio",
    "proton": "python-qpid-proton",
    "pipeline": "trouter-pipeline",
    "spark": "pyspark",
    "pyarrow": "pyarrow",
}
_SASL_LIBRARY: Final = "libsasl2.so.2"


def versions() -> dict[str, Any]:
    """Return versions by name, None for what is not installed; `plugins` maps each to the distribution it is from."""
    return {
        "trouter": trouter.__version__,
        "twin": _twin.running(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "openssl": ssl.OPENSSL_VERSION,
        "libsasl2": _sasl(),
        **{name: _installed(distribution) for name, distribution in _DISTRIBUTIONS.items()},
        "plugins": {
            point.name: f"{point.dist.name} {point.dist.version}" if point.dist else ""
            for point in sorted(entry_points(group="trouter.plugins"))
        },
    }


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _sasl() -> str | None:
    """Return the version that Cyrus SASL reports."""
    try:
        library = ctypes.CDLL(_SASL_LIBRARY)
    except OSError:
        return None
    numbers = [ctypes.c_int() for _ in range(4)]
    library.sasl_version_info(None, None, *(ctypes.byref(each) for each in numbers))
    return ".".join(str(each.value) for each in numbers[:3])
