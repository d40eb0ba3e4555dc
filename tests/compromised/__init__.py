"""A compromised model at work in every workflow that ships as an example."""
