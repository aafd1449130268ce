"""The verbs of an application on jobs: submit, wait, find, move and re-drive them."""
