"""Runs on Temporal: the recorder walks in a workflow, and whatever touches the backend is an activity."""
