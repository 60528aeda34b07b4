"""Edge routers: what an interior router does for its edge routers, and an edge router on its uplink."""
