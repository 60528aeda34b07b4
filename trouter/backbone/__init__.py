"""The router in its network: neighbours, uplinks of an edge router, and their log lines."""
