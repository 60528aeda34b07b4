"""Edge routers: what an interior router does for those below it, and an edge router at the one above it."""
