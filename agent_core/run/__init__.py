"""Driving a run: the only room that acts."""
