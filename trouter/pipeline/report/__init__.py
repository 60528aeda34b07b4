"""One page about the tables: HTML with its plots inside, without scripts and external resources.

Needs Arrow and matplotlib, and no Spark.
"""

from __future__ import annotations

from trouter.pipeline.report.page import Report, build
from trouter.pipeline.report.stored import Period

__all__ = ["Period", "Report", "build"]
