"""Formats values for tables. Untrusted text cannot move the cursor or begin a line."""

from __future__ import annotations

from datetime import UTC, datetime

from trouter._text import escape_controls

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_DAY_S = 86_400


def plain(value: object) -> str:
    """Return a value as printable text; empty for null."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    return escape_controls(str(value))


def number(value: object) -> float | None:
    """Return the value as a number; None if it is none."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def commas(value: object) -> str:
    """Return a whole number with its thousands apart."""
    return f"{value:,d}" if isinstance(value, int) and not isinstance(value, bool) else plain(value)


def dashed(value: object) -> str:
    """Return a number; a dash for none and for those below zero."""
    found = number(value)
    return "-" if found is None or found < 0 else plain(value)


def size(value: object) -> str:
    """Return bytes in the largest unit that fits: two decimals below 10, one below 100."""
    found = number(value)
    if found is None:
        return plain(value)
    if found < 1024:
        return f"{found:.0f}"
    for unit in _UNITS:
        found /= 1024
        if found < 1024:
            digits = 2 if found < 10 else 1 if found < 100 else 0
            return f"{found:.{digits}f} {unit}"
    return f"{found:.0f} {_UNITS[-1]}"


def span(value: object) -> str:
    """Return seconds as ddd:hh:mm:ss; a dash for null."""
    found = number(value)
    if found is None:
        return "-"
    days, rest = divmod(int(found), _DAY_S)
    return f"{days:03d}:{_clock(rest)}"


def blocked(value: object) -> str:
    """Return seconds as hh:mm:ss, a dash for none; hours go on beyond a day."""
    found = number(value)
    return _clock(int(found)) if found is not None and found > 0 else "-"


def _clock(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}"


def yes_or_no(value: object) -> str:
    """Return whether a value is true, as a word."""
    return "yes" if value else "no"


def seconds_of_ms(value: object) -> str:
    """Return milliseconds as the text of seconds; nothing for what is no number."""
    found = number(value)
    return "" if found is None else f"{found / 1000:.3f}"


def date_of_ms(value: object) -> str:
    """Return milliseconds since 1970 as a date that is the same everywhere; nothing for what is no number."""
    found = number(value)
    return "" if found is None else topology_time(found / 1000)


def listed(value: object) -> str:
    """Return a list of texts, in brackets and quotes."""
    return escape_controls(repr([str(item) for item in value])) if isinstance(value, list | tuple) else "[]"


def or_nil(value: object) -> str:
    """Return a text, or `(nil)` if it is empty."""
    return plain(value) or "(nil)"


def rate(value: object) -> str:
    """Return so many a second: whole above 100, else with a decimal; nothing while it is not known."""
    found = number(value)
    if found is None:
        return ""
    return f"{found:,.0f}" if abs(found) >= 100 else f"{found:.1f}"


def local_time(value: object) -> str:
    """Return seconds since 1970 as the date of this place."""
    found = number(value)
    if found is None:
        return plain(value)
    when = datetime.fromtimestamp(int(found), tz=UTC).astimezone()
    return f"{when:%a %b} {when.day:2d} {when:%H:%M:%S %Y}"


def topology_time(seconds: float) -> str:
    """Return seconds since 1970 as a date that is the same everywhere."""
    return f"{datetime.fromtimestamp(int(seconds), tz=UTC):%A %b %d %H:%M:%S %Y} GMT"


def utc(seconds: float) -> str:
    """Return a time in seconds since 1970, to the second; as a number if it is none of our calendar."""
    try:
        return f"{datetime.fromtimestamp(seconds, tz=UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return str(seconds)


def utc_of_ms(milliseconds: int) -> str:
    """Return a time in milliseconds since 1970; as a number if it is none of our calendar."""
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{when:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d} UTC"


def now_utc() -> str:
    """Return the first line of every view."""
    return f"{datetime.now(tz=UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
