"""The numbers and flags of a group (security.md 4.6), and the page's examples of them (4.16)."""

from __future__ import annotations

import pytest

from tests.policy.policies import group, opened, policy, refused
from trouter.config import ConfigurationError
from trouter.policy.counts import VhostConnections
from trouter.policy.kinds import Reason
from trouter.policy.settings import Settings, largest_message

DEFAULTS = Settings(
    allow_waypoint_links=True,
    allow_fallback_links=True,
    allow_dynamic_link_routes=True,
    allow_admin_status_update=True,
    management="admin",
)
SETTINGS = {
    "": {},
    "maxFrameSize: 512": {"max_frame_size": 512},
    "maxFrameSize: 0": {"max_frame_size": None},
    "maxFrameSize: 2147483646": {"max_frame_size": 2147483646},
    "maxFrameSize: 2147483647": {"max_frame_size": None},
    "maxFrameSize: 511": {"max_frame_size": 512},
    "maxSessions: 1": {"max_sessions": 1},
    "maxSessions: 0": {"max_sessions": None},
    "maxSessions: 65535": {"max_sessions": None},
    "maxSessionWindow: 409600": {"max_session_window": 409600},
    "maxSessionWindow: 2147483647": {"max_session_window": None},
    "maxMessageSize: 5": {"max_message_size": 5},
    "maxMessageSize: 0": {"max_message_size": None},
    "maxSenders: 0": {"max_senders": 2147483647},
    "maxSenders: 2147483647": {"max_senders": 2147483647},
    'maxReceivers: "7"': {"max_receivers": 7},
    "allowDynamicSource: True": {"allow_dynamic_source": True},
    "allowAnonymousSender: TRUE": {"allow_anonymous_sender": True},
    "allowUserIdProxy: true": {"allow_user_id_proxy": True},
    "allowWaypointLinks: False": {"allow_waypoint_links": False},
    "allowFallbackLinks: no": {"allow_fallback_links": False},
    "allowDynamicLinkRoutes: no": {"allow_dynamic_link_routes": False},
    "allowAdminStatusUpdate: no": {"allow_admin_status_update": False},
}


@pytest.mark.parametrize(("text", "expected"), SETTINGS.items())
def test_a_connection_has_the_settings_of_its_group(text: str, expected: dict[str, object]) -> None:
    settings = opened(group(text)).settings
    names = DEFAULTS.__dataclass_fields__
    assert {name: getattr(settings, name) for name in names} == {
        **{name: getattr(DEFAULTS, name) for name in names},
        **expected,
    }


BAD = ["maxSessions: -1", "maxSenders: x", "allowWaypointLinks: maybe", "maxSessions: 65536",
       "sources: a\n sourcePattern: b", "targets: a\n targetPattern: b", "sources: ${user}${user}"]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_settings_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        group(text)


LEVELS = {
    (5, 6, 7): 5,
    (None, 6, 7): 6,
    (None, None, 7): 7,
    (0, 6, 7): None,
    (None, 0, 7): None,
    (None, None, 0): None,
}


@pytest.mark.parametrize(("levels", "largest"), LEVELS.items(), ids=str)
def test_the_first_level_with_a_limit_counts(levels: tuple[int | None, int | None, int], largest: int | None) -> None:
    assert largest_message(*levels) == largest
    of_group, of_vhost, of_policy = ("" if level is None else f"maxMessageSize: {level}" for level in levels)
    rules = policy(
        f"vhost {{\n hostname: v\n {of_vhost}\n groups: {{ g: {{ users: *\n remoteHosts: *\n {of_group}\n }}\n }}\n}}",
        of_policy,
    )
    assert opened(rules).settings.max_message_size == largest


# ------------------------------------------------------------------------------------- the examples of the page
def test_example_2_ten_connections_of_a_user() -> None:
    rules = policy("""vhost {
    name: $default
    maxConnectionsPerUser: 10
    allowUnknownUser: true
    groups: { $default: { remoteHosts: *, sources: *, targets: * } }
}""", " maxConnections: 100")  # fmt: skip
    admission = opened(rules, "any.example.com")
    counts = VhostConnections()
    for number in range(10):
        assert counts.limits_reached(admission.limits, "alice", "h") == ()
        counts.add_connection(str(number), "alice", "h")
    assert counts.limits_reached(admission.limits, "alice", "h2") == (Reason.MAX_CONNECTIONS_PER_USER,)
    assert counts.limits_reached(admission.limits, "bob", "h") == ()
    assert rules.entity.max_connections == 100


EXAMPLE_3 = """vhost {
    id: example.com
    maxConnectionsPerRemoteHost: 5
    allowUnknownUser: true
    groups: {
        admin: {
            users: alice, bob
            remoteHosts: 127.0.0.1, ::1
            sources: *
            targets: *
        },
        $default: {
            remoteHosts: *
            sources: news*, sports*, chat*
            targets: chat*
        }
    }
}"""


def test_example_3_administrators_come_from_here_and_others_read_news() -> None:
    rules = policy(EXAMPLE_3)
    admin = opened(rules, "example.com", "alice", "127.0.0.1")
    assert admin.group == "admin"
    assert admin.may_receive("news-1")
    assert admin.may_send("news-1")
    assert refused(rules, "example.com", "alice", "10.0.0.1").rule == "example.com:admin:remote-host"
    carol = opened(rules, "example.com", "carol", "10.0.0.1")
    assert carol.may_receive("news-1").rule == "example.com:$default:sources:1"
    assert carol.may_send("news-1").rule == "example.com:$default:targets:none"
    assert carol.may_send("chat-7")
    assert carol.limits.per_host == 5
    assert refused(rules, "other.com", "carol").reason is Reason.NO_VHOST


def test_example_4_feeds_have_larger_frames() -> None:
    rules = policy("""vhost {
    id: traders.com
    allowUnknownUser: true
    groups: {
        traders: {
            users: trader-1, trader-2
            remoteHosts: *
            maxFrameSize: 10000
            maxSessionWindow: 5000000
            maxSessions: 1
        },
        feeds: { users: nyse-feed, remoteHosts: *, maxFrameSize: 60000, maxSessionWindow: 1200000000, maxSessions: 3 }
        $default: { remoteHosts: * }
    }
}""")
    for user, frame, channel_max, window in (("trader-1", 10000, 0, 500), ("nyse-feed", 60000, 2, 20000)):
        settings = opened(rules, "traders.com", user).settings
        assert settings.max_frame_size == frame
        assert settings.max_sessions == channel_max + 1
        assert settings.max_session_window == window * frame
