"""One attempt, read top to bottom: poller, slots, runner, invoke, verdict, completer."""
