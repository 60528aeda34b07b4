"""Logins by SASL, authentication services, and the router's own logins where it dials."""
