"""Stand-ins of vendors' APIs on loopback, by the request and response types of each vendor's own SDK."""
