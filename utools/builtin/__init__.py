"""The built-in tools, one module per family; each has a factory that returns its Tool."""

import os
from typing import TYPE_CHECKING

from utools.builtin.calculator import calculator
from utools.builtin.echo import echo
from utools.builtin.email import email
from utools.builtin.feishu_bot import feishu_bot
from utools.builtin.file_search import file_search
from utools.builtin.files import read_file, write_file
from utools.builtin.formatter import formatter
from utools.builtin.health import health
from utools.builtin.http_request import http_request
from utools.builtin.json_transform import json_transform
from utools.builtin.log_transform import log_transform
from utools.builtin.redis_context import redis_context
from utools.builtin.respond import respond
from utools.builtin.set_values import set_values
from utools.builtin.shell_command import shell_command
from utools.builtin.wait import wait
from utools.context.manager import context_manager
from utools.context.open_store import open_context_store
from utools.tool import Tool

if TYPE_CHECKING:
    from utools.context.store import ContextStore
    from utools.context.summary import Summarise

__all__ = [
    "builtin_tools",
    "calculator",
    "context_manager",
    "echo",
    "email",
    "feishu_bot",
    "file_search",
    "formatter",
    "health",
    "http_request",
    "json_transform",
    "log_transform",
    "read_file",
    "redis_context",
    "respond",
    "set_values",
    "shell_command",
    "wait",
    "write_file",
]


def builtin_tools(
    root: str | os.PathLike[str] = ".",
    *,
    context_store: "ContextStore | None" = None,
    summarise: "Summarise | None" = None,
) -> list[Tool]:
    """Return all built-in tools; file tools see nothing outside `root`."""
    return [
        calculator(),
        context_manager(context_store or open_context_store(), summarise=summarise),
        echo(),
        email(root),
        feishu_bot(),
        file_search(root),
        formatter(),
        health(root),
        http_request(),
        json_transform(),
        log_transform(root),
        read_file(root),
        redis_context(),
        respond(),
        set_values(),
        shell_command(root),
        wait(),
        write_file(root),
    ]
