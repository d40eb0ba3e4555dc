"""Manifests: what the three kinds do, what no value can do to them, and the errors of a bad one."""

import asyncio
import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from support.loopback import Loopback, half, hang_up, http, serving, silence
from utools import DefinitionError, ToolContext, ToolRegistry, ToolResult
from utools.errors import ToolError
from utools.net.guard import NetworkGuard
from utools.sources.manifest import manifest_tools
from utools.sources.manifest_http import HttpCall, build_request

SHIPPED = Path(__file__).parents[2] / "fixtures" / "manifests"
TOKEN = "token-of-the-operator-1234"
TEXT = {"type": "string"}
Load = Callable[..., ToolRegistry]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """A registry with the tool of a manifest: the given keys beside a code and a description."""

    def load(file: str = "tool.yaml", **keys: Any) -> ToolRegistry:
        path = tmp_path / file
        content = {"code": "tool", "description": "A tool.", **keys}
        path.write_text(json.dumps(content) if path.suffix == ".json" else yaml.safe_dump(content, sort_keys=False))
        return ToolRegistry(manifest_tools(path, root=tmp_path, trusted=True))

    return load


def context(**more: Any) -> ToolContext:
    return ToolContext(idempotency_key="run/agent/4", secret=lambda name: f"{name}={TOKEN}", **more)


def schema(*names: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, TEXT) | properties}


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────


async def asked(load: Load, server: Loopback, args: Any, path: str = "/", **call: Any) -> ToolResult:
    url = f"http://127.0.0.1:{server.port}{path}"
    properties = {
        "n": {"type": "integer"},
        "many": {"type": "array"},
        "any": {},
        "d": {"type": "string", "default": "x"},
    }
    keys = {"url": url, "allow_cidrs": ["127.0.0.1/32"], **call}
    registry = load(schema=schema("a", "b", **properties), http=keys)
    return await registry.execute("tool", args, context())


TARGETS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "path": ("/v1/{{a}}/x", {}, {"a": "b c/d?e#f&g"}, "/v1/b%20c%2Fd%3Fe%23f%26g/x"),
    "unicode": ("/{{a}}", {}, {"a": "é\r\nX: 1"}, "/%C3%A9%0D%0AX%3A%201"),
    "two_in_a_segment": ("/{{a}}-{{b}}", {}, {"a": "1", "b": "2"}, "/1-2"),
    "in_the_query": ("/?q={{a}}&l=1", {}, {"a": "x&l=2#"}, "/?q=x%26l%3D2%23&l=1"),
    "query": ("/", {"q": "{{a}}", "n": "{{n}}"}, {"a": "1&2", "n": 7}, "/?q=1%262&n=7"),
    "list": ("/", {"id": "{{many}}"}, {"many": ["a", 2, True]}, "/?id=a&id=2&id=true"),
    "absent": ("/", {"q": "{{a}}", "fixed": "1"}, {}, "/?fixed=1"),
    "default": ("/", {"d": "{{d}}"}, {}, "/?d=x"),
    "looks_like_one": ("/", {"q": "{{a}}", "r": "{{b}}"}, {"a": "{{b}}", "b": "2"}, "/?q=%7B%7Bb%7D%7D&r=2"),
}


@pytest.mark.parametrize(("path", "query", "args", "target"), TARGETS.values(), ids=TARGETS)
async def test_values_are_encoded_for_where_they_stand(
    load: Load, path: str, query: Any, args: Any, target: str
) -> None:
    async with serving(http(200, {"ok": 1})) as server:
        result = await asked(load, server, args, path, query=query)
    assert (result.success, result.output) == (True, {"ok": 1}), result.error
    assert server.requests[0].target == target


