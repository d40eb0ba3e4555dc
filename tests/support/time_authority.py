"""A time-stamping authority (RFC 3161) on this machine: OpenSSL makes its answers."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

CONFIG = """
[req]
distinguished_name = nobody
[nobody]
[tsa]
default_tsa = own
[own]
serial = {folder}/serial
default_policy = 1.2.3.4.1
digests = sha256
signer_digest = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
[root]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[stamps]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


@dataclass
class TimeAuthority:
    """Its URL, the certificate that others trust, and how it behaves: `answers` of None are its own."""

    folder: Path
    root: Path = field(init=False)
    url: str = ""
    asked: int = 0
    answers: tuple[int, bytes] | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.root = self.folder / "root.pem"
        config = self.folder / "openssl.cnf"
        config.write_text(CONFIG.format(folder=self.folder))
        (self.folder / "serial").write_text("01\n")
        new = "openssl req -new -newkey rsa:2048 -nodes -keyout {0}.key -subj /CN={0}"
        self._run(f"{new.format('root')} -x509 -days 2 -out root.pem -config openssl.cnf -extensions root")
        self._run(f"{new.format('stamps')} -out stamps.csr -config openssl.cnf")
        sign = "openssl x509 -req -in stamps.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -out stamps.pem"
        self._run(f"{sign} -extfile openssl.cnf -extensions stamps")

    def _run(self, words: str) -> None:
        subprocess.run(words.split(), cwd=self.folder, check=True, capture_output=True)

    def answer(self, query: bytes) -> bytes:
        self.asked += 1
        (self.folder / "query").write_bytes(query)
        self._run(
            "openssl ts -reply -config openssl.cnf -section own -queryfile query -signer stamps.pem -inkey stamps.key "
            "-out reply"
        )
        return (self.folder / "reply").read_bytes()


@contextmanager
def time_authority(folder: Path) -> Iterator[TimeAuthority]:
    authority = TimeAuthority(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["content-length"]))
            status, body = authority.answers or (200, authority.answer(query))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    authority.url = f"http://127.0.0.1:{server.server_address[1]}/"
    try:
        yield authority
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
