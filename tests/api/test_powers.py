"""The powers of a definition that came over HTTP: each attack of somebody who may write one, tried over HTTP."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.by_hand import final
from support.served_host import Served, served

TENANTS: dict[str, Any] = {
    "acme": {
        "workflows": "acme/workflows",
        "agents": "acme/agents",
        "triggers": "acme/triggers",
        "root": "acme/files",
        "env": ["ACME_REGION"],
        "model_files": ["acme/workflows/*.replies"],
    },
    "globex": {
        "workflows": "globex/workflows",
        "agents": "globex/agents",
        "root": "globex/files",
        "model_files": ["globex/workflows/*.replies"],
    },
    "bare": {"workflows": "bare/workflows", "agents": "bare/agents"},
}
OWN = ("AGENT_CORE_JOURNAL_KEYS", "PGPASSWORD", "HOOK_SECRET", "DOCS_TOKEN", "REDIS_URL", "SHOP_SECRET")
UNLISTED = ("GLOBEX_KEY", "ACME_UNSET", *OWN)
VALUE = "value-of-a-variable-0123456789"
VALUES = {"REDIS_URL": "", "ACME_REGION": "north-1", "AGENT_CORE_JOURNAL_KEYS": f"k1:{VALUE}"}
WHO = ("acme", "host")
REFUSED = "this definition may not read this variable; the operator lists those it may in env (got 'ANY')"


@dataclass
class Office:
    """A served host with tenants, and the header of each one's token."""

    host: Served
    headers: dict[str, dict[str, str]]

    @property
    def folder(self) -> Path:
        return self.host.folder

    def ask(self, who: str, method: str, path: str, body: Any = None) -> httpx2.Response:
        return self.host.client.request(method, path, json=body, headers=self.headers[who])

    def check(self, who: str, nodes: list[Any], **keys: Any) -> list[str]:
        """The problems of a draft, as a reader is told them."""
        answer = self.ask(f"{who} reader", "POST", "/drafts/check", draft(nodes, **keys))
        return [each["message"] for each in answer.json()["problems"]]

    def run(self, who: str, nodes: list[Any], external: Any = None, **keys: Any) -> httpx2.Response:
        """The answer to a draft that is run."""
        body = {**draft(nodes, **keys), "external": external or {}}
        return self.ask(who, "POST", "/drafts/runs", body)


def draft(nodes: list[Any], **keys: Any) -> dict[str, Any]:
    return {"text": json.dumps({"id": "draft", "nodes": nodes, **keys}), "format": "json"}


def echo(text: str) -> dict[str, Any]:
    return {"tool": "echo", "config": {"text": text}}


def agent(model: str, **config: Any) -> dict[str, Any]:
    return {
        "tool": "agent_core",
        "config": {"model": model, "max_steps": 1, "allowed_tools": [], "prompt": "x", **config},
    }


@contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """A server on loopback, a model's endpoint among others: its port, and what it was asked."""
    asked: list[str] = []
    message = {"role": "assistant", "content": final("the inner answer")}
    reply = {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("content-length", 0)))
            body = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def inner() -> Iterator[tuple[int, list[str]]]:
    """A server that no tenant was given."""
    with listening() as found:
        yield found


@pytest.fixture(scope="module")
def given() -> Iterator[tuple[int, list[str]]]:
    """A server that the operator has given to globex."""
    with listening() as found:
        yield found


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, data_home: Path, given: tuple[int, list[str]]) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("host")
    for name in TENANTS:
        for part in ("workflows", "agents", "triggers", "files"):
            (folder / name / part).mkdir(parents=True)
        write(folder / name / "workflows" / "own.replies", [final(f"the answer of {name}")])
        inner = {"id": "secret", "nodes": [echo(f"the workflow of {name}")]}
        write(folder / name / "workflows" / "secret.json", inner)
    (folder / "globex" / "files" / "plans.txt").write_text("the plans of globex")
    trigger = {"workflow": "secret", "webhook": {"secret_env": "SHOP_SECRET"}}
    write(folder / "acme" / "triggers" / "shop.yaml", trigger)
    gifts = {
        "model_endpoints": {f"http://127.0.0.1:{given[0]}/v1": None},
        "presets": {"http_request": {"allow_cidrs": ["127.0.0.1/32"], "allowed_ports": [given[0]]}},
    }
    keys = {
        "tenants": {**TENANTS, "globex": {**TENANTS["globex"], **gifts}},
        "webhooks": [{"url": "http://127.0.0.1:9/hook", "secret_env": "HOOK_SECRET"}],
        "remote": {"docs": {"url": "https://docs.example.invalid", "token_env": "DOCS_TOKEN"}},
        "presets": {"shell_command": {"allow": ["cat ..."]}},
        "secret_env": ["SHARED_SECRET", "HOOK_SECRET", "AGENT_CORE_JOURNAL_KEYS", "PGPASSWORD"],
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in (*OWN, "GLOBEX_KEY", "ACME_REGION", "SHARED_SECRET"):
            patch.setenv(name, VALUES.get(name, f"{VALUE}-{name}"))
        patch.delenv("ACME_UNSET", raising=False)
        with served(folder, is_open=False, **keys) as host:
            headers = {}
            for name in (*TENANTS, "host"):
                tenant = None if name == "host" else name
                headers[name] = host.issue(name, "admin", tenant=tenant)
                headers[f"{name} reader"] = host.issue(f"{name} reader", "read", tenant=tenant)
                headers[f"{name} runner"] = host.issue(f"{name} runner", "run", tenant=tenant)
            yield Office(host, headers)


def write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data))


