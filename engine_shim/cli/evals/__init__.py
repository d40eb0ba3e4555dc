"""Commands that measure a model on cases."""
