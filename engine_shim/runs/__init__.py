"""Runs of workflows and where they are kept."""
