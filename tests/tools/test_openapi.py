"""Operations of an OpenAPI document as tools: their schemas, the requests they make, the errors of a bad document."""

import gzip
import json
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.loopback import Loopback, http, serving
from utools import DefinitionError, Tool, ToolContext, ToolRegistry, ToolResult
from utools.sources.multipart import encode_multipart
from utools.sources.openapi import OpenApi, load_openapi
from utools.sources.openapi_operation import read_operation

TOKEN = "token-of-the-operator-1234"
SHOP = """\
openapi: 3.0.3
info: {title: Shop, version: "1"}
servers:
  - url: "{scheme}://shop.example.com/{version}"
    variables: {scheme: {default: https}, version: {default: v2}}
paths:
  /articles/{article_id}:
    parameters:
      - {$ref: "#/components/parameters/ArticleId"}
      - {name: X-Trace, in: header, schema: {type: string}}
      - {name: Authorization, in: header, schema: {type: string}}
    get:
      operationId: getArticle
      summary: One article.
      description: With its price and stock.
      parameters:
        - {name: fields, in: query, schema: {type: array, items: {type: string}}}
        - {name: tags, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: filter, in: query, style: deepObject, schema: {type: object}}
        - name: where
          in: query
          content: {application/json: {schema: {type: object}}}
        - {name: session, in: cookie, schema: {type: string}}
    put:
      operationId: put/article
      requestBody: {$ref: "#/components/requestBodies/Article"}
  /search:
    get:
      summary: Search.
      parameters:
        - {name: q, in: query, required: true, schema: {type: string, nullable: true, example: tea}}
        - {name: max, in: query, schema: {type: number, maximum: 10, exclusiveMaximum: true}}
  /orders:
    post:
      operationId: order
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema: {type: object, properties: {article: {type: string}, n: {type: integer}}}
  /notes:
    post:
      operationId: note
      requestBody: {required: true, content: {text/plain: {schema: {type: string}}}}
components:
  parameters:
    ArticleId:
      {name: article_id, in: path, required: true, description: Its number., schema: {type: string}}
  requestBodies:
    Article:
      required: true
      content: {application/json: {schema: {$ref: "#/components/schemas/Article"}}}
  schemas:
    Article:
      type: object
      required: [name]
      properties:
        name: {type: string}
        price: {$ref: "#/components/schemas/Price"}
        parts: {type: array, items: {$ref: "#/components/schemas/Article"}}
    Price: {type: integer, nullable: true, minimum: 0, exclusiveMinimum: true}
"""


def openapi_tools(name: str, config: OpenApi, base: Path) -> list[Tool]:
    """The tools of a document, of which nothing is left out."""
    loaded = load_openapi(name, config, base)
    for each in loaded.left_out:
        raise DefinitionError(each.why, where=each.where)
    return loaded.tools


def tools(home: Path, text: str = SHOP, **config: Any) -> dict[str, Tool]:
    (home / "shop.yaml").write_text(text)
    made = openapi_tools("shop", OpenApi(file="shop.yaml", **config), home)
    ToolRegistry(made)
    return {tool.code: tool for tool in made}


async def asked(home: Path, code: str, args: Any, *replies: bytes, **config: Any) -> tuple[ToolResult, Loopback]:
    async with serving(*(replies or [http(200, {"ok": True})])) as server:
        url = f"http://127.0.0.1:{server.port}/v2"
        made = tools(home, server=url, allow_cidrs=["127.0.0.1/32"], **config)
        context = ToolContext(idempotency_key="run/agent/4", secret=lambda name: f"{name}={TOKEN}")
        result = await ToolRegistry(made.values()).execute(f"shop.{code}", args, context)
    return result, server


