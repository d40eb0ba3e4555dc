"""A host whose workflows and agents are offered over MCP, and the official client at it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_shim.store.run_store import SqliteRunStore
from support.by_hand import action, final

AGENT_CORE = str(Path(sys.executable).with_name("agent-core"))
PATIENCE_S = 30.0
NOISY = "a tool prints this"
LONG = "a_workflow_whose_id_has_more_letters_than_the_name_of_a_tool_may_have"
TOOLS = f'''
import time
from pathlib import Path

from utools import ToolError, tool

HERE = Path(__file__).parent


@tool
def order(pieces: int) -> str:
    """Order pieces. This costs money."""
    print("{NOISY}")
    with (HERE / "orders").open("a") as file:
        file.write(str(pieces) + chr(10))
    return f"ordered {{pieces}}"


@tool(effect="read")
def hold(name: str = "hold") -> str:
    """Come back once somebody lets it go."""
    with (HERE / f"{{name}}.begun").open("a") as file:
        file.write("x")
    for _ in range(2000):
        if (HERE / f"{{name}}.go").exists():
            return "went on"
        time.sleep(0.01)
    raise ToolError("nobody let it go")


@tool(effect="read")
def fail() -> str:
    """Fail as a program fails."""
    raise ToolError("the warehouse does not answer")
'''
WHO = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}


def _agent(replies: str, **tool: Any) -> dict[str, Any]:
    prompt = {"prompt": "Order ten.", "max_steps": 4, "allowed_tools": [tool] if tool else []}
    return {"id": "agent", "tool": "agent_core", "config": {"model": f"scripted:{replies}", **prompt}}


FILES: dict[str, Any] = {
    "agent-core.yaml": {"tools": ["desk.py:order", "desk.py:hold", "desk.py:fail"]},
    "workflows/hello.json": {
        "id": "hello",
        "name": "Say hello",
        "description": "Greets somebody.",
        "inputs": WHO,
        "nodes": [{"id": "say", "tool": "echo", "config": {"text": "Hello {{external.who}}"}}],
        "outputs": {"greeting": "{{nodes.say}}"},
    },
    "workflows/hello1.json": {"id": "hello", "version": "0", "nodes": [{"tool": "echo", "config": {"text": "old"}}]},
    "workflows/order.json": {"id": "order", "nodes": [_agent("order.replies.json", tool="order", approval="on_write")]},
    "workflows/order.replies.json": [action("order", pieces=10), final("Ten are on their way.")],
    "workflows/hold.json": {
        "id": "hold",
        "inputs": {"type": "object", "properties": {"name": {"type": "string", "default": "hold"}}},
        "nodes": [{"id": "wait", "tool": "hold", "config": {"name": "{{external.name}}"}}],
    },
    f"workflows/{LONG}.json": {"id": LONG, "nodes": [{"tool": "echo", "config": {"text": "long"}}]},
    "workflows/fail.json": {"id": "fail", "nodes": [{"id": "stock", "tool": "fail", "config": {}}]},
    "agents/clerk.yaml": {
        "name": "clerk",
        "description": "Answers letters.",
        "system_prompt": "You are a clerk.",
        "model": "scripted:clerk.replies.json",
    },
    "clerk.replies.json": [final("Yes, sir.")],
    "agents/buyer.2.yaml": {
        "name": "buyer.2",
        "description": "Buys.",
        "system_prompt": "You buy.",
        "model": "scripted:workflows/order.replies.json",
        "skill_policy": {"allow": ["order"]},
        "runtime_policy": {"approval": "on_write"},
    },
    "agents/sleeper.yaml": {
        "name": "sleeper",
        "description": "Takes its time.",
        "system_prompt": "You wait.",
        "model": "scripted:sleeper.replies.json",
        "skill_policy": {"allow": ["hold"]},
    },
    "sleeper.replies.json": [action("hold", name="sleeper"), final("Good morning.")],
}


def write_host(home: Path) -> None:
    """Write the configuration of the host, its tools, workflows and agents."""
    for name, content in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(json.dumps(content))
    (home / "desk.py").write_text(TOOLS)


@dataclass
class Person:
    """Who sits at a client: answers each form by an action and its content, and remembers what was asked."""

    action: str
    content: dict[str, Any] | None = None
    asked: list[str] = field(default_factory=list)

    async def __call__(self, context: Any, params: Any) -> Any:
        from mcp_types import ElicitResult

        self.asked.append(params.message)
        return ElicitResult(action=self.action, content=self.content)  # type: ignore[arg-type]


@dataclass(frozen=True)
class McpHost:
    """The host in a directory. Without a URL each client starts a server of its own, over stdio."""

    home: Path
    mode: str = "auto"
    url: str | None = None

    @property
    def store(self) -> SqliteRunStore:
        return SqliteRunStore(self.home / "runs.db")

    @property
    def env(self) -> dict[str, str]:
        own = {"AGENT_CORE_STORE": str(self.home / "runs.db"), "XDG_DATA_HOME": str(self.home / "data")}
        return {key: each for key, each in os.environ.items() if not key.startswith("AGENT_CORE_")} | own

    @asynccontextmanager
    async def connect(self, person: Person | None = None) -> AsyncIterator[Any]:
        """The official client, connected."""
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client
        from mcp_types import Implementation

        started = StdioServerParameters(command=AGENT_CORE, args=["mcp"], env=self.env, cwd=self.home)
        server = self.url or stdio_client(started, errlog=sys.__stderr__)  # its own is that of its first import
        info = Implementation(name="tester", version="1")
        async with Client(server, mode=self.mode, elicitation_callback=person, client_info=info) as client:
            yield client

    def command(self, *words: str) -> str:
        """What a command writes."""
        done = subprocess.run(
            [AGENT_CORE, *words], cwd=self.home, env=self.env, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done
        return done.stdout

    def records(self, run: str) -> list[dict[str, Any]]:
        """All records of a run."""
        return [row.record() for rows in self.store.journal.load(run).values() for row in rows]

    def orders(self) -> list[str]:
        """What was ordered so far."""
        file = self.home / "orders"
        return file.read_text().split() if file.exists() else []

    async def begun(self, name: str, times: int = 1) -> None:
        """Come back once a tool holds."""
        file = self.home / f"{name}.begun"
        await until(lambda: file.exists() and len(file.read_text()) >= times)

    def let_go(self, name: str) -> None:
        (self.home / f"{name}.go").write_text("")


async def until(holds: Any) -> None:
    """Come back once a condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)


@contextmanager
def serving(home: Path, *words: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A command that serves HTTP, and what it says about where; ended with the block."""
    process = subprocess.Popen([AGENT_CORE, *words], cwd=home, env=McpHost(home).env, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        yield process.stderr.readline(), process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def url_in(line: str) -> str:
    """The endpoint in what a command says."""
    base = next(word for word in line.split() if word.startswith("http://"))
    return base if base.endswith("/mcp") else f"{base}/mcp"
