"""Endpoints of a host's own: `gateway:name` in workflows and on the command line, and what is wrong with one."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from anyio.from_thread import start_blocking_portal

from engine_shim import Engine
from engine_shim.errors import DefinitionError
from engine_shim.host.config import read_host_config
from engine_shim.host.registry import build_registry
from support.by_hand import action, final
from support.command import Cli, Write
from support.loopback import Loopback, Reply, chat, http, serving
from support.served_host import served

PEEK = """
from utools import ToolContext, tool

@tool(effect="read")
def peek(context: ToolContext, name: str) -> str:
    "Peeks."
    return context.secret(name)
"""
KEY, TOKEN = "key-of-the-gateway-01", "token-of-the-gateway-02"
NODE = "nodes/0/config"


@contextmanager
def gateway(*replies: Reply) -> Iterator[Loopback]:
    """An endpoint on loopback, in a thread of its own."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(*replies)) as server:
        yield server


@pytest.fixture(autouse=True)
def variables(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    monkeypatch.setenv("GATEWAY_TOKEN", TOKEN)
    monkeypatch.delenv("GATEWAY_NONE", raising=False)


def agent(model: str = "gateway:m1", **config: Any) -> dict[str, Any]:
    config = {"model": model, "max_steps": 2, "allowed_tools": [], "prompt": "Go.", **config}
    return {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]}


def endpoint(url: str = "http://127.0.0.1:9/v1", **keys: Any) -> dict[str, Any]:
    return {"url": url, "api_key_env": "GATEWAY_KEY", "secret_headers": {"X-Token": "GATEWAY_TOKEN"}, **keys}


def host(url: str = "http://127.0.0.1:9/v1", **keys: Any) -> dict[str, Any]:
    return {"endpoints": {"gateway": endpoint(url, **keys)}}


# ── asked ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_workflow_asks_it_by_its_name_and_no_secret_is_kept(cli: Cli, write: Write, home: Path) -> None:
    flow = str(write("flow.json", agent()))
    with gateway(chat(final())) as server:
        write("agent-core.yaml", host(server.url, headers={"X-Team": "docs"}, query={"region": "eu"}))
        ran = cli("run", flow, "--json")
        assert ran.json["outputs"]["agent_core"]["final_answer"] == "done"
        assert Engine.from_config("agent-core.yaml").run_sync(flow).status == "completed"
    assert len(server.requests) == 2
    for request in server.requests:
        sent = [request.headers[name] for name in ("authorization", "x-token", "x-team")]
        assert (sent, request.target) == ([f"Bearer {KEY}", TOKEN, "docs"], "/v1/chat/completions?region=eu")
        assert request.json()["model"] == "m1"
    shown = cli("show", ran.json["run_id"], "--json").out
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file() and ".db" in path.name)
    assert "gateway:m1" in shown
    assert b"gateway:m1" in kept
    assert [each for each in (KEY, TOKEN) if each in shown or each.encode() in kept] == []


def test_no_tool_reads_its_secrets_and_what_models_say_of_them_is_masked(cli: Cli, write: Write) -> None:
    write("peek.py", PEEK)
    replies = chat(action("peek", name="GATEWAY_TOKEN")), chat(final(f"{KEY} and {TOKEN}"))
    with gateway(*replies) as server:
        write("agent-core.yaml", {**host(server.url), "tools": ["peek.py:peek"], "secret_env": ["GATEWAY_TOKEN"]})
        ran = cli("run", str(write("flow.json", agent(allowed_tools=["peek"]))), "--json")
    assert len(server.requests) == 2
    assert TOKEN not in server.requests[1].body.decode()
    assert ran.json["outputs"]["agent_core"]["final_answer"].count("[redacted:GATEWAY_") == 2


def test_the_other_models_of_a_workflow_may_be_its_too(cli: Cli, write: Write) -> None:
    flow = agent("openai:none", fallback_models=["gateway:m2"])
    with gateway(http(401, {"error": {"message": "no"}}), chat(final())) as server:
        write("agent-core.yaml", {**host(server.url), "default_provider": "gateway"})
        flow["nodes"][0]["config"]["model"] = "m1"
        ran = cli("run", str(write("flow.json", flow)), "--json")
    assert ran.json["status"] == "completed"
    assert [request.json()["model"] for request in server.requests] == ["m1", "m2"]


def test_a_condition_of_an_edge_is_judged_by_it(cli: Cli, write: Write) -> None:
    nodes = [{"id": each, "tool": "echo", "config": {"text": each}} for each in ("a", "b", "c")]
    edges = [{"from": "a", "to": "b", "ask": "It is fine.", "model": "gateway:judge"}, {"from": "a", "to": "c"}]
    flow = str(write("flow.json", {"id": "w", "nodes": nodes, "edges": edges}))
    with gateway(chat('{"type":"final","answer":true}')) as server:
        write("agent-core.yaml", host(server.url))
        ran = cli("run", flow, "--json")
    assert (ran.json["status"], sorted(ran.json["outputs"])) == ("completed", ["a", "b"])
    assert [request.json()["model"] for request in server.requests] == ["judge"]


