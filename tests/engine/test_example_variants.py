"""What the READMEs of the examples say to change, changed: real services (on loopback), another edge, other words."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.by_hand import action, final
from support.command import Cli
from support.loopback import http, serving
from support.redis_server import real_server

COMMAND = str(Path(sys.executable).with_name("agent-core"))
OPEN = {"allowed_domains": ["127.0.0.1"], "allow_cidrs": ["127.0.0.0/8"]}


def bind(flow: Path, tool: str, **preset: Any) -> None:
    """Write into a workflow what its README tells a person to write into a tool's preset."""
    definition = yaml.safe_load(flow.read_text("utf-8"))
    for node in definition["nodes"]:
        for entry in node["config"].get("allowed_tools", []):
            if isinstance(entry, dict) and entry["tool"] == tool:
                entry["preset"].update(preset)
    flow.write_text(yaml.safe_dump(definition, allow_unicode=True), "utf-8")


async def agent_core(*words: str, **environment: str) -> Mapping[str, Any]:
    """What `agent-core WORD… --json` says."""
    process = await asyncio.create_subprocess_exec(
        *(COMMAND, *words, "--json"),
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert out, err.decode()
    told: Mapping[str, Any] = json.loads(out)
    return told


@pytest.fixture
def project(cli: Cli, home: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example that the test names, written into the working directory."""
    cli("init", "--example", request.param, "mine")
    monkeypatch.chdir(home / "mine")
    return home / "mine"


@pytest.mark.parametrize("project", ["support-desk"], indirect=True)
async def test_the_support_desk_asks_the_shop_keeps_notes_in_redis_and_tells_the_group(
    project: Path, tmp_path: Path
) -> None:
    order, told = http(200, {"item": "a lamp", "status": "leaves on Monday"}), http(200, {"code": 0})
    with real_server(tmp_path) as redis:
        async with serving(order) as shop, serving(told) as group:
            address, hook = f"http://127.0.0.1:{shop.port}", f"http://127.0.0.1:{group.port}/hook"
            bind(project / "live.yaml", "http_request", **OPEN)
            bind(project / "live.yaml", "feishu_bot", allow_cidrs=OPEN["allow_cidrs"])
            replies = [
                action("http_request", method="GET", url=f"{address}/orders/17"),
                action("redis_context", op="append", key="order-17", value="Thursday?"),
                action("feishu_bot", text="Order 17 on Thursday?"),
                final("Asked."),
            ]
            (project / "told.json").write_text(json.dumps(replies))
            words = ["run", "live.yaml", "--model", "scripted:told.json", "--input", f"shop={address}"]
            words += ["--input", "session=ada", "--input", "message=Can 17 come on Thursday?"]
            first, again = [await agent_core(*words, REDIS_URL=redis.url, FEISHU_WEBHOOK=hook) for _ in range(2)]
            assert [request.target for request in shop.requests] == ["/orders/17"] * 2
            assert group.requests[0].json() == {"msg_type": "text", "content": {"text": "Order 17 on Thursday?"}}
        assert redis.client.lrange("support-desk:order-17", 0, -1) == [b"Thursday?"] * 2
        assert [key for key in redis.client.scan_iter() if b"context" in key]
    assert first["outputs"]["agent_core"]["final_answer"] == "Asked."
    assert [run["outputs"]["remembered"] for run in (first, again)] == ["0 messages", "8 messages"]
    assert hook not in json.dumps(first)


@pytest.mark.parametrize("project", ["research-graph"], indirect=True)
def test_a_model_may_judge_whether_the_research_goes_round_again(cli: Cli, project: Path) -> None:
    flow = project / "research.yaml"
    definition = yaml.safe_load(flow.read_text("utf-8"))
    definition["model"] = "scripted:replies.json"
    (back,) = [edge for edge in definition["edges"] if edge["to"] == "write"]
    back["ask"] = "The reviewer wants another text."
    del back["when"]
    flow.write_text(yaml.safe_dump(definition), "utf-8")
    replies = json.loads((project / "replies.json").read_text("utf-8"))
    judged = {f"flow/review%3Ewrite.{visit}": [final(visit == 1)] for visit in (1, 2)}
    (project / "replies.json").write_text(json.dumps(replies | judged))
    assert cli("run", "research.yaml", "--input", "question=Rain?", "--json").json["path"].count("write") == 2


@pytest.mark.parametrize("project", ["research-graph"], indirect=True)
def test_a_text_that_is_never_good_ends_at_the_limit(cli: Cli, project: Path) -> None:
    replies = json.loads((project / "replies.json").read_text("utf-8"))
    rounds = range(1, 6)
    again = {f"flow/write.{k}": replies["flow/write.1"] for k in rounds}
    again |= {f"flow/review.{k}": replies["flow/review.1"] for k in rounds}
    (project / "replies.json").write_text(json.dumps(again))
    ran = cli("run", "research.yaml", "--input", "question=Rain?", "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (4, "max_iterations")
