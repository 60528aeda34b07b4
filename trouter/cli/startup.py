"""What `run` and `check` share: load configuration and plugins, and list their problems."""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Collection, Iterable
from importlib import import_module
from pathlib import Path

from trouter import logs
from trouter.app.descriptor_findings import descriptor_limit, few_descriptors
from trouter.app.service_findings import unknown_services
from trouter.config import Configuration, ConfigurationError, Problem, RouterEntity, load
from trouter.config.acceptances import accept
from trouter.config.facts import router_facts
from trouter.config.findings import OVERTAKEN, evaluate, judged, not_served, ordered
from trouter.config.keepers import EVERYBODY, Keepers
from trouter.config.load import FaultyConfiguration
from trouter.config.problems import Severity, SourcePosition
from trouter.config.reporting import finding_of
from trouter.config.same_addresses import same_addresses
from trouter.hooks import ConfigurationRefused, PluginError, Plugins
from trouter.logs.outputs import NAMED


class StartError(Exception):
    """The router cannot start. `lines` have a problem each; `problems` are those with a position in a file.

    `others` are findings that would not keep it from starting.
    """

    def __init__(self, *lines: str, problems: tuple[Problem, ...] = (), others: tuple[Problem, ...] = ()) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.problems = problems
        self.others = others


def prepare(
    path: Path | None, text: str | None = None, keepers: Keepers | None = None, decoy_key: bytes = b""
) -> tuple[Configuration, Plugins]:
    """Return the configuration and the plugins, configured by it; StartError if the router cannot start with them.

    The configuration is ``text``, else the file at ``path``, else the built-in one. ``keepers`` as for ``load``.
    ``decoy_key`` is that of the workers.
    """
    logs.configure(Configuration(router=RouterEntity()))  # until the configuration says otherwise
    try:
        configuration = load(path, text, keepers)
    except ConfigurationError as error:
        raise _start_error(error) from error
    return configuration, configured_plugins(configuration, decoy_key, keepers)


def configured_plugins(configuration: Configuration, decoy_key: bytes = b"", keepers: Keepers | None = None) -> Plugins:
    """Return the plugins, configured; StartError if the router cannot start with them. ``keepers`` as for ``load``."""
    try:
        return _configured(configuration, decoy_key, keepers)
    except ConfigurationRefused as refusal:
        raise _refused(refused_by_plugins(configuration, refusal)) from refusal
    except PluginError as error:
        raise StartError(str(error)) from error


def _configured(configuration: Configuration, decoy_key: bytes = b"", keepers: Keepers | None = None) -> Plugins:
    """Return the plugins, configured; ConfigurationRefused or PluginError."""
    plugins = Plugins.load(dict(configuration.router.plugins), decoy_key=decoy_key)
    plugins.configure(router_facts(configuration, keepers), configuration.router.plugin_settings)
    return plugins


def _start_error(error: ConfigurationError) -> StartError:
    """Return all errors of a file, those that its plugins report too, and the findings about the rest of it."""
    problems = list(error.problems)
    others: tuple[Problem, ...] = ()
    if isinstance(error, FaultyConfiguration):
        partial = error.partial
        whole = partial.router.place not in error.broken
        try:
            if whole:
                _configured(partial, keepers=EVERYBODY)  # its files are judged already
        except ConfigurationRefused as refusal:
            problems += refused_by_plugins(partial, refusal)
        except PluginError:
            pass  # a later run reports it, with a place, once the file can be read
        found = [each for each in evaluate(partial) if each in partial.warnings or _is_sure(each, error.broken)]
        others = ordered(accept(found, partial.acceptances, whole=False))
    return _refused(sorted(problems, key=lambda problem: problem.place), others)


def _is_sure(finding: Problem, broken: Collection[SourcePosition]) -> bool:
    """Return whether a finding holds for a file with errors, whose wrong values count as the defaults here."""
    if finding.point == "not-for-routes":
        return False
    return finding.place not in broken or finding.severity is Severity.PROBLEM


def _refused(problems: Iterable[Problem], others: tuple[Problem, ...] = ()) -> StartError:
    grave = tuple(dataclasses.replace(problem, severity=Severity.PROBLEM) for problem in problems)
    return StartError(*map(_line, grave), problems=grave, others=others)


