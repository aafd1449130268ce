"""What an application does with jobs from outside: submit, follow, find, move and re-drive them."""
