"""The one handler of the process: writes each event by the settings of its module.

Settings change as a whole. `prepare` opens the outputs and touches nothing in use; `apply` cannot fail, so a caller
that changes more than the log can prepare everything first. Writing never stops the router: a line that an output
cannot take is counted, and the next one is preceded by a line about the gap.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from trouter._text import escape_unprintable
from trouter.config import Configuration, ConfigurationError, LogEntity, Problem, RouterEntity
from trouter.config.keepers import Keepers, keepers_of_process
from trouter.config.texts import DEFAULT_LEVELS, LEVELS
from trouter.logs.book import LogBook, LogLine, book
from trouter.logs.levels import DEFAULT, NUMBERS, ROOT, SILENT, known_number, module_of
from trouter.logs.lines import DEFAULT_FORMAT, Clock, Shape, entry_of, line_of, traceback_of
from trouter.logs.loggers import adopt, of
from trouter.logs.outputs import NAMED, STDERR, File, Output, Syslog

#: Settings of DEFAULT at the start.
STARTS_WITH: Final = LogEntity(
    module=DEFAULT,
    enable=frozenset(LEVELS[LEVELS.index("info") :]),
    include_timestamp=True,
    include_source=False,
    output_file="stderr",
    format="text",
)
#: Attributes that a module inherits from DEFAULT; `enable` may also refer to DEFAULT's.
_INHERITED: Final = ("include_timestamp", "include_source", "output_file", "format")
#: The module of lines about lost lines.
_TELLS: Final = "MAIN"


@dataclass(frozen=True, slots=True)
class ModuleSettings:
    """The settings of one module, with those of DEFAULT filled in."""

    numbers: frozenset[int]
    shape: Shape
    output: Output


@dataclass(frozen=True, slots=True)
class LogState:
    """The settings of DEFAULT and of each module with its own."""

    modules: Mapping[str, ModuleSettings]
    files: Mapping[Path, File]
    clock: Clock


BEGINNING: Final = LogState(
    {
        DEFAULT: ModuleSettings(
            frozenset(NUMBERS[level] for level in STARTS_WITH.enable or ()), Shape(True, False), STDERR
        )
    },
    {},
    Clock(time.localtime, DEFAULT_FORMAT),
)


class LogHandler(logging.Handler):
    """Writes each record by its module's settings, and keeps it in the book."""

    def __init__(self, kept: LogBook) -> None:
        super().__init__()
        self.state = BEGINNING
        #: The number of this worker, which its lines show; 0 for a router of one process.
        self.worker = 0
        self._book = kept

    def settings_of(self, module: str) -> ModuleSettings:
        modules = self.state.modules
        return modules.get(module) or modules[DEFAULT]

    def emit(self, record: logging.LogRecord) -> None:
        settings = self.settings_of(module_of(record.name))
        number = known_number(record.levelno)
        if number in settings.numbers:
            self._write(number, record, settings)

    def write(self, record: logging.LogRecord) -> None:
        """Write a record whether or not its level is enabled."""
        with self.lock or nullcontext():
            self._write(known_number(record.levelno), record, self.settings_of(module_of(record.name)))

    def _write(self, number: int, record: logging.LogRecord, settings: ModuleSettings) -> None:
        output = settings.output
        try:
            entry, trace = entry_of(record), traceback_of(record)
            self._book.keep_line(entry)
            if output.lost:
                self._log_gap(output, settings.shape)
            shape = _shape_for(output, settings.shape)
            output.put(number, line_of(entry, trace, shape, self.state.clock, self.worker))
        except Exception as failure:  # noqa: BLE001  # a full disk, a closed pipe: routing goes on
            output.lost += 1
            output.why = escape_unprintable(getattr(failure, "strerror", None) or str(failure))
            self._book.lost += 1

    def _log_gap(self, output: Output, shape: Shape) -> None:
        lines = "line" if output.lost == 1 else "lines"
        text = f"{output.lost} log {lines} could not be written to {escape_unprintable(output.name)}: {output.why}"
        entry = LogLine(_TELLS, "warning", text, "trouter/logs/handler.py", 0, time.time())
        output.put(logging.WARNING, line_of(entry, "", _shape_for(output, shape), self.state.clock, self.worker))
        output.lost = 0
        self._book.tally_of(_TELLS)[logging.WARNING] += 1
        self._book.keep_line(entry)

    def reopen(self) -> None:
        """Open the files by name again; log one that cannot be opened, and keep using the former one."""
        for path, file in self.state.files.items():
            try:
                file.reopen()
            except OSError as failure:
                of(_TELLS).error("%s; the log goes on in the file opened before", cannot_open(str(path), failure))

    def close(self) -> None:
        """Close the files; later lines go to stderr."""
        before, self.state = self.state, BEGINNING
        for file in before.files.values():
            file.close()
        super().close()


class Prepared:
    """Settings that can take effect, with open files: `apply` or `drop` them before the next `prepare`."""

    def __init__(self, handler: LogHandler, state: LogState) -> None:
        self._handler = handler
        self._state = state

    def apply(self) -> None:
        """Use these settings from now on; cannot fail."""
        before, self._handler.state = self._handler.state, self._state
        _close(before, but=self._state)
        adopt()
        modules = self._state.modules
        for name in [name for name in logging.root.manager.loggerDict if name.startswith(f"{ROOT}.")]:
            logging.getLogger(name).setLevel(logging.NOTSET)
        logging.getLogger(ROOT).setLevel(min(modules[DEFAULT].numbers, default=SILENT))
        for module, settings in modules.items():
            if module != DEFAULT:
                of(module).setLevel(min(settings.numbers, default=SILENT))

    def drop(self) -> None:
        """Close the files that only these settings use; the log stays as it was."""
        _close(self._state, but=self._handler.state)


