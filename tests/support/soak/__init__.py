"""A soak: real processes on a real PostgreSQL that are disturbed at random, and outside counters that judge them."""
