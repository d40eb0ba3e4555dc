"""What utools says to a model: a class of texts for each language."""
