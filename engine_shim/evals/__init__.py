"""Measuring a model: cases with what is expected of them, a small world to ask about, and how well it was done."""