async def test_json_keeps_the_types_of_values_and_leaves_out_what_was_not_given(load: Load) -> None:
    body = {"a": "{{a}}", "n": "{{n}}", "s": "n={{n}}", "deep": [{"any": "{{any}}"}, "{{many}}"], "b": "{{b}}"}
    args = {"a": '"},{"x":"{{n}}', "n": 5, "any": None, "many": [1]}
    async with serving(http(201)) as server:
        result = await asked(load, server, args, method="POST", json=body)
    assert result.success
    expected = {"a": args["a"], "n": 5, "s": "n=5", "deep": [{"any": None}, [1]]}
    assert server.requests[0].json() == expected
    assert server.requests[0].headers["content-type"] == "application/json"
    assert server.requests[0].headers["idempotency-key"] == "run/agent/4"


BODIES: dict[str, tuple[dict[str, Any], bytes]] = {
    "form": ({"form": {"x": "{{a}}", "y": "{{b}}"}}, b"x=1%262"),
    "raw": ({"body": "<{{a}}>", "content_type": "text/markdown"}, b"<1&2>"),
    "raw_whole": ({"body": "{{a}}", "content_type": "text/xml"}, b"1&2"),
    "raw_fixed": ({"body": "<a/>", "content_type": "text/xml"}, b"<a/>"),
    "null": ({"json": None}, b"null"),
}


@pytest.mark.parametrize(("call", "body"), BODIES.values(), ids=BODIES)
async def test_other_bodies(load: Load, call: Any, body: bytes) -> None:
    async with serving(http(200)) as server:
        await asked(load, server, {"a": "1&2"}, method="POST", **call)
    assert server.requests[0].body == body


async def test_headers_carry_values_and_secrets(load: Load) -> None:
    call = {"headers": {"X-A": "a {{a}}", "X-B": "{{b}}"}, "token_env": "T", "secret_headers": {"X-Key": "K"}}
    async with serving(http(200)) as server:
        result = await asked(load, server, {"a": "1"}, **call)
    headers = server.requests[0].headers
    assert (headers["x-a"], headers["authorization"], headers["x-key"]) == ("a 1", f"Bearer T={TOKEN}", f"K={TOKEN}")
    assert "x-b" not in headers
    assert TOKEN not in str(result)


INJECTIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "header": ("/", {"headers": {"X-A": "{{a}}"}}, {"a": "1\r\nHost: evil.example"}),
    "header_not_ascii": ("/", {"headers": {"X-A": "{{a}}"}}, {"a": "é"}),
    "parent": ("/v1/{{a}}", {}, {"a": ".."}),
    "parent_within": ("/v1/{{a}}", {}, {"a": "x/../../admin"}),
    "parent_with_backslashes": ("/v1/{{a}}", {}, {"a": "..\\admin"}),
    "parent_of_two": ("/v1/{{a}}{{b}}/x", {}, {"a": "%2e", "b": "."}),
    "two_dots": ("/v1/{{a}}{{b}}/x", {}, {"a": ".", "b": "."}),
    "dot_beside_one": ("/v1/.{{a}}/x", {}, {"a": "."}),
    "empty": ("/v1/{{a}}/x", {}, {"a": ""}),
    "absent": ("/v1/{{a}}/x", {}, {}),
}


@pytest.mark.parametrize(("path", "call", "args"), INJECTIONS.values(), ids=INJECTIONS)
async def test_no_value_leads_the_request_elsewhere(load: Load, path: str, call: Any, args: Any) -> None:
    async with serving(http(200)) as server:
        result = await asked(load, server, args, path, **call)
    assert not result.success
    assert server.requests == []


CALL = HttpCall.model_validate(
    {
        "url": "https://api.example.com/v1/{{a}}/x-{{b}}?q={{c}}",
        "query": {"d": "{{d}}"},
        "headers": {"X-E": "e={{e}}"},
        "method": "POST",
        "json": {"f": "{{f}}", "g": ["{{g}}", "<{{a}}>"]},
    }
)
ANY = st.text(max_size=12) | st.text(alphabet="./\\%2eE?#&={}@: \r\n\0", max_size=12)


