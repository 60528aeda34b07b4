"""Play one side of a recorded conversation to trouter, and compare its answers with those of the other side.

The player waits for each frame that Qpid Dispatch sent before it goes on, so that the conversation keeps its order.
It sends the recorded bytes, except for values that trouter chose itself: ids of deliveries, names of its links, its
channels, the addresses that it generated.
"""

from __future__ import annotations

import copy
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping

from tests.interop.recorded.forms import Form, plain, read_all, uint, write
from tests.interop.recorded.recording import Difference, Frame, Joiner, Step, compare, take_frame
from tests.routers import DEADLINE_S

#: Seconds to wait for a frame. A router sends one within a second or two; only a missing frame takes longer.
PATIENCE_S = 10.0
#: Seconds between repeats of the last hello or heartbeat while the player waits: a silent neighbour is taken as lost.
PULSE_S = 0.5
#: Messages that routers repeat.
_REPEATED = ("HELLO", "RA", "LSR", "LSU", "MAR")


class Speaker:
    """One side of a conversation: its links by handle, and its deliveries in one frame each."""

    def __init__(self) -> None:
        #: By channel and handle of the side: the link's name.
        self.links: dict[tuple[int, int], str] = {}
        self._joiner = Joiner()

    def take(self, frame: Frame) -> Frame | None:
        """Return the frame with its link; a delivery in several frames becomes one, None before its end."""
        handle = frame.fields.get("handle")
        if frame.kind == "attach":
            self.links[frame.channel, frame.fields["handle"]] = frame.fields["name"]
        if handle is not None:
            frame.link = self.links[frame.channel, handle]
        return self._joiner.join(frame)


