"""email against a real SMTP server on loopback: who gets what, and what is never sent."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from utools import ToolContext, ToolRegistry, ToolResult
from utools.builtin.email import email


class Mailbox:
    """Keeps what it is sent; refuses `nobody@…`, hangs up on what holds HANG UP, takes one password."""

    def __init__(self) -> None:
        self.mails: list[Envelope] = []
        self.quits = 0

    async def handle_RCPT(self, server: Any, session: Session, envelope: Envelope, address: str, _: Any) -> str:
        if address.startswith("nobody@"):
            return "550 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        if b"HANG UP" in (envelope.content or b""):
            server.transport.close()
            return ""
        if b"SPAM" in (envelope.content or b""):
            return "554 that is spam"
        self.mails.append(envelope)
        return "250 taken"

    async def handle_QUIT(self, server: Any, session: Session, envelope: Envelope) -> str:
        self.quits += 1
        return "500 not now" if self.mails and b"NO QUIT" in (self.mails[-1].content or b"") else "221 Bye"


def _password(server: Any, session: Any, envelope: Any, mechanism: str, told: Any) -> AuthResult:
    return AuthResult(success=isinstance(told, LoginPassword) and told.password == b"sesame-open", handled=False)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, Controller]]:
    box = Mailbox()
    controller = Controller(
        box,
        hostname="127.0.0.1",
        port=_free_port(),
        authenticator=_password,
        auth_require_tls=False,
        auth_required=False,
    )
    controller.start()
    yield box, controller
    controller.stop()


async def sent(
    controller: Controller | int, root: Path = Path(), deadline_s: float | None = None, **args: Any
) -> ToolResult:
    port = controller if isinstance(controller, int) else controller.server.sockets[0].getsockname()[1]
    presets = {
        "host": "127.0.0.1",
        "port": port,
        "security": "none",
        "sender": "desk@example.com",
        "allowed_recipients": ["*@example.com", "Ann@Other.org"],
    }
    secrets = {"MAIL_USER": "desk", "MAIL_PASSWORD": "sesame-open", "WRONG": "guess"}
    context = ToolContext(secret=lambda name: secrets[name], idempotency_key="run/agent/4", deadline_s=deadline_s)
    usual = {"to": ["bob@example.com"], "subject": "Grüße", "text": "Hello,\n.\nBob\n"}
    return await ToolRegistry([email(root)]).execute("email", {**presets, **usual, **args}, context)


Box = tuple[Mailbox, Controller]


async def test_a_message_arrives_as_it_was_written(mailbox: Box, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n")
    result = await sent(mailbox[1], tmp_path, cc=["ann@other.org"], html="<p>Hello</p>", attachments=["a.csv"])
    assert result.output == {"sent_to": ["bob@example.com", "ann@other.org"]}
    (envelope,) = mailbox[0].mails
    assert envelope.rcpt_tos == ["bob@example.com", "ann@other.org"]
    message: Any = message_from_bytes(envelope.content or b"", policy=default)
    assert (message["Subject"], message["Cc"], message["Message-ID"]) == (
        "Grüße",
        "ann@other.org",
        "<run.agent.4@example.com>",
    )
    assert message.get_body(("plain",)).get_content().split() == ["Hello,", ".", "Bob"]
    (attachment,) = message.iter_attachments()
    assert (attachment.get_filename(), attachment.get_content().strip()) == ("a.csv", "x;y")


async def test_the_server_is_told_goodbye_and_what_it_replies_changes_nothing(mailbox: Box) -> None:
    for number, text in enumerate(("Hello", "NO QUIT"), 1):
        result = await sent(mailbox[1], text=text)
        assert (result.success, mailbox[0].quits) == (True, number), result.error


async def test_a_message_has_its_date_and_types_that_its_reader_can_open(mailbox: Box, tmp_path: Path) -> None:
    for name in ("a.csv.gz", "m.eml", "a.csv"):
        (tmp_path / name).write_bytes(b"x")
    subject = "C’est prêt\u202f! 好\u3000消息 👨\u200d👩\u200d👧"
    result = await sent(mailbox[1], tmp_path, subject=subject, attachments=["a.csv.gz", "m.eml", "a.csv"])
    assert result.success, result.error
    message: Any = message_from_bytes(mailbox[0].mails[0].content or b"", policy=default)
    assert message["Subject"] == subject
    assert abs(message["Date"].datetime - datetime.now(UTC)) < timedelta(hours=1)
    types = [each.get_content_type() for each in message.iter_attachments()]
    assert types == ["application/octet-stream", "application/octet-stream", "text/csv"]


NEVER: dict[str, dict[str, Any]] = {
    "another_domain": {"to": ["eve@evil.org"]},
    "suffix": {"to": ["eve@example.com.evil.org"]},
    "prefix": {"to": ["eve@evil-example.com"]},
    "second_recipient": {"to": ["bob@example.com", "eve@evil.org"]},
    "copy": {"cc": ["eve@evil.org"]},
    "two_in_one": {"to": ["bob@example.com,eve@evil.org"]},
    "named": {"to": ["Eve <eve@evil.org>"]},
    "two_at": {"to": ["eve@evil.org@example.com"]},
    "line_break": {"to": ["bob@example.com\nBcc: eve@evil.org"]},
    "line_break_in_the_subject": {"subject": "Hi\r\nBcc: eve@evil.org"},
    "turned_subject": {"subject": "Hi \u202egpj.exe"},
    "outside": {"attachments": ["../secret"]},
    "etc": {"attachments": ["/etc/passwd"]},
    "nobody_allowed": {"allowed_recipients": []},
}


async def test_a_refusal_names_the_key_that_bounds_recipients(mailbox: Box, tmp_path: Path) -> None:
    result = await sent(mailbox[1], tmp_path, to=["eve@evil.org"])
    assert (
        result.error == "eve@evil.org is not among allowed_recipients (*@example.com, Ann@Other.org); nothing was sent"
    )


@pytest.mark.parametrize("args", NEVER.values(), ids=NEVER)
async def test_what_is_not_allowed_is_never_sent(mailbox: Box, tmp_path: Path, args: dict[str, Any]) -> None:
    result = await sent(mailbox[1], tmp_path, **args)
    assert not result.success
    assert mailbox[0].mails == []


async def test_a_refused_recipient_is_told_and_the_others_get_it(mailbox: Box) -> None:
    result = await sent(mailbox[1], to=["bob@example.com", "nobody@example.com"])
    assert result.output == {
        "sent_to": ["bob@example.com"],
        "refused": {"nobody@example.com": "550 no such user here"},
    }
    none = await sent(mailbox[1], to=["nobody@example.com"])
    assert (none.success, "550 no such user" in str(none.error)) == (False, True)


async def test_the_password_is_used_and_told_nowhere(mailbox: Box) -> None:
    assert (await sent(mailbox[1], user_env="MAIL_USER", password_env="MAIL_PASSWORD")).success
    wrong = await sent(mailbox[1], user_env="MAIL_USER", password_env="WRONG")
    assert "refused the user or the password" in str(wrong.error)
    assert "guess" not in str(wrong)


async def test_a_server_that_is_not_there_was_sent_nothing_one_that_hangs_up_maybe(mailbox: Box) -> None:
    refused = await sent(1)
    assert refused.metadata == {"transient": True}
    lost = await sent(mailbox[1], text="HANG UP")
    assert lost.metadata.get("cut_off")
    spam = await sent(mailbox[1], text="SPAM")
    assert (spam.metadata, "554 that is spam" in str(spam.error)) == ({}, True)


async def test_a_server_without_tls_gets_nothing_when_tls_is_asked_for(mailbox: Box) -> None:
    for security in ("starttls", "tls"):
        result = await sent(mailbox[1], security=security)
        assert not result.success
    assert mailbox[0].mails == []


@contextmanager
def hostile(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that says to one caller whatever `talk` says, as long as it listens; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError), listening.accept()[0] as caller:
                talk(caller)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
    thread.join(10)
    assert not thread.is_alive()


def _endless(caller: socket.socket) -> None:
    while True:
        caller.sendall(b"220-x\r\n" * 1000)


def _endless_later(caller: socket.socket) -> None:
    caller.sendall(b"220 hello\r\n")
    caller.recv(1000)
    _endless(caller)


def _slow(caller: socket.socket) -> None:
    caller.settimeout(0.05)
    while True:
        caller.sendall(b"2")
        with suppress(TimeoutError):
            if caller.recv(1) == b"":
                return


@pytest.mark.parametrize(("talk", "words"), [(_endless, "Response too long"), (_endless_later, "broke off")])
async def test_a_reply_without_an_end_is_not_listened_to(talk: Callable[[socket.socket], None], words: str) -> None:
    with hostile(talk) as port:
        told = str((await sent(port)).error)
    assert words in told


async def test_a_reply_that_comes_too_slowly_ends_with_the_time_of_the_call() -> None:
    with hostile(_slow) as port:
        told = str((await sent(port, deadline_s=0.3)).error)
    assert "cannot be used: it was not done in time" in told
