"""Messages kept on disk until somebody has taken them: a receiver writes, settles what is safe, and readers follow.

Nothing here knows Spark.
"""
