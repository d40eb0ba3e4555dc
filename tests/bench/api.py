"""What a run costs through the HTTP API beside the same run in process: CPU of the process that does it.

    python tests/bench/api.py [--runs 400] [--rounds 5]

A run has four model calls, against a model that answers at once. Through the API each is handed in, its events are
followed to their end, and its result is read. The two take turns in each round; the medians and their ratio are shown,
with 1 and with 100 runs in flight. Then one run of thirty calls is followed by nobody, by one and by a hundred.
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
id: {id}
nodes:
  - id: agent_core
    tool: agent_core
    config:
      model: stub-{calls}
      base_url: {url}
      max_steps: 99
      max_tool_calls: 0
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
    for identity, calls in (("bench", 4), ("long", 30)):
        text = WORKFLOW.format(id=identity, calls=calls, url=url)
        (folder / "workflows" / f"{identity}.yaml").write_text(text)
    (folder / "agent-core.yaml").write_text(HOST.format(url=url))
    (folder / "tools.py").write_text(TOOLS)


async def run_in_process(folder: Path) -> None:
    """Run as many runs as a line of stdin says, so many at once, with or without somebody who hears their events, and
    print the CPU seconds; again for each line."""
    from engine_shim import Engine, load_workflow
    from engine_shim.definition.validate import check

    engine = Engine.from_config(folder / "agent-core.yaml", store=folder / "in-process.db")
    workflow = check(load_workflow(folder / "workflows" / "bench.yaml"), engine.registry)

    async def run(gate: asyncio.Semaphore, *, is_heard: bool) -> None:
        async with gate:
            external = {"question": "What does the fox do?"}
            result = await engine.run(workflow, external=external, on_event=(lambda _: None) if is_heard else None)
        assert result.outputs["agent_core"]["final_answer"] == "done", result

    for line in sys.stdin:
        runs, in_flight, heard = map(int, line.split())
        gate, before = asyncio.Semaphore(in_flight), process_time()
        await asyncio.gather(*(run(gate, is_heard=bool(heard)) for _ in range(runs)))
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


async def follow(port: int, followers: int) -> None:
    """Run one long run, which so many follow."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=connector) as session:

        async def read(run_id: str) -> bytes:
            async with session.get(f"/runs/{run_id}/events") as events:
                return await events.read()

        body = {"external": {"question": "What does the fox do?"}}
        async with session.post("/workflows/long/runs?wait=false", json=body) as answer:
            run_id = (await answer.json())["run_id"]
        told = set(await asyncio.gather(*(read(run_id) for _ in range(followers))))
        assert len(told) == min(followers, 1) or len({text[-300:] for text in told}) == 1
        while True:
            async with session.get(f"/runs/{run_id}") as answer:
                if (await answer.json())["status"] == "completed":
                    return
            await asyncio.sleep(0.02)


def compare_followers(process: "subprocess.Popen[str]", port: int, rounds: int) -> None:
    """Print what a run costs that nobody, one and a hundred follow."""
    costs: dict[int, list[float]] = {0: [], 1: [], 100: []}
    for _ in range(rounds):
        for followers, found in costs.items():
            before = cpu_of(process)
            for _ in range(5):
                asyncio.run(follow(port, followers))
            found.append((cpu_of(process) - before) / 5 * 1000)
    nobody, one, hundred = (median(found) for found in costs.values())
    print(
        f"a run of 30 calls: {nobody:.0f} ms CPU, {one:.0f} ms with one follower, {hundred:.0f} ms with a hundred: "
        f"{(hundred - one) / 99:.2f} ms each, connection and all"
    )


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


def measure(process: "subprocess.Popen[str]", runs: int, in_flight: int, *, is_heard: bool = False) -> float:
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{runs} {in_flight} {is_heard:d}\n")
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
                inside, heard, outside = [], [], []
                measure(ours, WARM_UP, in_flight)
                asyncio.run(run_by_api(api, WARM_UP, in_flight))
                for _ in range(rounds):
                    inside.append(measure(ours, runs, in_flight) / runs * 1000)
                    heard.append(measure(ours, runs, in_flight, is_heard=True) / runs * 1000)
                    before = cpu_of(server)
                    asyncio.run(run_by_api(api, runs, in_flight))
                    outside.append((cpu_of(server) - before) / runs * 1000)
                plain, listened, served = median(inside), median(heard), median(outside)
                print(
                    f"{in_flight:>3} in flight: {plain:.2f} ms CPU a run in process, {listened:.2f} with a listener, "
                    f"{served:.2f} through the API: {served / plain:.2f} and {served / listened:.2f} times"
                )
            compare_followers(server, api, rounds)


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
