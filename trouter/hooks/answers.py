"""Checks that the answers of plugins have the types that the hooks promise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeGuard

from trouter.hooks.consumers import Consumer, ConsumerTerms
from trouter.hooks.facts import AuthServiceFacts
from trouter.hooks.policy import AnnotationFilter, Permissions, VhostPolicy
from trouter.hooks.sasl import Authenticated, AuthService, Challenge, Refused, SaslExchange
from trouter.hooks.tracing import MessageTracer

#: As many as Qpid Dispatch advertises; a longer answer counts as one of the wrong type (security.md 1.2).
MAX_MECHANISMS: Final = 32
#: As long as other names may be; a name in a certificate may have a hundred times as many.
MAX_CERTIFICATE_USER_BYTES: Final = 8192
_MECHANISM_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,20}")  # RFC 4422, 3.1


class Rubbish(Exception):
    """A plugin gave an answer of the wrong type."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer


def consumers_of(answer: object) -> Iterable[Consumer]:
    """Yield the consumers in a plugin's answer; Rubbish if it is no list or tuple of consumers."""
    if not isinstance(answer, list | tuple):
        raise Rubbish(answer)
    for each in answer:
        if not (isinstance(each, Consumer) and isinstance(each.terms, ConsumerTerms)):
            raise Rubbish(each)
        yield each


def is_sasl_answer(answer: object) -> TypeGuard[Challenge | Authenticated | Refused]:
    """Return whether the answer and its fields have the promised types, so that no peer becomes the user None."""
    match answer:
        case Challenge(bytes(), str()) | Refused(str(), bool(), str()):
            return True
        case Authenticated(str(), bytes(), float() | int() | None, Permissions() | None, str()):
            return True
    return False


def is_mechanism_list(answer: object) -> bool:
    return (
        isinstance(answer, list | tuple)
        and len(answer) <= MAX_MECHANISMS
        and all(isinstance(name, str) and _MECHANISM_NAME.fullmatch(name) for name in answer)
    )


def is_exchange(answer: object) -> TypeGuard[SaslExchange]:
    # not by isinstance: a Protocol's costs each login a hundredth of its connection's time
    return callable(getattr(answer, "respond", None))


def is_auth_service(answer: object) -> TypeGuard[AuthService]:
    return isinstance(answer, AuthService) and isinstance(answer.facts, AuthServiceFacts)


def is_vhost_policy(answer: object) -> TypeGuard[VhostPolicy]:
    match answer:
        case VhostPolicy(str(), Permissions() | None, str()):
            return True
    return False


def is_tracer(answer: object) -> TypeGuard[MessageTracer]:
    if not isinstance(answer, MessageTracer):
        return False
    given: tuple[object, object, object] = (answer.ratio, answer.one_in, answer.propagates)
    match given:
        case (int() | float() as ratio, int() as one_in, bool()):
            return 0 <= ratio <= 1 and one_in >= 0
    return False


def is_annotation_filter(answer: object) -> TypeGuard[AnnotationFilter]:
    return isinstance(answer, AnnotationFilter)