# ── environment and secrets ──────────────────────────────────────────────────────────────────────


@pytest.mark.sampled
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", UNLISTED)
def test_no_variable_is_read_that_the_operator_does_not_list(office: Office, who: str, name: str) -> None:
    env = [{"name": name, "plain": True}]
    nodes = [echo(f"{{{{env.{name}}}}}")]
    (told,) = office.check(who, nodes, env=env)
    assert told.replace(name, "ANY") == REFUSED
    answer = office.run(who, nodes, env=env)
    assert (answer.status_code, VALUE in answer.text) == (422, False)


def test_listed_variable_is_read(office: Office) -> None:
    env = [{"name": "ACME_REGION", "plain": True}]
    assert office.check("acme", [echo("{{env.ACME_REGION}}")], env=env) == []
    assert "north-1" in office.run("acme", [echo("{{env.ACME_REGION}}")], env=env).text
    assert office.run("globex", [echo("{{env.ACME_REGION}}")], env=env).status_code == 422


@pytest.mark.sampled
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", OWN)
def test_no_tool_is_given_the_host_s_own_as_a_secret(office: Office, who: str, name: str) -> None:
    config = {"url": "https://example.invalid", "allowed_domains": ["example.invalid"], "token_env": name}
    assert office.run(who, [{"tool": "http_request", "config": config}]).status_code == 422
    late = {"tool": "http_request", "config": {**config, "token_env": "{{external.n}}"}}
    answer = office.run(who, [late], {"n": name}).json()
    assert (answer["status"], "is not allowed" in str(answer) or "host's own" in str(answer)) == ("failed", True)


# ── models and workflows ─────────────────────────────────────────────────────────────────────────

FILES = (
    "scripted:../../globex/workflows/own.replies",
    "scripted:../../agent-core.yaml",
    "scripted:../../nothing.json",
    "scripted:secret.json",
    "scripted:/etc/passwd",
    "scripted:a\0b",
    "replay:../../runs.globex.db",
    "replay:../../runs.db",
    "replay:/etc/passwd",
    "local:../../globex/files/plans.txt",
    "local:/etc/passwd",
)


@pytest.mark.sampled
@pytest.mark.parametrize("model", FILES)
def test_model_of_a_file_is_one_that_the_operator_lists(office: Office, model: str) -> None:
    messages = office.check("acme", [agent(model)])
    assert len(messages) == 1
    assert "the operator lists what it may in model_files" in messages[0]
    assert office.run("acme", [agent(model)]).status_code == 422
    late = office.run("acme", [agent("{{external.m}}")], {"m": model})
    assert (late.status_code, "globex" in late.text.replace(model, "")) == (200, False)
    assert late.json()["status"] != "completed"
    spare = office.run("acme", [agent("scripted:none", fallback_models=["{{external.m}}"])], {"m": model})
    assert "the answer of" not in spare.text


@pytest.mark.sampled
@pytest.mark.parametrize("key", ["model", "late"])
def test_listed_model_of_a_file_is_used(office: Office, key: str) -> None:
    model = "scripted:own.replies"
    answer = office.run("acme", [agent(model if key == "model" else "{{external.m}}")], {"m": model})
    assert "the answer of acme" in answer.text
    assert office.run("bare", [agent(model)]).status_code == 422


