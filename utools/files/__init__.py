"""Files below one root, and the paths that no tool touches."""
