"""What the READMEs of the examples say to change, changed: real services (on loopback), another edge, other words."""

import asyncio
import json
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from support.by_hand import action, final
from support.command import Cli
from support.loopback import http, serving
from support.redis_server import real_server

pytestmark = pytest.mark.exhaustive

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


async def agent_core(*words: str) -> Mapping[str, Any]:
    """What `agent-core WORD… --json` says."""
    process = await asyncio.create_subprocess_exec(
        *(COMMAND, *words, "--json"),
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
            (project / ".env").write_text(f"REDIS_URL={redis.url}\nFEISHU_WEBHOOK={hook}\n")
            words = ["run", "live.yaml", "--model", "scripted:told.json", "--input", f"shop={address}"]
            words += ["--input", "session=ada", "--input", "message=Can 17 come on Thursday?"]
            first, again = [await agent_core(*words) for _ in range(2)]
            assert [request.target for request in shop.requests] == ["/orders/17"] * 2
            assert group.requests[0].json() == {"msg_type": "text", "content": {"text": "Order 17 on Thursday?"}}
        assert redis.client.lrange("support-desk:order-17", 0, -1) == [b"Thursday?"] * 2
        assert [key for key in redis.client.scan_iter() if b"context" in key]
    assert first["outputs"]["agent_core"]["final_answer"] == "Asked."
    assert [run["outputs"]["remembered"] for run in (first, again)] == ["0 messages", "8 messages"]
    assert hook not in json.dumps(first)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class Mailbox:
    """Keeps what it is sent by whoever knows the password."""

    def __init__(self) -> None:
        self.mails: list[Envelope] = []

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        if not session.authenticated:
            return "530 who are you?"
        self.mails.append(envelope)
        return "250 taken"


def _knows_password(server: Any, session: Any, envelope: Any, mechanism: str, told: Any) -> AuthResult:
    return AuthResult(success=isinstance(told, LoginPassword) and told.password == b"sesame-open", handled=False)


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    controller = Controller(
        box,
        hostname="127.0.0.1",
        port=_free_port(),
        authenticator=_knows_password,
        auth_require_tls=False,
    )
    controller.start()
    yield box, controller.server.sockets[0].getsockname()[1]
    controller.stop()


@pytest.mark.parametrize("project", ["nightly-report"], indirect=True)
def test_the_report_goes_by_mail_to_the_authors_recipients_once_it_is_approved(
    cli: Cli, project: Path, mailbox: tuple[Mailbox, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    box, port = mailbox
    monkeypatch.setenv("SMTP_USER", "desk")
    monkeypatch.setenv("SMTP_PASSWORD", "sesame-open")
    bind(project / "live.yaml", "email", host="127.0.0.1", port=port, security="none")
    sending = [action("email", subject=f"Sales {k}", text="2,593 euros.") for k in (1, 2, 3)]
    (project / "told.json").write_text(json.dumps([*sending, final("Sent.")]))
    words = ("run", "live.yaml", "--model", "scripted:told.json", "--input", "day=2026-03-02")
    assert (cli(*words).code, box.mails) == (6, [])
    for _ in range(2):
        assert (cli("decide", "last", "deny", "--message", "Again.").code, box.mails) == (6, [])
    assert (cli("decide", "last", "approve").code, len(box.mails)) == (0, 1)
    assert (box.mails[0].mail_from, box.mails[0].rcpt_tos) == ("reports@example.com", ["sales@example.com"])
    assert b"Subject: Sales 3" in (box.mails[0].content or b"")


@pytest.mark.parametrize("project", ["nightly-report"], indirect=True)
def test_what_a_person_made_of_the_report_is_what_is_sent(cli: Cli, project: Path) -> None:
    cli("run", "report.yaml", "--input", "day=2026-03-02")
    assert not (project / "outbox.txt").exists()
    mine = json.dumps({"subject": "Sales", "text": "My words."})
    assert cli("decide", "last", "edit", "--args", mine).code == 0
    assert (project / "outbox.txt").read_text("utf-8") == "Sales\n\nMy words.\n\n"


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


@pytest.mark.parametrize(
    ("project", "flow"), [("support-desk", "desk"), ("nightly-report", "report")], indirect=["project"]
)
def test_a_live_workflow_differs_in_its_model_and_tools_alone(project: Path, flow: str) -> None:
    tried, live = [yaml.safe_load((project / f"{name}.yaml").read_text("utf-8")) for name in (flow, "live")]
    for definition in (tried, live):
        definition["inputs"]["properties"].pop("shop", None)
        for node in definition["nodes"]:
            for key in ("model", "allowed_tools", "system_prompt"):
                node["config"].pop(key, None)
    assert live == tried


def plan_for(people: int, city: str = "Wien") -> dict[str, Any]:
    tickets = {"origin": "Bern", "destination": city, "people": people}
    asked = {"purpose": city, "euros": "{{steps.1.total}}"}
    steps = [("train_fare", tickets), ("request_budget", asked)]
    described = [
        {"step": k, "description": tool, "tool": tool, "parameters": parameters}
        for k, (tool, parameters) in enumerate(steps, 1)
    ]
    return {"type": "plan", "steps": described}


@pytest.mark.parametrize("project", ["planner"], indirect=True)
def test_a_plan_that_a_person_denies_or_that_fails_is_followed_by_another(cli: Cli, project: Path) -> None:
    plans = [plan_for(3), plan_for(2, "Rom"), plan_for(2)]
    (project / "told.json").write_text(json.dumps([*plans, final("Asked.")]))
    ran = cli("run", "planner.yaml", "--input", "task=To Wien.", "--model", "scripted:told.json")
    assert (ran.code, cli("decide", "last", "deny", "--message", "Two people only").code) == (6, 6)
    failed = cli("decide", "last", "approve")
    assert (failed.code, "there is no train from Bern to Rom" in failed.err) == (6, True)
    done = cli("decide", "last", "approve", "--json").json["outputs"]["agent_core"]
    assert [step["status"] for step in done["plan"]] == ["done", "done"]
    assert done["trace"][-2]["action"]["args"] == {"purpose": "Wien", "euros": 236.0}


@pytest.mark.parametrize("project", ["planner"], indirect=True)
def test_a_persons_own_plan_runs_in_place_of_the_models(cli: Cli, project: Path) -> None:
    cli("run", "planner.yaml", "--input", "task=To Wien.")
    mine = json.dumps({"steps": plan_for(1)["steps"][:1]})
    done = cli("decide", "last", "edit", "--args", mine, "--json").json["outputs"]["agent_core"]
    assert list(done["used_tools"]) == ["train_fare"]


@pytest.mark.parametrize("project", ["orders"], indirect=True)
def test_an_order_that_fails_is_listed_and_stops_no_other(cli: Cli, project: Path) -> None:
    replies = json.loads((project / "replies.json").read_text("utf-8"))
    replies["flow/decide.1/0.1"] = []
    (project / "replies.json").write_text(json.dumps(replies))
    outputs = cli("run", "orders.yaml", "--inputs", "today.json", "--json").json["outputs"]
    assert [each["index"] for each in outputs["failed"]] == [1]
    assert [line[:3] for line in outputs["decided"]] == ["501", "503", "504"]


@pytest.mark.parametrize("project", ["log-analyst"], indirect=True)
def test_the_analyst_reads_the_logs_below_root_and_no_others(cli: Cli, project: Path) -> None:
    (project.parent / "others").mkdir()
    (project.parent / "others" / "web.log").write_text("2026-03-02T02:00:04Z ERROR disk full\n")
    (project / "agent-core.yaml").write_text("root: ../others\n")
    answer = {"cause": "The disk.", "first_failure": "2026-03-02T02:00:04Z", "failed": 1, "failed_percent": 100}
    calls = [action("file_search", query="ERROR"), action("read_file", path="../mine/logs/gateway.log")]
    (project / "told.json").write_text(json.dumps([*calls, final(answer)]))
    ran = cli("run", "analyst.yaml", "--input", "question=Why?", "--model", "scripted:told.json", "--json")
    found, refused, _ = ran.json["outputs"]["agent_core"]["trace"]
    assert "disk full" in found["observation"]
    assert "10.4.0.9" not in json.dumps(ran.json)
    assert refused["error"] or "root" in refused["observation"]
