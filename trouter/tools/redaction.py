"""Removes secrets from text that may leave the machine, rather too much than too little."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

HIDDEN: Final = "*****"
#: The part of a name behind which a secret stands, unless the name says that a file or folder does.
_WORDS: Final = r"passw(?:or)?d|passphrase|secret|token|credential|api_?-?key|private_?-?key"
_PATTERNS: Final = (
    # NAME: VALUE and NAME=VALUE, quoted or to the end of the line, as .conf files, JSON and log lines write it. Names
    # are bounded, and no pattern begins with a run of any length: a long word takes as little time as other text.
    re.compile(
        rf"""(?ix) (?P<keep> (?:{_WORDS}) (?![\w-]{{0,200}}(?:file|dir|path)\b) [\w-]{{0,200}} ["']?
        [ \t]* [:=] [ \t]*+ )
        (?: "(?:[^"\\\n]|\\.)*" | '(?:[^'\n]|'')*' | (?!null\b|["'{{\[]|\n) [^\n]+ | \[[^\]]*\] )"""
    ),
    # The literal password of an older file, in whatever attribute it is.
    re.compile(r"(?i)(?P<keep>\b(?:pass|literal):)\S+"),
    re.compile(r"(?P<keep>[A-Za-z][\w+.-]{0,40}://[^\s:/@\"']*:)[^\s@/\"']+(?=@)"),
    re.compile(r"(?i)(?P<keep>\b(?:bearer|basic)\s+)[\w.~+/=-]{6,}"),
    re.compile(r"(?P<keep>)(?<![\w-])eyJ[\w-]{4,}\.[\w-]+\.[\w-]*"),
    re.compile(r"(?s)(?P<keep>-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
)


def without_secrets(text: str, known: Iterable[str] = ()) -> str:
    """Return the text with passwords, tokens and private keys struck out, and wherever they stand the `known` ones."""
    for secret in known:
        text = text.replace(secret, HIDDEN) if secret else text
    for pattern in _PATTERNS:
        text = pattern.sub(_strike, text)
    return text


def _strike(found: re.Match[str]) -> str:
    kept = found["keep"]
    quote = '"' if found[0].endswith(('"', "]")) and '"' in kept else ""
    return f"{kept}{quote}{HIDDEN}{quote}"
