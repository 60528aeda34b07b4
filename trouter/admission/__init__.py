"""The peers that the router admits and what each may use: lockout, policy, quotas, tenants, sanctions, memory."""