def test_each_operation_is_a_tool_with_one_schema(tmp_path: Path) -> None:
    made = tools(tmp_path)
    assert {code: tool.effect for code, tool in made.items()} == {
        "shop.getArticle": "read",
        "shop.put_article": "write",
        "shop.get_search": "read",
        "shop.order": "write",
        "shop.note": "write",
    }
    get = made["shop.getArticle"]
    assert get.description == "One article.\n\nWith its price and stock."
    (definition,) = ToolRegistry([get]).definitions()
    shown = definition["function"]["parameters"]
    assert list(shown["properties"]) == ["article_id", "X-Trace", "fields", "tags", "filter", "where"]
    assert shown["properties"]["article_id"] == {"type": "string", "description": "Its number."}
    assert shown["required"] == ["article_id"]


def test_schemas_stand_alone_and_speak_2020_12(tmp_path: Path) -> None:
    made = tools(tmp_path)
    registry = ToolRegistry(made.values())
    search = made["shop.get_search"].config_schema["properties"]
    assert search["q"] == {"type": ["string", "null"]}
    assert search["max"] == {"type": "number", "exclusiveMaximum": 10}
    body = {"name": "tea", "price": 0, "parts": [{"price": 3}]}
    faults = registry.validate("shop.put_article", {"article_id": "1", "body": body, "x": 1})
    assert sorted(each.pointer for each in faults) == ["/body/parts/0/name", "/body/price", "/x"]
    good = {"name": "tea", "price": None, "parts": [{"name": "leaf"}]}
    assert registry.validate("shop.put_article", {"article_id": "1", "body": good}) == []


REQUESTS: dict[str, tuple[str, dict[str, Any], str, bytes]] = {
    "path": ("getArticle", {"article_id": "a/b?c"}, "/v2/articles/a%2Fb%3Fc", b""),
    "lists": (
        "getArticle",
        {"article_id": "1", "fields": ["a", "b&c"], "tags": ["x", "y,z"]},
        "/v2/articles/1?fields=a&fields=b%26c&tags=x,y%2Cz",
        b"",
    ),
    "deep": ("getArticle", {"article_id": "1", "filter": {"a b": "1"}}, "/v2/articles/1?filter%5Ba%20b%5D=1", b""),
    "as_json": ("getArticle", {"article_id": "1", "where": {"n": 1}}, "/v2/articles/1?where=%7B%22n%22%3A%201%7D", b""),
    "json": ("put_article", {"article_id": "1", "body": {"name": "é"}}, "/v2/articles/1", '{"name": "é"}'.encode()),
    "form": ("order", {"body": {"article": "A&B", "n": 2}}, "/v2/orders", b"article=A%26B&n=2"),
    "no_body": ("order", {}, "/v2/orders", b""),
    "text": ("note", {"body": "hi"}, "/v2/notes", b"hi"),
}


@pytest.mark.parametrize(("code", "args", "target", "body"), REQUESTS.values(), ids=REQUESTS)
async def test_arguments_go_where_the_document_says(
    tmp_path: Path, code: str, args: Any, target: str, body: bytes
) -> None:
    result, server = await asked(tmp_path, code, args)
    assert (result.success, result.output) == (True, {"ok": True}), result.error
    assert (server.requests[0].target, server.requests[0].body) == (target, body)


LIST, MAP = ["a", "b c"], {"r": "1", "g": "2 0"}
STYLES: list[tuple[str, str, bool | None, Any, str]] = [
    ("path", "simple", None, MAP, "/x/r,1,g,2%200"),
    ("path", "simple", True, MAP, "/x/r=1,g=2%200"),
    ("path", "label", None, "a", "/x/.a"),
    ("path", "label", None, LIST, "/x/.a,b%20c"),
    ("path", "label", True, LIST, "/x/.a.b%20c"),
    ("path", "label", True, MAP, "/x/.r=1.g=2%200"),
    ("path", "matrix", None, "a", "/x/;p=a"),
    ("path", "matrix", None, LIST, "/x/;p=a,b%20c"),
    ("path", "matrix", True, LIST, "/x/;p=a;p=b%20c"),
    ("path", "matrix", None, MAP, "/x/;p=r,1,g,2%200"),
    ("path", "matrix", True, MAP, "/x/;r=1;g=2%200"),
    ("query", "form", True, MAP, "/x/?r=1&g=2%200"),
    ("query", "pipeDelimited", None, LIST, "/x/?p=a%7Cb%20c"),
    ("query", "deepObject", True, {"a": {"b": 1}, "c": ["x"]}, "/x/?p%5Ba%5D%5Bb%5D=1&p%5Bc%5D%5B%5D=x"),
    ("query", "deepObject", True, LIST, "/x/?p%5B%5D=a&p%5B%5D=b%20c"),
    ("query", "deepObject", True, [{"a": 1}], "/x/?p%5B0%5D%5Ba%5D=1"),
]


