"""Recovery by a worker that has done nothing yet: two `agent-core worker` processes, and a model behind an endpoint."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from engine_shim import Engine
from support.by_hand import final
from support.temporal_project import Command

HELD_S = 20.0
"""How long the first question of a run is held: its worker is killed meanwhile."""


@dataclass
class HeldModel:
    """An endpoint that holds the first of every two questions, and notes when each came."""

    url: str = ""
    asked: list[float] = field(default_factory=list)

    async def wait_for(self, count: int) -> float:
        """When the question came that has this number, from 1."""
        while len(self.asked) < count:
            await asyncio.sleep(0.02)
        return self.asked[count - 1]


@contextmanager
def held_model() -> Iterator[HeldModel]:
    """The endpoint, until the end of the block."""
    model = HeldModel()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            model.asked.append(time.monotonic())
            if len(model.asked) % 2:
                time.sleep(HELD_S)
            choice = {"index": 0, "message": {"role": "assistant", "content": final("done")}, "finish_reason": "stop"}
            data = json.dumps({"object": "chat.completion", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            with suppress(BrokenPipeError):  # of the worker that was killed
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield model
    finally:
        server.shutdown()


def write_host(folder: Path, address: str, url: str) -> Path:
    """The configuration of a host whose runs workers drive, and the file of its workflow."""
    config = {"engine": "temporal", "temporal": {"address": address, "queue": "fresh"}}
    agent = {"model": "openai:m", "base_url": url, "prompt": "Go.", "allowed_tools": [], "max_steps": 1}
    (folder / "agent-core.yaml").write_text(json.dumps(config))
    flow = folder / "flow.json"
    flow.write_text(json.dumps({"id": "flow", "nodes": [{"id": "asks", "tool": "agent_core", "config": agent}]}))
    return flow


async def recover(folder: Path, address: str, kills: int) -> list[float]:
    """Seconds from each kill until the other worker, which is fresh, asks again."""
    found = []
    with held_model() as model:
        flow, store = write_host(folder, address, model.url), folder / "runs.db"
        words = ["worker", "--store", str(store), "--config", str(folder / "agent-core.yaml")]
        engine = Engine.from_config(folder / "agent-core.yaml", store=store)
        for kill in range(kills):
            first, fresh = await _start(folder, words), None
            running = asyncio.create_task(engine.run(flow, run_id=f"run-{kill}"))
            try:
                await model.wait_for(2 * kill + 1)
                fresh = await _start(folder, words)
                killed = time.monotonic()
                first.kill()
                found.append(await model.wait_for(2 * kill + 2) - killed)
                await running
            finally:
                for each in filter(None, (first, fresh)):
                    each.kill()
        await engine.close()
    return found


async def _start(folder: Path, words: list[str]) -> Command:
    """A worker that is ready."""
    worker = Command(folder, *words)
    await asyncio.to_thread(worker.await_error, "worker on")
    return worker
