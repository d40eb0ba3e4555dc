"""Commands about what was recorded: lists, records, proofs, replays, and what is deleted."""
