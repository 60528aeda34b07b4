"""Send greetings through a running router and read them: `python examples/hello.py [HOST:PORT]`."""

import sys
from threading import Thread

from proton import Message
from proton.utils import BlockingConnection

URL = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:5672"
GREETINGS = ["Hello, world", "Bonjour, le monde", "Hallo, Welt"]


def listen() -> None:
    connection = BlockingConnection(URL, allowed_mechs="ANONYMOUS", timeout=10)
    receiver = connection.create_receiver("greetings", credit=10)
    for _ in GREETINGS:
        print(receiver.receive().body)
        receiver.accept()
    connection.close()


Thread(target=listen).start()
connection = BlockingConnection(URL, allowed_mechs="ANONYMOUS", timeout=10)
sender = connection.create_sender("greetings")
for text in GREETINGS:
    sender.send(Message(body=text))  # waits for a receiver, and returns once the receiver has accepted
connection.close()
