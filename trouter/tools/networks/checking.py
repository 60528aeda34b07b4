"""Asks each router of a network what its file would change, and shows the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeGuard

import trio

from trouter.config.problems import Severity
from trouter.tools import formats
from trouter.tools.failures import MalformedAnswer
from trouter.tools.node import NodeClient

from .folder import RouterFile
from .survey import FAILURES, NetworkStatus, reason_of

#: The parts of a plan, and the signs before their lines.
SIGNS: Final = {"created": "+", "updated": "~", "deleted": "-", "restart": "!"}


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a router said of a file as a change over the network."""

    #: The state that the answer holds for; the change is refused in another one.
    state: str = ""
    #: The router has this file already.
    same: bool = False
    #: The id of a change that is open there; empty for none.
    open: str = ""
    #: Why it would refuse the change.
    refusals: Sequence[str] = ()
    #: What of its configuration it took the text for; empty for the whole, as an older router takes every text.
    part: str = ""


@dataclass(frozen=True, slots=True)
class CheckedRouter:
    """What a router answered about its file."""

    router: str
    #: Why there is no answer; empty if there is one.
    fault: str = ""
    #: As the operation CHECK answers; None if the file cannot be used.
    plan: dict[str, Any] | None = None
    findings: Sequence[dict[str, Any]] = field(default_factory=tuple)
    #: What the router said of the file as a change over the network; None for one that takes no such changes.
    outlook: Outlook | None = None

    @property
    def problems(self) -> int:
        """The number of findings that keep the file, or a part of it, from being served."""
        return sum(finding.get("severity") == Severity.PROBLEM for finding in self.findings)

    @property
    def is_good(self) -> bool:
        """Whether the router would serve the whole file."""
        return not self.fault and self.plan is not None and not self.problems

    def joined(self, other: CheckedRouter) -> CheckedRouter:
        """Return this answer with the refusals of another one to the same text; the other one if that is no good."""
        if self.outlook is None or other.outlook is None or not other.is_good:
            return other
        refusals = tuple(dict.fromkeys((*self.outlook.refusals, *other.outlook.refusals)))
        return replace(self, outlook=replace(self.outlook, refusals=refusals))


async def check_files(
    node: NodeClient, files: Sequence[RouterFile], status: NetworkStatus, **more: str
) -> list[CheckedRouter]:
    """Return the answer of each router to its file; one that is not in the network is named as such.

    ``more`` goes with each request.
    """
    modes = {router.id: router.mode for router in status.routers}
    answers: dict[str, CheckedRouter] = {}

    async def check(file: RouterFile) -> None:
        try:
            async with node.open_other(file.id, edge=modes[file.id] == "edge") as other:
                answer = await other.call_self("CHECK", body=file.text, file=str(file.path), **more)
            answers[file.id] = _checked(file.id, answer)
        except FAILURES as failure:
            answers[file.id] = CheckedRouter(file.id, reason_of(failure))

    async with trio.open_nursery() as nursery:
        for file in files:
            if file.id in modes:
                nursery.start_soon(check, file)
            else:
                answers[file.id] = CheckedRouter(file.id, "no router of the network that is in reach has this id")
    return [answers[file.id] for file in files]


def _checked(router: str, answer: object) -> CheckedRouter:
    """Return an answer to CHECK; MalformedAnswer."""
    if isinstance(answer, dict):
        plan, findings = answer.get("plan"), answer.get("findings")
        if _are_findings(findings) and (plan is None or _is_plan(plan)):
            return CheckedRouter(router, "", plan, findings, _outlook(answer.get("apply")))
    raise MalformedAnswer("the answer is no result of a check")


def _outlook(value: object) -> Outlook | None:
    """Return what a router said of a change; None if it said nothing of one. MalformedAnswer."""
    if value is None:
        return None
    if isinstance(value, dict):
        state, same, opened, refusals = (value.get(name) for name in ("state", "same", "open", "refusals"))
        part = value.get("part", "")
        if (
            isinstance(state, str)
            and isinstance(same, bool)
            and isinstance(opened, str)
            and isinstance(part, str)
            and isinstance(refusals, list)
            and all(isinstance(refusal, str) for refusal in refusals)
        ):
            return Outlook(state, same, opened, tuple(map(formats.plain, refusals)), part)
    raise MalformedAnswer("the answer is no result of a check")


def _are_findings(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(finding, dict) for finding in value)


def _is_plan(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and all(isinstance(value.get(part), list | None) for part in SIGNS)


def lines_of(file: RouterFile, checked: CheckedRouter, *, findings: bool) -> Iterator[str]:
    """Yield the lines about one router: the sum, what would change, and (``findings``) what is found in its file."""
    yield formats.plain(f"{checked.router}: {_sum_of(checked)}")
    for part, sign in SIGNS.items():
        for line in (checked.plan or {}).get(part) or ():
            yield formats.plain(f"  {sign} {line}")
    for finding in checked.findings if findings else ():
        yield formats.plain(f"  {finding.get('severity')}: {_text_of(file, finding)}")


def _sum_of(checked: CheckedRouter) -> str:
    if checked.fault:
        return f"not checked: {checked.fault}"
    if checked.plan is None:
        return f"not usable, {checked.problems} error(s)"
    counts = {part: len(checked.plan.get(part) or ()) for part in SIGNS}
    restarts = counts.pop("restart")
    is_other_text = checked.outlook is not None and not checked.outlook.same and not restarts
    unchanged = "only the text of its file changes" if is_other_text else "nothing changes"
    change = ", ".join(f"{count} {part}" for part, count in counts.items()) if any(counts.values()) else unchanged
    after = f", {restarts} after a restart" if restarts else ""
    return f"{change}{after}{f', {checked.problems} problem(s)' if checked.problems else ''}"


def _text_of(file: RouterFile, finding: dict[str, Any]) -> str:
    line = finding.get("line")
    name_of_file = finding.get("file")
    number = line if isinstance(line, int) else 0
    owner = file.place(number) if name_of_file == str(file.path) else f"{name_of_file}{f':{number}' if number else ''}"
    name = ".".join(str(finding[key]) for key in ("section", "attribute") if finding.get(key))
    cure = f" ({finding['cure']})" if finding.get("cure") else ""
    shown = f": {finding['text']}" if finding.get("text") else ""
    return f"{owner}: {f'{name}: ' if name else ''}{finding.get('message')}{shown}{cure}"
