"""JSON Schemas: compiled once, every fault of a value reported. Pure."""
