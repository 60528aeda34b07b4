"""The configuration of all workers as a file in memory, whose descriptor they and the parent hand to each other.

Only the parent and the workers get the descriptor, and the seals keep every process from changing the file: a worker
that reads it trusts it as it trusts the worker that wrote it.
"""

from __future__ import annotations

import copyreg
import fcntl
import mmap
import os
import pickle
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final

from trouter.config import Configuration
from trouter.config.passwords import Secret

_SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def seal(configuration: Configuration) -> int:
    """Return the descriptor of a new file in memory with the configuration; it belongs to the caller."""
    octets = BytesIO()
    _Pickler(octets, pickle.HIGHEST_PROTOCOL).dump(replace(configuration))  # a copy has no indexes yet
    descriptor = os.memfd_create("configuration", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(octets.getbuffer())
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    return descriptor


def unseal(descriptor: int) -> Configuration:
    """Return the configuration that another worker has sealed; the descriptor is closed."""
    try:
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as octets:
            found: Configuration = pickle.loads(octets)  # noqa: S301 - a worker of this router wrote it
            return found
    finally:
        os.close(descriptor)


def _read_only(items: dict[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(items)


def _secret(text: str, in_clear: bool, path: str, fault: str) -> Secret:
    return Secret(text, in_clear=in_clear, path=path, fault=fault)


class _Pickler(pickle.Pickler):
    dispatch_table = {  # noqa: RUF012 - the base class wants this attribute
        **copyreg.dispatch_table,
        MappingProxyType: lambda mapping: (_read_only, (dict(mapping),)),
        Secret: lambda each: (_secret, (each.reveal(), each.in_clear, each.path, each.fault)),  # in memory alone
    }
