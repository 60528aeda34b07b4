"""The client side of management: requests, connection options, and views."""
