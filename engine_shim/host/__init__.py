"""The host: its configuration file, where it is found, and what it offers to workflows."""
