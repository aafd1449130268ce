"""An order and its job are one transaction: both are stored, or neither is.

python order_and_job.py      # prints:

    order 1 is stored, and so is its job: charged order 1
    order 2 was rolled back: 1 order, 1 job
"""

import sqlite3
from contextlib import closing

from windlass import Windlass, sqlite

jobs = Windlass("sqlite:///orders.db")


@jobs.job
def charge(order: int) -> str:
    return f"charged order {order}"


def place(connection: sqlite3.Connection, item: str) -> str:
    """Store an order and the job that charges it."""
    with connection, jobs.use_connection(connection):  # commits at the end, or rolls back
        added = connection.execute("INSERT INTO orders (item) VALUES (?)", (item,))
        handle = charge.enqueue(added.lastrowid or 0)
        if item == "nothing":
            raise ValueError("the item is sold out")
    return str(handle.id)


def main() -> None:
    with closing(sqlite3.connect("orders.db")) as connection:
        sqlite.prepare(connection)  # makes it safe to write beside workers
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)")
        job = place(connection, "lamp")
        with jobs.worker():
            print(f"order 1 is stored, and so is its job: {jobs.handle(job).result(timeout=30)}")
        try:
            place(connection, "nothing")
        except ValueError:
            (orders,) = connection.execute("SELECT count(*) FROM orders").fetchone()
            print(f"order 2 was rolled back: {orders} order, {len(jobs.find().items)} job")
    jobs.close()


if __name__ == "__main__":
    main()
