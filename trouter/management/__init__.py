"""The management node: requests that come as messages to ``$management``, answered from what the router knows.

``Agent`` serves them; ``ports`` says what it asks of the process around it.
"""

from trouter.management.agent import Agent
from trouter.management.ports import ConnectionFacts, Control, LogBook, LogEntry, ReloadReport

__all__ = ["Agent", "ConnectionFacts", "Control", "LogBook", "LogEntry", "ReloadReport"]