def test_a_suite_is_measured_with_it(cli: Cli, write: Write) -> None:
    case = {"name": "sum", "category": "direct", "message": "2 and 2?", "answer": {"contains": ["4"]}}
    write("cases.yaml", {"cases": [case]})
    with gateway(chat(final("4"))) as server:
        write("agent-core.yaml", host(server.url))
        ran = cli("eval", "cases.yaml", "--model", "gateway:m7", "--min-right", "1")
    assert ran.code == 0, ran.err
    assert {request.json()["model"] for request in server.requests} == {"m7"}


AZURE = {
    "deployments": (
        {"api-version": "2024-10-21"},
        "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
    ),
    "v1": ({}, "/openai/v1/chat/completions"),
    "v1 preview": ({"api-version": "preview"}, "/openai/v1/chat/completions?api-version=preview"),
}


@pytest.mark.parametrize("suffix", ["", "/", "/openai/v1/"])
@pytest.mark.parametrize("name", AZURE)
def test_azure_is_asked_by_its_own_shape(cli: Cli, write: Write, name: str, suffix: str) -> None:
    query, target = AZURE[name]
    with gateway(chat(final())) as server:
        url = f"http://127.0.0.1:{server.port}{suffix}"
        keys = {"url": url, "provider": "azure", "api_key_env": "GATEWAY_KEY", "query": query}
        write("agent-core.yaml", {"endpoints": {"az": keys}})
        assert cli("run", str(write("flow.json", agent("az:my gpt"))), "--json").json["status"] == "completed"
    (request,) = server.requests
    assert (request.target, request.headers["api-key"], request.json()["model"]) == (target, KEY, "my gpt")
    assert "authorization" not in request.headers


def test_the_responses_api_is_asked_at_azure_too(cli: Cli, write: Write) -> None:
    refused = http(404, {"error": {"message": "no such deployment"}})
    with gateway(refused) as server:
        keys = {"url": f"http://127.0.0.1:{server.port}", "provider": "azure", "api": "native"}
        write("agent-core.yaml", {"endpoints": {"az": {**keys, "api_key_env": "GATEWAY_KEY"}}})
        cli("run", str(write("flow.json", agent("az:m"))), "--json")
    assert server.requests[0].target == "/openai/v1/responses"
    assert server.requests[0].headers["api-key"] == KEY


# ── wrong ─────────────────────────────────────────────────────────────────────────────────────────────

FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an unknown name": ({"model": "gatewey:m1"}, {}, "no such provider: gatewey; there are openai, .*, gateway"),
    "a model that it is not asked for": (
        {"model": "gateway:other"},
        {"models": ["m*", "gpt-4.1"]},
        r"the endpoint gateway is not asked for this model, only for m\*, gpt-4\.1 \(got 'gateway:other'\)",
    ),
    "a URL beside it": ({"base_url": "http://x.test/v1"}, {}, "the endpoint gateway has its own; leave base_url out"),
    "a key beside it": ({"api_key_env": "OTHER"}, {}, "the endpoint gateway has its own; leave api_key_env out"),
    "no file of a ca": ({}, {"ca": "no.pem"}, r"endpoints/gateway/ca: cannot be read: No such file .*no\.pem"),
    "no file of a certificate": ({}, {"client_cert": "no.pem"}, "endpoints/gateway/client_cert: there is no such file"),
    "a proxy": ({}, {"proxy": "ftp://name:secret@p:1"}, r"endpoints/gateway/proxy: names .* used \(ftp://p:1\)"),
    "no API of its own": ({"api": "native"}, {"provider": "qwen"}, "qwen: has no API of its own here"),
}


@pytest.mark.parametrize(("config", "keys", "message"), FAULTS.values(), ids=FAULTS)
def test_what_is_wrong_with_a_model_of_it_is_found_before_anything_runs(
    cli: Cli, write: Write, config: dict[str, Any], keys: dict[str, Any], message: str
) -> None:
    write("agent-core.yaml", host(**keys))
    flow = str(write("flow.json", agent(**config)))
    (problem,) = cli("validate", flow, "--json").json["problems"]
    assert problem["where"] == f"{NODE}/{next(iter(config), 'model')}"
    assert re.search(message, problem["message"]), problem["message"]
    assert cli("run", flow, "--json").code == 3


