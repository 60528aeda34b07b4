"""Access to /metrics (security.md R-2.5c); over TLS in tests/tls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.sites import Site, ask, listening
from trouter.config import ConfigurationError, load
from trouter.http.settings import http_settings

TOKEN = "0123456789abcdef0123"
TEXT = "listener {{\n host: 127.0.0.1\n http: yes\n {}\n}}"
REFUSED = 403

#: Attributes, the request's headers, and the status, for a client at 127.0.0.1 without TLS.
VISITS = {
    "anybody": ("", {}, 200),
    "everybody": ("metricsHosts: *", {}, 200),
    "an address": ("metricsHosts: 10.0.0.1, 127.0.0.1", {}, 200),
    "a range": ("metricsHosts: 127.0.0.0-127.0.0.9", {}, 200),
    "a network": ("metricsHosts: 127.0.0.0/8", {}, 200),
    "an address in the other form": ("metricsHosts: ::ffff:127.0.0.1", {}, 200),
    "another address": ("metricsHosts: 10.0.0.0/8, ::1, 127.0.0.2-127.0.0.9", {}, REFUSED),
    "who only says to come from there": (
        "metricsHosts: 10.0.0.1", {"X_Forwarded_For": "10.0.0.1", "Forwarded": "for=10.0.0.1"}, REFUSED,
    ),
    "the token": ("metricsToken: {token}", {"Authorization": f"Bearer {TOKEN}"}, 200),
    "the token, loosely": (
        "metricsToken: {token}\n allowInsecurePlain: yes", {"authorization": f"bearer  {TOKEN} "}, 200,
    ),
    "the token in clear where that is not allowed": (
        "metricsToken: {token}\n allowInsecurePlain: no", {"Authorization": f"Bearer {TOKEN}"}, REFUSED,
    ),
    "no token": ("metricsToken: {token}\n allowInsecurePlain: loopback", {}, 401),
    "an empty token": ("metricsToken: {token}\n allowInsecurePlain: loopback", {"Authorization": "Bearer "}, 401),
    "another token": (
        "metricsToken: {token}\n allowInsecurePlain: loopback", {"Authorization": f"Bearer {TOKEN}4"}, 401,
    ),
    "another scheme": (
        "metricsToken: {token}\n allowInsecurePlain: loopback", {"Authorization": f"Basic {TOKEN}"}, 401,
    ),
    "two tokens": (
        "metricsToken: {token}\n allowInsecurePlain: loopback",
        {"Authorization": f"Bearer {TOKEN}", "authorization": "Bearer x"},
        401,
    ),
    "octets": ("metricsToken: {token}\n allowInsecurePlain: loopback", {"Authorization": "Bearer \xff\xfe"}, 401),
    "the token from elsewhere": (
        "metricsToken: {token}\n metricsHosts: 10.0.0.1\n allowInsecurePlain: yes",
        {"Authorization": f"Bearer {TOKEN}"},
        REFUSED,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("attributes", "headers", "status"), VISITS.values(), ids=VISITS)
async def test_each_visitor_may_read_the_metrics_as_configured(
    tmp_path: Path, attributes: str, headers: dict[str, str], status: int
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    (entity,) = load(text=TEXT.format(attributes.format(token=f"file:{token}"))).listeners
    given = {name: getattr(entity, name) for name in ("metrics_hosts", "metrics_token", "allow_insecure_plain")}
    site = Site()
    async with listening(site, **given) as listener:
        answer = await ask(listener, "/metrics", **headers)
        assert answer.status == status
        assert site.shown == (status == 200)
        assert ("www-authenticate" in answer.headers) == (status == 401)
        assert (await ask(listener, "/healthz")).body == b"OK"  # one word, for every client
        assert TOKEN not in answer.body.decode()
    assert TOKEN not in repr(http_settings(entity))


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("metricsHosts: scraper.example", "is a name"),
        ("metricsHosts: *, 10.0.0.1", "must stand alone"),
        ("metricsHosts: 10.0.0.256", "is not a host"),
        ("metricsToken: short", "is not a token"),
        ("metricsToken: 0123456789abcdef 0123", "is not a token"),
    ],
)
def test_an_attribute_that_admits_no_host_or_any_host_is_refused(attribute: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load(text=TEXT.format(attribute))