@given(st.dictionaries(st.sampled_from("abcdefg"), ANY))
def test_whatever_the_values_are_the_request_keeps_its_shape(args: dict[str, str]) -> None:
    try:
        request = build_request(CALL, args)
    except ToolError:
        return
    url = urlsplit(request.url)
    NetworkGuard.from_settings(allowed_domains=["api.example.com"]).target(request.url)
    assert (url.scheme, url.netloc, url.fragment) == ("https", "api.example.com", "")
    version, a, b = url.path.removeprefix("/").split("/")
    assert (version, unquote(a), unquote(b)) == ("v1", args["a"], f"x-{args['b']}")
    assert parse_qsl(url.query, keep_blank_values=True) == [
        ("q", args.get("c", "")),
        *([("d", args["d"])] if "d" in args else []),
    ]
    assert request.headers == {"content-type": "application/json", "x-e": f"e={args.get('e', '')}"}
    assert request.headers["x-e"].isprintable()
    assert json.loads(request.content or b"") == {
        **({"f": args["f"]} if "f" in args else {}),
        "g": [*([args["g"]] if "g" in args else []), f"<{args['a']}>"],
    }


async def test_a_private_host_is_not_reached_unless_the_manifest_allows_it(load: Load) -> None:
    async with serving(http(200)) as server:
        result = await asked(load, server, {}, allow_cidrs=[])
    assert server.requests == []
    assert "no public address" in str(result.error)


async def test_a_redirect_to_another_host_is_not_followed(load: Load) -> None:
    async with serving(http(200)) as other:
        leads = http(302, location=f"http://localhost:{other.port}/")
        async with serving(leads) as server:
            result = await asked(load, server, {}, token_env="T")
    assert other.requests == []
    assert "localhost" in str(result.error)


async def test_a_redirect_to_another_host_that_is_allowed_gets_no_secret(load: Load) -> None:
    call = {"token_env": "T", "secret_headers": {"X-Key": "K"}, "headers": {"X-A": "1"}}
    reach = {"allow_cidrs": ["127.0.0.0/8", "::1/128"], "allowed_domains": ["localhost"]}
    async with serving(http(200, {"here": True})) as other:
        for url in (f"http://localhost:{other.port}/", f"http://127.0.0.1:{other.port}/"):
            async with serving(http(302, location="/again"), http(302, location=url)) as server:
                assert (await asked(load, server, {}, **call, **reach)).success
            assert [{"authorization", "x-key", "x-a"} <= each.headers.keys() for each in server.requests] == [True] * 2
    assert len(other.requests) == 2
    for request in other.requests:
        assert not {"authorization", "x-key", "x-a"} & request.headers.keys()


async def test_a_secret_that_cannot_be_sent_is_told_by_its_name(load: Load) -> None:
    registry = load(schema=schema(), http={"url": "https://example.com/", "secret_headers": {"X-Key": "KEY"}})
    result = await registry.execute("tool", {}, ToolContext(secret=lambda name: f"{TOKEN}\r\nX-Two: 2"))
    assert "the secret KEY cannot be sent in the header x-key: it holds a line break" in str(result.error)
    assert TOKEN not in str(result.error)


DAMAGED: dict[str, Any] = {
    "no_gzip": http(200, b"no gzip", content_encoding="gzip"),
    "packed_half": http(200, gzip.compress(b"[1, 2, 3]")[:-9], content_encoding="gzip"),
    "half": half,
}


@pytest.mark.parametrize("reply", DAMAGED.values(), ids=DAMAGED)
async def test_a_write_whose_answer_is_damaged_is_in_doubt(load: Load, reply: Any) -> None:
    async with serving(reply) as server:
        result = await asked(load, server, {}, method="POST")
    assert (result.success, result.metadata.get("cut_off")) == (False, True)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_answer_that_is_too_large_is_cut_or_leaves_a_checked_write_in_doubt(load: Load, method: str) -> None:
    async with serving(http(200, ["x" * 5000])) as server:
        cut = await asked(load, server, {}, method=method, max_bytes=1000)
        assert (cut.success, "first 1000 bytes" in cut.output["truncated"]) == (True, True)
        call = {"url": f"http://127.0.0.1:{server.port}/", "allow_cidrs": ["127.0.0.1/32"], "max_bytes": 1000}
        registry = load(schema=schema(), output_schema={"type": "array"}, http={**call, "method": method})
        checked = await registry.execute("tool", {}, context())
    assert "the answer of the server is larger than 1000 bytes (max_bytes)" in str(checked.error)
    assert checked.metadata == ({} if method == "GET" else {"cut_off": True})


