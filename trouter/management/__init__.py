"""The management node: requests that come as messages to ``$management``, answered from what the router knows."""
