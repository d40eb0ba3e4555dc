"""Runs of an agent and of a workflow, with packages that lie in a zip file."""

from asking import ask

import agent_core
import engine_shim
import utools
from engine_shim import Engine, MemoryRunStore

assert all(".zip" in str(each.__file__) for each in (agent_core, engine_shim, utools))
print(ask())
node = {"id": "a", "tool": "calculator", "config": {"expression": "3 * 4"}}
result = Engine(store=MemoryRunStore()).run_sync({"id": "f", "nodes": [node], "outputs": {"result": "{{nodes.a}}"}})
print(result.status, result.outputs)