STATUS: dict[str, tuple[int, str, dict[str, bool]]] = {
    "read_may_pass": (503, "GET", {"transient": True}),
    "read_came_too_early": (425, "GET", {"transient": True}),
    "write_stays": (503, "POST", {}),
    "not_found": (404, "GET", {"permanent": True}),
    "refused_write": (403, "POST", {"permanent": True}),
}


@pytest.mark.parametrize(("status", "method", "marks"), STATUS.values(), ids=STATUS)
async def test_a_status_of_failure_is_a_failed_result(
    load: Load, status: int, method: str, marks: dict[str, bool]
) -> None:
    async with serving(http(status, {"why": "closed"})) as server:
        result = await asked(load, server, {}, method=method)
    assert result.error == f'the server answered {status}: {{"why": "closed"}}'
    assert result.metadata == marks


@pytest.mark.exhaustive
@pytest.mark.sampled
@pytest.mark.parametrize("reply", [silence, hang_up], ids=["silence", "hung_up"])
async def test_a_call_without_an_answer_was_cut_off(load: Load, reply: Any) -> None:
    async with serving(reply) as server:
        result = await asked(load, server, {}, method="POST", timeout=2)
    assert result.metadata == {"transient": True, "cut_off": True}


def test_a_get_reads_and_a_post_writes(load: Load) -> None:
    for method, effect in (("GET", "read"), ("POST", "write")):
        registry = load(schema=schema(), http={"url": "https://example.com/", "method": method})
        assert registry.get("tool").effect == effect


# ── Python ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_python_function_has_schema_and_description_of_its_own() -> None:
    (tool,) = manifest_tools(SHIPPED / "greeting.yaml", trusted=True)
    assert (tool.code, tool.description, tool.effect) == ("greeting", "Greet somebody.", "read")
    assert tool.config_schema["properties"]["name"] == {"type": "string", "description": "Who it is."}
    assert (await ToolRegistry([tool]).execute("greeting", {"name": "Ada", "loud": True})).output == "HELLO ADA!"


def test_a_manifest_says_more_than_the_function(load: Load) -> None:
    keys = {"python": "json:dumps", "schema": schema("obj")}
    with pytest.raises(DefinitionError, match=r"json:dumps: the parameter .* (needs a type|stands for)"):
        load(**keys)
    narrow = {"type": "object", "properties": {"name": {"enum": ["Ada", "Bob"]}}, "required": ["name"]}
    tool = load(python=f"{SHIPPED}/greeting.py:greet", schema=narrow, idempotent=True).get("tool")
    assert (tool.description, tool.config_schema, tool.idempotent) == ("A tool.", narrow, True)


# ── commands ──────────────────────────────────────────────────────────────────────────────────────

SHOW = "import json,sys; print(json.dumps(sys.argv[1:]))"


async def ran(load: Load, argv: list[str], args: Any, *, code: str = SHOW, **call: Any) -> ToolResult:
    properties = {"n": {"type": "number"}, "many": {"type": "array"}, "any": {}}
    keys = {"argv": [sys.executable, "-c", code, *argv], "output": "json", **call}
    registry = load(schema=schema("a", "b", **properties), command=keys)
    return await registry.execute("tool", args, context())


