"""The Spark settings of tests: two threads, each task tried four times, little memory, and a quick start."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MASTER: Final = "local[2,4]"


def settings_in(folder: Path) -> dict[str, str]:
    """Return the settings of such a session; its files are in ``folder``."""
    return {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # For a machine that is busy with other tests: Spark takes what is late for lost.
        "spark.executor.heartbeatInterval": "60s",
        "spark.network.timeout": "900s",
        "spark.python.authenticate.socketTimeout": "300s",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