WRONG: dict[str, tuple[str, str, int, str]] = {
    "a key": ("{url: http://x.test/v1,\n    api_key: x}", "endpoints/gateway/api_key", 3, "did you mean api_key_env"),
    "no url": ("{api_key_env: GATEWAY_KEY}", "endpoints/gateway/url", 2, "this key is required"),
    "a url": ("{url: x.test}", "endpoints/gateway/url", 2, r"must be http\(s\)://host"),
    "a header": (
        "{url: http://x.test, headers: {Host: x}}",
        "endpoints/gateway/headers",
        2,
        "Host is not yours to set",
    ),
    "a time": ("{url: http://x.test, read_timeout: 0}", "endpoints/gateway/read_timeout", 2, "must be more than 0"),
    "an api": ("{url: http://x.test, api: grpc}", "endpoints/gateway/api", 2, "'chat' or 'native'"),
    "a provider": ("{url: http://x.test, provider: asure}", "endpoints/gateway/provider", 2, "'azure'"),
    "a key's header alone": (
        "{url: http://x.test, key_header: api-key}",
        "endpoints/gateway",
        2,
        "give .* as api_key_env",
    ),
    "a certificate's key alone": ("{url: http://x.test, client_key: k.pem}", "endpoints/gateway", 2, "as client_cert"),
    "native deployments": (
        "{url: http://x.test, provider: azure, api: native, query: {api-version: 2024-10-21}}",
        "endpoints/gateway",
        2,
        "leave api-version out of query",
    ),
}