@pytest.mark.parametrize(("part", "style", "explode", "value", "url"), STYLES)
def test_a_value_is_written_in_the_style_of_its_parameter(
    part: str, style: str, explode: bool | None, value: Any, url: str
) -> None:
    told = {} if explode is None else {"explode": explode}
    parameter = {"name": "p", "in": part, "style": style, "schema": {}, **told}
    path = "/x/{p}" if part == "path" else "/x/"
    operation = read_operation({}, path, {"get": {"parameters": [parameter]}}, "get")
    assert operation.request("", {"p": value}).url == url


@pytest.mark.parametrize(
    ("encoding", "sent"),
    [
        ({}, "tags=a&tags=b%20c&map=%7B%22r%22%3A%20%221%22%2C%20%22g%22%3A%20%222%200%22%7D&n=1"),
        (
            {"tags": {"explode": False}, "map": {"style": "deepObject"}},
            "tags=a,b%20c&map%5Br%5D=1&map%5Bg%5D=2%200&n=1",
        ),
        (
            {"tags": {"contentType": "application/json"}, "map": {"explode": True}},
            "tags=%5B%22a%22%2C%20%22b%20c%22%5D&r=1&g=2%200&n=1",
        ),
    ],
    ids=["usual", "told", "json"],
)
def test_a_form_is_written_as_the_document_says(encoding: Any, sent: str) -> None:
    content = {"application/x-www-form-urlencoded": {"schema": {}, "encoding": encoding}}
    operation = read_operation({}, "/x", {"post": {"requestBody": {"content": content}}}, "post")
    assert operation.request("", {"body": {"tags": LIST, "map": MAP, "n": 1, "no": None}}).content == sent.encode()


def test_a_path_that_has_a_query_gets_the_others_beside_it() -> None:
    item = {"get": {"parameters": [{"name": "q", "in": "query", "schema": {}}]}}
    operation = read_operation({}, "/x?type=a", item, "get")
    assert operation.request("", {"q": "1"}).url == "/x?type=a&q=1"
    assert operation.request("", {"q": None}).url == "/x?type=a"


def test_an_operation_whose_body_cannot_be_sent_is_left_out_though_it_may_go_without(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(SHOP.replace("{required: true, content: {text/plain", "{content: {image/png"))
    loaded = load_openapi("shop", OpenApi(file="shop.yaml"), tmp_path)
    assert [each.name for each in loaded.left_out] == ["shop.note"]
    assert "a body can be JSON, a form, text or multipart, not image/png" in loaded.left_out[0].why


def test_null_is_allowed_beside_alternatives_that_are_nullable(tmp_path: Path) -> None:
    part = {"type": "object", "nullable": True, "oneOf": [{"$ref": "#/components/schemas/Part"}]}
    tool = load(tmp_path, {"type": "object", "properties": {"part": part}}, {"Part": {"type": "object"}})
    assert ToolRegistry([tool]).validate("api.post", {"body": {"part": None}}) == []


@pytest.mark.parametrize("root", ["Pet", "Cat"])
def test_a_base_and_its_kinds_that_refer_to_each_other_can_be_met(tmp_path: Path, root: str) -> None:
    """Every value was judged by the same schema again, without end."""
    pet, kind = {"$ref": "#/components/schemas/Pet"}, {"properties": {"kind": {"type": "string"}}, "required": ["kind"]}
    lives = {"properties": {"lives": {"type": "integer"}}, "required": ["lives"]}
    schemas: dict[str, Any] = {
        "Pet": {
            "type": "object",
            "oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("Cat", "Dog")],
            **kind,
        },
        "Cat": {"allOf": [pet, lives]},
        "Dog": {"allOf": [pet, {"required": ["bark"]}]},
    }
    tool = load(tmp_path, {"$ref": f"#/components/schemas/{root}"}, schemas)
    registry = ToolRegistry([tool])
    assert registry.validate("api.post", {"body": {"kind": "cat", "lives": 9}}) == []
    assert registry.validate("api.post", {"body": {"lives": 9}})
    assert registry.validate("api.post", {"body": {"kind": "cat", "lives": "nine"}})


def test_keys_of_yaml_that_are_numbers_are_read(tmp_path: Path) -> None:
    text = SHOP.replace("summary: Search.", "summary: Search.\n      responses: {200: {description: ok}}")
    assert len(tools(tmp_path, text)) == 5


def test_a_part_of_the_address_that_nothing_tells_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"nothing says what \{version\} is in the server's address; give"):
        tools(tmp_path, SHOP.replace(", version: {default: v2}", ""))


