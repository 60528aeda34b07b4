"""The client side of management: requests, connection options, and the views for people."""
