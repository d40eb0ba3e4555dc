"""The API reference: Markdown pages of all public names, made from their docstrings."""
