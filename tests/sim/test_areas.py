"""A network of areas, as the bench simulates it with 10,000 routers, here with forty."""

from __future__ import annotations

from bench.areas import Areas


def test_consumers_behind_edge_routers_are_known_everywhere_and_move_with_their_uplinks() -> None:
    areas = Areas(8, 4)
    areas.start_interior()
    areas.wait(areas.interior_is_known)
    areas.start_edges()
    assert not areas.addresses_are_known()
    assert areas.wait(areas.addresses_are_known)[0] <= 5
    assert areas.carry(areas.edges)

    areas.kill(areas.interior[4])
    areas.network.run(5.0)

    assert areas.interior_is_known()
    assert areas.carry(areas.edges)
