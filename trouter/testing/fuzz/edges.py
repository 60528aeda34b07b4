"""Edges that a check runs in compiled modules, counted by clang's coverage (`-fsanitize=fuzzer-no-link`).

Such a module has a counter for each edge of its control flow in a section of its file, and a process that has libFuzzer
loaded counts there. An edge is one way from one basic block to the next, those of faults that never occur included, so
most modules of Cython have some hundreds that nothing reaches.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from trouter.testing.fuzz.lines import modules_of

#: The section of an ELF file that has the counters.
_SECTION: Final = b"__sancov_cntrs"
_HEADER: Final = struct.Struct("<40xQ10xHHH")
_ROW: Final = struct.Struct("<II8xQQQ24x")


class CompiledCoverage:
    """Counts the edges of some modules that the process runs; those of their import do not count."""

    def __init__(self, modules: Iterable[str]) -> None:
        """Count from now on; ImportError for a missing module. A module without counters has no edges."""
        paths = {getattr(each, "__file__", None) for name in modules for each in modules_of(import_module(name))}
        found = [_counters(path) for path in sorted(filter(None, paths)) if path.endswith(".so")]
        self._counters = [each for each in found if each is not None]
        for each in self._counters:
            ctypes.memset(each, 0, len(each))

    @property
    def total(self) -> int:
        """Number of edges."""
        return sum(map(len, self._counters))

    @property
    def reached(self) -> int:
        """Number of edges that have been run."""
        return sum(len(each) - bytes(each).count(0) for each in self._counters)


def _counters(path: str) -> Any:
    """Return the counters of a compiled module that this process has loaded, as an array; None without any."""
    found = _find_section(Path(path).read_bytes())
    if found is None:
        return None
    address, size = found
    return (ctypes.c_uint8 * size).from_address(_loaded_at(path) + address)


def _find_section(elf: bytes) -> tuple[int, int] | None:
    """Return address and size of the counters in a 64-bit ELF file, None if it has none."""
    table, width, count, names = _HEADER.unpack_from(elf)
    rows = [_ROW.unpack_from(elf, table + width * number) for number in range(count)]
    for name, _, address, _, size in rows:
        start = rows[names][3] + name
        if elf[start : elf.index(b"\0", start)] == _SECTION:
            return address, size
    return None


def _loaded_at(path: str) -> int:
    """Return the address at which this process has loaded a file; LookupError if it has not."""
    with Path("/proc/self/maps").open(encoding="utf-8") as maps:
        for line in maps:
            parts = line.split()
            if parts[-1] == path and int(parts[2], 16) == 0:
                return int(parts[0].partition("-")[0], 16)
    raise LookupError(f"{path} is not loaded in {sys.executable}")