def test_an_operation_that_is_in_another_file_is_left_out_and_not_taken_for_one_without_arguments(
    tmp_path: Path,
) -> None:
    """As DigitalOcean's document has them."""
    text = SHOP.replace(
        "    post:\n      operationId: note", "    post:\n      $ref: notes.yml\n      operationId: note"
    )
    (tmp_path / "shop.yaml").write_text(text)
    loaded = load_openapi("shop", OpenApi(file="shop.yaml"), tmp_path)
    assert [each.name for each in loaded.left_out] == ["shop.post/notes"]
    assert "only references inside the document" in loaded.left_out[0].why


def test_a_server_that_is_only_a_path_says_what_to_give(tmp_path: Path) -> None:
    address = "{scheme}://shop.example.com/{version}"
    with pytest.raises(DefinitionError, match=r"only a path; give the whole address by `server`, as in https://…/v2"):
        tools(tmp_path, SHOP.replace(address, "/{version}"))


def test_extensions_among_the_paths_are_passed_over(tmp_path: Path) -> None:
    assert len(tools(tmp_path, SHOP.replace("paths:\n", "paths:\n  x-groups: [a]\n"))) == 5


@pytest.mark.parametrize(
    "args",
    [{"article_id": ".."}, {"article_id": "x/../../admin"}, {"article_id": "1", "X-Trace": "a\r\nHost: evil"}],
    ids=["parent", "parent_within", "header"],
)
async def test_no_value_leads_the_request_elsewhere(tmp_path: Path, args: Any) -> None:
    result, server = await asked(tmp_path, "getArticle", args)
    assert not result.success
    assert server.requests == []


async def test_secrets_come_from_the_host_or_the_author(tmp_path: Path) -> None:
    host = {"token_env": "T", "secret_headers": {"X-Api-Key": "K"}, "headers": {"X-Client": "us"}}
    _, server = await asked(tmp_path, "getArticle", {"article_id": "1", "X-Trace": "t"}, **host)
    headers = server.requests[0].headers
    assert headers["authorization"] == f"Bearer T={TOKEN}"
    assert (headers["x-api-key"], headers["x-client"], headers["x-trace"]) == (f"K={TOKEN}", "us", "t")
    args = {"article_id": "1", "token_env": "A", "token_header": "X-Api-Key"}
    _, server = await asked(tmp_path, "getArticle", args)
    assert server.requests[0].headers["x-api-key"] == f"A={TOKEN}"


