"""A FastAPI program that takes orders: the order and its job are one transaction, the worker runs in the same process.

uvicorn fastapi_shop:web
curl -X POST 'http://127.0.0.1:8000/orders?item=lamp'
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, FastAPI, HTTPException
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from windlass import JobNotFoundError, Windlass, sqlite

jobs = Windlass("sqlite:///shop.db")
engine = create_async_engine("sqlite+aiosqlite:///shop.db")
sessions = async_sessionmaker(engine)


@event.listens_for(engine.sync_engine, "connect")
def prepare(connection: Any, _: object) -> None:
    """Let SQLAlchemy's connections share the file with Windlass; PostgreSQL needs nothing of the kind."""
    sqlite.prepare(connection)


@jobs.job(max_retries=3)
async def charge(order: int) -> str:
    return f"charged order {order}"


@asynccontextmanager
async def lifespan(web: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)"))
    async with jobs.worker(concurrency=10, drain_timeout=5):
        yield
    await jobs.aclose()
    await engine.dispose()


web = FastAPI(lifespan=lifespan)


async def session() -> AsyncIterator[AsyncSession]:
    async with sessions.begin() as opened:  # commits when the request is done, rolls back if it raises
        yield opened


@web.post("/orders", status_code=202)
async def order(item: str, session: Annotated[AsyncSession, Depends(session, scope="function")]) -> dict[str, str]:
    added = await session.execute(text("INSERT INTO orders (item) VALUES (:item) RETURNING id"), {"item": item})
    with jobs.use_connection(session):  # every job that is enqueued in here belongs to the session's transaction
        handle = await charge.aenqueue(added.scalar_one())
    if item == "nothing":
        raise HTTPException(422, "nothing was ordered")  # the order and its job are both rolled back
    return {"job": str(handle.id)}


@web.get("/jobs/{job_id}")
async def job(job_id: UUID) -> dict[str, Any]:
    try:
        found = await jobs.aget(job_id)
    except JobNotFoundError as unknown:
        raise HTTPException(404, str(unknown)) from None
    return {"status": found.status, "result": found.result, "error": found.error}
