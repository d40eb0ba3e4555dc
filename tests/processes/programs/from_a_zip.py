"""Runs of an agent and of a workflow, with packages that lie in a zip file."""

import asyncio

from asking import ask

import agent_core
import engine_shim
import utools
from engine_shim import Engine, MemoryRunStore
from engine_shim.web.bundle import join_modules
from utools.builtin.formatter import render

assert all(".zip" in str(each.__file__) for each in (agent_core, engine_shim, utools))
print(ask())
node = {"id": "a", "tool": "calculator", "config": {"expression": "3 * 4"}}
result = Engine(store=MemoryRunStore()).run_sync({"id": "f", "nodes": [node], "outputs": {"result": "{{nodes.a}}"}})
print(result.status, result.outputs)
print(len(join_modules("app.js")) > 10_000, asyncio.run(render("{{ a }} pieces", {"a": 12})))
