"""SASL with a token instead of a password: OAUTHBEARER (RFC 7628), XOAUTH2, and PLAIN with `oauthPlain`.

The token is a JWT (RFC 7519) of one issuer for one audience, signed with one of the issuer's public keys
(``oauth_keys``). One claim names the user, a second may grant permissions (``oauth_rights``), a third the tenant.
The connection ends when the token expires. An eavesdropper could use the token, so these mechanisms need encryption as
PLAIN does.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trouter.hooks import (
    Authenticated,
    Challenge,
    ConfigurationRefused,
    ListenerFacts,
    PeerFacts,
    Refused,
    RouterFacts,
    SaslExchange,
    hookimpl,
)
from trouter.mechanisms import PLAIN
from trouter_plugins.oauth_rights import BadRights, find_claim, permissions_of
from trouter_plugins.sasl_plain import parse_response

if TYPE_CHECKING:
    from trouter_plugins.oauth_keys import Keys

MECHANISMS: Final = ("OAUTHBEARER", "XOAUTH2")
#: The longest response; a SASL frame has 16384 bytes.
MAX_RESPONSE_BYTES: Final = 16000
MAX_USER_BYTES: Final = 255
#: Tolerated difference between the clocks of the router and the issuer, in seconds.
LEEWAY_S: Final = 30.0
#: The accepted types in a header (RFC 7519, 5.1; RFC 9068, 2.1).
TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt", "application/jwt"})

#: RFC 7628, 3.2.2: what the client may do about it is to get another token.
INVALID_TOKEN: Final = json.dumps({"status": "invalid_token"}).encode()

_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9._~+/=-]+)", re.IGNORECASE | re.ASCII)


class Plugin:
    """One router's issuer."""

    def __init__(self) -> None:
        self._judge: Judge | None = None
        self._plain = False

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        judge = _prepare(router)
        if self._judge is not None and judge is not None and self._judge.keys.source == judge.keys.source:
            judge.keys.inherit(self._judge.keys)
        self._judge, self._plain = judge, router.oauth_plain

    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
        if self._judge is None:
            return ()
        return (*MECHANISMS, PLAIN) if self._plain else MECHANISMS

    @hookimpl
    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        if self._judge is None or not peer.may_send_password:
            return None
        if mechanism in MECHANISMS or (mechanism == PLAIN and self._plain):
            return TokenExchange(mechanism, self._judge)
        return None


class Bearer(NamedTuple):
    """A token, and the user that its bearer claims to be, if any. The repr shows no token."""

    user: str
    token: str

    def __repr__(self) -> str:
        return f"Bearer({self.user!r})"


class BadToken(Exception):
    """A token is refused; the text says why, without quoting it."""