def test_run_of_another_tenant_is_no_model(office: Office) -> None:
    run = office.run("globex", [agent("scripted:own.replies")]).json()["run_id"]
    assert "the answer of globex" in office.run("globex", [agent(f"replay:{run}")]).text
    assert office.run("acme", [agent(f"replay:{run}")]).status_code == 422
    assert "the answer" not in office.run("acme", [agent("{{external.m}}")], {"m": f"replay:{run}"}).text


def test_link_leads_nowhere_else(office: Office) -> None:
    link = office.folder / "acme" / "workflows" / "link.replies"
    link.symlink_to(office.folder / "globex" / "workflows" / "own.replies")
    try:
        assert office.run("acme", [agent("scripted:link.replies")]).status_code == 422
        assert "the answer" not in office.run("acme", [agent("{{external.m}}")], {"m": "scripted:link.replies"}).text
    finally:
        link.unlink()


@pytest.mark.sampled
@pytest.mark.parametrize("who", [*WHO, "globex"])
@pytest.mark.parametrize(
    "file",
    ["../../{other}/workflows/secret.json", "../../agent-core.yaml", "/etc/x.yaml", "../nothing.yaml", "none.json"],
)
def test_only_workflows_of_the_same_directory_are_invoked(office: Office, who: str, file: str) -> None:
    file = file.format(other="acme" if who == "globex" else "globex")
    if who == "host":
        file = file.replace("../../globex", "../globex").replace("../../agent", "../agent")
    node = {"tool": "invoke_workflow", "config": {"workflow": file}}
    (told,) = office.check(who, [node])
    assert "not below the directory of the workflows" in told or "no workflow that can be invoked" in told
    assert office.run(who, [node]).status_code == 422
    late = {"tool": "invoke_workflow", "config": {"workflow": "{{external.w}}"}}
    answer = office.run(who, [late], {"w": file})
    assert "the workflow of" not in answer.text
    assert answer.json()["status"] == "failed"


def test_workflow_of_the_same_directory_is_invoked(office: Office) -> None:
    late = {"tool": "invoke_workflow", "config": {"workflow": "{{external.w}}"}}
    assert "the workflow of acme" in office.run("acme", [late], {"w": "secret.json"}).text


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["own.replies", "other.yaml", "missing.yaml"])
def test_check_tells_nothing_of_what_is_in_a_file(office: Office, name: str) -> None:
    (office.folder / "acme" / "workflows" / "other.yaml").write_text("password: [hunter2")
    copy = name if name.endswith(".yaml") else "own.replies.json"
    if copy != name:
        (office.folder / "acme" / "workflows" / copy).symlink_to(office.folder / "acme" / "workflows" / name)
    try:
        messages = office.check("acme", [{"tool": "invoke_workflow", "config": {"workflow": copy}}])
        assert messages == [f"{copy}: this is no workflow that can be invoked"]
    finally:
        (office.folder / "acme" / "workflows" / "other.yaml").unlink()
        if copy != name:
            (office.folder / "acme" / "workflows" / copy).unlink()


def test_host_s_own_workflow_does_not_lead_to_a_tenant_by_its_inputs(office: Office) -> None:
    flow = {
        "id": "open",
        "inputs": {"type": "object", "properties": {"m": {"type": "string"}, "w": {"type": "string"}}},
        "nodes": [
            {**agent("{{external.m}}"), "on_error": "continue"},
            {"tool": "invoke_workflow", "config": {"workflow": "{{external.w}}"}},
        ],
    }
    write(office.folder / "workflows" / "open.json", flow)
    try:
        external = {"m": "scripted:../globex/workflows/own.replies", "w": "../globex/workflows/secret.json"}
        answer = office.ask("host runner", "POST", "/workflows/open/runs", {"external": external})
        assert "of globex" not in answer.text
        assert answer.json()["status"] == "failed"
    finally:
        (office.folder / "workflows" / "open.json").unlink()


# ── network ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.sampled
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]", "LOCALHOST"])
def test_no_model_is_asked_at_an_endpoint_that_is_not_given(
    office: Office, inner: tuple[int, list[str]], who: str, host: str
) -> None:
    port, asked = inner
    url = f"http://{host}:{port}/v1"
    assert office.run(who, [agent("openai:x", base_url=url)]).status_code == 422
    assert office.run(who, [agent("openai:x", base_url="{{external.u}}")], {"u": url}).json()["status"] != "completed"
    assert asked == []


