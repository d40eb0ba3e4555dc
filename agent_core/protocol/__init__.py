"""What a model may write, and how it is read: the Action/Final protocol and its two dialects. Pure."""
