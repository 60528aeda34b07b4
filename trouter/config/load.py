"""Loads a configuration from a file, a text or the built-in default; raises all problems at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from trouter.config.acceptances import Acceptance, acceptances
from trouter.config.collector import held_back
from trouter.config.conf_form import parse_conf
from trouter.config.configuration import BUILT_IN, HOLDS, ONE_ONLY, Configuration
from trouter.config.draft import LOG_STARTS, Draft, draft_of, draft_section
from trouter.config.entities import (
    DEFAULT_MODULE,
    LOG_MODULES,
    Entity,
    LogEntity,
    PolicyEntity,
    RouterEntity,
    VhostEntity,
)
from trouter.config.json_form import parse_json
from trouter.config.keepers import Keepers, keepers_of_process
from trouter.config.nodes import Section
from trouter.config.problems import ConfigurationError, Findings, Problem, SourcePosition, few_hints
from trouter.config.rules import check, world_of
from trouter.config.trusted import judge_files
from trouter.config.types import type_of_section

SECURE: Final = RouterEntity.type.field_spelled("secureDefaults")
DEFAULT_TEXT: Final = """\
# Used when no file is named: nothing but this machine can connect, and its clients need no name.
router {
    mode: standalone
    secureDefaults: yes
}
# trouter: accept authenticate-peer: clients of this machine need no name; the vhost below admits no others
listener {
    host: 127.0.0.1
    port: amqp
    authenticatePeer: no
    saslMechanisms: ANONYMOUS
}
# trouter: accept authenticate-peer: clients of this machine need no name; the vhost below admits no others
listener {
    host: 127.0.0.1
    port: 5680
    http: yes
    authenticatePeer: no
    saslMechanisms: ANONYMOUS
}
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: 127.0.0.1, ::1
            sources: *
            targets: *
            allowDynamicSource: yes
            allowAnonymousSender: yes
            allowUserIdProxy: yes
            management: admin
        }
    }
}
"""


#: Yields a problem for each entry of the sections, as they are written, that may not be judged: nothing is read for it.
Withheld = Callable[[list[Section]], Iterable[Problem]]


class FaultyConfiguration(ConfigurationError):
    """Sections of a text are wrong; ``partial`` is the configuration without what is wrong.

    ``broken`` has the places of the wrong sections, whose wrong values count as the defaults in ``partial``.
    """

    def __init__(self, problems: Iterable[Problem], partial: Configuration, broken: frozenset[SourcePosition]) -> None:
        super().__init__(problems)
        self.partial = partial
        self.broken = broken


def load(
    path: Path | None = None,
    text: str | None = None,
    keepers: Keepers | None = None,
    most_errors: int | None = None,
    withheld: Withheld | None = None,
) -> Configuration:
    """Return the configuration in the file at `path`, or in `text`, which `path` then only names; or the built-in.

    ConfigurationError, with every problem there is, if it cannot be used. ``keepers`` may change the files that count;
    root and the user of this process, unless they are given. ``most_errors``: no more are looked for. If ``withheld``
    yields problems, there are no others.
    """
    file = BUILT_IN if path is None else str(path)
    read: tuple[str, ...] = ()
    if text is None:
        text = DEFAULT_TEXT if path is None else _read(path)
        read = () if path is None else (file,)
    elif path is None:
        file = "(text)"
    with held_back():
        return parse(text, file, keepers or keepers_of_process(), read, most_errors, withheld)


@few_hints()
def parse(
    text: str,
    file: str,
    keepers: Keepers,
    read: Iterable[str] = (),
    most_errors: int | None = None,
    withheld: Withheld | None = None,
) -> Configuration:
    """Return the configuration in `text`, in the JSON form if `file` ends in `.json`; ConfigurationError as load().

    ``read`` are the files that hold the text.
    """
    findings = Findings(most_errors=most_errors)
    accepted: list[Acceptance] = []
    sections = _sections(text, file, findings, accepted)
    if withheld is not None and (problems := list(withheld(sections))):
        raise ConfigurationError(problems)
    findings.secure = _wants_secure(sections)
    drafts = [draft for section in sections if (draft := draft_section(section, findings))]
    drafts += _policies(drafts, findings, accepted)
    drafts += _secure_policy(drafts, findings, file)
    served = check(drafts)
    judge_files(drafts, findings, keepers, accepted, read)
    configuration = Configuration(
        **_fields(_built(drafts if findings.errors else served)),
        source=file,
        warnings=tuple(sorted(findings.warnings, key=lambda problem: problem.place)),
        acceptances=tuple(accepted),
    )
    if findings.errors:
        errors = sorted(findings.errors, key=lambda problem: problem.place)
        raise FaultyConfiguration(errors, configuration, _broken(drafts, errors))
    return configuration


def sections_of(text: str, file: str, most_errors: int | None = None, *, is_conf: bool = False) -> list[Section]:
    """Return the sections of a text as written, without any judgement; ConfigurationError if it cannot be read.

    The text is in the JSON form if ``file`` ends in `.json`, unless it ``is_conf``.
    """
    return _sections(text, file, Findings(most_errors=most_errors), [], is_conf=is_conf)


def _sections(
    text: str, file: str, findings: Findings, accepted: list[Acceptance], *, is_conf: bool = False
) -> list[Section]:
    """Return the sections of a text, and append the findings that it accepts to ``accepted``."""
    form = parse_json if file.endswith(".json") and not is_conf else parse_conf
    text = text.removeprefix("\ufeff")
    sections = form(text, file, findings)
    accepted += acceptances(text, file, sections, findings)
    return sections


def _broken(drafts: list[Draft], errors: list[Problem]) -> frozenset[SourcePosition]:
    """Return the places of the sections in which there are errors."""
    starts = sorted(draft.section.place for draft in drafts)
    owners = ((error.place, bisect_right(starts, error.place)) for error in errors)
    return frozenset(starts[number - 1] for place, number in owners if number and starts[number - 1].file == place.file)


def _wants_secure(sections: list[Section]) -> bool:
    """Return whether the router section has secureDefaults: all checks depend on it."""
    for section in sections:
        if type_of_section(section.name) is RouterEntity.type:
            named = [entry for entry in section.entries if RouterEntity.type.field_spelled(entry.key) is SECURE]
            draft = draft_of(RouterEntity.type, Section(section.name, section.place, tuple(named)), Findings())
            return bool(draft.value("secure_defaults"))
    return False


def _policies(drafts: list[Draft], findings: Findings, accepted: list[Acceptance]) -> list[Draft]:
    """Return the vhosts in the files of policyDir; everything else in them is held to the table and left out."""
    found = []
    for folder in {draft.value("policy_dir"): None for draft in drafts if draft.type.short == "policy"}:
        for path in sorted(Path(folder).glob("*.json")) if folder else ():
            try:
                text = _read_policy(path)
            except ConfigurationError as error:
                findings.errors += error.problems
                continue
            for section in _sections(text, str(path), findings, accepted):
                draft = draft_section(section, findings)
                if draft and draft.type.entity is VhostEntity:
                    found.append(draft)
                elif draft:
                    draft.warning("left out: only vhosts are taken from the files of policyDir")
    return found


def _secure_policy(drafts: list[Draft], findings: Findings, file: str) -> list[Draft]:
    """Return the policy of a configuration that wants secure values and has no section for it."""
    types = {draft.type.entity for draft in drafts}
    if not world_of(drafts).secure or PolicyEntity in types:
        return []
    return [draft_of(PolicyEntity.type, Section(PolicyEntity.type.section, SourcePosition(file), ()), findings)]


def _built(drafts: list[Draft]) -> list[Entity]:
    """Return the entities, numbered where numbers distinguish them; none for a section that lacks what it needs."""
    entities: list[Entity] = []
    seen: Counter[str] = Counter()
    for draft in drafts:
        if draft.lacks:
            continue
        entity = draft.build()
        if entity.numbered_by:
            number = seen[entity.numbered_by]
            seen[entity.numbered_by] += 1
            entity = draft.build(number) if number else entity
        entities.append(entity)
    return entities


def _fields(entities: list[Entity]) -> dict[str, Any]:
    """Return the entities by field of a configuration, with a router and a log entity for each module in any case."""
    logged = {entity.module for entity in entities if isinstance(entity, LogEntity)}
    entities += [_log(module) for module in LOG_MODULES if module not in logged]
    fields: dict[str, Any] = {
        field: tuple(entity for entity in entities if type(entity) is kind) for field, kind in HOLDS.items()
    }
    for field in ONE_ONLY:
        fields[field] = next(iter(fields[field]), None) or HOLDS[field]()
    return fields


def _log(module: str) -> LogEntity:
    """Return the log entity of a module without a section."""
    if module != DEFAULT_MODULE:
        return LogEntity(module=module)
    values: dict[str, Any] = {name: value for name, (_, value) in LOG_STARTS.items()}
    return LogEntity(module=module, written={name: text for name, (text, _) in LOG_STARTS.items()}, **values)


def _read_policy(path: Path) -> str:
    """Return the text of a file of policyDir; ConfigurationError if it is none, as a pipe: it would be waited for."""
    if not path.is_file():
        raise _unusable(path, "is no file with a policy", "remove it from the folder")
    return _read(path)


def _read(path: Path) -> str:
    """Return the text of a configuration file; ConfigurationError if there is none."""
    try:
        data = path.read_bytes()
    except OSError as failure:
        raise _unusable(path, f"cannot be read: {failure.strerror or failure}") from failure
    if not data.strip():
        raise _unusable(path, "is empty", "a comment is enough")
    try:
        return data.decode()
    except UnicodeDecodeError as bad:
        line = data.count(b"\n", 0, bad.start) + 1
        column = bad.start - data.rfind(b"\n", 0, bad.start)
        place = SourcePosition(str(path), line, column)
        raise ConfigurationError([Problem(place, "is not UTF-8 text", suggestion="save the file as UTF-8")]) from bad


def _unusable(path: Path, message: str, suggestion: str = "") -> ConfigurationError:
    return ConfigurationError([Problem(SourcePosition(str(path)), message, suggestion=suggestion)])
