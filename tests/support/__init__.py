"""What the tests share: helpers, servers, and the programs that tests start."""
