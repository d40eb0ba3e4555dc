"""Contracts: the rules of each seam, as functions that try any implementation of it."""
