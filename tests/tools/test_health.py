"""health: servers that answer, that do not, that may not be looked at, each told as it is."""

import asyncio
import socket
import sqlite3
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.loopback import http, serving
from support.optional import needs
from support.postgres_server import Postgres, real_postgres
from support.redis_server import RealServer, real_server
from utools import ToolContext, ToolError, ToolRegistry, ToolResult
from utools.builtin.health import health

NONE: Mapping[str, str] = {}
HERE = {"allow_cidrs": ["127.0.0.1/32"]}


async def checked(
    *targets: str, root: Path | str = ".", secrets: dict[str, str] | None = None, **args: Any
) -> ToolResult:
    def secret(name: str) -> str:
        if name not in (secrets or {}):
            raise ToolError(f"the secret {name} is not allowed")
        return (secrets or {})[name]

    given = {"targets": list(targets), **HERE, **args}
    context = ToolContext(secret=secret)
    return await ToolRegistry([health(root)]).execute("health", {k: v for k, v in given.items() if v}, context)


async def told(*targets: str, **args: Any) -> list[tuple[bool, str | None]]:
    result = await checked(*targets, **args)
    assert result.success, result.error
    assert [each["target"] for each in result.output["targets"][: len(targets)]] == list(targets)
    assert result.output["healthy"] == all(each["healthy"] for each in result.output["targets"])
    return [(each["healthy"], each.get("detail")) for each in result.output["targets"]]


async def refused(*targets: str, **args: Any) -> str:
    result = await checked(*targets, **args)
    assert not result.success
    return str(result.error)


@asynccontextmanager
async def speaking(answer: bytes, *, closes: bool = True) -> AsyncIterator[int]:
    """A port that gives this answer to whatever it is told, and may then leave the line open."""
    talks: set[asyncio.Task[None] | None] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        await reader.read(1)
        writer.write(answer)
        while not closes and await reader.read(1):
            pass
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*(each for each in talks if each), return_exceptions=True)


@asynccontextmanager
async def postgres_saying(answer: bytes) -> AsyncIterator[int]:
    """A port that answers PostgreSQL's question for TLS by the first byte, then what follows by the others."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read(8)
            writer.write(answer[:1])
            if answer.startswith(b"N") and await reader.read(1000):
                writer.write(answer[1:])
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def self_signed(folder: Path) -> ssl.SSLContext:
    """A server's side of TLS, with a certificate that nobody vouches for."""
    pytest.importorskip("cryptography", reason="needs cryptography (extra `test-all`)")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "database")])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    own = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    (folder / "own.pem").write_bytes(key.private_bytes(*plain) + own)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "own.pem")
    return context


@asynccontextmanager
async def behind_tls(inner: int, context: ssl.SSLContext) -> AsyncIterator[int]:
    """A port that wants TLS, as PostgreSQL does it, and hands on what is said within."""

    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4096):
            writer.write(data)
        writer.close()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(8) == bytes.fromhex("0000000804d2162f")
        writer.write(b"S")
        await writer.start_tls(context)
        reader_within, writer_within = await asyncio.open_connection("127.0.0.1", inner)
        await asyncio.gather(hand_on(reader, writer_within), hand_on(reader_within, writer))

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def test_urls_are_healthy_by_their_status() -> None:
    async with serving(http(200, {"a": 1}), http(204), http(503)) as server:
        found = [(await told(f"http://127.0.0.1:{server.port}/x"))[0] for _ in range(3)]
    assert found == [(True, None), (True, None), (False, "status 503")]


async def test_what_does_not_answer_is_unhealthy_and_says_why() -> None:
    port = closed_port()
    places = [f"http://127.0.0.1:{port}/", f"tcp://127.0.0.1:{port}", f"redis://127.0.0.1:{port}"]
    assert [healthy for healthy, _ in await told(*places)] == [False] * 3
    assert all("onnect" in str(detail) for _, detail in await told(*places))


