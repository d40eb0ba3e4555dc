"""The engine, and where runs are stored."""
