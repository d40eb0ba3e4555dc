"""`email`: a message by SMTP, to recipients that the author allows, with attachments from below the root."""

import io
import mimetypes
import os
import smtplib
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.utils import make_msgid
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from time import monotonic
from typing import TYPE_CHECKING, Any

from utools.errors import ToolError
from utools.files.sandbox import Sandbox
from utools.tool import Args, Tool, ToolContext

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer

SECONDS = 30.0
"""How long the server may be silent."""
LONGEST = 300.0
"""Seconds that all of it may take, where the call has no time of its own."""
MAX_LINES = 100
"""Lines of one reply of the server."""
SHOWN = 1000
"""Bytes of a reply that are told."""
MAX_ATTACHED = 10 * 2**20
ADDRESS = r"^[^@\s,;:<>\"()\[\]\\\x00-\x1f\x7f]{1,64}@[A-Za-z0-9.\-]{1,255}$"
PORTS = {"starttls": 587, "tls": 465, "none": 25}


def email(root: str | os.PathLike[str] = ".") -> Tool:
    """The tool `email`, which attaches nothing from outside `root`."""

    def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        message = composed(args, Sandbox(root), context)
        refused = _sent(message, args, context)
        sent = [address for address in _recipients(args) if address not in refused]
        return {"sent_to": sent, **({"refused": refused} if refused else {})}

    return Tool(
        code="email",
        description="Send an e-mail to allowed recipients, with files attached if need be.",
        config_schema=SCHEMA,
        execute=execute,
    )


def _authors(told: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"type": kind, "x-author": True, "description": told, **more}


_ADDRESSES = {"type": "array", "items": {"type": "string", "pattern": ADDRESS}, "maxItems": 50}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {**_ADDRESSES, "minItems": 1},
        "cc": _ADDRESSES,
        "subject": {"type": "string", "maxLength": 500},
        "text": {"type": "string"},
        "html": {"type": "string", "description": "The same as HTML."},
        "attachments": {"type": "array", "items": {"type": "string"}, "maxItems": 10, "description": "Paths of files."},
        "allowed_recipients": _authors(
            "Addresses, or patterns such as *@example.com.", "array", items={"type": "string"}
        ),
        "sender": _authors("The address in From.", pattern=ADDRESS),
        "host": _authors("The SMTP server."),
        "port": _authors("587, 465 or 25 by default.", "integer"),
        "security": {"enum": list(PORTS), "default": "starttls", "x-author": True},
        "user_env": _authors("The environment variable of the user's name."),
        "password_env": _authors("The environment variable of the password."),
    },
    "required": ["to", "subject", "text"],
}


def composed(args: Args, sandbox: Sandbox, context: ToolContext) -> EmailMessage:
    """The message; ToolError for a recipient who is not allowed, or a file that cannot be attached."""
    for address in _recipients(args):
        if not _is_allowed(address, args.get("allowed_recipients", ())):
            raise ToolError(f"{address} is not among allowed_recipients; nothing was sent")
    for name in ("sender", "host"):
        if name not in args:
            raise ToolError(f"the workflow's author has to set {name}; nothing was sent")
    message = EmailMessage()
    message["From"], message["To"], message["Message-ID"] = args["sender"], ", ".join(args["to"]), _id(args, context)
    if args.get("cc"):
        message["Cc"] = ", ".join(args["cc"])
    if not args["subject"].isprintable():
        raise ToolError("the subject holds a line break or another control character; nothing was sent")
    message["Subject"] = args["subject"]
    message.set_content(args["text"])
    if "html" in args:
        message.add_alternative(args["html"], subtype="html")
    _attach(message, args.get("attachments", ()), sandbox)
    return message


def _recipients(args: Args) -> list[str]:
    return [*args["to"], *args.get("cc", ())]


def _is_allowed(address: str, allowed: Sequence[str]) -> bool:
    return any(fnmatchcase(address.casefold(), pattern.casefold()) for pattern in allowed)


def _id(args: Args, context: ToolContext) -> str:
    domain = args["sender"].partition("@")[2]
    key = "".join(char if char.isalnum() else "." for char in context.idempotency_key)
    return f"<{key}@{domain}>" if key else make_msgid(domain=domain)


