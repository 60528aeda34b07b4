"""This router's place in its network: neighbours, uplinks of an edge router, and what is logged of both."""
