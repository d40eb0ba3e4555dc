"""Every operation of the OpenAPI document, asked in ways that fit it and in ways that do not: what is answered is what
the document says, for known callers only, and nothing breaks. The operations come from the document."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent_core.evidence.ed25519 import make_key
from agent_core.evidence.variables import KEY_VARIABLE
from support.optional import needs
from support.served_host import WORKFLOWS, Served, served, write_host

pytestmark = needs("fastapi", "schemathesis")

REFUSALS = [400, 401, 403, 404, 405, 406, 408, 409, 410, 413, 415, 422, 428, 429, "5xx"]
"""How a request may be refused that does not fit the document: schemathesis' own list, with 413, since a text or a list
that is too long makes a body that is too large, 408, and 410 for a link that was used."""
ACCEPTED = ["2xx", "3xx", 401, 403, 404, 409, 410, 429, 503]
"""What may come of a request that fits the document: schemathesis' own list, less internal errors."""
JUDGED_BY_MORE = [
    *("submit_run", "execute_tool", "fork_run", "chat"),
    *("run_draft", "save_workflow", "list_all_runs", "replay_run"),
]
"""Operations that may refuse as 422 what fits the document, as `complete_chat` may, whose run may end without an answer
as well. The document cannot say it: the inputs of a workflow and of a tool have schemas of their own, a text need not
be a definition, the last message of a conversation is the user's, a place must be in the journal, a cursor is that of a
page, a policy has keys of its own, and an idempotency key comes again with the same body alone."""
UNDER_WAY = ("add_message", "pause_run")
"""Operations that succeed on a run that goes on, of which this host has none; other tests show them."""
SIGNED = ("call_trigger", "call_tenant_trigger")
"""Operations that succeed for those who have the key that signs; other tests show them."""
RARE = ("save_workflow", "chat", "complete_chat", "get_model", "show_tile", "make_link")
"""Operations that succeed for few of the bodies, or paths, that are tried, or on runs that wait, of which this battery
may have left none; other tests show them."""
URL = "https://agents.example.com"
PHASES = ("examples", "coverage", "fuzzing", "stateful")
MANY = 20
STREAM = {"include-path-regex": "/events$", "request-timeout": 0.5, "max-stream-events": 3}
"""The events of a run that waits go on until it ends."""

DELETION = {"include-method": "DELETE", "phases": {"fuzzing": {"extra-data-sources": {"responses": False}}}}
"""Of names that were answered before, each is deleted once, and then there would be nothing more to try."""


def _often(dictionary: str) -> dict[str, Any]:
    return {"dictionary": dictionary, "probability": 0.7}


CANCELLATION = {
    "include-operation-id": ["cancel_run", "pause_run"],
    "parameters": {"path.run_id": _often("cancelled.run_id")},
}
"""Of the runs that wait one may be cancelled, so that there are others to decide on."""


