"""The parts of a body that are recorded, and those that are not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path

import pytest

from trouter._buckets import Bucket
from trouter.config import ConfigurationError, load
from trouter.records import MessageSampled
from trouter.telemetry.sampling import MAX_PER_SECOND, Sampling, sample_of, samplings_of
from trouter.wire.codec import encode
from trouter.wire.types import Described, Symbol, ULong

KEY = b"sixteen octets, or more"
CARD = {"card": "4929 1234", "amount": 5, "to": {"holder": "Ann", "list": [{"card": 1}]}}
VHOST = "vhost {{ hostname: acme, sampleMessages: 2, groups: {{}}, {} }}"


def message(body: object, content_type: str = "application/json") -> bytes:
    properties = Described(ULong(0x73), [None] * 6 + [Symbol(content_type)])
    section = Described(ULong(0x75 if isinstance(body, bytes) else 0x77), body)
    return encode(properties) + encode(section)


def sampled(data: bytes, *fields: str, max_bytes: int = 1000) -> MessageSampled:
    sampling = Sampling(1, max_bytes, frozenset(fields), Bucket(10, 0.0), KEY)
    return sample_of(sampling, {"conn": 1, "vhost": "acme"}, 7, "orders", data)


def shown(record: MessageSampled) -> bytes:
    assert record.body is not None
    return base64.b64decode(record.body)


def digest(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hmac.new(KEY, data, hashlib.sha256).hexdigest()[:32]


@pytest.mark.parametrize("body", [b"plain", "a text", b"\xff\x00"])
def test_a_body_is_recorded_with_its_properties(body: bytes | str) -> None:
    record = sampled(message(body, "text/plain"))
    data = body.encode() if isinstance(body, str) else body
    assert shown(record) == data
    assert (record.link, record.addr, record.size, record.content_type) == (7, "orders", len(data), "text/plain")
    assert (record.cut, record.digest, record.hashed) == (None, None, None)


@pytest.mark.parametrize("size", [999, 1000, 1001])
def test_no_more_is_recorded_than_is_allowed(size: int) -> None:
    record = sampled(message(b"x" * size))
    assert len(shown(record)) == min(size, 1000)
    assert (record.size, record.cut) == (size, True if size > 1000 else None)


def test_fields_are_hashed_wherever_they_are() -> None:
    record = sampled(message(json.dumps(CARD).encode()), "card", "holder")
    assert json.loads(shown(record)) == {
        "card": f"hmac:{digest('4929 1234')}",
        "amount": 5,
        "to": {"holder": f"hmac:{digest('Ann')}", "list": [{"card": f"hmac:{digest(1)}"}]},
    }
    assert record.hashed == ["card", "holder"]
    assert b"4929" not in shown(record)


@pytest.mark.parametrize(
    "data",
    [
        message(b"4929 1234 is no JSON"),
        message(b'"4929 1234"'),
        message(b"[" * 40_000),
        message(b'{"card": "4929 1234", "x": "' + b"x" * 70_000 + b'"}'),
        message(json.dumps(CARD).encode())[:-20],
        message(b"\xff"),
        message([1, 2]),
        b"",
        b"\x00",
    ],
)
def test_an_unsearchable_body_is_recorded_as_a_hash(data: bytes) -> None:
    record = sampled(data, "card")
    assert record.body is None
    assert record.hashed == ["*"]
    assert record.digest is not None


def test_a_star_hashes_everything() -> None:
    record = sampled(message(b'{"a": 1}'), "*")
    assert (record.body, record.digest) == (None, digest(b'{"a": 1}'))


def test_one_in_so_many_is_due_and_not_too_many_in_a_second() -> None:
    sampling = Sampling(3, 10, frozenset(), Bucket(2, 0.0))
    assert [sampling.is_due(0.0) for _ in range(12)] == [False, False, True] * 2 + [False] * 6
    assert sampling.is_due(1.0)


def test_no_body_is_recorded_without_a_setting() -> None:
    configuration = load(text="router { id: A }\nvhost { hostname: acme, groups: {} }")
    assert samplings_of(configuration.vhosts, 0.0) == {}


def test_a_vhost_sets_which_bodies_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    more = f"sampleBytes: 10, sampleHashFields: 'card, holder', sampleKeyFile: {tmp_path}/key"
    configuration = load(text="router { id: A }\n" + VHOST.format(more))
    sampling = samplings_of(configuration.vhosts, 0.0)["acme"]
    assert (sampling.one_in, sampling.max_bytes, sampling.key) == (2, 10, KEY)
    assert sampling.hashed == {"card", "holder"}
    assert sampling.bucket.rate == MAX_PER_SECOND
    assert KEY.decode() not in repr(sampling)


@pytest.mark.parametrize(("data", "why"), [(None, "needs a key"), (15, "16 to 4096"), (4097, "16 to 4096")])
def test_hashes_need_a_key(tmp_path: Path, data: int | None, why: str) -> None:
    more = "sampleHashFields: card"
    if data is not None:
        (tmp_path / "key").write_bytes(b"x" * data)
        more += f", sampleKeyFile: {tmp_path}/key"
    configuration = load(text="router { id: A }\n" + VHOST.format(more))
    with pytest.raises(ConfigurationError, match=why):
        samplings_of(configuration.vhosts, 0.0)
