"""A Flask program that takes orders; a worker in a process of its own charges them.

flask --app flask_shop run
windlass worker flask_shop:jobs
curl -X POST 'http://127.0.0.1:5000/orders?item=lamp'
"""

import sqlite3
from typing import Any
from uuid import UUID

from flask import Flask, abort, g, request

from windlass import JobNotFoundError, Windlass, sqlite

jobs = Windlass("sqlite:///shop.db")
web = Flask(__name__)


@jobs.job(max_retries=3)
def charge(order: int) -> str:
    return f"charged order {order}"


def database() -> sqlite3.Connection:
    """The connection of this request."""
    if "database" not in g:
        g.database = sqlite3.connect("shop.db")
        sqlite.prepare(g.database)
        g.database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)")
    connection: sqlite3.Connection = g.database
    return connection


@web.teardown_appcontext
def close_database(error: BaseException | None) -> None:
    if "database" in g:
        g.database.close()


@web.post("/orders")
def order() -> tuple[dict[str, str], int]:
    connection = database()
    with connection, jobs.use_connection(connection):  # one transaction: the order, and its job
        added = connection.execute("INSERT INTO orders (item) VALUES (?)", (request.args["item"],))
        handle = charge.enqueue(added.lastrowid or 0)
    return {"job": str(handle.id)}, 202


@web.get("/jobs/<uuid:job_id>")
def job(job_id: UUID) -> dict[str, Any]:
    try:
        found = jobs.get(job_id)
    except JobNotFoundError as unknown:
        abort(404, str(unknown))
    return {"status": found.status, "result": found.result, "error": found.error}
