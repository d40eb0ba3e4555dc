"""The journal: checkpoint, audit record, and the tape of a replay."""