def _close(state: LogState, but: LogState) -> None:
    for path, file in state.files.items():
        if but.files.get(path) is not file:
            file.close()


#: The handler of this process; it handles nothing until `configure` is called.
_handler: Final = LogHandler(book)


def prepare(entities: Iterable[LogEntity], router: RouterEntity, keepers: Keepers | None = None) -> Prepared:
    """Prepare settings for `entities`; ConfigurationError, with nothing left open, if an output cannot be opened.

    With secureDefaults files must belong to ``keepers``: root and the user of this process, unless they are given.
    """
    given = {entity.module: entity for entity in entities}
    default = _filled(given.get(DEFAULT, STARTS_WITH), STARTS_WITH)
    strict = (keepers or keepers_of_process()) if router.secure_defaults else None
    outputs = _Outputs(_handler.state, int(router.log_file_mode or _default_mode(router), 8), strict)
    modules = {
        entity.module: _settings(_filled(entity, default), outputs) for entity in {**given, DEFAULT: default}.values()
    }
    zone = time.gmtime if router.timestamps_in_utc else time.localtime
    state = LogState(modules, outputs.files, Clock(zone, router.timestamp_format or DEFAULT_FORMAT))
    prepared = Prepared(_handler, state)
    if outputs.problems:
        prepared.drop()
        raise ConfigurationError(outputs.problems)
    return prepared


def apply(entities: Sequence[LogEntity], router: RouterEntity) -> None:
    """Use `entities` as settings; ConfigurationError, without a change, if an output cannot be opened."""
    prepare(entities, router).apply()


def configure(configuration: Configuration, keepers: Keepers | None = None) -> LogHandler:
    """Install the handler with the settings of `configuration`; ConfigurationError, without a change."""
    prepared = prepare(configuration.logs, configuration.router, keepers)
    root = logging.getLogger(ROOT)
    root.addHandler(_handler)
    root.propagate = False
    prepared.apply()
    return _handler


def name_worker(worker: int) -> None:
    """Show the number of this worker in every line from now on."""
    _handler.worker = worker


def always(module: str, number: int, text: str, above: int = 1) -> None:
    """Log one line whatever levels are enabled, because a user asked for it; its place is ``above`` in the calls."""
    logger = of(module)
    book.tally_of(module)[known_number(number)] += 1
    file, line, *_ = logger.findCaller(stacklevel=1 + above)
    _handler.write(logger.makeRecord(logger.name, number, file, line, "%s", (text,), None))


def why_it_ends(text: str) -> None:
    """Log why the router cannot start or go on, and say it on stderr, too, where the log is elsewhere."""
    always(_TELLS, logging.CRITICAL, text, above=2)
    if _handler.settings_of(_TELLS).output is not STDERR:
        with suppress(OSError, ValueError):  # stderr may be closed
            STDERR.put(logging.CRITICAL, text)


def give(uid: int, gid: int) -> None:
    """Give the open log files to ``uid`` and ``gid``, so that the router can open them again as that user."""
    for file in _handler.state.files.values():
        file.give_to_user(uid, gid)


def reopen() -> None:
    """Open the log files by name again, after a tool has rotated them."""
    _handler.reopen()


class _Outputs:
    """Finds outputs, and opens those that are not open yet; a failure becomes a problem."""

    def __init__(self, present: LogState, mode: int, keepers: Keepers | None) -> None:
        self._mode = mode
        self._keepers = keepers
        self.files: dict[Path, File] = {}
        self.problems: list[Problem] = []
        self._present = present

    def find(self, entity: LogEntity) -> Output:
        name = "stderr" if entity.output_file is None else entity.output_file
        if name in NAMED:
            output = NAMED[name]
            if isinstance(output, Syslog):
                output.open()
            return output
        try:
            path = _path(name)
            if path not in self.files:
                self.files[path] = self._present.files.get(path) or File(path, self._mode, self._keepers)
            return self.files[path]
        except (OSError, ValueError) as failure:
            self.problems.append(Problem(entity.place, cannot_open(name, failure), "log", "outputFile"))
            return STDERR


def _path(name: str) -> Path:
    if not name:
        raise ValueError("a file has a name")
    return Path(name).absolute()


def cannot_open(name: str, failure: Exception) -> str:
    """Return the error text for a log file that cannot be opened."""
    return f"Failed to open log file {name!r}: {getattr(failure, 'strerror', None) or failure}"


def _default_mode(router: RouterEntity) -> str:
    return "0640" if router.secure_defaults else "0644"


def _settings(entity: LogEntity, outputs: _Outputs) -> ModuleSettings:
    numbers = frozenset(NUMBERS[level] for level in entity.enable or ())
    shape = Shape(bool(entity.include_timestamp), bool(entity.include_source), json=entity.format == "json")
    return ModuleSettings(numbers, shape, outputs.find(entity))


def _shape_for(output: Output, shape: Shape) -> Shape:
    return shape if output.timed else replace(shape, timestamp=False)


def _filled(entity: LogEntity, default: LogEntity) -> LogEntity:
    """Return `entity` with missing attributes taken from `default`."""
    enable = entity.enable
    if enable is None:
        enable = default.enable
    elif DEFAULT_LEVELS in enable:
        enable = (enable | (default.enable or frozenset())) - {DEFAULT_LEVELS}
    inherited = {name: getattr(default, name) for name in _INHERITED if getattr(entity, name) is None}
    return replace(entity, enable=enable, **inherited)
