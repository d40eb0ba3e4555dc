"""Contracts: the rules of the seams of this package, as functions that try any implementation of them."""
