"""Answers of the management node of a router with several workers, from those of each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from trouter.core.why import MAX_LINKS
from trouter.logs.book import KEPT
from trouter.wire.codec import decode_all

from .own import LIMIT
from .providers.parted import WORKER
from .requests import Request
from .responses import OperationResult, answer

#: By the number of a worker its answer.
Answers = dict[int, OperationResult]
#: An explanation of an address, as ``AddressExplanation.as_map`` returns it.
_Explanation = dict[str, Any]


def _sum_drain(answers: Answers, _: Request) -> OperationResult:
    maps: list[dict[str, Any]] = [decode_all(each.body) for each in answers.values()]
    states = {each["state"] for each in maps}
    active = [each for each in maps if each["state"] != "serving"]
    return answer(
        {
            "state": next((state for state in ("drained", "serving") if states == {state}), "draining"),
            **{name: sum(each[name] for each in maps) for name in ("total", "closed", "left")},
            **{name: max((each[name] for each in active), default=0.0) for name in ("overSeconds", "forSeconds")},
        }
    )


def _sort_log(answers: Answers, request: Request) -> OperationResult:
    """Return the newest entries of all workers by time, which parts of a router give with fractions of seconds."""
    entries = [
        [entry[0], entry[1], f"[W{number}] {entry[2]}", *entry[3:]]
        for number, each in answers.items()
        for entry in decode_all(each.body)
    ]
    entries.sort(key=lambda entry: entry[-1])
    limit = LIMIT.read(request) or 0
    newest = entries[-min(limit, KEPT) if limit > 0 else -KEPT :]
    return answer([[*entry[:-1], int(entry[-1])] for entry in newest])


def _sum_memory(answers: Answers, _: Request) -> OperationResult:
    """Return the rows of all workers; those of the same name, user, vhost or address are added up."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for number, each in answers.items():
        for row in decode_all(each.body):
            key: tuple[object, ...] = tuple((name, value) for name, value in row.items() if isinstance(value, str))
            if row.get("connection"):  # its number is a text, and no other worker has it
                key = (*key, number)
            known = found.setdefault(key, {})
            for name, value in row.items():
                same = name not in known or isinstance(value, str) or name == "size" or value is None
                known[name] = value if same else known[name] + value
    rows = list(found.values())
    return answer(sorted(rows, key=lambda row: -row.get("bytes", 0)) if any("bytes" in row for row in rows) else rows)


def _join_profiles(answers: Answers, _: Request) -> OperationResult:
    """Return the report of each worker below its number; nothing at the start."""
    reports = {number: decode_all(each.body) for number, each in answers.items()}
    if not any(reports.values()):
        return answer(None)
    return answer("\n".join(f"worker {number}:\n{report}" for number, report in reports.items()))


def _join_explanations(answers: Answers, _: Request) -> OperationResult:
    """Return one explanation: the links of all workers, each with its worker's number, and what holds at which."""
    parts: dict[int, _Explanation] = {number: decode_all(each.body) for number, each in answers.items()}
    known = [each for each in parts.values() if each["rule"]] or list(parts.values())
    return answer(
        {
            **known[0],
            **{name: sum(each[name] for each in parts.values()) for name in ("consumerCount", "senderCount")},
            **{name: _busiest(parts, name) for name in ("consumers", "senders")},
            "inProcess": max(each["inProcess"] for each in parts.values()),
            "fallback": next(filter(None, (each["fallback"] for each in parts.values())), ""),
            "verdict": _say_verdicts(parts),
            "lacksSender": all(each["lacksSender"] for each in parts.values()),
        }
    )


def _busiest(parts: dict[int, _Explanation], name: str) -> list[dict[str, object]]:
    """Return the links of one direction at all workers, the busiest if they are many."""
    links = [{**link, WORKER: number} for number, each in parts.items() for link in each[name]]
    links.sort(key=lambda link: -(link["undelivered"] + link["unsettled"]))
    return sorted(links[:MAX_LINKS], key=lambda link: link["link"])


def _say_verdicts(parts: dict[int, _Explanation]) -> str:
    """Return the verdict of all workers, or that of each, without those that have nothing to do with the address.

    A worker without links to the address has nothing to do with it if another one has some, and so has one that lacks
    senders if they are at another one.
    """
    telling = _chosen_or_all(
        {number for number, each in parts.items() if each["consumerCount"] or each["senderCount"]}, parts
    )
    telling = _chosen_or_all({number for number in telling if not parts[number]["lacksSender"]}, telling)
    verdicts = {number: parts[number]["verdict"] for number in telling}
    if len(set(verdicts.values())) == 1:
        return str(next(iter(verdicts.values())))
    return "; ".join(f"worker {number}: {verdict}" for number, verdict in verdicts.items())


def _chosen_or_all(chosen: set[int], numbers: Iterable[int]) -> list[int]:
    """Return the chosen ones of the numbers; all if none is chosen."""
    return [number for number in numbers if number in chosen] or list(numbers)


#: By the operation.
COMBINED: Final[dict[str, Callable[[Answers, Request], OperationResult]]] = {
    "DRAIN": _sum_drain,
    "CANCEL-DRAIN": _sum_drain,
    "GET-DRAIN": _sum_drain,
    "GET-LOG": _sort_log,
    "GET-MEMORY": _sum_memory,
    "PROFILE": _join_profiles,
    "EXPLAIN": _join_explanations,
}
