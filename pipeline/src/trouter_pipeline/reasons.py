"""Reasons of failed queries: the one helpful line out of all that Spark reports."""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

#: Errors that Spark raises, some of them Java's.
FAILURES: Final = (PySparkException, Py4JJavaError)
#: What Java raises if a stack is too small; it has no text of its own.
_STACK: Final = "java.lang.StackOverflowError"
STACK_CURE: Final = (
    "Java's stack was too small, as it is for a regular expression that recurses, or a very long one of conditions: "
    "simplify it, or give --conf spark.driver.extraJavaOptions=-Xss16m (on a cluster spark.executor.extraJavaOptions)"
)
_JAVA: Final = re.compile(r"\AAn error occurred while calling \S+\s+:\s+[\w.$]+: ")


def reason_of(error: Exception) -> str:
    """Return the reason of a failure: by our own exception, else Python's, else Spark's."""
    text = _JAVA.sub("", str(error).strip())
    if _STACK in text:
        return STACK_CURE
    ours = re.findall(r"^trouter(?:_pipeline)?\.[\w.]+: (.+)$", text, re.MULTILINE)
    raised = ours or re.findall(r"^\w[\w.]*(?:Error|Exception): .+$", text, re.MULTILINE)
    ended = re.search(r"terminated with exception: (.+)", text)
    return str(raised[-1] if raised else ended[1] if ended else text.partition("\n")[0]).strip()
