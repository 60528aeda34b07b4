"""The peers that the router admits, and the limits of each: lockout, policy, quotas, tenants, sanctions, memory."""