@pytest.mark.sampled
@pytest.mark.parametrize("model", ["openai:gpt-4o", "ollama:llama3", "vllm:x"])
def test_tenant_has_no_vendor_that_is_not_given(office: Office, model: str) -> None:
    (told,) = office.check("acme", [agent(model)])
    assert "model_endpoints" in told


MAIL = {"to": ["a@b.c"], "subject": "x", "text": "x"}


@pytest.mark.sampled
@pytest.mark.parametrize("who", WHO)
def test_no_tool_reaches_a_network_that_is_not_given(office: Office, inner: tuple[int, list[str]], who: str) -> None:
    port, asked = inner
    url, near = f"http://127.0.0.1:{port}/x", ["127.0.0.0/8"]
    nodes = [
        {"tool": "http_request", "config": {"url": url, "allow_cidrs": near}},
        {"tool": "health", "config": {"targets": [url], "allow_cidrs": near}},
        {"tool": "health", "config": {"targets": [f"tcp://127.0.0.1:{port}"], "allowed_domains": ["127.0.0.1"]}},
        {"tool": "feishu_bot", "config": {"webhook_env": "SHARED_SECRET", "text": "x", "allow_cidrs": near}},
        {"tool": "email", "config": {**MAIL, "host": "127.0.0.1", "sender": "a@b.c"}},
        {"tool": "redis_context", "config": {"op": "list", "prefix": "globex"}},
    ]
    for node in nodes:
        assert office.check(who, [node]), node
        assert office.run(who, [node]).status_code == 422, node
    allowed = {"tool": "http_request", "preset": {"allow_cidrs": near}}
    assert office.run(who, [agent("scripted:own.replies", allowed_tools=[allowed])]).status_code == 422
    late = {"tool": "http_request", "config": {"url": url, "allow_cidrs": "{{external.c}}"}}
    assert office.run(who, [late], {"c": near}).json()["status"] == "failed"
    bare = {"tool": "http_request", "config": {"url": url}}
    assert office.run(who, [bare]).status_code == 422
    late = {"tool": "http_request", "config": {"url": "{{external.u}}"}}
    assert office.run(who, [late], {"u": url}).json()["status"] == "failed"
    assert asked == []


def test_what_the_operator_gives_is_reached(office: Office, given: tuple[int, list[str]]) -> None:
    port, asked = given
    url = f"http://127.0.0.1:{port}"
    assert "the inner answer" in office.run("globex", [agent("openai:x", base_url=f"{url}/v1")]).text
    assert asked == ["/v1/chat/completions"]
    config = {"url": f"{url}/x"}
    assert "the inner answer" in office.run("globex", [{"tool": "http_request", "config": config}]).text
    wider = {"tool": "http_request", "config": {**config, "allow_cidrs": ["127.0.0.0/8"]}}
    assert office.run("globex", [wider]).status_code == 422
    for key, node in (
        ("base_url", agent("openai:x", base_url=f"{url}/v1")),
        ("model", agent("openai:x")),
    ):
        refused = office.run("acme", [node])
        assert (refused.status_code, refused.json()["errors"][0]["where"]) == (422, f"nodes/0/config/{key}")


# ── files ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.sampled
@pytest.mark.parametrize("tool", ["read_file", "write_file", "file_search", "log_transform", "shell_command"])
def test_tenant_without_a_root_has_no_tools_of_files(office: Office, tool: str) -> None:
    configs = {
        "read_file": {"path": "agent-core.yaml"},
        "write_file": {"path": "x", "text": "x", "root": "."},
        "file_search": {"query": "globex"},
        "log_transform": {"path": "agent-core.yaml"},
        "shell_command": {"argv": ["cat", "agent-core.yaml"]},
    }
    (told, *_) = office.check("bare", [{"tool": tool, "config": configs[tool]}])
    assert "there is no root for its files" in told
    assert tool not in {each["code"] for each in office.ask("bare", "GET", "/tools").json()["tools"]}
    assert office.run("bare", [{"tool": tool, "config": configs[tool]}]).status_code == 422


