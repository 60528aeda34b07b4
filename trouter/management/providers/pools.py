"""The memory pools of Qpid Dispatch, by name, for programs that watch them."""

from __future__ import annotations

from typing import Final

#: By pool: the objects that a thread of Qpid Dispatch takes at once, and those that it keeps.
BATCH: Final = 64
THREAD_MAX: Final = 128
LARGE_BATCH: Final = 16
LARGE_THREAD_MAX: Final = 32

LARGE: Final = frozenset({"qd_connection_t", "qd_log_entry_t"})
NAMES: Final = (
    "qd_bitmask_t", "qd_buffer_t", "qd_composed_field_t", "qd_composite_t", "qd_connection_t",
    "qd_hash_handle_t", "qd_hash_item_t", "qd_iterator_t", "qd_link_ref_t", "qd_link_t", "qd_listener_t",
    "qd_log_entry_t", "qd_management_context_t", "qd_message_content_t", "qd_message_t", "qd_node_t",
    "qd_parse_node_t", "qd_parse_tree_t", "qd_parsed_field_t", "qd_session_t", "qd_timer_t", "qdr_action_t",
    "qdr_address_config_t", "qdr_address_t", "qdr_auto_link_t", "qdr_conn_identifier_t",
    "qdr_connection_info_t", "qdr_connection_t", "qdr_connection_work_t", "qdr_core_timer_t",
    "qdr_delivery_cleanup_t", "qdr_delivery_ref_t", "qdr_delivery_t", "qdr_field_t", "qdr_general_work_t",
    "qdr_link_ref_t", "qdr_link_route_t", "qdr_link_t", "qdr_link_work_t", "qdr_query_t", "qdr_terminus_t",
)  # fmt: skip


def limits(name: str) -> tuple[int, int]:
    """Return the batch size and the free list of a pool, in objects."""
    return (LARGE_BATCH, LARGE_THREAD_MAX) if name in LARGE else (BATCH, THREAD_MAX)
