"""Operations of a Swagger 2.0 document as tools: their schemas, and the requests that they make."""

from pathlib import Path
from typing import Any

import pytest

from support.loopback import Loopback, http, serving
from utools import Tool, ToolContext, ToolRegistry, ToolResult
from utools.sources import openapi
from utools.sources.loaded import Loaded
from utools.sources.openapi import OpenApi, load_openapi

SHOP = """\
swagger: "2.0"
info: {title: Shop, version: "1"}
host: shop.example.com
basePath: /v2
schemes: [http, https]
consumes: [application/xml, application/json]
securityDefinitions:
  key: {type: apiKey, in: query, name: api_key}
paths:
  /articles/{id}:
    parameters:
      - {$ref: "#/parameters/Id"}
      - {name: q, in: query, type: string}
    get:
      operationId: find
      summary: Find an article.
      parameters:
        - {name: q, in: query, type: string, maxLength: 3, description: What to look for.}
        - {name: csv, in: query, type: array, items: {type: string}}
        - {name: multi, in: query, type: array, items: {type: string}, collectionFormat: multi}
        - {name: pipes, in: query, type: array, items: {type: string}, collectionFormat: pipes}
        - {name: ssv, in: query, type: array, items: {type: string}, collectionFormat: ssv}
        - {name: tsv, in: query, type: array, items: {type: string}, collectionFormat: tsv}
        - {name: X-Trace, in: header, type: array, items: {type: integer}}
        - {name: sum, in: query, type: number, minimum: 0, exclusiveMinimum: true}
    put:
      operationId: store
      parameters:
        - {name: article, in: body, required: true, schema: {$ref: "#/definitions/Article"}}
  /orders:
    post:
      operationId: order
      security: [{key: []}]
      consumes: [multipart/form-data, application/x-www-form-urlencoded]
      parameters:
        - {name: article, in: formData, type: string, required: true, description: Its number.}
        - {name: sizes, in: formData, type: array, items: {type: integer}}
        - {name: tags, in: formData, type: array, items: {type: string}, collectionFormat: multi}
  /files:
    post:
      operationId: upload
      parameters:
        - {name: file, in: formData, type: file, required: true}
        - {name: sizes, in: formData, type: array, items: {type: integer}}
parameters:
  Id: {name: id, in: path, required: true, type: integer}
definitions:
  Article:
    type: object
    required: [name]
    properties:
      name: {type: string}
      parts: {type: array, items: {$ref: "#/definitions/Article"}}
"""


def load(home: Path, text: str = SHOP, **config: Any) -> Loaded:
    (home / "shop.yaml").write_text(text)
    return load_openapi("shop", OpenApi(file="shop.yaml", **config), home)


def tools(home: Path, text: str = SHOP, **config: Any) -> dict[str, Tool]:
    loaded = load(home, text, **config)
    assert loaded.left_out == []
    return {tool.code: tool for tool in loaded.tools}


async def asked(home: Path, code: str, args: Any, reply: bytes, text: str = SHOP) -> tuple[ToolResult, Loopback]:
    async with serving(reply) as server:
        made = tools(home, text, server=f"http://127.0.0.1:{server.port}/v2", allow_cidrs=["127.0.0.1/32"])
        result = await ToolRegistry(made.values()).execute(f"shop.{code}", args, ToolContext())
    return result, server


def test_each_operation_is_a_tool_whose_schema_stands_alone(tmp_path: Path) -> None:
    made = tools(tmp_path)
    assert {code: tool.effect for code, tool in made.items()} == {
        "shop.find": "read",
        "shop.store": "write",
        "shop.order": "write",
        "shop.upload": "write",
    }
    shown = made["shop.find"].config_schema
    assert shown["properties"]["q"] == {"type": "string", "maxLength": 3, "description": "What to look for."}
    assert shown["properties"]["sum"] == {"type": "number", "exclusiveMinimum": 0}
    assert shown["required"] == ["id"]
    registry = ToolRegistry(made.values())
    body = {"name": "tea", "parts": [{"name": 5}]}
    assert [each.pointer for each in registry.validate("shop.store", {"id": 1, "body": body})] == ["/body/parts/0/name"]
    assert [each.pointer for each in registry.validate("shop.order", {"body": {}})] == ["/body/article"]


LIST = ["a", "b&c"]
REQUESTS: dict[str, tuple[str, dict[str, Any], str, bytes]] = {
    "a path": ("find", {"id": 7, "q": "tea"}, "/v2/articles/7?q=tea", b""),
    "csv": ("find", {"id": 7, "csv": LIST}, "/v2/articles/7?csv=a,b%26c", b""),
    "multi": ("find", {"id": 7, "multi": LIST}, "/v2/articles/7?multi=a&multi=b%26c", b""),
    "pipes": ("find", {"id": 7, "pipes": LIST}, "/v2/articles/7?pipes=a%7Cb%26c", b""),
    "ssv": ("find", {"id": 7, "ssv": LIST}, "/v2/articles/7?ssv=a%20b%26c", b""),
    "tsv": ("find", {"id": 7, "tsv": LIST}, "/v2/articles/7?tsv=a%09b%26c", b""),
    "a body": ("store", {"id": 7, "body": {"name": "tea"}}, "/v2/articles/7", b'{"name": "tea"}'),
    "a form": (
        "order",
        {"body": {"article": "A 1", "sizes": [1, 2], "tags": ["x", "y"]}},
        "/v2/orders",
        b"article=A%201&sizes=1,2&tags=x&tags=y",
    ),
}


