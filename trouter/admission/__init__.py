"""Who may come in and how much one may use: the door, lockout, policy, quotas, tenants, sanctions, memory."""
