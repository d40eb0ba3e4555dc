"""A stand-in for n8n: executes a workflow as it is pasted there, by the few nodes and expressions that it has. It waits
as n8n's Wait node does: 409 while an execution runs and once it has ended, 404 for one that is unknown."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Literal

import httpx2

EXPRESSION = re.compile(r"\{\{\s*(\$[\w.\[\]$]+)\s*\}\}")
STEP = re.compile(r"\w+")
Status = Literal["running", "waiting", "success"]


@dataclass
class Execution:
    """One execution of a workflow. It `mails` what its node in place of a mail gives, and keeps the `calls` that have
    resumed it; `doubles` are those that it has had before."""

    id: str
    resume_url: str
    status: Status = "running"
    calls: list[Any] = field(default_factory=list)
    doubles: int = 0
    mails: list[str] = field(default_factory=list)
    result: Any = None
    at: str = ""


class Standin:
    """An n8n at `url`, whose HTTP nodes ask `host` in place of the address in the workflow.

    `answers` are how it answers the next calls of a Wait node before it takes one: a status, or an Event to wait for
    once the call is taken, as with *When last node finishes*.
    """

    def __init__(self, workflow: dict[str, Any], host: str) -> None:
        self.nodes = {node["name"]: node for node in workflow["nodes"]}
        self.connections, self.host, self.url = workflow["connections"], host, ""
        self.executions: dict[str, Execution] = {}
        self.answers: list[int | Event] = []
        self.received: list[tuple[dict[str, str], bytes, int]] = []
        self._lock = Lock()

    def execute(self, identity: str) -> Execution:
        """Begin an execution, which goes on until it waits, as a thread of n8n does."""
        url = f"{self.url}/webhook-waiting/{identity}?signature=0123456789abcdef"
        execution = self.executions[identity] = Execution(identity, url)
        self._go_on(execution, self._next("Begin", 0), {})
        return execution

    def call(self, identity: str, headers: dict[str, str], body: bytes) -> tuple[int, Event | None]:
        """Take a call of a Wait node: its status, and what its answer has to wait for."""
        with self._lock:
            answer = self.answers.pop(0) if self.answers else 200
            if isinstance(answer, int) and answer != 200:
                return answer, None
            execution = self.executions.get(identity)
            if execution is None:
                return 404, None
            if execution.status != "waiting":
                return 409, None
            call = {"headers": headers, "body": json.loads(body)}
            if any(each["headers"]["webhook-id"] == headers["webhook-id"] for each in execution.calls):
                execution.doubles += 1
            else:
                execution.calls.append(call)
                execution.status = "running"
                self._go_on(execution, self._next(execution.at, 0), call)
            return 200, answer if isinstance(answer, Event) else None

    def _go_on(self, execution: Execution, name: str | None, item: dict[str, Any]) -> None:
        while name is not None:
            node, branch = self.nodes[name], 0
            parameters, kind = node["parameters"], node["type"].removeprefix("n8n-nodes-base.")
            match kind:
                case "httpRequest":
                    item = self._ask(execution, parameters, item)
                case "wait":
                    assert (parameters["resume"], parameters["httpMethod"]) == ("webhook", "POST")
                    execution.status, execution.at = "waiting", name
                    return
                case "if":
                    (condition,) = parameters["conditions"]["conditions"]
                    assert condition["operator"] == {"type": "string", "operation": "equals"}
                    left = self._fill(execution, condition["leftValue"], item)
                    branch = 0 if left == condition["rightValue"] else 1
                case "set":
                    (given,) = parameters["assignments"]["assignments"]
                    value = self._fill(execution, given["value"], item)
                    if self._next(name, 0) is None:
                        execution.result = value
                    else:
                        execution.mails.append(value)
            name = self._next(name, branch)
        execution.status = "success"

    def _ask(self, execution: Execution, parameters: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
        url = re.sub(r"^https://[^/]+", self.host, parameters["url"])
        given = parameters["headerParameters"]["parameters"]
        headers = {each["name"]: self._fill(execution, each["value"], item) for each in given}
        body = self._fill(execution, parameters["jsonBody"], item)
        headers["Content-Type"] = "application/json"
        answers = [httpx2.request(parameters["method"], url, headers=headers, content=body) for _ in range(2)]
        for answer in answers:  # the answer to the first one was lost, so that it is sent once more
            answer.raise_for_status()
        assert len({answer.json()["run_id"] for answer in answers}) == 1
        return dict(answers[-1].json())

    def _fill(self, execution: Execution, text: str, item: dict[str, Any]) -> Any:
        """The value of a parameter: an expression if it begins with an equals sign."""
        if not text.startswith("="):
            return text
        if (alone := EXPRESSION.fullmatch(text[1:])) is not None:
            return self._find(execution, alone[1], item)
        return EXPRESSION.sub(lambda found: str(self._find(execution, found[1], item)), text[1:])

    def _find(self, execution: Execution, path: str, item: dict[str, Any]) -> Any:
        root, *steps = STEP.findall(path)
        known = {"execution": {"id": execution.id, "resumeUrl": execution.resume_url}, "json": item}
        value: Any = known[root]
        for step in steps:
            value = value[int(step)] if isinstance(value, list) else value[step]
        return value

    def _next(self, name: str, branch: int) -> str | None:
        outputs = self.connections.get(name, {}).get("main", [])
        return outputs[branch][0]["node"] if branch < len(outputs) and outputs[branch] else None


@contextmanager
def running_n8n(workflow: dict[str, Any], host: str) -> Iterator[Standin]:
    """A stand-in that listens on loopback until the end of the block."""
    standin = Standin(workflow, host)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            path, _, query = self.path.partition("?")
            assert query == "signature=0123456789abcdef"
            status, late = standin.call(path.rpartition("/")[2], headers, body)
            standin.received.append((headers, body, status))
            if late is not None:
                late.wait(60)
            try:
                self.send_response(status)
                self.end_headers()
            except OSError:  # who was answered too late is gone
                pass

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    standin.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield standin
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
