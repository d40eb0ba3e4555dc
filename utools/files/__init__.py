"""Files below one root, and none that the host goes by."""
