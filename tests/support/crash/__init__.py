"""Programs that are killed, and what judges the runs that they leave."""
