"""One led fleet: ``python -m trouter.load ROLE LOAD``, with the load as JSON; see ``led``."""

from __future__ import annotations

import json
import sys

from .plan import Control, Load, LoadError
from .roles import FLEETS


def main() -> int:
    """Run the fleet; return 1, with the reason on standard error, if the load could not be applied."""
    role, text = sys.argv[1:]
    try:
        FLEETS[role](Load(**json.loads(text)), Control(True)).run()
    except LoadError as error:
        print(f"trouter bench {role}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    except BrokenPipeError:
        return 1  # the harness is gone
    return 0


sys.exit(main())
