"""The data pipeline on Spark: the `amqp` source and sink, tables made of records, and the jobs that compute them.

The router imports nothing of this room.
"""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
