"""Bugs to plant in the router, one at a time: each is a change of its source that tests must detect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug: ``old`` stands exactly once in ``file``, and ``new`` takes its place."""

    kind: str
    what: str
    file: str
    old: str
    new: str
    #: Arguments of pytest: tests that pass without the bug and of which at least one fails with it.
    tests: tuple[str, ...]
    #: Fuzz targets that run the changed code.
    targets: tuple[str, ...] = ()


BUGS: Final = (
    Bug(
        "a missing length check",
        "a frame may be larger than was agreed",
        "trouter/wire/framing.py",
        "        if size > self.max_frame_bytes:\n",
        "        if size > 0x7FFFFFFF:\n",
        ("tests/wire/test_framing.py", "tests/engine/test_limits.py"),
        ("framing", "engine"),
    ),
    Bug(
        "a missing length check",
        "a string may claim more bytes than its frame has",
        "trouter/wire/codec.py",
        "        if width > self.end - start:\n",
        "        if width > len(self.data):\n",
        ("tests/wire/test_codec.py",),
        ("codec", "performatives", "values"),
    ),
    Bug(
        "a missing length check",
        "the line of a PROXY header may be longer than 107 octets",
        "trouter/net/proxy_protocol.py",
        '    end = start.find(b"\\r\\n", 0, MAX_LINE)\n    if end < 0 and len(start) >= MAX_LINE:\n',
        '    end = start.find(b"\\r\\n")\n    if end < 0 and len(start) >= MAX_BEHIND:\n',
        ("tests/net/test_proxy_protocol.py",),
        ("proxy_header",),
    ),
    Bug(
        "an off-by-one in a window",
        "the peer sends one frame more than its window",
        "trouter/engine/session.py",
        "        if windows.incoming_frames <= 0:\n            windows.check_overrun",
        "        if windows.incoming_frames < 0:\n            windows.check_overrun",
        ("tests/engine/test_session.py",),
        ("windows", "engine"),
    ),
    Bug(
        "an off-by-one in a window",
        "the router sends one frame more than the peer's window",
        "trouter/engine/link.py",
        "            if windows.outgoing_frames <= 0:\n",
        "            if windows.outgoing_frames < 0:\n",
        ("tests/engine/test_session.py",),
        ("windows",),
    ),
    Bug(
        "a lost settlement",
        "a settlement that does not continue the range before it takes its place",
        "trouter/engine/unsettled.py",
        "                return\n            self.write_disposition(out, channel)\n",
        "                return\n",
        ("tests/engine/test_session.py",),
        ("line", "windows", "routing"),
    ),
    Bug(
        "a lost settlement",
        "the outcome of a message that was still coming is lost at its end",
        "trouter/core/incoming_parts.py",
        "            self._finish_delivery(delivery, delivery.state_code, delivery.outcome or None)\n",
        "            self.account.unsettled -= 1\n",
        ("tests/core/test_forwarding.py", "tests/core/test_credit.py"),
        ("routing",),
    ),
    Bug(
        "a leaked link",
        "a link that the router detaches last keeps its handle",
        "trouter/engine/link_base.py",
        "        self.session.write(Detach(self.handle, closed, error))\n        self._drop_detached()\n",
        "        self.session.write(Detach(self.handle, closed, error))\n",
        ("tests/engine/test_limits.py", "tests/engine/test_link.py"),
        ("engine", "routing"),
    ),
    Bug(
        "a credit never returned",
        "a message that its sender aborts costs a credit for ever",
        "trouter/core/incoming_parts.py",
        "        end_span(delivery, LOST)\n        self.account.unsettled -= 1\n        return True\n",
        "        end_span(delivery, LOST)\n        return True\n",
        ("tests/core/test_credit.py", "tests/core/test_forwarding.py", "tests/core/test_machine.py"),
        ("routing",),
    ),
    Bug(
        "a counter never decremented",
        "a connection that is past its Open still counts as one that is not",
        "trouter/admission/handshakes.py",
        "            self._counts[key] -= 1\n",
        "            self._counts[key] -= 0\n",
        ("tests/admission/test_handshakes.py",),
        ("admission",),
    ),
    Bug(
        "a counter never decremented",
        "a user's connections count after they have gone",
        "trouter/policy/counts.py",
        "            del names[name]\n",
        "",
        ("tests/fuzz/test_counters.py", "tests/policy/test_router_policy.py"),
        ("admission",),
    ),
    Bug(
        "a mis-ordered section accepted",
        "a second body may follow the first",
        "trouter/wire/order.py",
        "        if not again and (code <= last or code > _FOOTER or (last >= _DATA and code != _FOOTER)):\n",
        "        if not again and (code <= last or code > _FOOTER):\n",
        ("tests/wire/test_order.py",),
        ("order",),
    ),
    Bug(
        "a mis-ordered section accepted",
        "a whole message may have a section twice",
        "trouter/wire/order.py",
        "            if code <= last or code > _FOOTER or (last >= _DATA and code != _FOOTER):\n",
        "            if code < last or code > _FOOTER or (last >= _DATA and code != _FOOTER):\n",
        ("tests/wire/test_order.py",),
        ("order",),
    ),
    Bug(
        "an unbounded map",
        "every pair of a user and a place is remembered",
        "trouter/admission/lockout.py",
        "            if len(self._entries) > self._max_entries:\n                self._entries.popitem(last=False)\n",
        "",
        ("tests/admission/test_lockout.py",),
        ("admission",),
    ),
    Bug(
        "an unbounded map",
        "a session takes in links for as long as the peer attaches some",
        "trouter/engine/link.py",
        "        if session.connection.link_count + session.connection.refused_count >= session.limits.max_links:\n",
        "        if session.connection.link_count >= 1 << 31:\n",
        ("tests/engine/test_limits.py",),
        ("engine",),
    ),
    Bug(
        "a lock-out that never ends",
        "a pair that was locked once stays locked",
        "trouter/admission/lockout.py",
        "        return entry is not None and entry.locked_until_s > self._now()\n",
        "        return entry is not None and entry.locked_until_s > 0.0\n",
        ("tests/admission/test_lockout.py",),
        ("admission",),
    ),
    Bug(
        "a stale path kept",
        "links that a router no longer has stay on the map until the next tick",
        "trouter/mesh/hearing.py",
        "            self._known.note_changed_links(\n"
        '                now_s, f"{shown(heard.id)} has other neighbours", f"{heard.id}:{heard.link_sequence}"\n'
        "            )\n",
        "",
        ("tests/mesh/test_mesh.py",),
        ("routers",),
    ),
    Bug(
        "a stale path kept",
        "a neighbour whose connection is lost is routed to until it has been silent for too long",
        "trouter/mesh/mesh.py",
        '            self._known.choose_way(link.router, now_s, "connection lost")\n',
        "",
        ("tests/mesh/test_mesh.py",),
        ("routers",),
    ),
    Bug(
        "a spool mark written too early",
        "messages are reported safe before the disk has them",
        "pipeline/src/trouter_pipeline/spool/writer.py",
        "        with self._failing():\n            if group.frames:\n",
        "        self._mark.set(group.end)\n        with self._failing():\n            if group.frames:\n",
        ("pipeline/tests/spool/test_spool.py", "pipeline/tests/spool/test_full_disk.py"),
        ("spool",),
    ),
    Bug(
        "a rotated certificate not used",
        "files that have changed are read, and what was loaded before stays in use",
        "trouter/tls/profiles.py",
        "                    self._profiles[name] = renewed.continue_from(profile)\n",
        "                    profile.seen = loaded.stamp\n",
        ("tests/tls/test_profiles.py",),
    ),
    Bug(
        "a secret that is shown",
        "confidential fields of a sampled body stand in a list, and their values are recorded",
        "trouter/telemetry/sampling.py",
        "        return [_hidden(each, sampling) for each in value]\n",
        "        return value\n",
        ("tests/telemetry/test_sampling.py",),
        ("samples",),
    ),
    Bug(
        "a secret that is shown",
        "the frame trace shows what a SASL frame has behind its last field",
        "trouter/wire/value_text.py",
        "    if cls in _SASL and not (name in _SHOWN_OF_SASL and _is_harmless(value)):\n",
        "    if cls in _SASL and name and not (name in _SHOWN_OF_SASL and _is_harmless(value)):\n",
        ("tests/logs/test_trace.py",),
        ("trace",),
    ),
    Bug(
        "a message lost without a word",
        "a body with a number that Arrow's type does not hold becomes nulls without a dead letter",
        "pipeline/src/trouter_pipeline/bodies.py",
        "            dead[row] = letters.letter(row, str(error))\n",
        "            del error\n",
        ("pipeline/tests/test_bodies.py",),
        ("bodies",),
    ),
)
