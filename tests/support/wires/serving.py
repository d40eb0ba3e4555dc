"""A vendor's endpoint on loopback that says what a script tells it, turn by turn."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from support.loopback import Request, http, serving
from support.wires.turn import KEY, Asked, Turn, WireStandIn


@dataclass(frozen=True)
class Refused:
    """A refusal in place of a reply; `kind` is the vendor's word for it."""

    status: int
    message: str = "not now"
    kind: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Broken:
    """A stream that ends after so many pieces; a whole reply that lacks its last bytes."""

    turn: Turn
    after: int = 2


@dataclass(frozen=True)
class Changed:
    """A reply whose body, whole or of a stream, is written by the SDK's types, and then changed: as none writes it."""

    turn: Turn
    change: Callable[[bytes], bytes]


Step = Turn | Refused | Broken | Changed | bytes


@dataclass
class Vendor:
    """A stand-in at work: what it was asked, and with which keys. The last step is repeated. A request that breaks a
    rule whose words match `refuses` is refused in these words, as its vendor does; another one is the test's fault."""

    stand_in: WireStandIn
    steps: Sequence[Step]
    refuses: str = "(?!)"
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    faults: list[AssertionError] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{'/v1' if self.stand_in.provider == 'openai' else ''}"

    @property
    def model(self) -> str:
        return f"{self.stand_in.provider}:m1"

    def answer(self, request: Request) -> bytes:
        self.requests.append(request)
        try:
            assert self.stand_in.is_its_path(request), request.target
            asked = self.stand_in.read(request)
        except Exception as error:
            if re.search(self.refuses, str(error)):
                self.refused.append(str(error))
                return http(400, self.stand_in.error(400, str(error)), connection="close")
            self.faults.append(AssertionError(f"{type(error).__name__}: {error}"))
            return http(400, self.stand_in.error(400, "the stand-in cannot read this"), connection="close")
        self.keys.append(self.stand_in.key_of(request))
        self.asked.append(asked)
        return self._write(self.steps[min(len(self.asked), len(self.steps)) - 1], asked)

    def _write(self, step: Step, asked: Asked) -> bytes:
        number = len(self.asked)
        match step:
            case bytes():
                return step
            case Refused():
                body = self.stand_in.error(step.status, step.message, step.kind)
                return http(step.status, body, connection="close", **step.headers)
            case Broken(turn=turn, after=after):
                if asked.streams:
                    pieces = self.stand_in.events(turn, number)[:after]
                    return http(200, b"".join(pieces), content_type="text/event-stream", connection="close")
                whole = self.stand_in.whole(turn, number)
                return http(200, whole[:-9], content_length=str(len(whole)), connection="close")
            case Changed(turn=turn, change=change):
                return self._reply(turn, asked, change)
            case _:
                return self._reply(step, asked)

    def _reply(self, turn: Turn, asked: Asked, change: Callable[[bytes], bytes] = bytes) -> bytes:
        number = len(self.asked)
        if asked.streams:
            body = change(b"".join(self.stand_in.events(turn, number)))
            return http(200, body, content_type="text/event-stream", connection="close")
        return http(200, change(self.stand_in.whole(turn, number)), connection="close")


@asynccontextmanager
async def vendor(
    stand_in: WireStandIn, *steps: Step, monkeypatch: pytest.MonkeyPatch | None = None, refuses: str = "(?!)"
) -> AsyncIterator[Vendor]:
    """The vendor's endpoint, until the end of the block; the environment names it, and its key, as its operator would.

    AssertionError at the end for a request that it could not read.
    """
    made = Vendor(stand_in, steps, refuses)

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(made.answer(server.requests[-1]))
        await writer.drain()

    async with serving(answer) as server:
        made.port = server.port
        if monkeypatch is not None:
            monkeypatch.setenv(stand_in.keys, KEY)
            monkeypatch.setenv(stand_in.url_env, made.url)
        yield made
    if made.faults:
        raise made.faults[0]
