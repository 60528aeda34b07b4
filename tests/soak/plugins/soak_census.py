"""Counts the objects of a router's process by class: at SIGUSR2 it writes the counts into the file of its settings."""

from __future__ import annotations

import gc
import json
import signal
from collections import Counter
from pathlib import Path

from trouter.hooks import RouterFacts, hookimpl


class Plugin:
    """One router's instance. What was there at the start is not counted: the router hides it from the collector."""

    def __init__(self) -> None:
        self.file = Path()

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        if self.file == Path():  # at the start, which happens in the main thread; a reload has nothing new to say
            self.file = Path(str(router.settings["file"]))
            signal.signal(signal.SIGUSR2, lambda *_: self.write())

    def write(self) -> None:
        """Write the counts; the file appears when it is complete."""
        gc.collect()
        counts = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(counts), encoding="utf-8")
        part.replace(self.file)
