"""Where runs are kept: the journal, an index to list them by, the leases on them, and what a server keeps beside."""
