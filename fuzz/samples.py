"""Any message is sampled without an exception, and its sample has a hash for the value of each confidential field.

If the first byte is even the rest is the body of a message, else the message. Beside the values of the confidential
fields a body in JSON stays as it is; of a body in which they cannot be found only a digest is recorded.

Allowed: nothing.
"""

from __future__ import annotations

import base64
import json
import random
import re
from typing import Final

from trouter._buckets import Bucket
from trouter.telemetry.sampling import ALL, Sampling, sample_of
from trouter.testing.fuzz import behind, text, values
from trouter.wire.codec import encode
from trouter.wire.types import Described, ULong

COVERS = ("trouter.telemetry.sampling",)
FIELDS: Final = frozenset({"card", "holder"})
HASHED: Final = re.compile("hmac:[0-9a-f]{32}")
MAX_BYTES: Final = 2000


def changed(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return rng.choice((text, values))(rng, data, other)


MUTATOR = behind(1, changed)


def check(data: bytes) -> None:
    body = None if data[:1] and data[0] & 1 else data[1:]
    message = data[1:] if body is None else encode(Described(ULong(0x75), body))
    sampling = Sampling(1, MAX_BYTES, FIELDS, Bucket(10, 0.0), b"sixteen octets, or more")
    record = sample_of(sampling, {"conn": 1, "vhost": "acme"}, 7, "orders", message)
    assert record.digest is not None
    assert record.hashed in ([ALL], sorted(FIELDS))
    if record.body is None:
        assert record.hashed == [ALL]
        return
    shown = base64.b64decode(record.body)
    assert record.hashed == sorted(FIELDS)
    assert len(shown) <= MAX_BYTES
    if not record.cut and body is not None:
        compare(json.loads(body), json.loads(shown.decode("utf-8", "surrogatepass")))


def compare(given: object, shown: object) -> None:
    """Check that a value is shown as it is, but for hashes in place of confidential fields."""
    if isinstance(given, dict):
        assert isinstance(shown, dict)
        assert given.keys() == shown.keys()
        for name, value in given.items():
            if name in FIELDS:
                assert HASHED.fullmatch(str(shown[name])), f"{shown[name]!r} is shown"
            else:
                compare(value, shown[name])
    elif isinstance(given, list):
        assert isinstance(shown, list)
        assert len(given) == len(shown)
        for one, other in zip(given, shown, strict=True):
            compare(one, other)
    else:
        assert repr(given) == repr(shown)
