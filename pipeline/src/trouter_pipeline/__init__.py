"""The data pipeline on Spark: spools, the `amqp` source and sink, tables of records, and the jobs that compute them.

A distribution of its own; the router imports nothing of it.
"""

from __future__ import annotations

from trouter import _twin

__version__ = "0.2.0"

_twin.select(__path__)
