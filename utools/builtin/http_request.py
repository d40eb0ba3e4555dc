"""`http_request`: any HTTP request to a host that the author allows, or to any public one."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from utools.errors import ToolError
from utools.json_text import to_text
from utools.lazy_pattern import lazy_compile
from utools.net.header_names import NAME, is_of_connection
from utools.net.outgoing_secrets import secret_headers
from utools.schema.json_value import NotJson, as_json
from utools.tool import Args, Tool, ToolContext, ToolResult
from utools.words.text import Text, join_and, translate

if TYPE_CHECKING:
    from utools.net.guard import NetworkGuard

METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
READS = METHODS[:3]
GET = "GET"
LIMIT, LARGEST = 2**20, 16 * 2**20
TRANSIENT = (408, 425, 429)
"""The statuses below 500 that may pass."""
SHOWN_HEADERS = ("content-type", "location", "link", "retry-after", "etag", "last-modified")
"""The headers of a response that say how to continue; a model's observation has no room for the others."""
SHOWN = 500
"""Characters of an error's body that a model reads."""
CHARSET = lazy_compile(
    r"utf-?(8|16|32)|ascii|us-ascii|latin-?1|iso-8859-(1?[1-9]|10)|(windows-|cp)125[0-8]|gbk|gb2312|gb18030|big5"
    r"|shift_jis|euc-(jp|kr)|koi8-[ru]"
)
"""Charsets that are decoded in time linear in the text; a text in any other is read as UTF-8."""
CIDRS = {
    "type": "array",
    "items": {"type": "string", "pattern": r"^(\d+(\.\d+){3}|[^/]*:[^/]*)(/[\d.]+)?$"},
    "x-author": True,
    "x-narrow": "subset",
    "description": "Networks that may be reached although they are not public, such as 10.2.0.0/16.",
}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}


def http_request() -> Tool:
    """Return the tool `http_request`. The author decides by presets what it may reach."""
    return Tool(
        code="http_request",
        description="Make an HTTP request. Returns the status, the body (JSON already parsed) and the main headers.",
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        examples=[
            {
                "user": "How much does the lamp at https://shop.example/lamp cost?",
                "args": {"url": "https://shop.example/lamp"},
                "output": {"status": 200, "body": {"name": "lamp", "price": 12}},
                "answer": "It costs 12.",
            }
        ],
        execute=_execute,
        effect={"argument": "method", "read": READS, "default": GET},
    )


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "method": {"enum": METHODS, "default": GET, "description": "What to do."},
        "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "http or https."},
        "query": {**TEXTS, "description": "Added to the URL."},
        "headers": {
            **TEXTS,
            "propertyNames": {"pattern": f"^{NAME}$"},
            "maxProperties": 64,
            "description": "By name.",
        },
        "json": {"description": "A JSON body."},
        "form": {**TEXTS, "description": "A form body."},
        "body": {"type": "string", "description": "A raw body."},
        "allowed_domains": {
            "type": "array",
            "items": {"type": "string"},
            "x-author": True,
            "x-narrow": "patterns",
            "description": "Hosts that may be reached, or patterns such as *.example.com; else every public one.",
        },
        "allowed_methods": {
            "type": "array",
            "items": {"enum": METHODS},
            "x-author": True,
            "x-narrow": "subset",
            "description": "Methods that may be used.",
        },
        "allowed_ports": {
            "type": "array",
            "items": {"type": "integer"},
            "x-author": True,
            "x-narrow": "subset",
            "description": "Ports that may be reached.",
        },
        "allow_cidrs": CIDRS,
        "max_bytes": {
            "description": "Bytes of an answer that are read.",
            "type": "integer",
            "minimum": 1,
            "maximum": LARGEST,
            "default": LIMIT,
            "x-author": True,
            "x-narrow": "minimum",
        },
        "all_headers": {
            "type": "boolean",
            "default": False,
            "x-author": True,
            "x-narrow": "false",
            "description": f"Give every header of the response, not only {', '.join(SHOWN_HEADERS)}.",
        },
        "fail_on_status": {
            "type": "boolean",
            "default": False,
            "x-author": True,
            "x-narrow": "true",
            "description": "A status of 400 and more is a failure of the call, with the same output.",
        },
        "token_env": {
            "type": "string",
            "x-author": True,
            "description": "The environment variable of a bearer token; needs allowed_domains. It is sent over https, "
            "to port 443 or one of allowed_ports; in allow_cidrs to any port, over http too.",
        },
    },
    "required": ["url"],
    "examples": [{"url": "https://example.com/lamp"}],
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"status": {"type": "integer"}, "body": {}, "headers": TEXTS, "truncated": {"type": "string"}},
    "additionalProperties": False,
    "examples": [{"status": 200, "body": {"name": "lamp", "price": 12}}],
}