@pytest.mark.sampled
@pytest.mark.parametrize(
    "path",
    ["../../globex/files/plans.txt", "/etc/passwd", "../workflows/secret.json", "../../runs.globex.db", "../../.env"],
)
def test_file_tools_of_a_tenant_stay_below_its_root(office: Office, path: str) -> None:
    assert office.run("acme", [{"tool": "read_file", "config": {"path": path}}]).json()["status"] == "failed"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "path",
    [
        *(
            "workflows/new.json",
            "agents/new.yaml",
            "triggers/new.yaml",
            "acme/workflows/own.replies",
            "agent-core.yaml",
        ),
        *("globex/agents/new.yaml", "globex/workflows/secret.json", "acme/triggers/evil.yaml", "clerk-replies.json"),
        *("workflows/.saved-over-http", "runs.db", "runs.globex.db", ".env", "agent-core.lock.json", "shop.py"),
    ],
)
def test_nothing_is_written_that_says_what_a_host_does(office: Office, path: str) -> None:
    before = (office.folder / path).read_bytes() if (office.folder / path).exists() else None
    config = {"path": path, "text": "evil", "root": "."}
    answer = office.run("host", [{"tool": "write_file", "config": config}])
    assert answer.json()["status"] == "failed"
    after = (office.folder / path).read_bytes() if (office.folder / path).exists() else None
    if path.endswith(".db"):  # the store of the run itself, which the refused run is written to
        assert after is not None
        assert after.startswith(b"SQLite format 3")
    else:
        assert after == before


# ── what was saved ───────────────────────────────────────────────────────────────────────────────


def test_version_saved_over_http_keeps_what_a_draft_has(office: Office) -> None:
    body = {**draft([agent("{{external.m}}")]), "expects": None}
    assert office.ask("host", "PUT", "/workflows/draft", body).status_code == 201
    external = {"external": {"m": "scripted:../clerk-replies.json"}}
    answer = office.ask("host runner", "POST", "/workflows/draft/runs", external)
    assert answer.json()["status"] != "completed"
    saved = office.folder / "workflows" / ".saved-over-http"
    saved.write_text("")  # the operator has reviewed it
    (office.folder / "workflows" / "draft@1.json").touch()
    again = {"external": {"m": "scripted:../workflows/desk-replies.json"}}
    assert office.ask("host runner", "POST", "/workflows/draft/runs", again).status_code == 200
    (office.folder / "workflows" / "draft@1.json").unlink()


def test_run_of_a_draft_goes_on_with_what_it_was_given(office: Office) -> None:
    nodes = [
        {"id": "first", "tool": "order", "config": {"article": "x", "pieces": 1}, "approval": "always"},
        agent("{{external.m}}"),
    ]
    edges = [{"from": "first", "to": "agent_core"}]
    waiting = office.run("host", nodes, {"m": "scripted:../clerk-replies.json"}, edges=edges).json()
    assert waiting["status"] == "waiting"
    answer = office.ask("host", "POST", f"/runs/{waiting['run_id']}/decide", {"decision": "approve"})
    assert (answer.json()["status"], "There are 12" in answer.text) == ("failed", False)
    at = {"strand": "flow/first.1", "n": 0}
    fork = office.ask("host", "POST", f"/runs/{waiting['run_id']}/fork", {"at": at, "repeat_writes": True})
    assert "There are 12" not in fork.text


def test_host_s_own_workflow_does_not_lend_its_powers_to_a_saved_one(office: Office) -> None:
    folder = office.folder / "workflows"
    body = {**draft([agent("scripted:desk-replies.json")]), "expects": None}
    assert office.ask("host", "PUT", "/workflows/draft", body).status_code == 201
    inputs = {"type": "object", "properties": {"w": {"type": "string"}}}
    invoking = [{"tool": "invoke_workflow", "config": {"workflow": "{{external.w}}"}}]
    write(folder / "open.json", {"id": "open", "inputs": inputs, "nodes": invoking})
    try:
        external = {"external": {"w": "draft@1.json"}}
        answer = office.ask("host", "POST", "/workflows/open/runs", external)
        assert answer.json()["status"] == "failed"
        assert "came over HTTP" in answer.text
        assert "came over HTTP" not in office.run("host", invoking, {"w": "draft@1.json"}).text
    finally:
        for name in ("open.json", "draft@1.json", ".saved-over-http"):
            (folder / name).unlink()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["notes.txt", "missing.md", "../../globex/files/plans.txt"])
def test_template_of_a_draft_is_no_file(office: Office, name: str) -> None:
    (office.folder / "acme" / "workflows" / "notes.txt").write_text("${tool_definitions} of acme")
    node = agent("scripted:own.replies", prompts={"system": name})
    (told,) = office.check("acme", [node])
    assert told == "a definition over HTTP gives the text of a template, not the name of a file"
    assert office.run("acme", [node]).status_code == 422
    late = agent("scripted:own.replies", prompts={"system": "{{external.p}}"})
    assert office.run("acme", [late], {"p": name}).json()["status"] == "failed"
