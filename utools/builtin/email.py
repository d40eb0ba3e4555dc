"""`email`: a message by SMTP, to recipients that the author allows, with attachments from below the root.

Needs the extra `email`.
"""

import mimetypes
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from utools.error_text import reason_of
from utools.errors import ToolError
from utools.files.sandbox import Sandbox
from utools.tool import Args, Tool, ToolContext
from utools.words.text import Text

if TYPE_CHECKING:
    from email.message import EmailMessage

    from aiosmtplib import SMTP

SECONDS = 30.0
"""How long one reply of the server may take."""
LONGEST = 300.0
"""Seconds that the whole call may take if it has no deadline."""
QUIT_SECONDS = 1.0
SHOWN = 1000
"""Characters of a reply that are shown."""
NOT_SMTP = -1
"""aiosmtplib's code of a reply that cannot be read, or is too long."""
MAX_ATTACHED = 10 * 2**20
ADDRESS = r"^[^@\s,;:<>\"()\[\]\\\x00-\x1f\x7f]{1,64}@[A-Za-z0-9.\-]{1,255}$"
SPACES = "\u00a0\u2009\u202f\u3000\u200c\u200d"
"""Spaces of French and Chinese, and joiners of Persian, Indic scripts and emoji: parts of the text of a subject."""
PORTS = {"starttls": 587, "tls": 465, "none": 25}


def email(root: str | os.PathLike[str] = ".") -> Tool:
    """Return the tool `email`, which attaches files below `root` only."""

    async def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        from asyncio import to_thread

        message = await to_thread(compose, args, Sandbox(root), context)
        refused = await _send(message, args, context)
        sent = [address for address in _recipients(args) if address not in refused]
        return {"sent_to": sent, **({"refused": refused} if refused else {})}

    return Tool(
        code="email",
        description="Send an e-mail to allowed recipients, with files attached if need be.",
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        examples=[
            {
                "user": "Tell ana@example.com that the parcel is here.",
                "args": {"to": ["ana@example.com"], "subject": "Your parcel", "text": "The parcel is here."},
                "output": {"sent_to": ["ana@example.com"], "refused": {}},
                "answer": "I told ana@example.com.",
            }
        ],
        execute=execute,
    )


def _author(description: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    """Return the schema of an argument that only the author sets."""
    return {"type": kind, "x-author": True, "description": description, **more}


_ADDRESSES = {"type": "array", "items": {"type": "string", "pattern": ADDRESS}, "maxItems": 50}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {**_ADDRESSES, "minItems": 1, "description": "Addresses."},
        "cc": {**_ADDRESSES, "description": "Addresses."},
        "subject": {"type": "string", "maxLength": 500, "description": "One line."},
        "text": {"type": "string", "description": "Plain text."},
        "html": {"type": "string", "description": "The same as HTML."},
        "attachments": {"type": "array", "items": {"type": "string"}, "maxItems": 10, "description": "Paths of files."},
        "allowed_recipients": _author(
            "Addresses, or patterns such as *@example.com.",
            "array",
            items={"type": "string"},
            **{"x-narrow": "patterns"},
        ),
        "sender": _author("The address in From.", pattern=ADDRESS),
        "host": _author("The SMTP server."),
        "port": _author("587, 465 or 25 by default.", "integer"),
        "security": {
            "enum": list(PORTS),
            "default": "starttls",
            "x-author": True,
            "description": "How the connection is secured.",
        },
        "user_env": _author("The environment variable of the user's name."),
        "password_env": _author("The environment variable of the password."),
    },
    "required": ["to", "subject", "text"],
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sent_to": {"type": "array", "items": {"type": "string"}},
        "refused": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "additionalProperties": False,
}


def compose(args: Args, sandbox: Sandbox, context: ToolContext) -> "EmailMessage":
    """Return the message; ToolError for a recipient who is not allowed, or a file that cannot be attached."""
    for address in _recipients(args):
        if not _is_allowed(address, args.get("allowed_recipients", ())):
            raise ToolError(
                "{address} is not among allowed_recipients ({allowed}); nothing was sent",
                address=address,
                allowed=", ".join(args.get("allowed_recipients", ())) or "none",
            )
    for name in ("sender", "host"):
        if name not in args:
            raise ToolError("the workflow's author has to set {name}; nothing was sent", name=name)
    from email.message import EmailMessage

    message = EmailMessage()
    message["Date"] = datetime.now(UTC)
    message["From"], message["To"], message["Message-ID"] = args["sender"], ", ".join(args["to"]), _id(args, context)
    if args.get("cc"):
        message["Cc"] = ", ".join(args["cc"])
    if not all(each.isprintable() or each in SPACES for each in args["subject"]):
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
    from email.utils import make_msgid

    domain = args["sender"].partition("@")[2]
    key = "".join(char if char.isalnum() else "." for char in context.idempotency_key)
    return f"<{key}@{domain}>" if key else make_msgid(domain=domain)


