"""What all calls of one host share: cached answers and rate limits."""
