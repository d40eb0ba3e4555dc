"""What the code of an agent's run says to its model: a class of texts for each language."""
