"""One led fleet: ``python -m trouter.load ROLE``, with the load as a first line of JSON on its input; see ``led``.

The load may hold a password, so it is no argument, which every user of the machine could read.
"""

from __future__ import annotations

import json
import os
import sys

from .plan import ERROR, Harness, Load, LoadError
from .roles import FLEETS


def first_line() -> str:
    """Return the first line of the input; the words behind it stay there, for ``Harness``."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(sys.stdin.fileno(), 1)
        if not byte:
            break
        line += byte
    return line.decode()


def main() -> int:
    """Run the fleet; return 1, with the reason for the harness, if the load could not be applied."""
    (role,) = sys.argv[1:]
    control = Harness(True)
    try:
        FLEETS[role](Load.from_json(first_line()), control).run()
    except LoadError as error:
        control.print_line(json.dumps({ERROR: str(error)}))
        return 1
    except BrokenPipeError:
        return 1  # the harness is gone
    return 0


sys.exit(main())