WORDS: dict[str, tuple[list[str], dict[str, Any], list[str]]] = {
    "whole": (["{{a}}"], {"a": "x; rm -rf / $(id) `id` *"}, ["x; rm -rf / $(id) `id` *"]),
    "inside": (["--name={{a}}!"], {"a": "-x y"}, ["--name=-x y!"]),
    "list": (["{{many}}", "end"], {"many": ["a b", 1, {"c": None}]}, ["a b", "1", '{"c": null}', "end"]),
    "absent": (["{{a}}", "--b={{b}}"], {}, ["--b="]),
    "empty": (["{{a}}"], {"a": ""}, [""]),
    "number": (["{{n}}"], {"n": -2.5}, ["-2.5"]),
    "after_the_options": (["--", "{{a}}"], {"a": "-rf"}, ["--", "-rf"]),
    "not_read_again": (["{{a}}"], {"a": "{{b}}", "b": "x"}, ["{{b}}"]),
}


@pytest.mark.parametrize(("argv", "args", "words"), WORDS.values(), ids=WORDS)
async def test_each_value_stays_in_its_argument(load: Load, argv: list[str], args: Any, words: list[str]) -> None:
    assert (await ran(load, argv, args)).output == words


@pytest.mark.parametrize(
    ("argv", "args"),
    [(["{{a}}"], {"a": "--delete"}), (["{{many}}"], {"many": ["x", "-d"]}), (["{{a}}{{b}}"], {"a": "", "b": "-d"})],
    ids=["whole", "list", "beginning"],
)
async def test_no_value_becomes_an_option(load: Load, argv: list[str], args: Any) -> None:
    result = await ran(load, argv, args)
    assert "option" in str(result.error)


async def test_no_value_of_a_command_holds_what_none_can(load: Load) -> None:
    result = await ran(load, ["--name={{a}}"], {"a": "x\0y"})
    assert (result.success, result.error) == (False, "an argument of a command cannot hold a NUL character")


