"""Samples of message bodies in records, if a vhost wants them: few, truncated, with confidential fields hashed.

Nothing is recorded unless the vhost's ``sampleMessages`` says so. Values of the fields that it names are replaced by a
keyed hash, which still shows whether two are equal. A body in which the fields cannot be found is recorded as a hash
only. Truncation and hashing happen here, before the record exists.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trouter._buckets import Bucket
from trouter.config import ConfigurationError, Problem, VhostEntity
from trouter.config.files import opened, reason
from trouter.core.arrival import Arrival
from trouter.core.links import identity_of
from trouter.core.messagelog import MessageLog
from trouter.engine.link_base import Link
from trouter.records import MessageSampled
from trouter.wire.constants import AMQP_VALUE, APPLICATION_PROPERTIES, DATA, PROPERTIES
from trouter.wire.errors import DecodeError
from trouter.wire.message import SectionReader

#: Samples of a vhost in a second, because a sample costs as much as thirty messages.
MAX_PER_SECOND: Final = 100
#: Larger bodies are not searched for fields.
MAX_SEARCHED_BYTES: Final = 65_536
MIN_KEY_BYTES, MAX_KEY_BYTES = 16, 4096
_DIGITS: Final = 32
_CONTENT_TYPE: Final = 6
ALL: Final = "*"


@dataclass(slots=True)
class Sampling:
    """The sampling of the messages of one vhost's users."""

    one_in: int
    max_bytes: int
    hashed: frozenset[str]
    bucket: Bucket
    key: bytes = field(default=b"", repr=False)
    #: Messages since the last sample.
    passed: int = 0

    def is_due(self, now_s: float) -> bool:
        """Count a message; return whether to record it."""
        self.passed += 1
        if self.passed < self.one_in or not self.bucket.take_tokens(1, now_s):
            return False
        self.passed = 0
        return True

    def digest(self, data: bytes) -> str:
        """Return a keyed digest: equal for equal bytes, useless without the key."""
        return hmac.new(self.key, data, hashlib.sha256).hexdigest()[:_DIGITS]


def samplings_of(vhosts: Iterable[VhostEntity], now_s: float) -> dict[str, Sampling]:
    """Return the samplings of the vhosts that want one, by hostname; reads their keys. ConfigurationError."""
    found, problems = {}, []
    for vhost in vhosts:
        if not vhost.sample_messages:
            continue
        key = b""
        if vhost.sample_hash_fields:
            try:
                key = _read_key(vhost.sample_key_file)
            except ValueError as error:
                problems.append(Problem(vhost.place, str(error), "vhost", "sampleKeyFile"))
        bucket = Bucket(MAX_PER_SECOND, now_s)
        found[vhost.hostname] = Sampling(
            vhost.sample_messages, vhost.sample_bytes, vhost.sample_hash_fields, bucket, key
        )
    if problems:
        raise ConfigurationError(problems)
    return found


def _read_key(path: str | None) -> bytes:
    """Return the key; ValueError if it cannot be read or has an unfit length."""
    if path is None:
        raise ValueError("sampleHashFields needs a key, in a file of 16 bytes or more")
    try:
        with opened(path) as file:
            key = file.read(MAX_KEY_BYTES + 1)
    except OSError as error:
        raise ValueError(f"the key cannot be read: {reason(error)}") from None
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise ValueError(f"a key has {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes; this file has another number")
    return key


class Sampler:
    """The message tap of one connection; passes all messages on to its message log."""

    def __init__(
        self,
        sampling: Sampling,
        about: Mapping[str, Any],
        emit: Callable[[MessageSampled], None],
        now: Callable[[], float],
        log: MessageLog | None,
    ) -> None:
        self._sampling = sampling
        self._about = about
        self._emit = emit
        self._now = now
        self._log = log

    def note_received(self, arrival: Arrival) -> None:
        """Take a message, or the beginning of a large one."""
        if self._log is not None:
            self._log.note_received(arrival)
        if self._sampling.is_due(self._now()):
            link: Link = arrival.delivery.link  # type: ignore[assignment]  # messages come on links
            attach = link.remote_attach
            address = getattr(attach.target, "address", None) if attach is not None else None
            identity = identity_of(arrival.source)
            self._emit(sample_of(self._sampling, self._about, identity, address, arrival.whole()))

    def note_aborted(self, link: Link) -> None:
        """Drop an aborted message."""
        if self._log is not None:
            self._log.note_aborted(link)


def sample_of(
    sampling: Sampling, about: Mapping[str, Any], link: int, address: object, message: bytes
) -> MessageSampled:
    """Return the record of a message that came on a link."""
    content_type, body, whole = read_body(message)
    record = MessageSampled(
        **about,
        link=link,
        addr=address if isinstance(address, str) else None,
        content_type=content_type or None,
        size=len(body),
        one_in=sampling.one_in,
        cut=None if whole else True,
    )
    shown: bytes | None = body
    if sampling.hashed:
        record.digest = sampling.digest(body)
        shown = hide(body, sampling) if whole else None
        record.hashed = sorted(sampling.hashed if shown is not None else {ALL})
    if shown is not None:
        record.body = base64.b64encode(shown[: sampling.max_bytes]).decode()
        record.cut = True if len(shown) > sampling.max_bytes else record.cut
    return record


def read_body(message: bytes) -> tuple[str, bytes, bool]:
    """Return content type, body and whether the body is complete; never raises for a malformed message."""
    content_type = ""
    reader = SectionReader(message)
    try:
        while code := reader.next_section():
            if code == PROPERTIES:
                fields = reader.read_value()
                if isinstance(fields, list) and len(fields) > _CONTENT_TYPE:
                    content_type = str(fields[_CONTENT_TYPE] or "")
            elif code > APPLICATION_PROPERTIES:
                value = reader.read_value()
                if code == DATA and isinstance(value, bytes):
                    return content_type, value, reader.find_end() == len(message)
                if code == AMQP_VALUE and isinstance(value, str):
                    return content_type, value.encode("utf-8", "surrogatepass"), True
                return content_type, message[reader.start :], True
    except DecodeError:  # only the beginning has come, or it is malformed
        return content_type, message[reader.start :], False
    return content_type, b"", True


def hide(body: bytes, sampling: Sampling) -> bytes | None:
    """Return the body with hashes for the values of the fields; None if it cannot be searched for them."""
    if ALL in sampling.hashed or len(body) > MAX_SEARCHED_BYTES:
        return None
    try:
        read = json.loads(body)
        if not isinstance(read, dict | list):
            return None
        return json.dumps(_hidden(read, sampling), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return None


def _hidden(value: object, sampling: Sampling) -> object:
    if isinstance(value, dict):
        return {
            name: f"hmac:{sampling.digest(json.dumps(each, sort_keys=True).encode())}"
            if name in sampling.hashed
            else _hidden(each, sampling)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_hidden(each, sampling) for each in value]
    return value
