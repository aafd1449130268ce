"""What tests of and with Windlass need: servers to run against, clocks to move, stores to check."""
