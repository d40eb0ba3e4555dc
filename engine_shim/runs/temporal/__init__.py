"""Runs on Temporal: the recorder walks in a workflow, and whatever touches the outside world is an activity."""
