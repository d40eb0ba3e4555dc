"""The MCP server: workflows and agents of a host as tools, over standard streams and streamable HTTP."""
