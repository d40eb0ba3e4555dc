"""The command doctor: whether all that this host needs is there and sound. It looks, and writes nothing."""