async def _execute(args: Args, context: ToolContext) -> ToolResult:
    from utools.net.transport import fetch

    method = args.get("method", GET)
    if method not in args.get("allowed_methods", METHODS):
        raise ToolError(
            "the method {method} is not allowed here; allowed are {allowed}",
            method=method,
            allowed=", ".join(args["allowed_methods"]),
        )
    guard = _guard(args)
    content, kind = _content(args)
    if content is not None and "method" not in args:
        raise ToolError("a request with a body needs its method: POST, PUT or PATCH")
    headers = _headers(args, context, kind)
    url = _with_query(args["url"], args.get("query"))
    limit = args.get("max_bytes", LIMIT)
    answer = await fetch(guard, method, url, headers=headers, content=content, limit=limit)
    shown = answer.headers if args.get("all_headers") else SHOWN_HEADERS
    kept = {name: answer.headers[name] for name in shown if name in answer.headers}
    output = {"status": answer.status, "body": read_body(answer.headers, answer.body), "headers": kept}
    if answer.truncated:
        output["truncated"] = translate(
            Text("only the first {limit} bytes of the body were read", limit=limit), context.language
        )
    reads = method in READS
    if args.get("fail_on_status") and answer.status >= 400:
        return refuse_status(answer.status, output["body"], reads=reads, output=output)
    return ToolResult(output=output, metadata={"transient": True} if reads and is_transient(answer.status) else {})


def is_transient(status: int) -> bool:
    """Return whether the same request may be answered otherwise later."""
    return status in TRANSIENT or status >= 500


def refuse_status(status: int, body: Any, *, reads: bool, output: Any = None) -> ToolResult:
    """Return the failure that a status of 400 and more is; `transient` if the call `reads` only and the status may
    pass."""
    text = to_text(body)
    text = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    marks = {"transient": reads} if is_transient(status) else {"permanent": True}
    error = _explain_status(status, text.rstrip(": "))
    return ToolResult(False, output, error, {name: True for name, holds in marks.items() if holds})


def _explain_status(status: int, text: str) -> Text:
    if text:
        return Text("the server answered {status}: {text}", status=status, text=text)
    return Text("the server answered {status}", status=status)


def _guard(args: Args) -> "NetworkGuard":
    """Return what this call may reach; with a token, only hosts that may get it."""
    from utools.net.guard import NetworkGuard

    guard = NetworkGuard.from_settings(
        allowed_domains=args.get("allowed_domains"),
        allow_cidrs=args.get("allow_cidrs", ()),
        allowed_ports=args.get("allowed_ports"),
    )
    if "token_env" not in args:
        return guard
    if guard.domains is None:
        raise ToolError("a token is sent only where allowed_domains says which hosts may have it")
    return guard.for_token(args["url"])


def read_body(headers: Mapping[str, str], body: bytes) -> Any:
    """Return a body as JSON if it says so and is, else as text; binary data is only counted."""
    kind, _, more = headers.get("content-type", "").lower().partition(";")
    named = more.rpartition("charset=")[2].partition(";")[0].strip(" '\"")
    charset = named if CHARSET.fullmatch(named) else "utf-8"
    if kind.strip().endswith(("/json", "+json")):
        try:
            return as_json(json.loads(body if charset == "utf-8" else body.decode(charset)))
        except (ValueError, RecursionError, NotJson):
            pass
    text = body.decode(charset, "replace")
    return f"({len(body)} bytes that are no text)" if "\0" in text else text


def _content(args: Args) -> tuple[bytes | None, str | None]:
    """Return the body and its content type."""
    kinds = [name for name in ("json", "form", "body") if name in args]
    if len(kinds) > 1:
        raise ToolError("give one of json, form and body, not {kinds}", kinds=join_and(kinds))
    match kinds:
        case ["json"]:
            return json.dumps(args["json"], ensure_ascii=False).encode(), "application/json"
        case ["form"]:
            return urlencode(args["form"]).encode(), "application/x-www-form-urlencoded"
        case ["body"]:
            return args["body"].encode(), "text/plain; charset=utf-8"
        case _:
            return None, None


def _headers(args: Args, context: ToolContext, kind: str | None) -> dict[str, str]:
    headers = {"content-type": kind} if kind else {}
    for name, value in args.get("headers", {}).items():
        if is_of_connection(name):
            raise ToolError("the header {name} is not yours to set", name=name)
        if not value.isprintable():
            raise ToolError("the header {name} holds a line break or another control character", name=name)
        headers[name.lower()] = value
    if args.get("method", GET) not in READS and context.idempotency_key:
        headers.setdefault("idempotency-key", context.idempotency_key)
    return headers | secret_headers(context.secret, args.get("token_env"), {})


def _with_query(url: str, query: Mapping[str, str] | None) -> str:
    if not query:
        return url
    bare = url.partition("#")[0]
    return f"{bare}{'&' if '?' in bare else '?'}{urlencode(query)}"
