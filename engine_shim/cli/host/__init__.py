"""Commands about what a host offers: agents, tools, definitions; and how a project begins."""
