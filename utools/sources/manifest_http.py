"""The `http` of a manifest: a request whose URL, headers and body hold the arguments."""

import json
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from utools.builtin.http_request import READS
from utools.errors import NetworkError
from utools.net.guard import read_url
from utools.sources.http_call import (
    HeaderName,
    HttpPolicy,
    Request,
    check_header,
    check_path,
    checked_origin,
    header_value,
    in_path,
    in_query,
    joined,
    result_of,
    send,
    too_large,
)
from utools.sources.placeholder import ABSENT, PLACEHOLDER, as_text, filled, names_in, value_of, whole
from utools.tool import Args, Execute, ToolContext, ToolResult

Method = Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
BODIES = ("json", "form", "body")
STRUCTURED = {"json": "`json`", "form": "`form`", "xml": "`json` or `form`", "html": "`json` or `form`"}
"""Parts of the content types whose syntax a value could break, and what encodes it instead."""


class HttpCall(HttpPolicy):
    """The request. Values are encoded for where they stand: none can add a header, a host or a path segment."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    method: Method = "GET"
    url: str
    query: dict[str, Any] = Field(default={})
    headers: dict[HeaderName, str] = Field(default={})
    json_: Any = Field(None, alias="json")
    form: dict[str, str] | None = None
    content_type: str | None = None
    body: str | None = None

    @field_validator("url")
    @classmethod
    def _fixed_host(cls, value: str) -> str:
        checked_origin(value)
        try:
            read_url(PLACEHOLDER.sub("x", value))
        except NetworkError as error:
            raise ValueError(str(error)) from None
        return value

    @field_validator("headers")
    @classmethod
    def _own_headers(cls, value: dict[str, str]) -> dict[str, str]:
        return {check_header(name): each for name, each in value.items()}

    @field_validator("content_type")
    @classmethod
    def _fixed_type(cls, value: str | None) -> str | None:
        if any(names_in(value)):
            raise ValueError("the content type must be fixed: it takes no argument")
        return value

    @field_validator("body")
    @classmethod
    def _unstructured(cls, value: str | None, others: ValidationInfo) -> str | None:
        """A raw body takes values as they are: one that has a syntax they could break is all fixed, or all a value."""
        name = next(names_in(value), None)
        if value is None or name is None or whole(value) is not None:
            return value
        headers = {key.lower(): each for key, each in others.data.get("headers", {}).items()}
        for kind in (others.data.get("content_type"), headers.get("content-type")):
            if kind is not None and (instead := _instead_of_raw(kind)):
                told = f"takes {{{{{name}}}}} as it is, and a value could break out of {kind}"
                raise ValueError(f"{told}; give the body by {instead}, or as one placeholder and nothing else")
        return value

    @model_validator(mode="after")
    def _one_body(self) -> "HttpCall":
        if len(self.bodies) > 1:
            raise ValueError(f"give one of json, form and body, not {' and '.join(self.bodies)}")
        if self.bodies and self.method in READS:
            raise ValueError(f"a {self.method} request carries no body")
        return self

    @property
    def bodies(self) -> list[str]:
        """Which kinds of body are given."""
        return [name for name in BODIES if name.replace("json", "json_") in self.model_fields_set]

    def executed(self, *, reads: bool, checked: bool) -> Execute:
        """What the tool does. An answer that is `checked` by an output_schema is taken as a whole only."""

        async def execute(args: Args, context: ToolContext) -> ToolResult:
            answer = await send(request_of(self, args), self, context)
            if checked and answer.truncated and answer.status < 400:
                return too_large("the server", self, reads=reads)
            return result_of(answer, reads=reads)

        return execute


def _instead_of_raw(content_type: str) -> str | None:
    """What encodes values for such a content type; None for one that is plain text."""
    bare = content_type.partition(";")[0].strip().lower()
    found = next((instead for part, instead in STRUCTURED.items() if part in bare), None)
    return "`json` or `form`" if found is None and any(names_in(content_type)) else found


def request_of(call: HttpCall, args: Args) -> Request:
    """The request with these arguments in it; ToolError for a value that has no place in it."""
    content, kind = _content(call, args)
    headers = {"content-type": call.content_type or kind} if kind else {}
    for name, template in call.headers.items():
        value = value_of(template, args)
        if value is not ABSENT:
            headers[name.lower()] = header_value(name, as_text(value))
    return Request(call.method, _url(call, args), headers, content)


def _url(call: HttpCall, args: Args) -> str:
    origin = checked_origin(call.url)
    path, mark, query = call.url[len(origin) :].partition("?")
    path = filled(path, {**dict.fromkeys(names_in(path), ""), **args}, in_path)
    check_path(path)
    pairs = [(name, as_text(each)) for name, value in call.query.items() for each in _many(value_of(value, args))]
    more = [part for part in (filled(query, args, in_query), joined(pairs)) if part]
    return f"{origin}{path or '/'}{'?' if more else mark}{'&'.join(more)}"


def _many(value: Any) -> list[Any]:
    """The values of a query's name: of a list each, of an argument that was not given none."""
    return [] if value is ABSENT or value is None else value if isinstance(value, list) else [value]


def _content(call: HttpCall, args: Args) -> tuple[bytes | None, str | None]:
    match call.bodies:
        case ["json"]:
            value = value_of(call.json_, args)
            return json.dumps(None if value is ABSENT else value, ensure_ascii=False).encode(), "application/json"
        case ["form"]:
            fields = {name: value_of(value, args) for name, value in (call.form or {}).items()}
            pairs = [(name, as_text(each)) for name, value in fields.items() for each in _many(value)]
            return joined(pairs).encode(), "application/x-www-form-urlencoded"
        case ["body"]:
            return filled(call.body or "", args).encode(), "text/plain; charset=utf-8"
    return None, None
