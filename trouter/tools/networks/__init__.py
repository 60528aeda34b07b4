"""Tools for all routers of a network at once."""
