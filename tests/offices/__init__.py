"""Offices that an agent works in: honest tasks, and attacks by a model that was talked over."""