async def test_one_that_is_ill_does_not_hide_the_others(redis_server: RealServer) -> None:
    found = await told(f"tcp://127.0.0.1:{redis_server.port}", f"tcp://127.0.0.1:{closed_port()}")
    assert [healthy for healthy, _ in found] == [True, False]


async def test_redis_answers_as_redis_does(redis_server: RealServer, tmp_path: Path) -> None:
    assert await told(f"redis://127.0.0.1:{redis_server.port}") == [(True, None)]
    with real_server(tmp_path, "--requirepass", "hunter22") as locked:
        assert await told(f"redis://127.0.0.1:{locked.port}") == [(True, None)]
    async with speaking(b"HTTP/1.1 400 Bad Request\r\n") as port:
        (found,) = await told(f"redis://127.0.0.1:{port}")
    assert found == (False, "not as Redis answers: 'HTTP/1.1 400 Bad Request'")


async def test_redis_of_a_secret_logs_in_and_is_named_by_the_secret(tmp_path: Path) -> None:
    with real_server(tmp_path, "--requirepass", "hunter22") as server:
        urls = {"GOOD": f"redis://:hunter22@127.0.0.1:{server.port}", "BAD": f"redis://:no@127.0.0.1:{server.port}"}
        result = await checked(secrets=urls, redis_env=["GOOD", "BAD"])
    good, bad = result.output["targets"]
    assert (good["target"], good["healthy"], result.output["healthy"]) == ("GOOD", True, False)
    assert bad["detail"] == "Redis (BAD) refuses the login; check the user and the password in its URL"
    assert "is not allowed" in await refused(redis_env=["OTHER"])


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with real_postgres() as server:
        yield server


@pytest.mark.parametrize("path", ["", "/", "/postgres", "/template1?sslmode=disable", "/postgre%73"])
@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
@pytest.mark.xdist_group("postgres")
async def test_postgres_lets_clients_in(postgres: Postgres, scheme: str, path: str) -> None:
    assert await told(f"{scheme}://127.0.0.1:{postgres.port}{path}") == [(True, None)]


@pytest.mark.xdist_group("postgres")
async def test_postgres_without_the_database_is_ill(postgres: Postgres) -> None:
    (found,) = await told(f"postgresql://127.0.0.1:{postgres.port}/shop")
    assert found == (False, 'database "shop" does not exist')


@pytest.mark.xdist_group("postgres")
async def test_postgres_that_asks_for_a_password_answers(postgres: Postgres) -> None:
    with postgres.asking_for_passwords():
        assert await told(f"postgresql://127.0.0.1:{postgres.port}/shop") == [(True, None)]


@pytest.mark.xdist_group("postgres")
async def test_postgres_behind_tls_lets_clients_in(postgres: Postgres, tmp_path: Path) -> None:
    async with behind_tls(postgres.port, self_signed(tmp_path)) as port:
        found = await told(f"postgresql://127.0.0.1:{port}/postgres", f"postgresql://127.0.0.1:{port}/shop")
    assert found == [(True, None), (False, 'database "shop" does not exist')]


async def test_postgres_that_is_full_or_was_stopped_is_ill() -> None:
    with real_postgres() as server:
        target = f"postgresql://127.0.0.1:{server.port}"
        assert await told(target) == [(True, None)]
        with server.full():
            assert await told(target) == [(False, "sorry, too many clients already")]
        server.stop()
        ((healthy, detail),) = await told(target)
    assert (healthy, "onnect" in str(detail)) == (False, True)


def error_of(code: str, message: str) -> bytes:
    body = f"SFATAL\0C{code}\0M{message}\0\0".encode()
    return b"NE" + (len(body) + 4).to_bytes(4, "big") + body