@dataclass(frozen=True, slots=True)
class Judge:
    """The checks of tokens, and the claims to read."""

    issuer: str
    audience: str
    user_claim: str
    keys: Keys
    #: The claim with the user's scopes, None to leave rights to the policy; the prefix of scopes for this router.
    scopes_claim: str | None = None
    scope_prefix: str = ""
    #: The claim with the user's tenant, None without one.
    tenant_claim: str | None = None

    async def judge(self, token: str) -> Authenticated:
        """Return the user of a token, with its expiry and rights; BadToken; Unreachable without keys."""
        import jwt  # noqa: PLC0415 - there whenever this plugin is configured

        try:
            header: Mapping[str, Any] = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise BadToken("it is no JWT") from None
        kind, key_id, algorithm = header.get("typ", "JWT"), header.get("kid"), header.get("alg")
        if not isinstance(kind, str) or kind.lower() not in TYPES or "crit" in header:
            raise BadToken("it is a JWT of another kind")
        if not (key_id is None or isinstance(key_id, str)) or not isinstance(algorithm, str):
            raise BadToken("it does not say how it is signed")
        keys = await self.keys.find(key_id, algorithm)
        for key in keys:
            try:
                claims: Mapping[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    issuer=self.issuer,
                    audience=self.audience,
                    leeway=LEEWAY_S,
                    options={"require": ["exp", "iss", "aud"]},
                )
            except jwt.InvalidSignatureError:
                continue
            except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
                raise BadToken(f"its claims do not hold ({type(error).__name__})") from None
            return self._admit(claims)
        raise BadToken("none of the issuer's keys has signed it")

    def claimed_user(self, token: str) -> str:
        """Return the user that a token names, whoever made it; "" if it names none."""
        import jwt  # noqa: PLC0415

        try:
            return _name_in(jwt.decode(token, options={"verify_signature": False}), self.user_claim, "user")
        except (jwt.PyJWTError, BadToken, ValueError, TypeError, RecursionError):
            return ""

    def _admit(self, claims: Mapping[str, Any]) -> Authenticated:
        user = _name_in(claims, self.user_claim, "user")
        until_s = float(claims["exp"])
        if not math.isfinite(until_s):
            raise BadToken("it never expires")
        tenant = "" if self.tenant_claim is None else _name_in(claims, self.tenant_claim, "tenant")
        permissions = None
        if self.scopes_claim is not None:
            try:
                permissions = permissions_of(find_claim(claims, self.scopes_claim), self.scope_prefix)
            except BadRights as bad:
                raise BadToken(f"its claim {self.scopes_claim} is of no use: {bad}") from None
        return Authenticated(user, expires_at_s=until_s + LEEWAY_S, permissions=permissions, tenant=tenant)


def _name_in(claims: Mapping[str, Any], claim: str, what: str) -> str:
    """Return the name that a claim holds; BadToken."""
    name = find_claim(claims, claim)
    if not isinstance(name, str) or not name or not name.isprintable() or len(name.encode()) > MAX_USER_BYTES:
        raise BadToken(f"its claim {claim} names no {what}")
    return name


class TokenExchange:
    """One login: it requests the response if none came with the init, and judges one token."""

    def __init__(self, mechanism: str, judge: Judge) -> None:
        self._mechanism = mechanism
        self._judge = judge
        self._challenged = False
        self._judged = False
        #: The answer that waits until the client has taken in why.
        self._verdict: Refused | None = None

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        if self._verdict is not None:
            return self._verdict
        if self._judged:
            return Refused("the exchange is over")
        if not response and not self._challenged:
            self._challenged = True
            return Challenge(b"")
        self._judged = True
        bearer = _PARSERS[self._mechanism](response) if len(response) <= MAX_RESPONSE_BYTES else None
        if bearer is None:
            return Refused(f"malformed {self._mechanism} response")
        answer = await self._judge_token(bearer)
        if isinstance(answer, Refused) and not answer.temporary and self._mechanism != PLAIN:
            self._verdict = answer
            return Challenge(INVALID_TOKEN, refusal=answer)
        return answer

    async def _judge_token(self, bearer: Bearer) -> Authenticated | Refused:
        from trouter_plugins.oauth_keys import Unreachable  # noqa: PLC0415 - it needs what may not be installed

        try:
            admitted = await self._judge.judge(bearer.token)
        except BadToken as bad:
            tried = bearer.user or self._judge.claimed_user(bearer.token)
            return Refused(f"the token is not accepted: {bad}", user=tried)
        except Unreachable as unreachable:
            return Refused(f"the keys of the issuer cannot be had: {unreachable}", temporary=True, user=bearer.user)
        if bearer.user not in {"", admitted.user}:
            return Refused("the token is another user's", user=bearer.user, authorization_id=bearer.user)
        return admitted


def parse_oauthbearer(response: bytes) -> Bearer | None:
    """Return the token and the authorization id of RFC 7628, 3.1; None if it is malformed."""
    header, separator, rest = response.partition(b"\x01")
    if not separator or not rest.endswith(b"\x01\x01"):
        return None
    try:
        flag, authorization, empty = header.decode().split(",")
        pairs = [pair.split("=", 1) for pair in rest[:-2].decode().split("\x01")]
    except (UnicodeDecodeError, ValueError):
        return None
    if flag not in {"n", "y"} or empty or any(len(pair) != 2 for pair in pairs):
        return None
    user = authorization.removeprefix("a=") if authorization.startswith("a=") else ""
    if authorization and not user:
        return None
    return _bearer(user.replace("=2C", ",").replace("=3D", "="), pairs)


