"""One module per database: how to connect, claim, insert in bulk, notify, and what its errors mean."""