@pytest.mark.parametrize(
    ("security", "is_told"), [([{"k": []}], True), ([{"k": []}, {"h": []}], False), ([], False), ("k", False)]
)
async def test_a_key_that_belongs_into_the_query_is_told_where_the_api_refuses_the_call(
    tmp_path: Path, security: Any, is_told: bool
) -> None:
    schemes = {"k": {"type": "apiKey", "in": "query", "name": "appid"}, "h": {"type": "http", "scheme": "bearer"}}
    document = {
        "openapi": "3.1.0",
        "components": {"securitySchemes": schemes},
        "paths": {"/now": {"get": {"operationId": "now", "security": security}}},
    }
    (tmp_path / "weather.json").write_text(json.dumps(document))
    async with serving(http(401, {"message": "no key"})) as server:
        config = OpenApi(file="weather.json", server=server.url, allow_cidrs=["127.0.0.1/32"])
        result = await ToolRegistry(openapi_tools("w", config, tmp_path)).execute("w.now", {}, ToolContext())
    assert "no key" in str(result.error)
    assert (
        "the API wants its key as 'appid' in the query, and secrets are sent in headers" in str(result.error)
    ) == is_told


async def test_a_redirect_to_another_host_gets_no_secret(tmp_path: Path) -> None:
    host: dict[str, Any] = {"token_env": "T", "secret_headers": {"X-Api-Key": "K"}}
    async with serving(http(200, {"ok": True})) as other:
        leads = http(307, location=f"http://127.0.0.1:{other.port}/")
        result, server = await asked(tmp_path, "note", {"body": "hi"}, leads, **host)
    assert result.success
    assert {"authorization", "x-api-key", "idempotency-key"} <= server.requests[0].headers.keys()
    assert not {"authorization", "x-api-key", "idempotency-key"} & other.requests[0].headers.keys()


async def test_a_secret_that_cannot_be_sent_is_told_by_its_name(tmp_path: Path) -> None:
    made = tools(tmp_path, token_env="T")
    context = ToolContext(secret=lambda name: f"{TOKEN}\n")
    result = await ToolRegistry(made.values()).execute("shop.get_search", {"q": "x"}, context)
    assert "the secret T cannot be sent in the header authorization: it holds a line break" in str(result.error)
    assert TOKEN not in str(result.error)


async def test_a_write_whose_answer_is_damaged_is_in_doubt(tmp_path: Path) -> None:
    damaged = http(200, gzip.compress(b"[1, 2, 3]")[:-9], content_encoding="gzip")
    read, _ = await asked(tmp_path, "get_search", {"q": "x"}, damaged)
    written, _ = await asked(tmp_path, "note", {"body": "hi"}, damaged)
    assert "damaged" in str(read.error)
    assert (written.success, written.metadata.get("cut_off")) == (False, True)


async def test_a_private_server_needs_leave(tmp_path: Path) -> None:
    async with serving(http(200)) as server:
        made = tools(tmp_path, server=f"http://127.0.0.1:{server.port}")
        result = await ToolRegistry(made.values()).execute("shop.get_search", {"q": "x"})
    assert server.requests == []
    assert "no public address" in str(result.error)


async def test_a_failure_is_one(tmp_path: Path) -> None:
    result, _ = await asked(tmp_path, "getArticle", {"article_id": "1"}, http(404, {"detail": "no such article"}))
    assert result.error == 'the server answered 404: {"detail": "no such article"}'


def test_only_the_operations_that_the_host_takes(tmp_path: Path) -> None:
    assert list(tools(tmp_path, operations=["get*"])) == ["shop.getArticle", "shop.get_search"]


def test_a_json_document_of_3_1_is_read_too(tmp_path: Path) -> None:
    document = yaml.safe_load(SHOP.replace("3.0.3", "3.1.0"))
    (tmp_path / "shop.json").write_text(json.dumps(document))
    assert len(openapi_tools("shop", OpenApi(file="shop.json"), tmp_path)) == 5


def load(home: Path, body: Any, schemas: dict[str, Any], **document: Any) -> Tool:
    """The only tool of a document, which posts a body."""
    post = {"operationId": "post", "requestBody": {"content": {"application/json": {"schema": body}}}}
    whole = {
        "openapi": "3.0.3",
        "servers": [{"url": "https://api.example.com"}],
        "paths": {"/it": {"post": post}},
        "components": {"schemas": schemas},
        **document,
    }
    (home / "api.json").write_text(json.dumps(whole))
    (tool,) = openapi_tools("api", OpenApi(file="api.json"), home)
    return tool


