"""Who a peer is: logins by SASL, authentication services, and how the router logs in where it dials."""