async def test_a_command_gets_a_clean_environment_and_the_secrets_it_names(
    load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STRAY", "1")
    code = "import json,os,sys; print(json.dumps([dict(os.environ), os.getcwd(), sys.stdin.read()]))"
    result = await ran(load, [], {"a": "in"}, code=code, env={"X": "1"}, secret_env=["KEY"], stdin="<{{a}}>")
    environment, cwd, stdin = result.output
    assert (environment["X"], environment["KEY"], stdin) == ("1", f"KEY={TOKEN}", "<in>")
    assert "STRAY" not in environment
    assert Path(cwd).samefile(tmp_path)


async def test_the_paths_of_a_command_lie_below_the_root(load: Load, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("1\n2\n")
    (tool,) = manifest_tools(SHIPPED / "count_lines.yaml", root=tmp_path, trusted=True)
    registry = ToolRegistry([tool])
    assert tool.description == "Count the lines of a text file."
    (tmp_path / "-c").write_text("1\n")
    assert (await registry.execute("count_lines", {"file": "in.txt"})).output == "2 in.txt\n"
    assert (await registry.execute("count_lines", {"file": "-c"})).output == "1 ./-c\n"
    for path in ("../x", "/etc/passwd", ""):
        refused = await registry.execute("count_lines", {"file": path})
        assert not refused.success
        assert str(tmp_path) not in str(refused.error)


async def test_each_path_of_a_list_lies_below_the_root(load: Load) -> None:
    assert (await ran(load, ["{{many}}"], {"many": ["a/../b", "-c"]}, paths=["many"])).output == ["b", "./-c"]
    for value, why in ((["b", "../x"], "../x"), (["b", 5], "a path must be a text, got 5")):
        refused = await ran(load, ["{{many}}"], {"many": value}, paths=["many"])
        assert (refused.success, why in str(refused.error)) == (False, True)


async def test_a_failing_command_says_why(load: Load) -> None:
    result = await ran(load, [], {}, code="import sys; print('no such thing', file=sys.stderr); sys.exit(3)")
    assert result.error == "the command ended with exit code 3: no such thing"


async def test_a_command_that_wrote_no_json_was_run_all_the_same(load: Load) -> None:
    result = await ran(load, [], {}, code="print('x')")
    assert result.success
    assert "result could not be kept: the command wrote no JSON" in result.output


async def test_output_is_capped(load: Load) -> None:
    result = await ran(load, [], {}, code="print('x' * 1_000_000)", output="text")
    assert len(result.output) < 70_000
    assert "cut" in result.output


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.exhaustive
async def test_a_timeout_ends_the_command_and_what_it_started(load: Load, tmp_path: Path) -> None:
    child = "import subprocess,sys,time; p=subprocess.Popen(['sleep','60']); "
    code = f"{child} open('pids','w').write(f'{{p.pid}}'); time.sleep(60)"
    start_time = time.monotonic()
    result = await ran(load, [], {}, code=code, timeout=3)
    assert time.monotonic() - start_time < 10
    assert "3 seconds" in str(result.error)
    assert result.metadata["cut_off"]
    pid = int((tmp_path / "pids").read_text())
    for _ in range(50):
        if not alive(pid):
            break
        await asyncio.sleep(0.05)
    assert not alive(pid)


# ── bad manifests ─────────────────────────────────────────────────────────────────────────────────

GOOD = """\
code: lookup
description: Look up.
schema:
  type: object
  properties:
    q: {type: string}
http:
  url: https://example.com/{{q}}
"""
RAW = "http:\n  method: POST\n  content_type: {}\n  body: '<{{{{q}}}}>'"
BAD: dict[str, tuple[str, str, int, str]] = {
    "json_in_a_raw_body": (
        "http:",
        RAW.format("Application/JSON; charset=utf-8"),
        10,
        "http/body: takes {{q}} as it is, and a value could break out of Application/JSON; charset=utf-8; give the "
        "body by `json`, or as one placeholder and nothing else (got '<{{q}}>')",
    ),
    "json_of_a_vendor": ("http:", RAW.format("application/problem+json"), 10, "give the body by `json`,"),
    "json_lines": ("http:", RAW.format("application/x-ndjson"), 10, "give the body by `json`,"),
    "xml_in_a_raw_body": ("http:", RAW.format("text/xml"), 10, "give the body by `json` or `form`,"),
    "soap": ("http:", RAW.format("application/soap+xml"), 10, "give the body by `json` or `form`,"),
    "form_in_a_raw_body": ("http:", RAW.format("application/x-www-form-urlencoded"), 10, "give the body by `form`,"),
    "parts_in_a_raw_body": ("http:", RAW.format("multipart/form-data"), 10, "give the body by `form`,"),
    "json_by_its_header": (
        "http:",
        RAW.format("text/plain") + "\n  headers: {Content-type: application/json}",
        10,
        "give the body by `json`,",
    ),
    "a_type_of_the_models": (
        "http:",
        RAW.format("text/plain") + "\n  headers: {content-type: 'text/{{q}}'}",
        10,
        "could break out of text/{{q}};",
    ),
    "a_content_type_with_an_argument": ("http:", RAW.format("'{{q}}'"), 9, "the content type must be fixed"),
    "unknown_key": ("code: lookup", "code: lookup\ncoed: x", 2, "coed: unknown key; did you mean code?"),
    "no_code": ("code: lookup\n", "", 1, "code: this key is required"),
    "bad_code": ("code: lookup", "code: look up", 1, "(got 'look up')"),
    "nested_unknown": ("http:", "http:\n  methd: POST", 8, "http/methd: unknown key; did you mean method?"),
    "method": ("http:", "http:\n  method: FETCH", 8, "(got 'FETCH')"),
    "argument": ("{{q}}", "{{query}}", 8, "no argument 'query' in the schema; there are q"),
    "host_from_argument": ("example.com/{{q}}", "{{q}}.example.com/", 8, "before the path"),
    "port_from_argument": ("example.com/{{q}}", "example.com:{{q}}/", 8, "before the path"),
    "scheme": ("https://", "file://", 8, "http/url"),
    "user": ("https://", "https://me:pw@", 8, "password"),
    "fragment": ("{{q}}", "#{{q}}", 8, "fragment"),
    "schema": ("{type: string}", "{type: strin}", 6, 'not a valid JSON Schema: must be one of ["array"'),
    "reference": ("{type: string}", "{$ref: 'https://example.com/x'}", 6, "only local references"),
    "two_kinds": ("http:", "python: x:y\nhttp:", 1, "give one of http, python and command"),
    "no_kind": ("http:\n  url: https://example.com/{{q}}\n", "", 1, "give one of http, python and command"),
    "no_schema": (
        "schema:\n  type: object\n  properties:\n    q: {type: string}\n",
        "",
        1,
        "http needs a schema of its arguments",
    ),
    "two_bodies": ("http:", "http:\n  method: POST\n  json: {}\n  form: {}", 7, "give one of json, form and body, not"),
    "body_of_a_get": ("http:", "http:\n  body: x", 7, "carries no body"),
    "header": ("http:", "http:\n  headers: {Host: x}", 8, "not yours to set"),
    "network": ("http:", "http:\n  allow_cidrs: [10.0.0.1/8]", 8, "http/allow_cidrs: not a network"),
    "effect": ("http:", "effect: {argument: q}\nhttp:", 7, "must be {'argument'"),
    "no_description": ("description: Look up.\n", "", 1, "say what the tool does"),
    "twice": ("description: Look up.", "code: b", 2, "the key 'code' occurs twice"),
    "not_yaml": ("code: lookup", "code: [", 3, "not valid YAML"),
}


@pytest.mark.parametrize(("old", "new", "line", "expected"), BAD.values(), ids=BAD)
def test_a_bad_manifest_names_file_line_and_field(tmp_path: Path, old: str, new: str, line: int, expected: str) -> None:
    path = tmp_path / "bad.yaml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(DefinitionError) as error:
        manifest_tools(path)
    assert str(error.value).startswith(f"{path}:{line}"), error.value
    assert expected in str(error.value)


def test_every_fault_of_a_manifest_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([{"code": "a b", "x": 1, "http": {"y": 1}}], indent=1))
    with pytest.raises(DefinitionError) as error:
        manifest_tools(path)
    lines = str(error.value).splitlines()
    assert [line.removeprefix(f"{path}:").split(": ")[:2] for line in lines] == [
        ["3", "0/code"],
        ["5", "0/http/url"],
        ["6", "0/http/y"],
        ["4", "0/x"],
    ]


OWN: dict[str, dict[str, Any]] = {
    "python": {"description": "X.", "python": "os:getcwd"},
    "command": {"description": "X.", "command": {"argv": ["id"]}, "schema": schema()},
    "docs": {"docs": "/etc/hostname", "http": {"url": "https://example.com/"}, "schema": schema()},
}


@pytest.mark.parametrize("keys", OWN.values(), ids=OWN)
def test_only_the_host_s_own_manifests_name_python_commands_and_files(tmp_path: Path, keys: dict[str, Any]) -> None:
    path = tmp_path / "tool.yaml"
    path.write_text(yaml.safe_dump({"code": "x", **keys}))
    with pytest.raises(DefinitionError, match="only a manifest of the host's own configuration"):
        manifest_tools(path)


def test_the_program_of_a_command_is_fixed(load: Load) -> None:
    with pytest.raises(DefinitionError, match="the program must be fixed"):
        load(schema=schema("a"), command={"argv": ["{{a}}"]})


def test_python_that_cannot_be_loaded_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0\n")
    path = tmp_path / "tool.yaml"
    for reference, expected in (("bad.py:x", "ZeroDivisionError"), ("no.py:x", "no file"), ("json:nope", "no 'nope'")):
        path.write_text(f"code: x\ndescription: X.\npython: {reference}\n")
        with pytest.raises(DefinitionError, match=rf"tool.yaml:3: python: .*{expected}"):
            manifest_tools(path, trusted=True)
