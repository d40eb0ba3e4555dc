"""Several `agent-core serve` processes on one PostgreSQL: their files, and what their tools and models did."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import httpx2

from support.by_hand import final
from support.programs import command, environment
from support.served_host import Asked, write_host
from support.temporal_project import COMMAND, until

TOOLS = '''
import asyncio
import os
from pathlib import Path

from utools import tool

HERE = Path(__file__).parent


def note(*words):
    book = os.open(HERE / "book", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(book, f"{' '.join(words)} {os.getpid()}\\n".encode())
    os.close(book)


async def take_time(until):
    await asyncio.sleep(0.1)
    while until and not (HERE / until).exists():
        await asyncio.sleep(0.02)


@tool(effect="read")
async def look(name: str, until: str = "") -> str:
    """Look a name up."""
    note("look", name)
    await take_time(until)
    return name


@tool(effect="write")
async def ship(name: str, until: str = "") -> str:
    """Ship a name."""
    note("ship", name)
    await take_time(until)
    return name


TOOLS = [look, ship]
'''
STEPS = [0, 1, 2, 3]
RESTS = ("completed", "waiting", "failed", "cancelled", "paused")


def each_step(tool: str) -> dict[str, Any]:
    config = {"name": "{{external.name}}-{{index}}"}
    return {"id": tool, "tool": tool, "foreach": "{{external.steps}}", "max_parallel": 2, "config": config}


def errand(model: str) -> dict[str, Any]:
    """A workflow that asks a model twice, looks four names up and ships them."""
    agent = {"model": "openai:m", "base_url": model, "max_steps": 2, "allowed_tools": []}
    ask = {"id": "ask", "tool": "agent_core", "config": {**agent, "prompt": "{{external.name}} ask"}}
    end = {"id": "end", "tool": "agent_core", "config": {**agent, "prompt": "{{external.name}} end"}}
    return {
        "id": "errand",
        "inputs": {"type": "object", "required": ["name", "steps"], "additionalProperties": True},
        "nodes": [ask, each_step("look"), each_step("ship"), end],
        "edges": [{"from": "ask", "to": "look"}, {"from": "look", "to": "ship"}, {"from": "ship", "to": "end"}],
    }


def one_call(tool: str) -> dict[str, Any]:
    """A workflow that calls a tool which waits for a file, and says its name."""
    config = {"name": "{{external.name}}", "until": "{{external.until}}"}
    return {
        "id": tool,
        "inputs": {"type": "object", "required": ["name", "until"], "additionalProperties": True},
        "nodes": [
            {"id": tool, "tool": tool, "config": config, "timeout": 120},
            {"id": "said", "tool": "echo", "config": {"text": f"{{{{nodes.{tool}}}}}"}},
        ],
        "edges": [{"from": tool, "to": "said"}],
    }


def both() -> dict[str, Any]:
    """A workflow that looks a name up while a call beside it waits for a person."""
    config = {"name": "{{external.name}}", "until": "{{external.until}}"}
    return {
        **one_call("look"),
        "id": "both",
        "nodes": [
            {"id": "look", "tool": "look", "config": config, "timeout": 120},
            {"id": "ship", "tool": "ship", "config": {"name": "{{external.name}}"}, "approval": "always"},
        ],
        "edges": [],
    }


@dataclass
class Model:
    """A model's endpoint, which counts what it is asked."""

    url: str = ""
    asked: list[str] = field(default_factory=list)


@contextmanager
def counting_model() -> Iterator[Model]:
    """An endpoint in OpenAI's shape that answers each question after a moment."""
    model, lock = Model(), Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                model.asked.append(body["messages"][-1]["content"])
            message = {"role": "assistant", "content": final("done")}
            answer = {
                "object": "chat.completion",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 1},
            }
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@dataclass
class Host(Asked):
    """An `agent-core serve` as a process."""

    process: "subprocess.Popen[bytes]" = field(repr=False)
    log: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Let it stand still, as a machine does that swaps, or a laptop that sleeps."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> int:
        """Tell it to end; its exit code."""
        self.process.terminate()
        return self.process.wait(60)

    def await_log(self, text: str) -> None:
        until(lambda: text in self.log.read_text(), f"{text!r} is logged")


