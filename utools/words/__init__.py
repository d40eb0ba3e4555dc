"""What utools says to a model: English in classes and templates, each other language in a file."""