def parse_xoauth2(response: bytes) -> Bearer | None:
    """Return the token and the user of `user=NAME^Aauth=Bearer TOKEN^A^A`; None if it is malformed."""
    if not response.endswith(b"\x01\x01"):
        return None
    try:
        pairs = [pair.split("=", 1) for pair in response[:-2].decode().split("\x01")]
    except UnicodeDecodeError:
        return None
    if any(len(pair) != 2 for pair in pairs):
        return None
    users = [value for name, value in pairs if name == "user"]
    return _bearer(users[0], pairs) if len(users) == 1 else None


def parse_plain(response: bytes) -> Bearer | None:
    """Return the password of PLAIN as a token; None if it is malformed."""
    credentials = parse_response(response, MAX_RESPONSE_BYTES)
    if credentials is None or credentials.authorization_id not in {"", credentials.user}:
        return None
    found = _BEARER.fullmatch(f"Bearer {credentials.password.decode()}")
    return None if found is None else Bearer(credentials.user, found[1])


_PARSERS: Final = {"OAUTHBEARER": parse_oauthbearer, "XOAUTH2": parse_xoauth2, PLAIN: parse_plain}


def _bearer(user: str, pairs: Sequence[Sequence[str]]) -> Bearer | None:
    """Return the one `auth` among pairs."""
    given = [value for name, value in pairs if name == "auth"]
    found = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
    return None if found is None else Bearer(user, found[1])


def _prepare(router: RouterFacts) -> Judge | None:
    """Return the checks of tokens, None if tokens are not configured; ConfigurationRefused."""
    needed = {
        "oauthIssuer": router.oauth_issuer,
        "oauthAudience": router.oauth_audience,
        "oauthJwks": router.oauth_jwks,
    }
    more = {
        "oauthPlain": router.oauth_plain,
        "oauthScopesClaim": router.oauth_scopes_claim is not None,
        "oauthTenantClaim": router.oauth_tenant_claim is not None,
    }
    if not any(needed.values()):
        if given := [name for name, value in more.items() if value]:
            raise ConfigurationRefused(f"{given[0]} needs oauthIssuer, oauthAudience and oauthJwks")
        return None
    if missing := [name for name, value in needed.items() if not value]:
        raise ConfigurationRefused(*(f"{name} is missing: a token is judged by all three" for name in missing))
    claims = {
        "oauthUserClaim": router.oauth_user_claim,
        "oauthScopesClaim": router.oauth_scopes_claim,
        "oauthTenantClaim": router.oauth_tenant_claim,
    }
    if empty := [name for name, value in claims.items() if value == ""]:
        raise ConfigurationRefused(f"{empty[0]} is empty")
    if router.oauth_scope_prefix and router.oauth_scopes_claim is None:
        raise ConfigurationRefused("oauthScopePrefix needs oauthScopesClaim")
    try:
        from trouter_plugins.oauth_keys import Keys, KeysError  # noqa: PLC0415 - it needs what may not be installed
    except ImportError:
        raise ConfigurationRefused("tokens need the package PyJWT with cryptography (trouter[oauth])") from None
    source = str(router.oauth_jwks)
    if "://" not in source and (danger := router.danger_of_file(source)):
        raise ConfigurationRefused(f"oauthJwks: {danger}")
    try:
        keys = Keys(source)
    except KeysError as error:
        raise ConfigurationRefused(f"oauthJwks: {error}") from None
    return Judge(
        str(router.oauth_issuer),
        str(router.oauth_audience),
        router.oauth_user_claim,
        keys,
        router.oauth_scopes_claim,
        router.oauth_scope_prefix,
        router.oauth_tenant_claim,
    )
