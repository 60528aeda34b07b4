"""Who reads files of an object store: delta-rs, with a note of each use."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from deltalake.fs import DeltaStorageHandler


class Readers:
    """Counts of files that were opened, of reads in them and of files that are held, and who did it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Watch stores that are opened from now on, under roots and with options that were not in use before."""
        #: The names of threads that used a file, or let go of it.
        self.threads: set[str] = set()
        self.opened = 0
        self.reads = 0
        self.held = 0
        readers = self

        class Handler(DeltaStorageHandler):
            def open_input_file(self, path: str) -> pa.PythonFile:
                readers.opened += 1
                readers.held += 1
                readers.note()
                return pa.PythonFile(_Read(self._handler.open_input_file(path), readers))

        monkeypatch.setattr("deltalake.fs.DeltaStorageHandler", Handler)

    def note(self) -> None:
        """Note the calling thread."""
        self.threads.add(threading.current_thread().name)


class _Read:
    """A file of a store that says who uses it."""

    def __init__(self, file: Any, readers: Readers) -> None:
        self._file = file
        self._readers = readers

    def __getattr__(self, name: str) -> Any:
        self._readers.note()
        self._readers.reads += name == "read"
        return getattr(self._file, name)

    def __del__(self) -> None:
        self._readers.note()
        self._readers.held -= 1
