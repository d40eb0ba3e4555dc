"""Tools that come from elsewhere: manifests, MCP servers, OpenAPI documents, other hosts."""
