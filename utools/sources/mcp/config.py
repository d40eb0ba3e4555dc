"""The configuration of an MCP server: how to reach it, what it may know, how far it is trusted."""

import os
from typing import ClassVar

from pydantic import BaseModel, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from utools.schema.host_keys import HostKeys
from utools.sources.headers import Headers
from utools.sources.http_call import Url

ONLY_WITH = {"command": {"env", "cwd"}, "url": {"headers", "token_env", "secret_headers"}}


class McpServer(HostKeys, BaseModel):
    """Either a `command`, which is started and speaks over its standard streams, or the `url` of a running server.

    `env` names the variables that a started server gets, besides PATH, HOME, USER, LOGNAME, SHELL and TERM; the values
    of those that look secret (`GITHUB_TOKEN`, a URL with a password) are removed from what it sends.
    `token_env` and `secret_headers` name secrets. `tools` are globs of the tools that are taken.
    `read_only` are globs of the tools that only read; each matches a tool.
    `trust_annotations` believes the server when it says that a tool only reads, or can be called twice.
    """

    bounds: ClassVar = ("tools",)

    command: list[str] | None = Field(None, min_length=1)
    env: list[str] = []
    cwd: str | None = None
    url: Url | None = None
    headers: Headers = {}
    token_env: str | None = None
    secret_headers: Headers = {}
    tools: list[str] = ["*"]
    read_only: list[str] = []
    trust_annotations: bool = False
    timeout: float = Field(60.0, gt=0, le=86_400)
    start_timeout: float = Field(30.0, gt=0, le=600)

    @property
    def secret_names(self) -> list[str]:
        """The secrets that are sent with each request."""
        return sorted({*self.secret_headers.values(), *filter(None, [self.token_env])})

    @property
    def unset(self) -> list[str]:
        """The variables that a started server does not get, since the host has none of these names."""
        return [name for name in self.env if name not in os.environ]

    @field_validator("env")
    @classmethod
    def _check_names(cls, value: list[str]) -> list[str]:
        if wrong := [name.partition("=")[0] for name in value if not name or "=" in name]:
            raise PydanticCustomError(
                "value_not_shown",
                "these are names of variables, such as CITY; values belong in the host's environment:"
                " give {name} alone",
                {"name": wrong[0]},
            )
        return value

    @model_validator(mode="after")
    def _check_one_transport(self) -> "McpServer":
        if (self.command is None) == (self.url is None):
            raise ValueError("give either a command, to be started, or a url")
        kind, other = ("command", "url") if self.command is not None else ("url", "command")
        misplaced = sorted(self.model_fields_set & ONLY_WITH[other])
        if misplaced:
            raise ValueError(f"{' and '.join(misplaced)} can be given with a {other} only, not with a {kind}")
        return self
