"""Measuring a model: cases with expected calls and answers, a small world of tools, scores."""
