"""messageLoggingComponents: the messages of a connection, in module MESSAGE at trace (routing.md 4.8)."""

from __future__ import annotations

from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

from tests.routers import StartRouter

CONFIGURATION = """
listener {{
    host: 127.0.0.1
    port: 0
    messageLoggingComponents: {components}
}}
log {{
    module: MESSAGE
    enable: trace+
}}
log {{
    module: DEFAULT
    enable: info+
}}
"""


def pass_a_message(port: int) -> None:
    connection = BlockingConnection(f"127.0.0.1:{port}", timeout=60)
    receiver = connection.create_receiver("here", credit=1)
    sender = connection.create_sender("here", options=AtMostOnce())
    sender.send(Message(body="not for the log", subject="greeting", correlation_id=7))
    assert receiver.receive(timeout=60).subject == "greeting"
    connection.close()


def test_the_chosen_fields_of_a_message_are_logged_when_received_and_when_sent(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION.format(components="subject,correlation-id"))
    pass_a_message(router.port)
    for verb in ("Received", "Sent"):
        router.wait_for_line(
            rf"MESSAGE \(trace\) \[C1\]: {verb} Message\{{subject=\"greeting\", correlation-id=7\}} on link "
        )
    assert "not for the log" not in router.text()


def test_no_message_is_logged_without_the_setting(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION.format(components="none"))
    pass_a_message(router.port)
    router.wait_for_line("Connection Closed")
    assert "Message{" not in router.text()
