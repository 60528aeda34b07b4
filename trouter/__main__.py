"""`python -m trouter` is the same as the command `trouter`."""

import sys

from trouter.cli import main

sys.exit(main())
