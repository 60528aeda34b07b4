"""Text of peers in log lines (routing.md 7): short, on one line, without further fields."""

from __future__ import annotations

from typing import Final

from trouter._text import escape_unprintable
from trouter.core.counters import Counters
from trouter.wire.performatives import Coordinator, Error, Source, Target
from trouter.wire.value_text import trace_text

_MAX_CHARACTERS: Final = 512
_MAX_QUOTED: Final = 128
_QUOTE: Final = "\\'"
_DURABILITY: Final = {1: "config", 2: "unsettled-state"}


def word(text: str, special: str = " ") -> str:
    """Return a peer's text as one field of a line in Qpid Dispatch's form: cut, its blanks escaped.

    So a peer cannot add fields to the line.
    """
    return escape_unprintable(text[:_MAX_CHARACTERS], special)


def name_word(text: str) -> str:
    """Return the same for a name that a peer chose before it authenticated: `=` is escaped too."""
    return word(text, " =")


def quoted(text: str) -> str:
    """Return a peer's text in single quotes as in Qpid Dispatch: cut, and unable to end them."""
    return f"'{escape_unprintable(text[:_MAX_QUOTED], _QUOTE)}'"


def describe_properties(properties: object) -> str:
    """Return ``{:key="value", ...}``, cut to some hundred characters and without secrets; "" for none."""
    if not isinstance(properties, dict) or not properties:
        return ""
    text = trace_text(properties)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}...}}"


def describe_counters(counters: Counters, blocked: bool) -> str:
    """Return the counters of a link as its detach line shows them."""
    return (
        f"del={counters.deliveries} presett={counters.presettled} psdrop={counters.dropped_presettled} "
        f"acc={counters.accepted} rej={counters.rejected} rel={counters.released} mod={counters.modified} "
        f"delay1={counters.delayed_1s} delay10={counters.delayed_10s} blocked={'yes' if blocked else 'no'}"
    )


def describe_error(error: Error | None) -> str:
    """Return a peer's error, or the router's own, as the end of a line: ``: condition: description``; "" for none."""
    if error is None:
        return ""
    parts = (error.condition[:_MAX_CHARACTERS], (error.description or "")[:_MAX_CHARACTERS].strip())
    return "".join(f": {part}" for part in parts if part)


def and_more(count: int) -> str:
    """Return the end of a line that stands for ``count`` such events and names the first."""
    return "" if count == 1 else f" (and {count - 1} more)"


def describe_terminus(terminus: object) -> str:
    """Return ``{address expire:sess ...}``: the attributes of a source or target that are set."""
    if isinstance(terminus, Coordinator):
        return "{<coordinator>}"
    if not isinstance(terminus, Source | Target):
        return "{<none>}"
    words = [word(str(terminus.address)) if terminus.address else "(dyn)" if terminus.dynamic else "<none>"]
    if terminus.durable:
        words.append(f"dur:{_DURABILITY.get(terminus.durable, terminus.durable)}")
    words.append(f"expire:{_EXPIRY.get(terminus.expiry_policy, word(terminus.expiry_policy[:32]))}")
    if terminus.timeout:
        words.append(f"timeout:{terminus.timeout}")
    if terminus.capabilities:
        words.append(f"caps:{word(','.join(terminus.capabilities))}")
    if isinstance(terminus, Source) and terminus.distribution_mode:
        words.append(f"dist:{word(terminus.distribution_mode[:32])}")
    return "{" + " ".join(words) + "}"


_EXPIRY: Final = {"link-detach": "link", "session-end": "sess", "connection-close": "conn", "never": "never"}
