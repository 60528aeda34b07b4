"""Count the objects of a router's process by class: on SIGUSR2 write the counts to the file in the settings.

The counts also have the objects that the collector had to free, and the memory that Python and the C library have
allocated; these show whether memory that rises is in use.
"""

from __future__ import annotations

import ctypes
import gc
import json
import signal
import sys
from collections import Counter
from pathlib import Path

from trouter.hooks import RouterFacts, hookimpl


class _Heap(ctypes.Structure):
    """mallinfo2(3)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


_mallinfo = ctypes.CDLL(None).mallinfo2
_mallinfo.restype = _Heap


class Plugin:
    """The plugin of one router. It does not count objects of the start, which the router hides from the collector."""

    def __init__(self) -> None:
        self.file = Path()

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        if self.file == Path():  # only at the start, on the main thread; a reload changes nothing
            self.file = Path(str(router.settings["file"]))
            signal.signal(signal.SIGUSR2, lambda *_: self.write())

    def write(self) -> None:
        """Write the counts; the file appears only when it is complete."""
        collected = gc.collect()
        blocks, heap = sys.getallocatedblocks(), _mallinfo()
        counts = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
        counts["python.collected"] = collected
        counts["python.blocks"] = blocks
        counts["malloc.bytes"] = heap.uordblks + heap.hblkhd
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(counts), encoding="utf-8")
        part.replace(self.file)