@pytest.mark.parametrize(("code", "args", "target", "body"), REQUESTS.values(), ids=REQUESTS)
async def test_a_request_is_made_as_the_document_says(
    code: str, args: dict[str, Any], target: str, body: bytes, tmp_path: Path
) -> None:
    result, server = await asked(tmp_path, code, args, http(200, {"ok": True}))
    (request,) = server.requests
    assert (result.success, request.target, request.body) == (True, target, body)
    kinds = {"store": "application/json", "order": "application/x-www-form-urlencoded"}
    assert request.headers.get("content-type") == kinds.get(code)


async def test_a_list_in_a_header_is_joined(tmp_path: Path) -> None:
    _, server = await asked(tmp_path, "find", {"id": 7, "X-Trace": [1, 2]}, http(200, {}))
    assert server.requests[0].headers["x-trace"] == "1,2"


async def test_a_key_that_is_not_sent_is_told(tmp_path: Path) -> None:
    result, _ = await asked(tmp_path, "order", {"body": {"article": "A"}}, http(401, {}))
    assert "the API wants its key as 'api_key' in the query" in str(result.error)


async def test_a_file_is_sent_in_a_part(tmp_path: Path) -> None:
    _, server = await asked(tmp_path, "upload", {"body": {"file": "a,b", "sizes": [1, 2]}}, http(200, {}))
    (request,) = server.requests
    assert request.headers["content-type"].startswith("multipart/form-data; boundary=")
    head = b'Content-Disposition: form-data; name="file"; filename="file"\r\nContent-Type: application/octet-stream'
    assert head + b"\r\n\r\na,b\r\n" in request.body
    assert b'name="sizes"\r\n\r\n1,2\r\n' in request.body


HOSTS = {
    "no host": ("host: shop.example.com\n", "", "the document's server is only a path"),
    "another scheme": ("schemes: [http, https]", "schemes: [ws]", "names no http(s) address of its server"),
    "a format of lists": ("collectionFormat: pipes", "collectionFormat: dots", "is no collectionFormat"),
    "a list in a header": (
        "in: header, type: array,",
        "in: header, type: array, collectionFormat: pipes,",
        "a list in the header can be sent as csv alone",
    ),
    "a parameter without a place": ("{name: sum, in: query,", "{name: sum,", "a parameter needs a name and a place"),
    "a form beside a body": (
        "- {name: article, in: body,",
        "- {name: note, in: formData, type: string}\n        - {name: article, in: body,",
        "a body (in: body) and a form (in: formData) cannot be sent at once",
    ),
    "a file in a query": (
        "{name: csv, in: query, type: array, items: {type: string}}",
        "{name: csv, in: query, type: file}",
        "a file can be sent in a form alone",
    ),
    "a body that is no JSON": ("[application/xml, application/json]", "[application/xml]", "a body can be JSON"),
    "another version": ('"2.0"', '"1.2"', "must be an OpenAPI document of version 3.0, 3.1 or 3.2, or of Swagger 2.0"),
}


@pytest.mark.parametrize(("before", "after", "says"), HOSTS.values(), ids=HOSTS)
def test_what_cannot_be_used_is_left_out_in_words(before: str, after: str, says: str, tmp_path: Path) -> None:
    assert before in SHOP
    left_out = load(tmp_path, SHOP.replace(before, after)).left_out
    assert left_out
    assert says in str(left_out[0])


SERVERS = {
    "as written": ("", "", "https://shop.example.com/v2"),
    "a base without its slash": ("basePath: /v2", "basePath: v2/", "https://shop.example.com/v2"),
    "slashes at both ends": ("host: shop.example.com\nbasePath: /v2", "host: a.b/\nbasePath: //v2/", "https://a.b/v2"),
    "no base": ("basePath: /v2\n", "", "https://shop.example.com"),
    "sockets first": ("schemes: [http, https]", "schemes: [ws, http]", "http://shop.example.com/v2"),
    "no scheme": ("schemes: [http, https]", "schemes: []", "https://shop.example.com/v2"),
}


@pytest.mark.parametrize(("before", "after", "server"), SERVERS.values(), ids=SERVERS)
def test_the_server_is_of_a_scheme_a_host_and_a_base(
    before: str, after: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set[str]()
    make = openapi._make_execute
    monkeypatch.setattr(openapi, "_make_execute", lambda *args: (found.add(args[2]), make(*args))[1])
    assert load(tmp_path, SHOP.replace(before, after, 1)).left_out == []
    assert found == {server}


async def test_options_of_a_content_type_are_none_of_its_name(tmp_path: Path) -> None:
    kinds = "[multipart/form-data, application/x-www-form-urlencoded]"
    text = SHOP.replace(kinds, "[multipart/form-data; charset=utf-8]")
    _, server = await asked(tmp_path, "order", {"body": {"article": "A"}}, http(200, {}), text)
    assert server.requests[0].headers["content-type"].startswith("multipart/form-data; boundary=")


def test_https_is_asked_where_it_may_be(tmp_path: Path) -> None:
    (fault,) = {str(each) for each in load(tmp_path, SHOP.replace("host: shop", "host: shop?x")).left_out[:1]}
    assert "the server's address has a query" in fault
    assert load(tmp_path, SHOP.replace("schemes: [http, https]\n", "")).left_out == []
