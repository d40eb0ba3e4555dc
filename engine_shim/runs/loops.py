"""LOOPS: the loop of each kind of run, by its name in `run_started` records."""

from agent_core.loop.agent import AGENT_LOOPS
from engine_shim.flow.flow import flow

LOOPS = {**AGENT_LOOPS, "flow": flow}
