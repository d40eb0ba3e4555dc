"""The Chinese of the texts that tools say to a model, by their English templates."""