SAID: dict[str, tuple[bytes, str | None]] = {
    "starting up": (error_of("57P03", "the database system is starting up"), "the database system is starting up"),
    "not from here": (error_of("28000", "no entry for host"), None),
    "of another make": (error_of("08P01", "no such user"), None),
    "login": (b"NR\0\0\0\x08\0\0\0\x03", None),
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\n", "not as PostgreSQL answers"),
    "nothing": (b"", "not as PostgreSQL answers"),
    "N and no more": (b"N", "not as PostgreSQL answers"),
    "half a message": (b"NR\0\0", "not as PostgreSQL answers"),
    "a message without a length": (b"NR\0\0\0\0", "not as PostgreSQL answers"),
    "a message without an end": (b"NR\x7f\xff\xff\xff", "not as PostgreSQL answers"),
    "another word": (b"NHello", "not as PostgreSQL answers"),
}


@needs("psycopg")
@pytest.mark.parametrize(("answer", "detail"), SAID.values(), ids=SAID)
async def test_what_postgres_says_is_understood(answer: bytes, detail: str | None) -> None:
    async with postgres_saying(answer) as port:
        (found,) = await told(f"postgresql://127.0.0.1:{port}")
    assert found == (detail is None, detail)


async def test_without_psycopg_only_the_port_is_checked_and_the_result_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    async with speaking(b"") as port:
        (found,) = await told(f"postgresql://127.0.0.1:{port}")
    assert found == (True, "the port is open; to check PostgreSQL itself: pip install 'agent-core[postgres]'")


async def test_server_that_is_silent_is_not_waited_for() -> None:
    async with speaking(b"", closes=False) as port:
        (found,) = await told(f"redis://127.0.0.1:{port}", timeout=0.1)
    assert found == (False, "no answer within 0.1 seconds")


async def test_sqlite_file_is_opened_and_left_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "good.db")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (a)")
        database.commit()
    (tmp_path / "bad.db").write_bytes(b"no database " * 200)
    before = sorted(each.name for each in tmp_path.iterdir())
    found = await told("sqlite:good.db", "sqlite:///good.db", "sqlite:bad.db", root=tmp_path)
    assert found == [(True, None), (True, None), (False, "file is not a database")]
    assert sorted(each.name for each in tmp_path.iterdir()) == before


@pytest.mark.parametrize("path", ["../outside.db", "sub/../../outside.db", "link.db", "", "absent.db"])
async def test_sqlite_file_outside_the_root_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "outside.db").write_bytes(b"")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link.db").symlink_to(tmp_path / "outside.db")
    error = await refused(f"sqlite:{path}", root=tmp_path / "root")
    assert any(words in error for words in ("does not lie inside the root", "is not a path", "there is no file"))


@pytest.mark.parametrize("scheme", ["http", "tcp", "redis", "postgresql"])
async def test_what_the_author_does_not_allow_is_not_reached(scheme: str) -> None:
    private = f"{scheme}://127.0.0.1:9"
    assert "can allow it, by allow_cidrs" in await refused(private, allow_cidrs=None)
    assert "is not allowed; allowed are example.com" in await refused(private, allowed_domains=["example.com"])
    assert "the port 9 is not allowed; allowed are 443" in await refused(private, allowed_ports=[443])
    for odd in ("169.254.169.254:80", "0x7f.1:80", "[::1]:80", "[::ffff:10.0.0.1]:80"):
        assert await refused(f"{scheme}://{odd}", allow_cidrs=None)


WRONG: dict[str, str] = {
    "x": "'x' cannot be checked; write https://…, http://…, tcp://HOST:PORT",
    "ftp://a": "'ftp://a' cannot be checked",
    "tcp://a": "'tcp://a' has no host or no port; write tcp://HOST:PORT",
    "tcp://:1": "has no host or no port",
    "tcp://a:99999": "has no host or no port",
    "postgresql://a/b%00c": "has a database's name with a NUL character",
    "redis://me:pw@127.0.0.1": "must not carry a user or a password",
    "http://me:pw@127.0.0.1": "must not carry a user or a password",
}


@pytest.mark.parametrize(("target", "error"), WRONG.items(), ids=WRONG)
async def test_what_is_no_target_is_told(target: str, error: str) -> None:
    assert error in await refused(target)


async def test_nothing_to_check_is_told() -> None:
    assert "there is nothing to check; give targets" in await refused()
