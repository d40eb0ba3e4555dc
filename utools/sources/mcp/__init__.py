"""MCP servers as a source of tools: started or reached, watched, bounded, and approved by their operator."""