def test_schemas_that_refer_to_one_another_in_a_long_chain_are_read(tmp_path: Path) -> None:
    """So do those of Microsoft Graph and of FHIR, in which nearly everything refers to everything."""
    links: dict[str, Any] = {
        f"S{n}": {"properties": {"n": {"$ref": f"#/components/schemas/S{n + 1}"}}} for n in range(400)
    }
    tool = load(tmp_path, {"$ref": "#/components/schemas/S0"}, {**links, "S400": {"type": "string"}})
    assert len(tool.config_schema["$defs"]) == 401
    body: Any = {}
    for _ in range(3):
        body = {"n": body}
    assert ToolRegistry([tool]).validate("api.post", {"body": body}) == []


def test_a_reference_may_be_percent_encoded(tmp_path: Path) -> None:
    tool = load(tmp_path, {"$ref": "#/components/schemas/Page%C2%ABPet%C2%BB"}, {"Page«Pet»": {"type": "string"}})
    assert ToolRegistry([tool]).validate("api.post", {"body": 1})


def test_bounds_that_no_journal_holds_are_rounded_and_the_document_is_read(tmp_path: Path) -> None:
    """OpenAI's own document has such a bound: JavaScript writes -2^63 so."""
    tool = load(tmp_path, {"type": "integer", "minimum": -9223372036854776000, "maximum": 18446744073709552000}, {})
    assert tool.config_schema["properties"]["body"]["minimum"] == -9.223372036854776e18
    assert ToolRegistry([tool]).validate("api.post", {"body": 2**63}) == []


def test_alternatives_that_a_discriminator_tells_apart_may_overlap(tmp_path: Path) -> None:
    """By JSON Schema's `oneOf` alone no body would fit: each of these events is written as the other."""
    kind = {"type": "string", "enum": ["approved", "denied"]}
    event = {"type": "object", "properties": {"kind": kind, "id": {"type": "string"}}, "required": ["kind"]}
    schemas = {"Approved": event, "Denied": {"allOf": [{"$ref": "#/components/schemas/Approved"}]}}
    body = {
        "oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in schemas],
        "discriminator": {"propertyName": "kind"},
    }
    registry = ToolRegistry([load(tmp_path, body, schemas)])
    assert registry.validate("api.post", {"body": {"kind": "denied", "id": "7"}}) == []
    assert registry.validate("api.post", {"body": {"kind": "lost"}})


def test_what_only_responses_have_is_not_required_of_a_request(tmp_path: Path) -> None:
    own = {"id": {"$ref": "#/components/schemas/Id"}, "at": {"type": "string", "readOnly": True}, "name": {}}
    schemas = {"Id": {"type": "integer", "readOnly": True}}
    tool = load(tmp_path, {"type": "object", "properties": own, "required": ["id", "at", "name"]}, schemas)
    (fault,) = ToolRegistry([tool]).validate("api.post", {"body": {}})
    assert fault.pointer == "/body/name"
    base = {"properties": {"id": {"$ref": "#/components/schemas/Id"}}}
    parts = {"allOf": [{"$ref": "#/components/schemas/Base"}, {"required": ["id", "name"]}], "required": ["id"]}
    (fault,) = ToolRegistry([load(tmp_path, parts, {**schemas, "Base": base})]).validate("api.post", {"body": {}})
    assert fault.pointer == "/body/name"


def test_a_version_and_a_summary_without_quotes_are_read(tmp_path: Path) -> None:
    text = SHOP.replace("openapi: 3.0.3", "openapi: 3.1").replace("summary: Search.", "summary: 2024")
    assert tools(tmp_path, text)["shop.get_search"].description == "GET /search"


BARE: dict[str, tuple[str, str]] = {
    # what an operation has, and the same as a key that has no value in YAML
    "parameters": ("operationId: order\n", "operationId: order\n      parameters:\n"),
    "content_of_a_parameter": ("content: {application/json: {schema: {type: object}}}", "content:"),
    "media_type": ("{text/plain: {schema: {type: string}}}", "{text/plain: }"),
    "content": ("content: {text/plain: {schema: {type: string}}}", "content: "),
}


