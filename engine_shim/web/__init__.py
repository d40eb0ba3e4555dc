"""Pages for people: what they are made of, and a run as one page that proves itself."""
