"""Commands that serve: over HTTP, over MCP, as a worker; and the tokens of a server."""