@pytest.mark.parametrize(("text", "place", "line", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_key_is_named_with_file_and_line(
    cli: Cli, write: Write, text: str, place: str, line: int, message: str
) -> None:
    write("agent-core.yaml", f"endpoints:\n  gateway: {text}\n")
    ran = cli("validate", str(write("flow.json", agent())))
    assert ran.code == 3
    assert re.search(rf"agent-core\.yaml:{line}: {place}: .*{message}", ran.err), ran.err


@pytest.mark.parametrize("name", ["openai", "azure", "scripted", "Gateway", "a:b"])
def test_a_name_that_models_have_already_or_cannot_have_is_refused(cli: Cli, write: Write, name: str) -> None:
    write("agent-core.yaml", {"endpoints": {name: endpoint()}})
    ran = cli("validate", str(write("flow.json", agent("scripted:x.json"))))
    assert (ran.code, f"endpoints/{name}" in ran.err) == (3, True)


def test_a_variable_that_is_not_set_is_a_warning_and_stops_a_run(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", host(api_key_env="GATEWAY_NONE"))
    flow = str(write("flow.json", agent()))
    ran = cli("validate", flow, "--json")
    assert (ran.code, ran.json["problems"]) == (0, [])
    message = "its endpoint needs what is not set: GATEWAY_NONE"
    assert [(each["where"], each["message"]) for each in ran.json["warnings"]] == [(f"{NODE}/model", message)]
    ran = cli("run", flow, "--json")
    assert (ran.code, ran.json["error"]["where"], ran.json["error"]["message"]) == (3, f"{NODE}/model", message)


def test_an_endpoint_without_a_key_says_so_where_one_is_wanted(cli: Cli, write: Write) -> None:
    with gateway(http(401, {"error": {"message": "who are you?"}})) as server:
        write("agent-core.yaml", {"endpoints": {"gateway": {"url": server.url}}})
        error = cli("run", str(write("flow.json", agent())), "--json").json["error"]
    assert error["message"].endswith("who are you?; no key was sent, since the endpoint has no api_key_env")


def test_the_doctor_tells_of_each_endpoint(cli: Cli, write: Write) -> None:
    named = {
        "sound": endpoint(models=["gpt-*"]),
        "unset": endpoint(api_key_env="GATEWAY_NONE"),
        "untrusted": endpoint("https://x.test/v1", ca="no.pem"),
        "crossed": endpoint(proxy="ftp://p:1"),
    }
    write("agent-core.yaml", {"endpoints": named})
    found = {each["name"]: each for each in cli("doctor", "--quick", "--json").json["findings"]}
    told = {name: (found[f"endpoints/{name}"]["status"], found[f"endpoints/{name}"]["message"]) for name in named}
    assert told["sound"] == ("ok", "http://127.0.0.1:9/v1, asked for gpt-*")
    assert told["unset"] == ("warning", "not set: GATEWAY_NONE")
    assert (told["untrusted"][0], "no.pem" in told["untrusted"][1]) == ("problem", True)
    assert (told["crossed"][0], "ftp://p:1" in told["crossed"][1]) == ("problem", True)


@pytest.mark.parametrize(
    ("names", "place", "message"),
    [
        ({"gatewey": None}, "model_endpoints/gatewey", "neither a URL nor one of the endpoints; there are gateway"),
        ({"gateway": "OTHER"}, "model_endpoints/gateway", "has its own key: give null"),
    ],
)
@pytest.mark.parametrize("of_tenant", [False, True])
def test_what_definitions_may_ask_is_a_url_or_an_endpoint(
    cli: Cli, write: Write, names: dict[str, Any], place: str, message: str, of_tenant: bool
) -> None:
    given = {"model_endpoints": names}
    write("agent-core.yaml", {**host(), **({"tenants": {"acme": given}} if of_tenant else given)})
    ran = cli("validate", str(write("flow.json", agent())))
    assert ran.code == 3
    assert f"{'tenants/acme/' if of_tenant else ''}{place}: " in ran.err
    assert message in ran.err


# ── over HTTP, and of tenants ─────────────────────────────────────────────────────────────────────────


def test_a_definition_over_http_asks_those_that_its_tenant_is_given(home: Path) -> None:
    with gateway(chat(final("from the gateway"))) as server:
        named = {"gateway": endpoint(server.url), "inner": endpoint(server.url)}
        tenants = {"acme": {"model_endpoints": {"gateway": None}}, "globex": {}}
        with served(home / "host", is_open=False, endpoints=named, tenants=tenants) as running:
            answers = {}
            for tenant in (None, "acme", "globex"):
                headers = running.issue(f"of {tenant}", "admin", tenant=tenant)
                for name in named:
                    draft = {"text": json.dumps(agent(f"{name}:m1")), "format": "json", "external": {}}
                    answer = running.client.post("/drafts/runs", json=draft, headers=headers)
                    answers[tenant, name] = answer
        reached = {key: "from the gateway" in each.text for key, each in answers.items()}
    assert reached == {
        (None, "gateway"): True,
        (None, "inner"): True,
        ("acme", "gateway"): True,
        ("acme", "inner"): False,
        ("globex", "gateway"): False,
        ("globex", "inner"): False,
    }
    assert "the operator lists those it may in model_endpoints" in answers["acme", "inner"].text
    assert [each for each in (KEY, TOKEN) for answer in answers.values() if each in answer.text] == []
    assert len(server.requests) == 3


def test_only_listed_parameters_come_over_http_and_from_tenants(home: Path, write: Write, cli: Cli) -> None:
    with gateway(chat(final())) as server:
        named = {"gateway": endpoint(server.url)}
        tenant = {"model_endpoints": {"gateway": None}, "model_parameters": ["top_k"], "workflows": "acme"}
        keys = {"endpoints": named, "model_parameters": ["seed"], "tenants": {"acme": tenant}}
        for where, name in (("workflows", "own"), ("acme", "theirs")):
            write(f"host/{where}/{name}.json", {**agent(extra={"min_p": 0.1}), "id": name})
        write("host/acme/allowed.json", {**agent(extra={"top_k": 4}), "id": "allowed"})
        with served(home / "host", is_open=False, **keys) as running:

            def send(tenant: str | None, **extra: Any) -> Any:
                draft = {"text": json.dumps(agent(extra=extra)), "format": "json", "external": {}}
                return running.client.post("/drafts/runs", json=draft, headers=issued[tenant])

            issued = {each: running.issue(f"of {each}", "admin", tenant=each) for each in (None, "acme")}
            assert send(None, seed=1).json()["status"] == "completed"
            assert send("acme", top_k=2).json()["status"] == "completed"
            for who, extra in ((None, {"top_k": 2}), ("acme", {"seed": 1}), ("acme", {"top_k": 2, "seed": 1})):
                refused = send(who, **extra)
                assert refused.status_code == 422
                assert "the operator lists those it may in model_parameters" in refused.text
            for who, name, is_run in ((None, "own", True), ("acme", "theirs", False), ("acme", "allowed", True)):
                url = f"/workflows/{name}/runs"
                answer = running.client.post(url, params={"wait": True}, json={"external": {}}, headers=issued[who])
                assert ("completed" in answer.text) is is_run, answer.text
    sent = [orjson.loads(request.body) for request in server.requests]
    assert [{key: each[key] for key in ("seed", "top_k", "min_p") if key in each} for each in sent] == [
        {"seed": 1},
        {"top_k": 2},
        {"min_p": 0.1},
        {"top_k": 4},
    ]


def test_the_model_of_summaries_may_be_its(write: Write) -> None:
    write("agent-core.yaml", {**host(), "summary_model": "gateway:small"})
    config = read_host_config(Path("agent-core.yaml"))
    assert build_registry(config).all()
    write("agent-core.yaml", {**host(models=["big"]), "summary_model": "gateway:small"})
    with pytest.raises(DefinitionError, match="is not asked for this model, only for big"):
        build_registry(read_host_config(Path("agent-core.yaml")))
