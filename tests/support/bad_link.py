"""BadLink: a TCP proxy on loopback whose network gets worse and better while connections live, for tests.

    pass      bytes go through, `latency` seconds late
    drip      the server's bytes come one by one, with a pause after each
    silent    connections open, and nothing comes any more; those that met it stay dead (half-open)
    refuse    nobody listens, and who was connected is reset (an outage)

It runs in a thread of its own, so that a blocked event loop of the product does not stop the network.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

State = Literal["pass", "drip", "silent", "refuse"]
PIECE = 65536
DRIP_S = 0.002


@dataclass(eq=False)
class _Pair:
    """The two ends of one client's connection."""

    writers: list[asyncio.StreamWriter]
    is_dead: bool = False

    def reset(self) -> None:
        """Break both ends off (RST)."""
        for writer in self.writers:
            with suppress(OSError):
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()


@dataclass(eq=False)
class BadLink:
    """The proxy before the server at `target`, a port of 127.0.0.1. Its own port stays the same."""

    target: int
    port: int = 0
    latency: float = 0.0
    connections: int = 0
    _state: State = "pass"
    _cut_after: bytes | None = None
    _after_cut: State | None = None
    _pairs: set[_Pair] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _closed: list[asyncio.StreamWriter] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _server: asyncio.Server | None = None
    _timers: list[threading.Timer] = field(default_factory=list)

    @property
    def state(self) -> State:
        return self._state

    def become(self, state: State) -> None:
        """Have this state from now on."""
        asyncio.run_coroutine_threadsafe(self._become(state), self._loop).result(10)

    def reset_all(self) -> None:
        """Reset every connection that lives now; new ones work."""
        asyncio.run_coroutine_threadsafe(self._reset_all(), self._loop).result(10)

    def cut_answer(self, question: bytes, then: State | None = None) -> None:
        """Pass the next `question` on, and reset its connection in place of the answer; `then` have another state."""
        self._cut_after, self._after_cut = question, then

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something to this link in so many seconds."""
        timer = threading.Timer(seconds, action)
        self._timers.append(timer)
        timer.start()

    async def _become(self, state: State) -> None:
        self._state = state
        if state == "silent":
            for pair in self._pairs:
                pair.is_dead = True
        if state == "refuse" and self._server is not None:
            server, self._server = self._server, None
            await self._stop_listening(server)
            await self._reset_all()
        elif state != "refuse" and self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _stop_listening(self, server: asyncio.Server) -> None:
        """Close it once each connection that it has taken is ours: until then Python 3.11 would leave it open."""
        for each in server.sockets:
            self._loop.remove_reader(each.fileno())
        for _ in range(3):  # its task begins, its transport is there, we are told
            await asyncio.sleep(0)
        server.close()

    async def _reset_all(self) -> None:
        for pair in list(self._pairs):
            pair.reset()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Note the connection before its task begins, since a task that is cancelled before that closes nothing."""
        self.connections += 1
        pair = _Pair([writer], is_dead=self._state == "silent")
        self._pairs.add(pair)
        task = self._loop.create_task(self._serve(pair, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, pair: _Pair, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cut = asyncio.Event()
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.target)
            pair.writers.append(server_writer)
            sending = self._send_questions(pair, reader, server_writer, cut)
            await asyncio.gather(sending, self._send_answers(pair, server_reader, writer, cut))
        except (OSError, asyncio.CancelledError):  # a stream's task that ends cancelled is logged as an error
            pair.reset()
        finally:
            self._pairs.discard(pair)
            self._closed += pair.writers
            for each in pair.writers:
                each.close()

    async def _end(self) -> None:
        """End all that still waits, so that nothing of it is left when the loop closes."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._reset_all()
        for each in self._closed:  # one that is closed waits until all that was written to it has been read
            each.transport.abort()

    async def _send_questions(
        self, pair: _Pair, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        while data := await reader.read(PIECE):
            if pair.is_dead:
                continue
            if self._cut_after is not None and self._cut_after in data:
                self._cut_after = None
                cut.set()
            await asyncio.sleep(self.latency)
            writer.write(data)
            await writer.drain()
        writer.transport.abort() if pair.is_dead else writer.close()

    async def _send_answers(
        self, pair: _Pair, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        while data := await reader.read(PIECE):
            if cut.is_set():
                pair.reset()
                if self._after_cut is not None:
                    await self._become(self._after_cut)
                return
            await asyncio.sleep(self.latency)
            for piece in [data[at : at + 1] for at in range(len(data))] if self._state == "drip" else [data]:
                if pair.is_dead:
                    break
                writer.write(piece)
                await writer.drain()
                if self._state == "drip":
                    await asyncio.sleep(DRIP_S)
        if not pair.is_dead:
            writer.close()


@contextmanager
def bad_link(target: int) -> Iterator[BadLink]:
    """A link that works at first, gone with all its connections at the end of the block."""
    link = BadLink(target)
    thread = threading.Thread(target=link._loop.run_forever, name="bad link", daemon=True)
    thread.start()
    try:
        link.become("pass")
        yield link
    finally:
        for timer in link._timers:
            timer.cancel()
            timer.join()
        link.become("refuse")
        asyncio.run_coroutine_threadsafe(link._end(), link._loop).result(10)
        link._loop.call_soon_threadsafe(link._loop.stop)
        thread.join(10)
        link._loop.close()
