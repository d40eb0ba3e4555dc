"""The loop of a workflow run. Pure."""
