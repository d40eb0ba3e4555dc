"""Talking with an agent at a terminal, and the conversations that a host stores."""