@pytest.mark.parametrize(("old", "new"), BARE.values(), ids=BARE)
def test_a_key_without_a_value_is_as_if_it_were_not_there(tmp_path: Path, old: str, new: str) -> None:
    assert old in SHOP
    assert tools(tmp_path, SHOP.replace(old, new)).keys() == tools(tmp_path).keys()


def test_null_among_the_types_of_a_yaml_document_is_the_type_of_null(tmp_path: Path) -> None:
    text = SHOP.replace("required: true, schema: {type: string, nullable: true", "schema: {type: [string, null]")
    registry = ToolRegistry(tools(tmp_path, text).values())
    assert registry.validate("shop.get_search", {"q": None}) == []
    assert [each.pointer for each in registry.validate("shop.get_search", {"q": 5})] == ["/q"]


async def test_a_part_of_the_path_that_nothing_describes_is_a_text(tmp_path: Path) -> None:
    """FastAPI does not describe one that is not `include_in_schema`."""
    text = SHOP.replace("  /search:\n", "  /search/{shelf}/{place}:\n")
    args = {"q": "tea", "shelf": "a/b", "place": "7"}
    result, server = await asked(tmp_path, "get_search_shelf_place", args, text=text)
    assert (result.success, server.requests[0].target) == (True, "/v2/search/a%2Fb/7?q=tea")
    registry = ToolRegistry(tools(tmp_path, text).values())
    faults = registry.validate("shop.get_search_shelf_place", {"q": "tea", "shelf": 1})
    assert {each.pointer for each in faults} == {"/shelf", "/place"}


async def test_the_fragment_of_a_path_is_not_sent_and_hides_no_query(tmp_path: Path) -> None:
    """Vendors write one path several times, for the purposes that it has."""
    text = SHOP.replace("  /search:\n", "  /search#suggest:\n")
    result, server = await asked(tmp_path, "get_search_suggest", {"q": "tea"}, text=text)
    assert (result.success, server.requests[0].target) == (True, "/v2/search?q=tea")


async def test_what_version_3_2_adds_is_read(tmp_path: Path) -> None:
    """The method QUERY, and media types that stand among the components; a query string as a whole cannot be sent."""
    text = SHOP.replace("openapi: 3.0.3", "openapi: 3.2.0").replace("  /search:\n    get:", "  /search:\n    query:")
    text = text.replace(
        "{text/plain: {schema: {type: string}}}", '{text/plain: {$ref: "#/components/mediaTypes/Note"}}'
    )
    text += "  mediaTypes:\n    Note: {schema: {type: string, maxLength: 3}}\n"
    result, server = await asked(tmp_path, "query_search", {"q": "tea"}, text=text)
    assert (result.success, server.requests[0].method, server.requests[0].target) == (True, "QUERY", "/v2/search?q=tea")
    (fault,) = ToolRegistry(tools(tmp_path, text).values()).validate("shop.note", {"body": "long"})
    assert fault.pointer == "/body"


PARTS = """\
    post:
      operationId: send
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema: {$ref: "#/components/schemas/Upload"}
            encoding: {meta: {contentType: application/vnd.shop+json}, joined: {style: pipeDelimited, explode: false}}
"""
UPLOAD = """\
    Upload:
      type: object
      required: [file]
      properties:
        file: {type: string, format: binary}
        more: {type: array, items: {type: string, contentMediaType: text/csv}}
        title: {type: string}
        n: {type: integer}
        tags: {type: array, items: {type: string}}
        joined: {type: array, items: {type: string}}
        meta: {type: object}
        plain: {type: object}
"""
SENT = {
    "file": "a,b\r\n1,2",
    "more": ["x", "y"],
    "title": "Grüße",
    "n": 3,
    "tags": ["p", "q"],
    "joined": ["p", "q"],
    "meta": {"a": 1},
    "plain": {"b": True},
}


