"""Workflow definitions: read and checked."""
