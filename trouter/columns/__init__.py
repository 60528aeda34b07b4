"""What management shows of running objects: each column declared once, with its type, text, unit, value and head.

A row of these tables is all that a column needs. The schema (``config/operational.py``), the answers of management
(``management/providers``), the tables of `trouter stat` (``tools/views``), /metrics, the types of the console and
docs/columns.md are made from the rows.
"""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