async def test_a_form_in_parts_is_read_by_a_server_as_it_was_meant(tmp_path: Path) -> None:
    text = SHOP.replace("  /search:\n", f"  /files:\n{PARTS}  /search:\n") + UPLOAD
    result, server = await asked(tmp_path, "send", {"body": SENT}, text=text)
    (request,) = server.requests
    assert result.success
    head = b"content-type: " + request.headers["content-type"].encode()
    parts = message_from_bytes(head + b"\r\n\r\n" + request.body).get_payload()
    names = [each.get_param("name", header="content-disposition") for each in parts]
    assert [(name, each.get_filename(), each["content-type"]) for name, each in zip(names, parts, strict=True)] == [
        ("file", "file", "application/octet-stream"),
        ("more", "more", "text/csv"),
        ("more", "more", "text/csv"),
        ("title", None, None),
        ("n", None, None),
        ("tags", None, None),
        ("tags", None, None),
        ("joined", None, None),
        ("meta", None, "application/vnd.shop+json"),
        ("plain", None, "application/json"),
    ]
    said = [each.get_payload(decode=True).decode() for each in parts]
    assert said == ["a,b\r\n1,2", "x", "y", "Grüße", "3", "p", "q", "p|q", '{"a": 1}', '{"b": true}']


def test_a_name_cannot_end_the_head_of_its_part() -> None:
    kind, body = encode_multipart({'a"\r\nX: 1': "v"}, {}, {})
    (part,) = message_from_bytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + body).get_payload()
    assert part.keys() == ["Content-Disposition"]
    assert encode_multipart({"a": "v"}, {}, {}) == encode_multipart({"a": "v", "b": None}, {}, {})


BAD: dict[str, tuple[str, str, str]] = {
    "version": (
        "openapi: 3.0.3",
        "swagger: '1.2'",
        "openapi: must be an OpenAPI document of version 3.0, 3.1 or 3.2, or of Swagger 2.0",
    ),
    "leaves": ('#/components/schemas/Article"}}}', 'https://x/y"}}}', "bundle its files into one first"),
    "nowhere": ("#/components/schemas/Price", "#/components/schemas/Prise", "leads nowhere"),
    "path": ("in: path, required", "in: query, required", "no parameter describes this part of the path"),
    "misspelt": ("{name: article_id,", "{name: articleId,", "no parameter describes this part of the path"),
    "cookie": ("in: cookie,", "in: cookie, required: true,", "a cookie parameter cannot be sent"),
    "header": ("X-Trace", "Host", "the header Host cannot be an argument"),
    "no_name": ("name: q,", "name: 5,", "a parameter needs a name"),
    "schema": ("type: number, ", "type: numbr, ", "shop.yaml:28: paths//search/get: /properties/max/type"),
    "server": ("default: https", "default: ftp", "names no http(s) address of its server"),
    "twice": ("operationId: note", "operationId: order", "another operation is called 'order'"),
    "no_list": (
        "parameters:\n        - {name: q",
        "parameters: 5\n      x-other:\n        - {name: q",
        "not valid OpenAPI",
    ),
    "body": ("text/plain", "image/png", "a body can be JSON, a form, text or multipart"),
}


@pytest.mark.parametrize(("old", "new", "expected"), BAD.values(), ids=BAD)
def test_a_bad_document_is_refused_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in SHOP
    with pytest.raises(DefinitionError) as error:
        tools(tmp_path, SHOP.replace(old, new))
    assert expected in str(error.value)


def test_a_path_that_would_go_on_with_the_hosts_name_is_refused(tmp_path: Path) -> None:
    document = {"openapi": "3.1.0", "servers": [{"url": "https://api.example.com"}]}
    document["paths"] = {".evil.example/x": {"get": {"operationId": "x", "responses": {}}}}
    (tmp_path / "api.json").write_text(json.dumps(document))
    with pytest.raises(DefinitionError, match="must begin with a slash"):
        openapi_tools("api", OpenApi(file="api.json"), tmp_path)
