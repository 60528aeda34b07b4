"""`python -m trouter.testing.fuzz FILE.py`: fuzz the target in a file."""

from __future__ import annotations

import sys

from trouter.testing.fuzz.command import main

if __name__ == "__main__":
    sys.exit(main())