class Cluster:
    """The hosts that share a configuration and a database."""

    def __init__(self, folder: Path, store: str, model: Model | None = None, **keys: Any) -> None:
        self.folder, self.store, self._stack, self._count = folder, store, ExitStack(), 0
        self.model = model or Model("http://127.0.0.1:1/v1")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "depot.py").write_text(TOOLS)
        write_host(folder, **{"tools": ["shop.py:TOOLS", "depot.py:TOOLS"], "store": store, **keys})
        for definition in (errand(self.model.url), one_call("look"), one_call("ship"), both()):
            (folder / "workflows" / f"{definition['id']}.json").write_text(json.dumps(definition))

    def write(self, name: str, content: Any) -> None:
        """Write one more file of the host, as JSON, which YAML is as well."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))

    def serve(self, *options: str, machine: str | None = None) -> Host:
        """One more host, on this machine or as if on another one."""
        return self.await_host(*self.start(*options, machine=machine))

    def start(self, *options: str, machine: str | None = None) -> "tuple[subprocess.Popen[bytes], Path]":
        """Start one more host: its process, and its log."""
        self._count += 1
        log = self.folder / f"serve-{self._count}.log"
        start = [COMMAND] if machine is None else command("other_machine", machine)
        with log.open("wb") as file:
            words = [*start, "serve", "--port", "0", "--verbose", *options]
            process = subprocess.Popen(words, cwd=self.folder, env=environment(), stderr=file)
        self._stack.callback(end_process, process)
        return process, log

    def await_host(self, process: "subprocess.Popen[bytes]", log: Path) -> Host:
        """A host that was started, once it serves."""

        def find_url() -> "re.Match[str] | None":
            assert process.poll() is None, log.read_text()
            return re.search(r"at (http://\S+)", log.read_text())

        until(find_url, "the host serves")
        found = find_url()
        assert found is not None
        client = self._stack.enter_context(httpx2.Client(base_url=found[1], timeout=60))
        return Host(self.folder, found[1], client, process, log)

    def start_worker(self) -> "subprocess.Popen[bytes]":
        """One more worker of this configuration."""
        self._count += 1
        log = self.folder / f"worker-{self._count}.log"
        with log.open("wb") as file:
            process = subprocess.Popen([COMMAND, "worker", "--verbose"], cwd=self.folder, stderr=file)
        self._stack.callback(end_process, process)
        until(lambda: process.poll() is not None or "worker on" in log.read_text(), "the worker works")
        assert process.poll() is None, log.read_text()
        return process

    def run_command(self, *words: str, code: int = 0, **variables: str) -> str:
        """What `agent-core WORD…` prints; it has to end with this code."""
        done = subprocess.run(
            [COMMAND, *words],
            cwd=self.folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def begun(self, what: str) -> list[tuple[str, int]]:
        """The calls of a tool that have begun: for what name, and in which process."""
        book = self.folder / "book"
        lines = book.read_text().splitlines() if book.exists() else []
        return [(name, int(pid)) for tool, name, pid in map(str.split, lines) if tool == what]

    def await_begun(self, what: str, *names: str) -> None:
        until(lambda: {*names} <= {name for name, _ in self.begun(what)}, f"{what} of {names} has begun")

    def await_call(self, tool: str, names: str) -> int:
        """The process that has begun a call for a name that begins so."""
        found: list[int] = []

        def look() -> bool:
            found.extend(pid for name, pid in self.begun(tool) if name.startswith(names))
            return bool(found)

        until(look, f"{tool} of {names} has begun")
        return found[0]

    def allow(self, file: str) -> None:
        """Let the calls end that wait for this file."""
        (self.folder / file).touch()

    def close(self) -> None:
        self._stack.close()


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """End a process, also one that stands still."""
    process.kill()
    process.wait()


@contextmanager
def cluster(folder: Path, store: str, **options: Any) -> Iterator[Cluster]:
    """A cluster whose processes are gone at the end of the block."""
    made = Cluster(folder, store, **options)
    try:
        yield made
    finally:
        made.close()


def settle_doubts(host: Host, run: str) -> Any:
    """The end of a run in which each call in doubt is decided, unless its answer comes after all: none is repeated."""
    while (view := host.await_status(run, *RESTS))["status"] == "waiting":
        for call in view["waiting"][:1]:
            assert call["reason"] == "in_doubt", call
            decision = {"decision": "skip", "at": {"strand": call["strand"], "n": call["n"]}}
            answer = host.client.post(f"/runs/{run}/decide", json=decision)
            assert answer.status_code in (200, 202, 409), answer.text
        time.sleep(0.05)
    return view


def assert_proven(host: Host, run: str) -> None:
    verdict = host.client.get(f"/runs/{run}/verify").json()
    assert verdict["ok"], verdict
    replayed = host.client.post(f"/runs/{run}/replay", json={}).json()
    assert replayed["identical"], replayed
