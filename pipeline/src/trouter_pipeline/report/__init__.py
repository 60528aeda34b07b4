"""One page about the tables: HTML with its plots inside, without scripts and external resources.

Needs Arrow and matplotlib, and no Spark.
"""

from __future__ import annotations

from trouter_pipeline.report.page import Report, build
from trouter_pipeline.report.stored import Period

__all__ = ["Period", "Report", "build"]
