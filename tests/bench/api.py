"""What a run costs through the HTTP API beside the same run in process: CPU of the process that does it.

    python tests/bench/api.py [--runs 400] [--rounds 5]

A run has four model calls, against a model that answers at once. Through the API each is handed in, its events are
followed to their end, and its result is read. The two take turns in each round; the medians and their ratio are shown,
with 1 and with 100 runs in flight.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from time import process_time

import aiohttp

from bench import stub

WORKFLOW = """
id: bench
nodes:
  - id: agent_core
    tool: agent_core
    config:
      model: stub-4
      base_url: {url}
      max_steps: 9
      allowed_tools: [fox]
      prompt: "{{{{external.question}}}}"
"""
TOOLS = '''
from utools import tool


@tool(effect="read", code="fox")
def fox(text: str, n: int) -> str:
    """Echo."""
    return text
'''
HOST = """
tools: ["tools.py:fox"]
base_urls: {{"{url}": BENCH_KEY}}
"""
WARM_UP = 50


def write_host(folder: Path, port: int) -> None:
    """A host with one workflow."""
    url = f"http://127.0.0.1:{port}/v1"
    (folder / "workflows").mkdir()
    (folder / "workflows" / "bench.yaml").write_text(WORKFLOW.format(url=url))
    (folder / "agent-core.yaml").write_text(HOST.format(url=url))
    (folder / "tools.py").write_text(TOOLS)


async def run_in_process(folder: Path) -> None:
    """Run as many runs as a line of stdin says, so many at once, and print the CPU seconds; again for each line."""
    from engine_shim import Engine, load_workflow
    from engine_shim.definition.validate import check

    engine = Engine.from_config(folder / "agent-core.yaml", store=folder / "in-process.db")
    workflow = check(load_workflow(folder / "workflows" / "bench.yaml"), engine.registry)

    async def run(gate: asyncio.Semaphore) -> None:
        async with gate:
            result = await engine.run(workflow, external={"question": "What does the fox do?"})
        assert result.outputs["agent_core"]["final_answer"] == "done", result

    for line in sys.stdin:
        runs, in_flight = map(int, line.split())
        gate, before = asyncio.Semaphore(in_flight), process_time()
        await asyncio.gather(*(run(gate) for _ in range(runs)))
        sys.stdout.write(f"{process_time() - before}\n")
        sys.stdout.flush()


async def run_by_api(port: int, runs: int, in_flight: int) -> None:
    """Hand runs in, follow their events, and read their results."""
    gate = asyncio.Semaphore(in_flight)
    connector = aiohttp.TCPConnector(limit=0)
    base = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession(base, connector=connector) as session:

        async def run() -> None:
            async with gate:
                body = {"external": {"question": "What does the fox do?"}}
                async with session.post("/workflows/bench/runs?wait=false", json=body) as answer:
                    run_id = (await answer.json())["run_id"]
                async with session.get(f"/runs/{run_id}/events") as events:
                    assert b'"status":"completed"' in await events.read()
                async with session.get(f"/runs/{run_id}") as answer:
                    result = await answer.json()
            assert result["outputs"]["agent_core"]["final_answer"] == "done", result

        await asyncio.gather(*(run() for _ in range(runs)))


def cpu_of(process: "subprocess.Popen[str]") -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from engine_shim.cli.main import main; main()", "serve", "--port", str(port)]
    options = ["--config", str(folder / "agent-core.yaml"), "--store", str(folder / "api.db")]
    with subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL, text=True) as process:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                asyncio.run(asyncio.sleep(0.1))
        try:
            yield process, port
        finally:
            process.terminate()


@contextmanager
def in_process(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, __file__, "--in-process", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            assert process.stdin
            process.stdin.close()


def measure(process: "subprocess.Popen[str]", runs: int, in_flight: int) -> float:
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{runs} {in_flight}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def compare(runs: int, rounds: int) -> None:
    """Print the CPU milliseconds of a run each way, and their ratio."""
    os.environ |= {"BENCH_KEY": "none", "STUB_TOOL": "fox"}
    with tempfile.TemporaryDirectory() as name, stub() as port:
        folder = Path(name)
        write_host(folder, port)
        with in_process(folder) as ours, serving(folder) as (server, api):
            for in_flight in (1, 100):
                inside, outside = [], []
                measure(ours, WARM_UP, in_flight)
                asyncio.run(run_by_api(api, WARM_UP, in_flight))
                for _ in range(rounds):
                    inside.append(measure(ours, runs, in_flight) / runs * 1000)
                    before = cpu_of(server)
                    asyncio.run(run_by_api(api, runs, in_flight))
                    outside.append((cpu_of(server) - before) / runs * 1000)
                ratio = median(outside) / median(inside)
                print(
                    f"{in_flight:>3} in flight: {median(inside):.2f} ms CPU a run in process, "
                    f"{median(outside):.2f} ms through the API: {ratio:.2f} times"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--in-process", type=Path)
    given = parser.parse_args()
    if given.in_process:
        asyncio.run(run_in_process(given.in_process))
    else:
        compare(given.runs, given.rounds)
