"""HTTP and addresses: what a tool may reach, checked on the address that is connected to."""