class Player:
    """Play ``side`` of a recording over a connected socket."""

    def __init__(self, steps: list[Step], side: str, sock: socket.socket, act: Callable[[str, bytes], None]) -> None:
        """Prepare to play; ``act`` does the actions of clients, given the words of the line and the message to send."""
        self.differences: list[Difference] = []
        self._steps = steps
        self._side = side
        self._sock = sock
        self._act = act
        sock.settimeout(PATIENCE_S)
        self._input = bytearray()
        #: Frames of trouter that are not compared yet.
        self._came: list[Frame] = []
        self._seen: set[Hashable] = set()
        self._pulse: Frame | None = None
        self._recorded, self._ours, self._played = Speaker(), Speaker(), Speaker()
        #: By recorded name: trouter's name of links and addresses; by recorded channel: trouter's channel.
        self._texts: dict[str, str] = {}
        self._recorded_names: dict[str, str] = {}
        self._channels: dict[int, int] = {}
        self._recorded_channels: dict[int, int] = {}
        #: By channel: transfer frames that the player sent and received, and ids of deliveries sent.
        self._frames_sent: dict[int, int] = defaultdict(int)
        self._frames_got: dict[int, int] = defaultdict(int)
        self._deliveries: dict[int, int] = defaultdict(int)
        #: By name of the link: deliveries sent and received on it.
        self._sent_on: dict[str, int] = defaultdict(int)
        self._got_on: dict[str, int] = defaultdict(int)
        #: By recorded channel and id: the id of trouter's delivery.
        self._ids: dict[tuple[int, int], int] = {}
        self._begun: set[tuple[int, int]] = set()

    def play(self) -> None:
        """Play the whole recording."""
        for place, step in enumerate(self._steps):
            if step.frame is None:
                if step.side != self._side:
                    self._act(step.action, self._message(place))
            elif step.side == self._side:
                self._say(step.frame)
            elif (whole := self._recorded.take(step.frame)) is not None:
                self._expect(whole)

    def unexpected(self) -> set[str]:
        """Return the kinds of frames of trouter that match none of the recorded ones."""
        return {_where(frame) for frame in self._came}

    def read_to_end(self) -> list[Frame]:
        """Return what trouter sends from now on until its close, and hang up."""
        self._came.clear()
        while not any(frame.kind == "close" for frame in self._came):
            assert self._read(DEADLINE_S), "the router does not close the connection"
        self._sock.shutdown(socket.SHUT_RDWR)
        return self._came

    def _message(self, place: int) -> bytes:
        """Return the next message in the recording that a client sent, without the router's annotations."""
        joiner = Joiner()
        for step in self._steps[place:]:
            frame = None if step.frame is None or step.side == self._side else joiner.join(step.frame)
            if frame is not None and frame.kind == "transfer" and not frame.opcode and not frame.fields.get("settled"):
                sections = [form for form in read_all(frame.payload) if form[1][0][1] != 0x72]
                return b"".join(map(write, sections))
        return b""

    # --- input

    def _expect(self, recorded: Frame) -> None:
        """Compare a frame of the recording with the one that trouter sends in its place."""
        key = self._key(recorded, {}, {})
        # Credit may be returned for several deliveries at once, and a router need not repeat a request that was
        # answered.
        said = key, repr(plain(recorded.sections()["value"])) if recorded.opcode else ""
        optional = said in self._seen and (recorded.kind == "flow" or recorded.opcode in _REPEATED)
        ours = self._await(key, recorded, 0.0 if optional else PATIENCE_S)
        if ours is None:
            if not optional:
                self.differences.append(Difference("missing", _where(recorded), "sent", "not sent"))
            return
        self._seen.add(said)
        self._note(recorded, ours)
        self.differences += compare(_where(recorded), recorded, ours)

    def _await(self, key: Hashable, recorded: Frame, patience_s: float) -> Frame | None:
        """Return the frame with this key, the most similar of several; None when none arrives in time."""
        give_up_s = time.monotonic() + patience_s
        while True:
            alike = [
                frame for frame in self._came if self._key(frame, self._recorded_names, self._recorded_channels) == key
            ]
            if alike:
                ours = min(alike, key=lambda frame: len(list(compare("", recorded, frame))))
                self._came.remove(ours)
                return ours
            left_s = give_up_s - time.monotonic()
            if left_s <= 0:
                return None
            if not self._read(min(left_s, PULSE_S)) and self._pulse is not None:
                self._say(copy.deepcopy(self._pulse))

    def _read(self, patience_s: float) -> bool:
        """Read the router's output; return False when none arrived."""
        self._sock.settimeout(patience_s)
        try:
            octets = self._sock.recv(1 << 18)
        except TimeoutError:
            return False
        assert octets, "the router closed the connection"
        self._input += octets
        while (frame := take_frame(self._input)) is not None:
            if frame.kind == "transfer":
                self._frames_got[frame.channel] += 1
            whole = self._ours.take(frame)
            if whole is not None and whole.kind != "empty":
                if whole.kind == "transfer":
                    self._got_on[self._recorded_names.get(whole.link, whole.link)] += 1
                self._came.append(whole)
        return True

    def _key(self, frame: Frame, names: Mapping[str, str], channels: Mapping[int, int]) -> Hashable:
        """Return the key of a frame: two frames with one key are compared."""
        kind, fields = frame.kind, frame.fields
        if kind == "begin":
            return kind, fields.get("remote-channel")
        if kind == "attach" and fields["name"] not in self._played.links.values():
            return kind, channels.get(frame.channel, frame.channel), "asked"
        if frame.link:
            return kind, names.get(frame.link, frame.link), frame.opcode
        return kind, channels.get(frame.channel, frame.channel)

    def _note(self, recorded: Frame, ours: Frame) -> None:
        """Store trouter's names and numbers for those of the recording."""
        if recorded.kind == "begin":
            self._channels[recorded.channel] = ours.channel
            self._recorded_channels[ours.channel] = recorded.channel
        elif recorded.kind == "attach":
            self._call(recorded.fields["name"], ours.fields["name"])
            there, here = recorded.fields["source"], ours.fields["source"]
            if there and here and there[0]:
                self._texts[there[0]] = here[0]
        elif recorded.kind == "transfer":
            self._ids[recorded.channel, recorded.fields["delivery-id"]] = ours.fields["delivery-id"]
            if recorded.opcode == "lookup":
                there, here = (plain(each.sections()["properties"]) for each in (recorded, ours))
                pairs = zip(there, here, strict=False)
                self._texts |= {one: other for one, other in pairs if isinstance(one, str)}

    def _call(self, recorded: str, ours: str) -> None:
        self._texts[recorded] = ours
        self._recorded_names[ours] = recorded

    # --- output

    def _say(self, frame: Frame) -> None:
        """Send a recorded frame, with the names and numbers of this run."""
        if frame.opcode == "HELLO" or frame.is_heartbeat:
            self._pulse = copy.deepcopy(frame)
        change = getattr(self, f"_change_{frame.kind}", None)
        if change is None:
            self._sock.sendall(frame.octets)
            return
        change(frame, frame.form[1][1][1])
        payload = frame.payload
        if frame.opcode:
            payload = b"".join(write(self._renamed(section)) for section in read_all(payload))
        body = write(frame.form) + payload
        start = frame.octets[4] * 4
        head = (start + len(body)).to_bytes(4, "big") + frame.octets[4:6] + frame.channel.to_bytes(2, "big")
        self._sock.sendall(head + body)

    def _renamed(self, form: Form) -> Form:
        name, value = form
        if isinstance(value, list):
            return name, [self._renamed(each) for each in value]
        return (name, self._texts.get(value, value)) if name == "str8" else form

    def _change_begin(self, frame: Frame, fields: list[Form]) -> None:
        if (channel := frame.fields.get("remote-channel")) is not None:
            fields[0] = ("ushort", self._channels.get(channel, channel))

    def _change_attach(self, frame: Frame, fields: list[Form]) -> None:
        fields[:] = [self._renamed(each) for each in fields]
        self._played.links[frame.channel, frame.fields["handle"]] = frame.fields["name"]

    def _change_transfer(self, frame: Frame, fields: list[Form]) -> None:
        channel, handle = frame.channel, frame.fields["handle"]
        name = self._played.links[channel, handle]
        if (channel, handle) not in self._begun:
            self._begun.add((channel, handle))
            self._deliveries[channel] += 1
            self._sent_on[name] += 1
        if not frame.fields.get("more"):
            self._begun.discard((channel, handle))
        fields[1] = uint(self._deliveries[channel] - 1)
        self._frames_sent[channel] += 1

    def _change_flow(self, frame: Frame, fields: list[Form]) -> None:
        channel = frame.channel
        fields[0], fields[2] = uint(self._frames_got[channel]), uint(self._frames_sent[channel])
        if frame.fields.get("handle") is not None:
            name = self._played.links[channel, frame.fields["handle"]]
            fields[5] = uint(self._sent_on[name] or self._got_on[name])

    def _change_disposition(self, frame: Frame, fields: list[Form]) -> None:
        number = frame.fields["first"]
        fields[1] = uint(self._ids.get((frame.channel, number), number))
        assert fields[2] == ("null", None), "a range of deliveries, of which there is none in the recordings"


def _where(frame: Frame) -> str:
    """Return the name of the frame in the table of intended differences."""
    return f"{frame.kind}({frame.opcode})" if frame.opcode else frame.kind
