"""MCP servers that tests talk to: `faulty` over standard streams, `scripted` and `over_http` over HTTP."""

from pathlib import Path

FAULTY = str(Path(__file__).with_name("faulty.py"))
OVER_HTTP = str(Path(__file__).with_name("over_http.py"))
