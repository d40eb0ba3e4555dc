"""A model that answers at once: chat completions from memory, in a process of its own, so that it costs the loop none.

The model `stub-N` calls the tool `echo`, or STUB_TOOL, until the N-th question of a conversation, which it answers with
a final: in steps of our protocol, or, where the question offers tools, in function calls and a text. The model
`stub-N-M` holds its finals back until M conversations wait for theirs. Each reply takes STUB_DELAY seconds.
"""

import asyncio
import os
import re
import sys
from functools import cache
from typing import Any, ClassVar

import orjson

TOOL = os.environ.get("STUB_TOOL", "echo")
DELAY = float(os.environ.get("STUB_DELAY", "0"))
ASSISTANT = re.compile(rb'"role": ?"assistant"')
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
TOOLS = re.compile(rb'"tools": ?\[')
MODEL = re.compile(rb'"model": ?"stub-(\d+)(?:-(\d+))?"')


@cache
def reply(asked: int, calls: int, native: bool) -> bytes:
    """The HTTP response to the question that `asked` answers came before."""
    is_last = asked + 1 >= calls
    message = _function_call(asked, is_last) if native else _step(asked, is_last)
    message |= {"role": "assistant", "refusal": None, "annotations": []}
    ended = "tool_calls" if "tool_calls" in message else "stop"
    body = orjson.dumps(
        {
            "id": f"chatcmpl-{asked:08d}",
            "object": "chat.completion",
            "created": 1750000000,
            "model": f"stub-{calls}",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": ended}],
            "usage": {"prompt_tokens": 120, "completion_tokens": 25, "total_tokens": 145},
            "system_fingerprint": "fp_stub",
        }
    )
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _args(asked: int) -> dict[str, Any]:
    return {"text": f"the quick brown fox {asked}", "n": asked}


def _step(asked: int, is_last: bool) -> dict[str, Any]:
    action = {"type": "action", "tool": TOOL, "args": _args(asked)}
    step = {"type": "final", "answer": "done"} if is_last else action
    return {"content": orjson.dumps(step).decode()}


def _function_call(asked: int, is_last: bool) -> dict[str, Any]:
    if is_last:
        return {"content": "done"}
    function = {"name": TOOL, "arguments": orjson.dumps(_args(asked)).decode()}
    return {"content": None, "tool_calls": [{"id": f"call_{asked:08d}", "type": "function", "function": function}]}


class Stub(asyncio.Protocol):
    """One connection, one request after another."""

    held: ClassVar[list[tuple[asyncio.Transport, bytes]]] = []

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if blank and length and len(body) >= int(length[1]):
            self._received = b""
            model = MODEL.search(body)
            assert model is not None
            asked, calls, together = len(ASSISTANT.findall(body)), int(model[1]), int(model[2] or 0)
            native = TOOLS.search(body) is not None
            self._answer(reply(asked, calls, native), together if asked + 1 == calls else 0)

    def _answer(self, answer: bytes, together: int) -> None:
        if not together and not DELAY:
            self._transport.write(answer)
            return
        if not together:
            asyncio.get_running_loop().call_later(DELAY, self._transport.write, answer)
            return
        self.held.append((self._transport, answer))
        if len(self.held) == together:
            for transport, each in self.held:
                transport.write(each)
            self.held.clear()


async def main() -> None:
    """Serve until standard input ends; the first line of the output is the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Stub, "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
