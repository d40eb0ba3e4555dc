"""What the code of an agent's run says to its model: English in a class, each other language in a file."""
