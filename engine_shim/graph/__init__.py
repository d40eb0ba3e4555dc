"""The graph of a workflow, all pure but for reading the file."""
