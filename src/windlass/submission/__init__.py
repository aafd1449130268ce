"""From a call to a row.

The function (`target`, `registry`), its arguments (`signature`, `codec`), the call (`call`).
"""
