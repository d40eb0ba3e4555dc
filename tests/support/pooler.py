"""What a connection pooler does to the settings of a session, before a real PostgreSQL on loopback, for tests.

PgBouncer refuses the parameter `options`; with `ignore_startup_parameters = options`, or Odyssey, it is dropped.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

ENCRYPTED = (80877103, 80877104)
"""The codes of a client that asks for TLS or GSSAPI."""
REFUSAL = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
PIECE = 65536


@contextmanager
def pooler_before(target: int, *, refuses: bool) -> Iterator[int]:
    """Gives its port, from which clients reach the server at the port `target` without the `options` they send."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=_serve, args=(client, target, refuses), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _serve(client: socket.socket, target: int, refuses: bool) -> None:
    with client, suppress(OSError), socket.create_connection(("127.0.0.1", target)) as server:
        code, body = _read_packet(client)
        while code in ENCRYPTED:
            client.sendall(b"N")
            code, body = _read_packet(client)
        words = body.split(b"\0")
        if b"options" in words:
            if refuses:
                client.sendall(b"E" + (len(REFUSAL) + 4).to_bytes(4) + REFUSAL)
                return
            at = words.index(b"options")
            del words[at : at + 2]
        start = code.to_bytes(4) + b"\0".join(words)
        server.sendall((len(start) + 4).to_bytes(4) + start)
        threading.Thread(target=_pass_on, args=(client, server), daemon=True).start()
        _pass_on(server, client)


def _read_packet(client: socket.socket) -> tuple[int, bytes]:
    """Read a packet without a type, as the first ones of a client are: its code, and what follows."""
    length = int.from_bytes(_read(client, 4))
    packet = _read(client, length - 4)
    return int.from_bytes(packet[:4]), packet[4:]


def _read(client: socket.socket, number: int) -> bytes:
    found = b""
    while len(found) < number:
        piece = client.recv(number - len(found))
        if not piece:
            raise ConnectionResetError
        found += piece
    return found


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(PIECE):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
