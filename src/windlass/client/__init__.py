"""What an application does with jobs from outside: submit them, follow them, read them."""
