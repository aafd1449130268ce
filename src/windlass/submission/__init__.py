"""From a call to a row: what is called (`target`, `registry`), with what (`signature`, `codec`), and how (`call`)."""
