"""A TLS server in a thread, by blocking sockets: it sends OpenSSL's alerts, which a server of asyncio keeps back."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread

SECONDS = 10


@dataclass
class StrictServer:
    """The server. `handshakes` counts those that were tried, `requests` are the heads of requests that it answered."""

    port: int
    handshakes: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/v1"

    def answer(self, raw: socket.socket, context: ssl.SSLContext, reply: bytes) -> None:
        self.handshakes += 1
        raw.settimeout(SECONDS)
        with context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False) as connection:
            try:
                connection.do_handshake()
            except ssl.SSLError:
                _linger(connection)
                return
            received = b""
            while b"\r\n\r\n" not in received:
                received += connection.recv(2**16)
            self.requests.append(received.decode())
            connection.sendall(reply)
            _linger(connection.unwrap())


def _linger(connection: socket.socket) -> None:
    """Read on until the client has hung up: a socket that is closed with bytes unread resets the connection."""
    connection.shutdown(socket.SHUT_WR)
    while socket.socket.recv(connection, 2**16):
        pass


@contextmanager
def strict_server(context: ssl.SSLContext, reply: bytes) -> Iterator[StrictServer]:
    """Serve one connection after another until the end of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server, ended = StrictServer(listener.getsockname()[1]), False

        def serve() -> None:
            while True:
                raw, _ = listener.accept()
                if ended:
                    raw.close()
                    return
                with suppress(OSError):
                    server.answer(raw, context, reply)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            ended = True
            socket.create_connection(("127.0.0.1", server.port)).close()
            thread.join(SECONDS)