@dataclass
class Found:
    """What a battery has found: each fault once, what it could not do, and the requests of each operation."""

    faults: dict[tuple[str, str, str], str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    phases: dict[str, str] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    successes: Counter[str] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A host whose runs end, or wait for a person."""
    folder = tmp_path_factory.mktemp("host")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINK_KEY", "the key of the links")
        patch.setenv(KEY_VARIABLE, make_key())
        links = {"public_url": URL, "secret_env": "LINK_KEY"}
        write_host(folder, execute_tools=["stock", "order", "calculator"], decision_links=links)
        (folder / "workflows" / "wait.json").unlink()
        with served(folder, is_open=False) as found:
            yield found


@pytest.mark.exhaustive
def test_api_answers_as_its_document_says(host: Served) -> None:
    check_answers(load_schema(host, 3))


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_api_answers_as_its_document_says_whatever_is_asked(host: Served) -> None:
    schema = load_schema(host, MANY)
    found = check_answers(schema)
    operations = [each.ok() for each in schema.get_all_operations()]
    least = {each.label: MANY if _varies(each) else 1 for each in operations}
    assert [label for label, number in least.items() if found.requests[label] < number] == []
    failed = [each.definition.raw["operationId"] for each in operations if not found.successes[each.label]]
    assert set(failed) <= {*UNDER_WAY, *SIGNED, *RARE}


def check_answers(schema: Any) -> Found:
    """Ask each operation; no answer is at fault in any phase."""
    found = ask_everything(schema)
    assert not found.errors, "\n".join(found.errors)
    assert not found.faults, "\n\n".join(f"{' | '.join(key)}\n{text}" for key, text in found.faults.items())
    assert found.phases == dict.fromkeys(PHASES, "success")
    return found


def _varies(operation: Any) -> bool:
    """Whether requests of an operation can differ, but for their token."""
    raw = operation.definition.raw
    return bool(raw.get("parameters") or raw.get("requestBody"))


def load_schema(host: Served, examples: int) -> Any:
    """The served document, and how its operations are asked: as an admin, often about what there is."""
    import schemathesis

    headers = host.issue("battery", "admin")
    runs = list(make_runs(host, headers))
    known = {
        "path.name": ["desk", "desk@1", "buy", "count"],
        "body.digest": [host.client.get("/tools/changes", headers=headers).json()["digest"]],
        "path.run_id": runs,
        "path.token": list(make_tokens(host, headers)),
        "cancelled.run_id": runs[:3],
        "path.conversation_id": [f"talk-{number}" for number in range(4)],
        "path.code": ["calculator"],
        "body.agent": ["clerk", "buyer"],
        "body.conversation_id": [f"talk-{number}" for number in range(4)],
        "body.text": [json.dumps({**WORKFLOWS["desk-2.json"], "version": "9"})],
        "body.expects": ["2"],
        "body.model": ["agent/clerk", "workflow/desk"],
    }
    settings = {
        "seed": 1,
        "base-url": host.url,
        "headers": headers,
        "request-timeout": 30,
        "continue-on-failure": True,
        "generation": {"max-examples": examples, "deterministic": True, "no-shrink": True, "database": "none"},
        "checks": {
            "negative_data_rejection": {"expected-statuses": REFUSALS},
            "positive_data_acceptance": {"expected-statuses": ACCEPTED},
        },
        "operations": [
            STREAM,
            DELETION,
            CANCELLATION,
            {
                "include-operation-id": JUDGED_BY_MORE,
                "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, 422]}},
            },
            {
                "include-operation-id": "complete_chat",
                "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, 400, 422]}},
            },
        ],
        "dictionaries": {name: {"values": values} for name, values in known.items()},
        "parameters": {name: _often(name) for name in known if name != "cancelled.run_id"},
    }
    config = schemathesis.Config.from_dict(settings)
    document = json.loads(host.client.get("/openapi.json").text, object_hook=_with_items)
    return schemathesis.openapi.from_dict(document, config=config)


def _with_items(found: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a stream as OpenAPI 3.2 has it, by which each event is held against its schema."""
    return {"itemSchema": found["x-itemSchema"]} if "x-itemSchema" in found else found


def make_runs(host: Served, headers: dict[str, str]) -> Iterator[str]:
    """Runs that have ended, failed, or wait, and turns of conversations."""
    inputs = [("desk", {"message": "How many?"}), ("count", {"sum": "1 / 0"}), *[("buy", {"article": "A-1"})] * 8]
    for workflow, external in inputs:
        path = f"/workflows/{workflow}/runs"
        yield host.client.post(path, json={"external": external}, headers=headers).json()["run_id"]
    for number, agent in enumerate(("clerk", "buyer")):
        body = {"message": "How many?", "agent": agent, "conversation_id": f"talk-{number}"}
        yield host.client.post("/agent/chat", json=body, headers=headers).json()["trace_id"]


def make_tokens(host: Served, headers: dict[str, str]) -> Iterator[str]:
    """Tokens of links to calls that wait, in runs that nothing else is asked of."""
    for number in range(6):
        body = {"external": {"article": f"L-{number}"}}
        run = host.client.post("/workflows/buy/runs", json=body, headers=headers).json()["run_id"]
        link = host.client.post(f"/runs/{run}/links", json={}, headers=headers).json()
        yield link["url"].removeprefix(f"{URL}/decide/")


def ask_everything(schema: Any) -> Found:
    """Ask each operation, in all phases, and hold what is answered against the document."""
    from schemathesis.engine import events, from_schema

    found = Found()
    for event in from_schema(schema).execute():
        match event:
            case events.ScenarioFinished():
                _note_answers(event.recorder, found)
            case events.PhaseFinished() if event.phase.name.value in PHASES:
                found.phases[event.phase.name.value] = str(event.status)
            case events.NonFatalError():
                found.errors.append(f"{event.label}: {event.value!r}")
            case events.FatalError():
                found.errors.append(repr(event.exception))
    return found


def _note_answers(recorder: Any, found: Found) -> None:
    for case, interaction in recorder.interactions.items():
        label = recorder.cases[case].value.operation.label
        found.requests[label] += 1
        found.successes[label] += interaction.response is not None and interaction.response.status_code < 300
    for case, checks in recorder.checks.items():
        label = recorder.cases[case].value.operation.label
        for check in checks:
            if (failed := check.failure_info) is not None:
                text = f"{failed.failure.message[:1000]}\n{failed.code_sample[:1000]}"
                found.faults.setdefault((check.name, label, failed.failure.title), text)


def test_document_names_operations_as_clients_call_them(host: Served) -> None:
    document = host.client.get("/openapi.json").json()
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    names = [each["operationId"] for each in operations]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() for name in names)
    links = [
        link
        for operation in operations
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert {link["operationId"] for link in links} <= set(names)


def test_document_is_valid_and_each_reference_leads_to_a_model_of_its_own_name(host: Served) -> None:
    """Generators name the classes of clients by titles, and refuse the whole document for one reference to nothing."""
    import schemathesis

    document = host.client.get("/openapi.json").json()
    schemathesis.openapi.from_dict(document).validate()
    for found in (document, _describe_mounted(host)):
        models = found["components"]["schemas"]
        assert {place.removeprefix("#/components/schemas/") for place in _references(found)} <= models.keys()
        assert {name: model.get("title", name) for name, model in models.items()} == {name: name for name in models}
    assert "EventAgentFinished" in document["components"]["schemas"]


def test_document_has_nothing_that_generators_of_clients_stumble_over(host: Served) -> None:
    """openapi-generator makes no client in Python for a field that can be null alone, and takes `allOf` for models."""
    models = host.client.get("/openapi.json").json()["components"]["schemas"]
    fields = [(name, key) for name, each in models.items() for key in each.get("properties", ())]
    assert [(name, key) for name, key in fields if models[name]["properties"][key].get("type") == "null"] == []
    assert "ValidationError" not in models  # a model of FastAPI's, of which no answer is
    assert [name for name, each in models.items() if any("if" in part for part in each.get("allOf", ()))] == []


def _describe_mounted(host: Served) -> Any:
    """Return the document of a program that has the routes, and nothing of ours to write it."""
    from fastapi import FastAPI

    from engine_shim.api import create_router

    app = FastAPI()
    app.include_router(create_router(host.service), prefix="/agents")
    return app.openapi()


def _references(value: Any) -> Iterator[str]:
    match value:
        case {"$ref": str(place)}:
            yield place
        case dict():
            yield from (place for each in value.values() for place in _references(each))
        case list():
            yield from (place for each in value for place in _references(each))


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/runs", {"GET"}),
        ("PUT", "/agent/conversations/x", {"GET", "DELETE"}),
        ("GET", "/runs/x/decide", {"POST"}),
    ],
)
def test_method_that_a_path_has_not_is_refused_with_those_that_it_has(
    host: Served, method: str, path: str, allowed: set[str]
) -> None:
    answer = host.client.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed


def test_time_is_no_number_and_a_whole_number_may_have_a_point(host: Served) -> None:
    headers = host.issue("reader", "admin")
    answer = host.client.get("/runs?since=17000000", headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["where"]) == (422, "query/since")
    body = {"message": "How many?", "agent": "clerk", "max_tool_calls": 3.0}
    assert host.client.post("/agent/chat", json=body, headers=headers).json()["success"]
    problem = host.client.post("/agent/chat", json={**body, "max_tool_calls": 3.5}, headers=headers).json()
    assert problem["errors"][0]["where"] == "body/max_tool_calls"
