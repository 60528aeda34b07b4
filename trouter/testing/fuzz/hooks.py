"""A plugin's hook as a fuzz target: whatever it is asked, it answers what it may, and raises nothing.

The router would turn a fault of a plugin into a refusal and count it; here it is a failure. Arguments are made of the
octets by the types of the hook's specification, so that a target needs no code but the plugin and the hook's name.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from typing import Any, Final

import trio

from trouter.hooks import Authenticated, Challenge, ListenerFacts, PeerFacts, Plugins, Refused, RouterFacts, specs
from trouter.testing.fuzz.draw import Draw
from trouter.testing.fuzz.hunting import Check

#: Hooks that a stranger's octets reach. The other hooks take the operator's configuration, or objects.
FUZZED: Final = (
    "annotation_filter",
    "judge_attach",
    "map_uid",
    "observe",
    "open_sasl",
    "sasl_mechanisms",
    "vhost_policy",
)
#: What the router has of each hook: the method of ``Plugins`` that asks it, where that has another name.
_ASKED_BY: Final = {"judge_attach": "may_attach"}
#: Steps of an exchange that one input may take, and seconds that one step may.
_MOST_STEPS: Final = 8
_STEP_S: Final = 5.0

#: Looks at the arguments and the answer of one call; raises AssertionError for an answer that is wrong.
Judge = Callable[[dict[str, Any], object], None]


def hook_target(
    plugin: object, hook: str, *, router: RouterFacts | None = None, judge: Judge | None = None, **fixed: Any
) -> Check:
    """Return a check that asks ``hook`` of ``plugin`` with arguments made of octets, and fails on every fault.

    ``router`` is what the plugin is configured with, if it is; ``fixed`` are arguments that are not made of octets,
    such as the ``mechanism`` of ``open_sasl``.
    ``judge`` sees the arguments and the answer, and for ``open_sasl`` what each step of the exchange answered.
    ValueError for a hook that no stranger's octets reach.
    """
    if hook not in FUZZED:
        raise ValueError(f"{hook} is none of {', '.join(FUZZED)}")
    plugins = Plugins([plugin])
    if router is not None:
        plugins.configure(router)
    hints = typing.get_type_hints(getattr(specs, hook))
    hints.pop("return")
    if hook == "open_sasl":
        return _exchange_target(plugins, fixed, judge)
    ask = getattr(plugins, _ASKED_BY.get(hook, hook))

    def check(data: bytes) -> None:
        draw = Draw(data)
        arguments = {name: fixed[name] if name in fixed else draw.value(kind) for name, kind in hints.items()}
        if hook == "observe":
            arguments["record"]["k"] = draw.choice(sorted(plugins.observed_kinds() or ("alarm",)))
        answer = ask(*arguments.values())
        _must_be_faultless(plugins)
        if judge is not None:
            judge(arguments, answer)

    return check


def _exchange_target(plugins: Plugins, fixed: dict[str, Any], judge: Judge | None) -> Check:
    """Return a mechanism that the plugin serves, a peer, and what that peer says, step by step."""
    named = (fixed["mechanism"],) if "mechanism" in fixed else ()
    listener = ListenerFacts("fuzzed", "127.0.0.1", "0", sasl_mechanisms=named, allow_insecure_plain="yes")
    mechanisms = named or plugins.sasl_mechanisms(listener)
    if not mechanisms:
        raise ValueError("the plugin serves no mechanism unless it is named: say mechanism=")
    peer = fixed.get("peer", PeerFacts(1, listener, "192.0.2.1", 40000, encrypted=True, loopback=False))

    def check(data: bytes) -> None:
        draw = Draw(data)
        mechanism = draw.choice(mechanisms)
        exchange = plugins.open_sasl(mechanism, peer)
        _must_be_faultless(plugins)
        if exchange is None:
            return
        responses = [draw.piece() for _ in range(draw.number(1, _MOST_STEPS))]
        responses[-1] += draw.rest()

        async def converse() -> None:
            for response in responses:
                with trio.fail_after(_STEP_S):
                    answer = await plugins.respond_or_refuse(exchange, response)
                _must_be_faultless(plugins)
                if judge is not None:
                    judge({"mechanism": mechanism, "peer": peer, "response": response}, answer)
                if not isinstance(answer, Challenge):
                    return

        trio.run(converse)

    return check


def admits_only_with(*secrets: bytes) -> Judge:
    """Return a judge that lets in only peers whose response contains one of ``secrets``."""

    def judge(arguments: dict[str, Any], answer: object) -> None:
        if isinstance(answer, Authenticated) and not any(secret in arguments["response"] for secret in secrets):
            raise AssertionError(f"{answer.user!r} was let in without a secret")
        if isinstance(answer, Refused):
            _must_hide(answer.reason, secrets)

    return judge


def _must_hide(reason: str, secrets: Iterable[bytes]) -> None:
    for secret in secrets:
        if secret.decode("utf-8", "replace") in reason:
            raise AssertionError("a refusal says a secret")


def _must_be_faultless(plugins: Plugins) -> None:
    if plugins.faults:
        culprits = [f"{each.hook} of {each.plugin}: {each.exception or 'a wrong answer'}" for each in plugins.culprits]
        plugins.faults.clear()
        plugins.culprits.clear()
        raise AssertionError("; ".join(culprits))
