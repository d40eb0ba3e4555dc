"""Loaded: what sources of tools give a host: the tools that can be used, and what is left out. Pure."""

from dataclasses import dataclass, field

from utools.left_out import LeftOut
from utools.tool import Tool


@dataclass(slots=True)
class Loaded:
    """The tools, and the sources and single tools that the host has to do without."""

    tools: list[Tool] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
