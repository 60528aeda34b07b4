"""Any bytes are scanned or raise InvalidMessage; if a scan of a part finds the sections, they are those of the whole.

The first byte picks the depth. Allowed: InvalidMessage from scan and to_text, because some bytes are no message.
"""

from __future__ import annotations

from trouter.testing.fuzz import behind, values
from trouter.wire.sections import FOUND, NEED_MORE, InvalidMessage, MessageScan

MUTATOR = behind(1, values)
COVERS = ("trouter.wire.sections",)

Facts = tuple[int, int, int, int, int, int, int, int]


def facts(scan: MessageScan, data: bytes, start: int, end: int) -> Facts:
    found = (
        scan.priority,
        scan.annotations_start,
        scan.annotations_end,
        scan.insert_at,
        scan.to_start,
        scan.to_end,
        scan.user_id_start,
        scan.user_id_end,
    )
    assert -1 <= scan.priority <= 255
    assert start <= scan.insert_at <= end
    for first, last in (found[1:3], found[4:6], found[6:8]):
        assert first == last == -1 or start <= first <= last <= end
    if scan.annotations_start >= 0:
        assert scan.insert_at == scan.annotations_start
    try:
        scan.read_to(data)
    except InvalidMessage:
        assert scan.to_start >= 0
    user_id = scan.read_user_id(data)
    assert user_id is None or len(user_id) == scan.user_id_end - scan.user_id_start
    return found


def check(data: bytes) -> None:
    if not data:
        return
    depth = (1, 3, 4, 5)[data[0] & 3]
    end = len(data)
    scan = MessageScan()
    whole: Facts | None = None
    try:
        assert scan.scan_sections(data, 1, end, depth, True) == FOUND
        whole = facts(scan, data, 1, end)
    except InvalidMessage:
        pass
    waited = True
    for cut in range(1, min(end, 200) + 1):
        try:
            answer = scan.scan_sections(data, 1, cut, depth, False)
        except InvalidMessage:
            assert whole is None
            return
        if answer == FOUND:
            waited = False
            assert facts(scan, data, 1, cut) == whole
        else:
            assert answer == NEED_MORE
            assert waited, "more bytes made a message less known"
