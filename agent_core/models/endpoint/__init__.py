"""Endpoints: what all APIs of models share."""
