"""Why a query failed, for people: out of all that Spark says of it, the one line that helps."""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

#: What Spark raises; some of it comes as Java made it.
FAILURES: Final = (PySparkException, Py4JJavaError)
_JAVA: Final = re.compile(r"\AAn error occurred while calling \S+\s+:\s+[\w.$]+: ")


def reason_of(error: Exception) -> str:
    """What went wrong: what ours raised, else Python, else Spark."""
    text = _JAVA.sub("", str(error).strip())
    ours = re.findall(r"^trouter\.[\w.]+: (.+)$", text, re.MULTILINE)
    raised = ours or re.findall(r"^\w[\w.]*(?:Error|Exception): .+$", text, re.MULTILINE)
    ended = re.search(r"terminated with exception: (.+)", text)
    return str(raised[-1] if raised else ended[1] if ended else text.partition("\n")[0]).strip()
