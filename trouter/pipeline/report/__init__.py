"""One page that tells what the tables hold: HTML with its plots inside, no script, nothing fetched from anywhere.

Needs Arrow and matplotlib, and no Spark.
"""

from __future__ import annotations

from trouter.pipeline.report.page import Report, build
from trouter.pipeline.report.stored import Period

__all__ = ["Period", "Report", "build"]
