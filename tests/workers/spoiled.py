"""A router whose workers send bytes of a test's choice on their channels to the parent.

Started as ``spoiled.py FILE FOLDER`` it is the router of a configuration file; its workers are started as
``spoiled.py FILE FOLDER DESCRIPTOR``. What is written to the pipe in FOLDER whose name is the process ID of a worker
is sent to the parent as one message.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

from trouter import logs
from trouter.cli.worker import main
from trouter.config import load
from trouter.workers.parent import Parent, run_parent


def run_router(file: str, folder: str) -> int:
    """Run the router; return its exit status."""
    configuration = load(Path(file))
    logs.configure(configuration)
    program = (sys.executable, __file__, file, folder)
    return run_parent(Parent(configuration.router.id, 2, file, None, program=program))


def run_worker(folder: str, descriptor: int) -> int:
    """Run a worker; return its exit status."""
    pipe = Path(folder, str(os.getpid()))
    os.mkfifo(pipe)
    beside = socket.socket(fileno=os.dup(descriptor))

    def spoil() -> None:
        message = pipe.read_bytes()
        beside.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(message))
        beside.send(message)
        beside.close()

    threading.Thread(target=spoil, daemon=True).start()
    return main(descriptor)


if __name__ == "__main__":
    _, file, folder, *descriptor = sys.argv
    sys.exit(run_worker(folder, int(descriptor[0])) if descriptor else run_router(file, folder))
