"""Encryption: a store in which nothing can be read without the operator's key, and what was erased by nobody."""
