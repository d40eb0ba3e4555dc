"""Proxies on loopback that work: HTTP with CONNECT, and SOCKS5. Whatever host they are asked for is this machine."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

HERE = "127.0.0.1"
Handler = Callable[["WorkingProxy", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class WorkingProxy:
    """A proxy at work. `login` is the name:password that it wants; `asked` are the targets that it has reached."""

    scheme: str
    login: str = ""
    port: int = 0
    asked: list[str] = field(default_factory=list)
    refused: int = 0
    _open: dict[asyncio.Task[Any], asyncio.StreamWriter] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.url_with(self.login)

    def url_with(self, login: str) -> str:
        return f"{self.scheme}://{login}{'@' if login else ''}{HERE}:{self.port}"

    async def serve(self, handle: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            await handle(self, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            del self._open[task]

    async def stop(self) -> None:
        for writer in self._open.values():
            writer.close()
        await asyncio.gather(*self._open, return_exceptions=True)


@asynccontextmanager
async def http_proxy(login: str = "", *, tls: SSLContext | None = None) -> AsyncIterator[WorkingProxy]:
    async with _working(WorkingProxy("https" if tls else "http", login), _speak_http, tls) as proxy:
        yield proxy


@asynccontextmanager
async def socks_proxy(login: str = "", *, scheme: str = "socks5") -> AsyncIterator[WorkingProxy]:
    async with _working(WorkingProxy(scheme, login), _speak_socks) as proxy:
        yield proxy


@asynccontextmanager
async def _working(proxy: WorkingProxy, handle: Handler, tls: SSLContext | None = None) -> AsyncIterator[WorkingProxy]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await proxy.serve(handle, reader, writer)

    server = await asyncio.start_server(serve, HERE, 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.stop()
        await server.wait_closed()


async def _speak_http(proxy: WorkingProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split()
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if proxy.login and not _is_login(headers.get("proxy-authorization", ""), proxy.login):
        proxy.refused += 1
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        return
    proxy.asked.append(target)
    if method == "CONNECT":
        try:
            far = await asyncio.open_connection(HERE, int(target.rpartition(":")[2]))
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await _relay(reader, writer, *far)
        return
    parts = urlsplit(target)
    far = await asyncio.open_connection(HERE, parts.port or 80)
    kept = [line for line in lines if not line.lower().startswith(("proxy-", "connection:"))]
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    far[1].write("\r\n".join([f"{method} {path} HTTP/1.1", *kept, "connection: close", "", ""]).encode())
    await _relay(reader, writer, *far)


def _is_login(header: str, login: str) -> bool:
    scheme, _, value = header.partition(" ")
    return scheme == "Basic" and b64decode(value).decode() == login


async def _speak_socks(proxy: WorkingProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """RFC 1928, the command CONNECT; RFC 1929 where a login is wanted."""
    _, methods = await reader.readexactly(2)
    offered, wanted = await reader.readexactly(methods), 2 if proxy.login else 0
    if wanted not in offered:
        proxy.refused += 1
        writer.write(b"\x05\xff")
        return
    writer.write(bytes([5, wanted]))
    if proxy.login:
        await reader.readexactly(1)
        name, password = [await _read_counted(reader) for _ in range(2)]
        is_right = f"{name}:{password}" == proxy.login
        proxy.refused += not is_right
        writer.write(bytes([1, not is_right]))
        if not is_right:
            return
    *_, kind = await reader.readexactly(4)
    host = await _read_counted(reader) if kind == 3 else ".".join(map(str, await reader.readexactly(4)))
    port = int.from_bytes(await reader.readexactly(2))
    proxy.asked.append(f"{host}:{port}")
    try:
        far = await asyncio.open_connection(HERE, port)
    except OSError:
        writer.write(b"\x05\x05\x00\x01" + bytes(6))  # connection refused
        return
    writer.write(b"\x05\x00\x00\x01" + bytes(6))
    await _relay(reader, writer, *far)


async def _read_counted(reader: asyncio.StreamReader) -> str:
    return (await reader.readexactly((await reader.readexactly(1))[0])).decode()


async def _relay(
    near: asyncio.StreamReader, to_near: asyncio.StreamWriter, far: asyncio.StreamReader, to_far: asyncio.StreamWriter
) -> None:
    """Copy bytes both ways until one side ends."""

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(2**16):
            sink.write(piece)
            await sink.drain()

    ways = {asyncio.ensure_future(copy(near, to_far)), asyncio.ensure_future(copy(far, to_near))}
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in ways:
            each.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        to_far.close()
