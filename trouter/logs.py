"""Log lines as the older router writes them (configuration.md, section 8), over the standard `logging`.

Code logs to `trouter.<MODULE>`, for instance `logging.getLogger("trouter.SERVER")`, also available as `of("SERVER")`.
One handler at `trouter` asks the settings of the record's module, so any set of levels can be on, each module can have
its own output, and a module that nobody configured follows DEFAULT. A line that cannot be written is counted and
dropped: logging never stops the router.
"""

from __future__ import annotations

import logging
import sys
import syslog
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from trouter.config import Configuration, ConfigurationError, LogEntity, Problem
from trouter.config.texts import DEFAULT_LEVELS, LEVELS

TRACE: Final = 5
NOTICE: Final = 25

ROOT: Final = "trouter"
DEFAULT: Final = "DEFAULT"
DEFAULT_FORMAT: Final = "%Y-%m-%d %H:%M:%S.%%06lu %z"
#: What DEFAULT starts with.
STARTS_WITH: Final = LogEntity(
    module=DEFAULT,
    enable=frozenset(LEVELS[LEVELS.index("info") :]),
    include_timestamp=True,
    include_source=False,
    output_file="stderr",
)

NUMBERS: Final = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": NOTICE,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
NAMES: Final = {number: name for name, number in NUMBERS.items()}
SILENT: Final = logging.CRITICAL + 10
PRIORITIES: Final = {
    TRACE: syslog.LOG_DEBUG,
    logging.DEBUG: syslog.LOG_DEBUG,
    logging.INFO: syslog.LOG_INFO,
    NOTICE: syslog.LOG_NOTICE,
    logging.WARNING: syslog.LOG_WARNING,
    logging.ERROR: syslog.LOG_ERR,
    logging.CRITICAL: syslog.LOG_CRIT,
}
# Text that a stranger had a part in stays on one line, and does not speak to the terminal.
ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {10: "\\n", 13: "\\r", 9: "\t"}

Write = Callable[[int, str], None]

logging.addLevelName(TRACE, "TRACE")
logging.addLevelName(NOTICE, "NOTICE")


def of(module: str) -> logging.Logger:
    """The logger of one module, such as `SERVER`."""
    return logging.getLogger(f"{ROOT}.{module}")


@dataclass(frozen=True, slots=True)
class Settings:
    """How one module logs, everything that was left to DEFAULT filled in."""

    numbers: frozenset[int]
    timestamp: bool
    source: bool
    write: Write


