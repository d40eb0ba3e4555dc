"""What a model reads: templates per language, and how they are filled in."""