def _attach(message: "EmailMessage", paths: Sequence[str], sandbox: Sandbox) -> None:
    room = MAX_ATTACHED
    for path in paths:
        with sandbox.open(path) as file:
            data = file.read(room + 1)
        room -= len(data)
        if room < 0:
            raise ToolError("the attachments are larger than {mib} MiB; nothing was sent", mib=MAX_ATTACHED // 2**20)
        kind, _, subtype = _type_of(path).partition("/")
        message.add_attachment(data, maintype=kind, subtype=subtype, filename=PurePosixPath(path).name)


def _type_of(path: str) -> str:
    """Return the type of a file by its name: that of bytes for one that is compressed, and for a message, whose type
    no attachment in base64 may have."""
    kind, encoding = mimetypes.guess_type(path)
    is_plain = kind is not None and encoding is None and not kind.startswith(("message/", "multipart/"))
    return kind if kind is not None and is_plain else "application/octet-stream"


async def _send(message: "EmailMessage", args: Args, context: ToolContext) -> dict[str, str]:
    """Send the message; the recipients that the server refused, and why.

    ToolError if nothing was sent; ConnectionError if the connection broke after that, and nobody can know.
    """
    import asyncio

    host, end = args["host"], asyncio.get_running_loop().time() + (context.deadline_s or LONGEST)
    async with _connect(args, context, end) as server:
        from aiosmtplib import SMTPException, SMTPRecipientsRefused, SMTPResponseException

        try:
            async with asyncio.timeout_at(end):
                refused, _ = await server.send_message(message, sender=args["sender"], recipients=_recipients(args))
        except SMTPRecipientsRefused as error:
            replies = "; ".join(f"{each.recipient}: {_reply(each.code, each.message)}" for each in error.recipients)
            raise ToolError("every recipient was refused: {replies}; nothing was sent", replies=replies) from None
        except (OSError, SMTPException) as error:
            if isinstance(error, OSError) or getattr(error, "code", None) == NOT_SMTP:
                raise ConnectionResetError(Text("{host} broke off while the message was sent", host=host)) from None
            reply = _reply(error.code, error.message) if isinstance(error, SMTPResponseException) else str(error)
            raise ToolError("{host} refused the message: {reply}", host=host, reply=reply) from None
    return {address: _reply(*reply) for address, reply in refused.items()}


@asynccontextmanager
async def _connect(args: Args, context: ToolContext, end: float) -> "AsyncIterator[SMTP]":
    """A connection with TLS and login as the author asks for them; ToolError if there is none."""
    import asyncio

    try:
        from aiosmtplib import SMTP, SMTPAuthenticationError, SMTPException, SMTPResponseException
    except ImportError:
        raise ToolError("sending e-mail needs an extra: pip install 'agent-core[email]'") from None
    host, security = args["host"], args.get("security", "starttls")
    server = SMTP(
        hostname=host,
        port=args.get("port", PORTS[security]),
        use_tls=security == "tls",
        start_tls=security == "starttls",
        timeout=min(SECONDS, context.deadline_s or SECONDS),
    )
    try:
        try:
            async with asyncio.timeout_at(end):
                await server.connect()
                if "user_env" in args:
                    await server.login(context.secret(args["user_env"]), context.secret(args["password_env"]))
        except SMTPAuthenticationError:
            raise ToolError("the server {host} refused the user or the password", host=host) from None
        except TimeoutError:
            raise ToolError(
                "the server {host} cannot be used: it was not done in time", host=host, transient=True
            ) from None
        except (OSError, SMTPException) as error:
            reason = _reply(error.code, error.message) if isinstance(error, SMTPResponseException) else reason_of(error)
            raise ToolError(
                "the server {host} cannot be used: {reason}", host=host, reason=reason, transient=True
            ) from None
        yield server
        with suppress(SMTPException, OSError):  # the message is sent, whatever the server replies
            await server.quit(timeout=QUIT_SECONDS)
    finally:
        server.close()
        await asyncio.sleep(0)  # the transport closes its socket in the loop's next turn


def _reply(code: int, text: str) -> str:
    readable = text[:SHOWN].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return readable if code == NOT_SMTP else f"{code} {readable}"
