"""Runs on Temporal: the recorder walks in a workflow, and whatever touches the world is an activity."""
