"""Where the values of a call come from, and whether that will do."""
