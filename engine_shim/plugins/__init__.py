"""Our node in other workflow engines: each is thin over `agent_core.node`, and has an extra of its own."""
