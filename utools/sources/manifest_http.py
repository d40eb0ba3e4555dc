"""The `http` of a manifest: a request whose URL, headers and body take the arguments."""

import json
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from utools.builtin.http_request import READS
from utools.errors import NetworkError
from utools.json_text import to_text
from utools.net.guard import read_url
from utools.sources.headers import Headers
from utools.sources.http_call import HttpPolicy, Url, read_origin, read_response, refuse_truncated, send
from utools.sources.manifest_poll import KEY, Poll, PolledCall, make_key
from utools.sources.placeholder import ABSENT, PLACEHOLDER, fill_text, fill_value, find_names, sole_name
from utools.sources.request import Request, encode_header, encode_pairs
from utools.sources.url_template import fill_url, list_pairs
from utools.tool import Args, Execute, ToolContext, ToolResult

Method = Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
BODIES = ("json", "form", "body")
STRUCTURED = {"json": "`json`", "form": "`form`", "xml": "`json` or `form`", "html": "`json` or `form`"}
"""Content types, by a part of their names, whose syntax a value could break; and what encodes it instead."""


class HttpCall(HttpPolicy):
    """The request. Each value is encoded for its place: none can add a header, a host or a path segment."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    method: Method = "GET"
    url: Url
    query: dict[str, Any] = Field(default={})
    headers: Headers = Field(default={})
    json_: Any = Field(None, alias="json")
    form: dict[str, str] | None = None
    content_type: str | None = None
    body: str | None = None
    poll: Poll | None = None

    @field_validator("url")
    @classmethod
    def _check_host(cls, value: str) -> str:
        try:
            read_url(PLACEHOLDER.sub("x", value))
        except NetworkError as error:
            raise ValueError(str(error)) from None
        return value

    @field_validator("content_type")
    @classmethod
    def _check_content_type(cls, value: str | None) -> str | None:
        if any(find_names(value)):
            raise ValueError("the content type must be fixed: it takes no argument")
        return value

    @field_validator("body")
    @classmethod
    def _check_body(cls, value: str | None, others: ValidationInfo) -> str | None:
        """Return a raw body, which takes values as they are: one whose syntax they could break is fixed, or one
        placeholder."""
        name = next(find_names(value), None)
        if value is None or name is None or sole_name(value) is not None:
            return value
        headers = {key.lower(): each for key, each in others.data.get("headers", {}).items()}
        for kind in (others.data.get("content_type"), headers.get("content-type")):
            if kind is not None and (instead := _encoder_of(kind)):
                text = f"takes {{{{{name}}}}} as it is, and a value could break out of {kind}"
                raise ValueError(f"{text}; give the body by {instead}, or as one placeholder and nothing else")
        return value

    @model_validator(mode="after")
    def _check_one_body(self) -> "HttpCall":
        if len(self.bodies) > 1:
            raise ValueError(f"give one of json, form and body, not {' and '.join(self.bodies)}")
        if self.bodies and self.method in READS:
            raise ValueError(f"a {self.method} request carries no body")
        return self

    @model_validator(mode="after")
    def _check_poll(self) -> "HttpCall":
        if self.poll is None:
            return self
        for key, url in self.poll.urls():
            if read_origin(url) != read_origin(self.url):
                raise ValueError(f"poll/{key} must be at {read_origin(self.url)}, where the secrets of the call may go")
        if self.poll.started and self.poll.reads_answer():
            raise ValueError("an answer of poll/started has no part of the work: take call.key for started.NAME")
        return self

    @property
    def bodies(self) -> list[str]:
        """The kinds of body that the manifest gives."""
        return [name for name in BODIES if name.replace("json", "json_") in self.model_fields_set]

    def make_execute(self, *, reads: bool, checked: bool, idempotent: bool = False) -> Execute:
        """Return what the tool does. A response that is `checked` by an output_schema is taken as a whole only."""

        async def execute(given: Args, context: ToolContext) -> ToolResult:
            args = {KEY: make_key(context), **given}
            request = build_request(self, args)
            if self.poll is not None:
                return await PolledCall(self.poll, self, context, args, reads, idempotent).execute(request)
            response = await send(request, self, context)
            if checked and response.truncated and response.status < 400:
                return refuse_truncated("the server", self, reads=reads)
            return read_response(response, reads=reads)

        return execute


def _encoder_of(content_type: str) -> str | None:
    """Return the kind of body that encodes values for this content type; None for plain text."""
    bare = content_type.partition(";")[0].strip().lower()
    found = next((instead for part, instead in STRUCTURED.items() if part in bare), None)
    return "`json` or `form`" if found is None and any(find_names(content_type)) else found


def build_request(call: HttpCall, args: Args) -> Request:
    """Return the request with these arguments; ToolError for a value that cannot be a part of it."""
    content, kind = _build_content(call, args)
    headers = {"content-type": call.content_type or kind} if kind else {}
    for name, template in call.headers.items():
        value = fill_value(template, args)
        if value is not ABSENT:
            headers[name.lower()] = encode_header(name, to_text(value))
    return Request(call.method, fill_url(call.url, call.query, args), headers, content)


def _build_content(call: HttpCall, args: Args) -> tuple[bytes | None, str | None]:
    match call.bodies:
        case ["json"]:
            value = fill_value(call.json_, args)
            return json.dumps(None if value is ABSENT else value, ensure_ascii=False).encode(), "application/json"
        case ["form"]:
            return encode_pairs(list_pairs(call.form or {}, args)).encode(), "application/x-www-form-urlencoded"
        case ["body"]:
            return fill_text(call.body or "", args).encode(), "text/plain; charset=utf-8"
        case _:
            return None, None
