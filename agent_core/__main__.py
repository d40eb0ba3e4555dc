"""`python -m agent_core`: the command line, where its script `agent-core` is not on the path."""

from importlib.metadata import entry_points

(script,) = entry_points(group="console_scripts", name="agent-core")
script.load()()