class LogHandler(logging.Handler):
    """Writes each record as its module's settings say."""

    def __init__(self, configuration: Configuration) -> None:
        """Open every output; ConfigurationError if a file cannot be opened."""
        super().__init__()
        self.lost_count = 0
        self._clock = time.gmtime if configuration.router.timestamps_in_utc else time.localtime
        self._format = configuration.router.timestamp_format or DEFAULT_FORMAT
        self._files: dict[Path, BinaryIO] = {}
        self._settings: dict[str, Settings] = {}
        given = {entity.module: entity for entity in configuration.logs}
        default = _filled(given.get(DEFAULT, STARTS_WITH), STARTS_WITH)
        problems: list[Problem] = []
        for entity in {DEFAULT: default, **given}.values():
            self._settings[entity.module] = self._resolve(_filled(entity, default), problems)
        if problems:
            self.close()
            raise ConfigurationError(problems)

    def settings_of(self, logger_name: str) -> Settings:
        return self._settings.get(logger_name.rpartition(".")[2], self._settings[DEFAULT])

    def modules(self) -> dict[str, Settings]:
        """The settings of DEFAULT and of every module that has some of its own."""
        return dict(self._settings)

    def emit(self, record: logging.LogRecord) -> None:
        settings = self.settings_of(record.name)
        if record.levelno in settings.numbers:
            try:
                settings.write(record.levelno, self.line(record, settings))
            except Exception:  # noqa: BLE001  # a full disk, a closed pipe, arguments that do not fit: routing goes on
                self.lost_count += 1

    def line(self, record: logging.LogRecord, settings: Settings) -> str:
        """`[timestamp ]MODULE (level) text[ (file:line)]`, and a traceback on lines of its own."""
        level = NAMES.get(record.levelno, str(record.levelno))
        text = record.getMessage().translate(ESCAPES)
        parts = [f"{record.name.rpartition('.')[2]} ({level}) {text}"]
        if settings.timestamp and settings.write != _to_syslog:
            parts.insert(0, f"{self.timestamp(record.created)} ")
        if settings.source:
            parts.append(f" ({record.pathname}:{record.lineno})")
        if record.exc_info:
            parts.append("\n" + logging.Formatter().formatException(record.exc_info))
        return "".join(parts)

    def timestamp(self, seconds: float) -> str:
        whole, part = divmod(round(seconds * 1_000_000), 1_000_000)
        return time.strftime(self._format, self._clock(whole)).replace("%06lu", f"{part:06d}")

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        super().close()

    def _resolve(self, entity: LogEntity, problems: list[Problem]) -> Settings:
        numbers = frozenset(NUMBERS[level] for level in entity.enable or ())
        write = self._output(entity, problems)
        return Settings(numbers, bool(entity.include_timestamp), bool(entity.include_source), write)

    def _output(self, entity: LogEntity, problems: list[Problem]) -> Write:
        name = entity.output_file or "stderr"
        if name == "syslog":
            syslog.openlog("trouter", syslog.LOG_PID, syslog.LOG_DAEMON)
        if name in OUTPUTS:
            return OUTPUTS[name]
        path = Path(name).absolute()
        try:
            if path not in self._files:
                self._files[path] = path.open("ab", buffering=0)
        except OSError as failure:
            message = f"this file cannot be opened: {failure.strerror or failure}"
            problems.append(Problem(entity.place, message, "log", "outputFile", repr(name)))
            return _to_stderr
        return partial(_to_file, self._files[path])


def configure(configuration: Configuration) -> LogHandler:
    """Log as `configuration` says from now on; ConfigurationError, and no change, if an output cannot be opened."""
    handler = LogHandler(configuration)
    root = logging.getLogger(ROOT)
    for old in [old for old in root.handlers if isinstance(old, LogHandler)]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.propagate = False
    settings = handler.modules()
    for name in [name for name in logging.root.manager.loggerDict if name.startswith(f"{ROOT}.")]:
        logging.getLogger(name).setLevel(logging.NOTSET)
    root.setLevel(min(settings[DEFAULT].numbers, default=SILENT))
    for module, own in settings.items():
        if module != DEFAULT:
            of(module).setLevel(min(own.numbers, default=SILENT))
    return handler


def _filled(entity: LogEntity, default: LogEntity) -> LogEntity:
    """`entity` with what it does not say taken from `default`."""
    enable = entity.enable
    if enable is None:
        enable = default.enable
    elif DEFAULT_LEVELS in enable:
        enable = (enable | (default.enable or frozenset())) - {DEFAULT_LEVELS}
    return LogEntity(
        module=entity.module,
        enable=enable,
        include_timestamp=default.include_timestamp if entity.include_timestamp is None else entity.include_timestamp,
        include_source=default.include_source if entity.include_source is None else entity.include_source,
        output_file=entity.output_file or default.output_file,
        place=entity.place,
    )


def _write_line(stream: TextIO, line: str) -> None:
    stream.write(line + "\n")
    stream.flush()


def _to_file(file: BinaryIO, _: int, line: str) -> None:
    """Unbuffered, so that a line which cannot be written is gone and does not come back when the disk has room."""
    octets = (line + "\n").encode("utf-8", "backslashreplace")
    if file.write(octets) < len(octets):
        raise OSError("only a part of the line was written")


def _to_stderr(_: int, line: str) -> None:
    _write_line(sys.stderr, line)


def _to_stdout(_: int, line: str) -> None:
    _write_line(sys.stdout, line)


def _to_syslog(number: int, line: str) -> None:
    for part in line.splitlines():
        syslog.syslog(PRIORITIES.get(number, syslog.LOG_INFO), part)


OUTPUTS: Final[dict[str, Write]] = {"stderr": _to_stderr, "stdout": _to_stdout, "syslog": _to_syslog}
