"""A plugin's hook as a fuzz target: any arguments must give a valid answer, and no exception.

The router refuses and counts such faults; here they are failures. Arguments are made of the bytes by the types of the
hook's specification, so that a target needs only the plugin and the hook's name.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from typing import Any, Final

import trio

from trouter.hooks import Authenticated, Challenge, ListenerFacts, PeerFacts, Plugins, Refused, RouterFacts, specs
from trouter.testing.fuzz.draw import Draw
from trouter.testing.fuzz.hunting import Check

#: Hooks that a peer's bytes reach. The other hooks take the operator's configuration, or objects.
FUZZED: Final = (
    "annotation_filter",
    "judge_attach",
    "map_uid",
    "observe",
    "open_sasl",
    "sasl_mechanisms",
    "vhost_policy",
)
#: The method of ``Plugins`` that calls a hook, if it has another name.
_CALLED_BY: Final = {"judge_attach": "may_attach"}
#: Steps of an exchange in one input, and seconds for each.
_MAX_STEPS: Final = 8
_STEP_S: Final = 5.0

#: Verifies the arguments and the answer of one call; raises AssertionError for a wrong answer.
Judge = Callable[[dict[str, Any], object], None]


def hook_target(
    plugin: object, hook: str, *, router: RouterFacts | None = None, judge: Judge | None = None, **fixed: Any
) -> Check:
    """Return a check that calls ``hook`` of ``plugin`` with arguments made of bytes, and fails on every fault.

    ``router`` configures the plugin, if given; ``fixed`` are arguments that are not made of bytes, such as the
    ``mechanism`` of ``open_sasl``. ``judge`` gets the arguments and the answer, for ``open_sasl`` those of each step of
    the exchange. ValueError for a hook that no peer's bytes reach.
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
    call = getattr(plugins, _CALLED_BY.get(hook, hook))

    def check(data: bytes) -> None:
        draw = Draw(data)
        arguments = {name: fixed[name] if name in fixed else draw.value(kind) for name, kind in hints.items()}
        if hook == "observe":
            arguments["record"]["k"] = draw.choice(sorted(plugins.observed_kinds() or ("alarm",)))
        answer = call(*arguments.values())
        _must_be_faultless(plugins)
        if judge is not None:
            judge(arguments, answer)

    return check


def _exchange_target(plugins: Plugins, fixed: dict[str, Any], judge: Judge | None) -> Check:
    """Return a check that runs an exchange of one of the plugin's mechanisms, with responses made of bytes."""
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
        responses = [draw.piece() for _ in range(draw.number(1, _MAX_STEPS))]
        responses[-1] += draw.rest()

        async def converse() -> None:
            for response in responses:
                with trio.fail_after(_STEP_S):
                    answer = await plugins.objects.respond_or_refuse(exchange, response)
                _must_be_faultless(plugins)
                if judge is not None:
                    judge({"mechanism": mechanism, "peer": peer, "response": response}, answer)
                if not isinstance(answer, Challenge):
                    return

        trio.run(converse)

    return check


def admits_only_with(*secrets: bytes) -> Judge:
    """Return a judge that fails if a peer is admitted whose response contains none of ``secrets``."""

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