def _attach(message: EmailMessage, paths: Sequence[str], sandbox: Sandbox) -> None:
    room = MAX_ATTACHED
    for path in paths:
        with sandbox.open(path) as file:
            data = file.read(room + 1)
        room -= len(data)
        if room < 0:
            raise ToolError(f"the attachments are larger than {MAX_ATTACHED // 2**20} MiB; nothing was sent")
        kind, _, subtype = (mimetypes.guess_type(path)[0] or "application/octet-stream").partition("/")
        message.add_attachment(data, maintype=kind, subtype=subtype, filename=PurePosixPath(path).name)


def _sent(message: EmailMessage, args: Args, context: ToolContext) -> dict[str, str]:
    """Send it; the recipients that the server refused, and why.

    ToolError where nothing was sent; ConnectionError where the line went dead after that, and nobody can tell.
    """
    seconds = min(SECONDS, context.deadline_s or SECONDS)
    try:
        server = _connected(args, context, seconds)
    except smtplib.SMTPAuthenticationError:
        raise ToolError(f"the server {args['host']} refused the user or the password") from None
    except (OSError, smtplib.SMTPException) as error:
        raise ToolError(f"the server {args['host']} cannot be used: {_why(error)}", transient=True) from None
    with _left(server):
        try:
            refused = server.send_message(message)
        except smtplib.SMTPServerDisconnected:
            raise ConnectionResetError(f"{args['host']} broke off while the message was sent") from None
        except smtplib.SMTPRecipientsRefused as error:
            raise ToolError(f"every recipient was refused: {_refusals(error.recipients)}; nothing was sent") from None
        except smtplib.SMTPException as error:
            raise ToolError(f"{args['host']} refused the message: {_why(error)}") from None
    return {address: _reply(*answer) for address, answer in refused.items()}


@contextmanager
def _left(server: smtplib.SMTP) -> Iterator[None]:
    """Take leave of the server; whatever it says to that, the message is sent or not."""
    try:
        yield
        with suppress(smtplib.SMTPException, OSError):
            server.quit()
    finally:
        server.close()


def _connected(args: Args, context: ToolContext, seconds: float) -> smtplib.SMTP:
    security, end = args.get("security", "starttls"), monotonic() + (context.deadline_s or LONGEST)
    place = args["host"], args.get("port", PORTS[security])
    server: smtplib.SMTP = (
        _BoundedTls(end, *place, timeout=seconds, context=ssl.create_default_context())
        if security == "tls"
        else _Bounded(end, *place, timeout=seconds)
    )
    try:
        if security == "starttls":
            server.starttls(context=ssl.create_default_context())
        if "user_env" in args:
            server.login(context.secret(args["user_env"]), context.secret(args["password_env"]))
    except BaseException:
        server.close()
        raise
    return server


class _Bounded(smtplib.SMTP):
    """A server whose replies have an end: smtplib takes as many lines as it is sent, however slowly they come."""

    def __init__(self, end: float, host: str, port: int, **options: Any) -> None:
        self._end = end
        super().__init__(host, port, **options)

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = _Replies(_Timed(self.sock, self._end))
        if self.file is not None:
            self.file.lines = 0
        return super().getreply()


class _BoundedTls(_Bounded, smtplib.SMTP_SSL):
    """The same, by TLS from the start."""


class _Replies(io.BufferedReader):
    """What a server says, of which no reply is too long; `lines` counts those of the present one."""

    lines = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        self.lines += 1
        if self.lines > MAX_LINES:
            raise OSError(f"its reply has more than {MAX_LINES} lines")
        return super().readline(size)


class _Timed(io.RawIOBase):
    """What a socket receives until a time on the monotonic clock."""

    def __init__(self, sock: "socket.socket", end: float) -> None:
        self._sock, self._end = sock, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        left = self._end - monotonic()
        if left <= 0:
            raise TimeoutError("it was not done in time")
        self._sock.settimeout(min(SECONDS, left))
        return self._sock.recv_into(buffer)


def _refusals(recipients: dict[str, tuple[int, bytes]]) -> str:
    return "; ".join(f"{address}: {_reply(*answer)}" for address, answer in recipients.items())


def _reply(code: int, text: bytes) -> str:
    return f"{code} {text[:SHOWN].decode('utf-8', 'replace')}"


def _why(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        told = error.smtp_error
        return _reply(error.smtp_code, told if isinstance(told, bytes) else str(told).encode())
    return getattr(error, "strerror", None) or str(error)
