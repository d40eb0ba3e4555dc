"""Conversations: stored by turns, and prepared for a model."""
