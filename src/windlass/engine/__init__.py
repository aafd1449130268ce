"""One attempt, read top to bottom: poller, coordinator, runner, invoke, verdict, completer."""