def _line(problem: Problem) -> str:
    """Return a problem as a line, with the point by which a comment in the file can accept it, if one can."""
    return f"{problem} [{problem.point}]" if problem.point else str(problem)


def refused_by_plugins(configuration: Configuration, refusal: ConfigurationRefused) -> list[Problem]:
    """Return the problems that plugins report, each once and with a place, also if several plugins report it."""
    router = configuration.router
    place = router.place if router.place.line else SourcePosition(configuration.source)
    found: dict[str, Problem] = {}
    for text in refusal.problems:
        plugin, _, rest = text.partition(": ")
        attribute, _, message = rest.partition(": ")
        if message and router.type.field_spelled(attribute) is not None:
            found.setdefault(rest, Problem(place, message, "router", attribute))
        else:
            found.setdefault(text, Problem(place if plugin else SourcePosition(configuration.source), text))
    return [*found.values()]


def evaluation(configuration: Configuration, plugins: Plugins) -> tuple[Problem, ...]:
    """Return all findings about a configuration on this machine, the gravest first."""
    tls = tls_material(configuration)
    unusable = {problem.place for problem in tls}
    found = [
        *(each for each in evaluate(configuration, plugins) if not _is_within(each, unusable, configuration)),
        *same_addresses(configuration),
        *unknown_services(configuration),
        *log_files(configuration),
        *tls,
        *little_memory(configuration),
        *few_descriptors(configuration, descriptor_limit()),
    ]
    return judged(configuration, found)


def _is_within(finding: Problem, unusable: Collection[SourcePosition], configuration: Configuration) -> bool:
    """Return whether a finding is about a file of an sslProfile whose certificates are reported themselves."""
    if finding.point not in OVERTAKEN:
        return False
    owners = [entity.place for entity in configuration.entities if entity.place <= finding.place]
    return max(owners, default=None) in unusable


def warnings(configuration: Configuration, plugins: Plugins) -> tuple[Problem, ...]:
    """Return the same without those that a router logs itself at its start: unusable files, entities not served."""
    of_machine = [*little_memory(configuration), *few_descriptors(configuration, descriptor_limit())]
    found = judged(configuration, [*evaluate(configuration, plugins), *of_machine])
    withheld = {problem.entity for problem in not_served(configuration)}
    return tuple(each for each in found if not (each.entity in withheld and each.severity is Severity.PROBLEM))


def log_files(configuration: Configuration) -> list[Problem]:
    """Return problems with the log files, without opening one: the user who runs the router may be another."""
    problems = []
    for entity in configuration.logs:
        name = entity.output_file
        if name is not None and name not in NAMED and not _may_append(Path(name)):
            message = f"Failed to open log file '{name}'"
            problems.append(Problem(entity.place, message, "log", "outputFile", severity=Severity.PROBLEM))
    return problems


def tls_material(configuration: Configuration) -> list[Problem]:
    """Return problems with the certificates, keys and lists that sslProfiles name, for entities that use them."""
    if not configuration.ssl_profiles:
        return []
    from trouter.tls.profiles import problems_in  # noqa: PLC0415 - libraries that only TLS needs

    return problems_in(configuration, time.time())


def little_memory(configuration: Configuration) -> list[Problem]:
    """Return a problem if the memory limit is below what the router takes before the first client connects."""
    limit = configuration.router.max_memory_bytes
    if limit is None:
        return []
    from trouter.admission.memory import REFUSE_AT  # noqa: PLC0415
    from trouter.admission.process_memory import resident_bytes  # noqa: PLC0415

    import_module("trouter.app.process")  # the whole router, whose memory is measured

    needed = resident_bytes()
    if needed * 100 < limit * REFUSE_AT:
        return []
    least = -(-needed * 2 // 1_000_000) * 1_000_000
    return [finding_of("no-memory-left", configuration.router, needed=needed, least=least)]


def _may_append(path: Path) -> bool:
    if path.exists():
        return not path.is_dir() and os.access(path, os.W_OK)
    return os.access(path.parent, os.W_OK | os.X_OK)


def existing_path(text: str) -> Path:
    """Return a path of the command line, which loading checks; argparse.ArgumentTypeError if it is empty."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is needed")
    return Path(text)
