"""The engine: the life of an attempt through poller, slots, runner, invoke, verdict and completer."""
