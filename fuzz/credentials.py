"""Any response to PLAIN, EXTERNAL, OAUTHBEARER or XOAUTH2 is refused, or yields a name and a secret that stand in it.

The first byte picks the mechanism. The repr of the credentials does not contain the secret. A response to PLAIN that
follows RFC 4616 is accepted.

Allowed: nothing. A malformed response is refused, and the refusal quotes nothing of it.
"""

from __future__ import annotations

from fuzz.parts.at_once import now
from trouter.hooks import Authenticated, Refused
from trouter.testing.fuzz import behind, octets
from trouter_plugins.sasl_external import ExternalExchange
from trouter_plugins.sasl_oauth import Bearer, parse_oauthbearer, parse_xoauth2
from trouter_plugins.sasl_oauth import parse_plain as parse_token
from trouter_plugins.sasl_plain import MAX_RESPONSE_BYTES, parse_response

MUTATOR = behind(1, octets)
COVERS = ("trouter_plugins.sasl_plain", "trouter_plugins.sasl_external")
USER = "alice@example.com"


def check_plain(response: bytes) -> None:
    found = parse_response(response)
    parts = response.split(b"\0")
    if found is None:
        try:
            response.decode()
        except UnicodeDecodeError:
            return
        assert len(parts) != 3 or not parts[1] or not parts[2] or len(response) > MAX_RESPONSE_BYTES
        return
    assert len(response) <= MAX_RESPONSE_BYTES
    assert [found.authorization_id.encode(), found.user.encode(), found.password] == parts
    other = parse_response(b"\0".join([*parts[:2], b"x" * len(found.password)]))
    assert repr(found) == repr(other), "it tells something of the password"


def check_external(response: bytes) -> None:
    answer = now(ExternalExchange(USER).respond(response))
    if response in (b"", USER.encode()):
        assert answer == Authenticated(USER)
    else:
        assert isinstance(answer, Refused)
        assert answer.user == USER


def check_bearer(found: Bearer | None, response: bytes) -> None:
    if found is None:
        return
    assert found.token.isascii()
    assert found.token.encode() in response
    other = found._replace(token="x" * len(found.token))
    assert repr(found) == repr(other), "it tells something of the token"


def check(data: bytes) -> None:
    how, response = (data[0] % 5, data[1:]) if data else (0, b"")
    if how == 0:
        check_plain(response)
    elif how == 1:
        check_external(response)
    elif how == 2:
        check_bearer(parse_oauthbearer(response), response)
    elif how == 3:
        check_bearer(parse_xoauth2(response), response)
    else:
        check_bearer(parse_token(response), response)
