"""The loop of an agent run: it asks, reads, judges and decides. Pure."""
