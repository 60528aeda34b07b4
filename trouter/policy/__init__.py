"""What each user may do: the policy compiled, its verdicts, the book of all that counts, the records of verdicts.

Nothing here waits, has a socket or looks host names up. What `compiled` and `judge` return never changes, so a
connection keeps the terms that it was opened with until it gets others.
"""
