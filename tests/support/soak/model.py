"""The endpoints of a soak on loopback: a model that says what it is asked, and a webhook that notes what it is told."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, NamedTuple

from support.by_hand import action, final

THINKS_S = 0.2


class Question(NamedTuple):
    """A question: the agent's prompt, how many steps of the agent it shows, and when it came."""

    prompt: str
    step: int
    at: float


@dataclass
class Endpoints:
    """What the model was asked, and what the webhook was told of which run."""

    url: str = ""
    asked: list[Question] = field(default_factory=list)
    told: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def model(self) -> str:
        return f"{self.url}/v1"

    @property
    def hook(self) -> str:
        return f"{self.url}/hook"


def say(prompt: str, step: int) -> str:
    """What the model says: of a name that it is to ask for, it looks one up, ships one, and ends."""
    name, _, word = prompt.partition(" ")
    said = [action("look", name=f"{name}-in"), action("ship", name=f"{name}-in")] if word == "ask" else []
    return said[step] if step < len(said) else final("done")


def read_question(body: Any) -> Question:
    messages = body["messages"]
    (prompt,) = [each["content"] for each in messages if each["role"] == "user"][:1]
    return Question(prompt, sum(each["role"] == "assistant" for each in messages), time.time())


def describe_answer(content: str) -> Any:
    message = {"role": "assistant", "content": content}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }


@contextmanager
def serve_endpoints() -> Iterator[Endpoints]:
    """Serve both until the end of the block."""
    found, lock = Endpoints(), Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self._answer(self._hear(body) if self.path == "/hook" else self._think(body))

        def _hear(self, body: Any) -> Any:
            with lock:
                found.told[body["data"]["run_id"], body["data"]["status"]] += 1
            return {}

        def _think(self, body: Any) -> Any:
            question = read_question(body)
            with lock:
                found.asked.append(question)
            time.sleep(THINKS_S)
            return describe_answer(say(question.prompt, question.step))

        def _answer(self, answer: Any) -> None:
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Say nothing of askers that are killed."""

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
