"""What is logged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trouter.config import texts
from trouter.config.entities.base import Entity, entity
from trouter.config.schema import boolean, choice, string

LOG_MODULES: Final = (
    "ROUTER", "ROUTER_CORE", "ROUTER_HELLO", "ROUTER_LS", "ROUTER_MA", "MESSAGE", "SERVER", "AGENT", "AUTHSERVICE",
    "CONTAINER", "ERROR", "POLICY", "HTTP", "CONN_MGR", "PYTHON", "PROTOCOL", "AUDIT", "DEFAULT",
)  # fmt: skip
DEFAULT_MODULE: Final = "DEFAULT"


@entity("log", "What one module logs, and its output. At most one for each module.", "log", operations=("UPDATE",))
@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntity(Entity):
    """What one module logs, and where to. What is not given follows the module DEFAULT."""

    module: str = choice("The module.", values=LOG_MODULES, required=True, update=False)
    enable: frozenset[str] | None = string(
        "The levels logged, a list of: trace debug info notice warning error critical, each with `+` to include "
        "the levels above it; none; default.",
        default_doc="as DEFAULT, which has `info+`",
        parse=texts.levels,
    )
    include_timestamp: bool | None = boolean(
        "Begin each line with the time.", default_doc="as DEFAULT, which has yes", old_names=("timestamp",)
    )
    include_source: bool | None = boolean(
        "End each line with source file and line.",
        default_doc="as DEFAULT, which has no",
        old_names=("source",),
    )
    output_file: str | None = string(
        "stderr, stdout, syslog, or a file to append to.",
        default_doc="as DEFAULT, which has stderr",
        old_names=("output",),
    )
    format: str | None = choice(
        "Lines of text, or lines of one JSON object each.",
        default_doc="as DEFAULT, which has `text`",
        values=("text", "json"),
        extra=True,
    )

    @property
    def identity(self) -> str:
        return f"log/{self.module}"

    def _default_name(self) -> str:
        return self.identity
