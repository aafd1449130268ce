"""A FastAPI page for people who approve refunds: each refund is an execution that waits for a click.

uvicorn approval_page:web
curl -X POST 'http://127.0.0.1:8000/refunds?amount=120'
Then open http://127.0.0.1:8000/

There is no login here: whoever can open the page can approve.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import escape
from urllib.parse import parse_qs
from uuid import UUID

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse

from windlass import (
    AwaitTimeoutError,
    ExecutionNotFoundError,
    ExecutionStateError,
    InvalidTokenError,
    WaitNotFoundError,
    Windlass,
)

jobs = Windlass("sqlite:///refunds.db")
refunds = jobs.pipeline("refunds", version="1")


@dataclass
class Approval:
    approved: bool
    by: str


@refunds.await_external(timeout=7 * 86_400, answer=Approval)
async def ask(amount: int) -> dict[str, int]:
    """What is returned is shown on the page; a mail with a link would be sent here, with `ctx.token` in it."""
    return {"amount": amount}


@refunds.step
async def pay(approval: Approval) -> str:
    return f"paid: {approval.by} agreed" if approval.approved else f"refused by {approval.by}"


@asynccontextmanager
async def lifespan(web: FastAPI) -> AsyncIterator[None]:
    async with jobs.worker(concurrency=10, drain_timeout=5):
        yield
    await jobs.aclose()


web = FastAPI(lifespan=lifespan)


@web.post("/refunds", status_code=202)
async def refund(amount: int) -> dict[str, str]:
    run = await refunds.asubmit(amount)
    return {"refund": str(run.id)}


@web.get("/refunds/{refund_id}")
async def status(refund_id: UUID) -> dict[str, str | None]:
    try:
        found = await jobs.executions.aget(refund_id)
    except ExecutionNotFoundError as error:
        raise HTTPException(404, "there is no such refund") from error
    return {"status": found.status, "result": found.result}


@web.get("/", response_class=HTMLResponse)
async def page() -> str:
    """Show what waits. The token is in the form, not in its address: addresses are logged.

    A button that is disabled comes first: Enter in the field would press it, instead of approving.
    """
    waits = await jobs.executions.apending(pipeline="refunds")
    forms = "".join(
        f"""<form method="post" action="/answers">
        Refund {wait.request["amount"]}? Until {wait.deadline:%Y-%m-%d %H:%M} UTC.
        <input type="hidden" name="token" value="{escape(wait.token)}"><button disabled hidden></button>
        <input name="by" placeholder="your name" required maxlength="100">
        <button name="approved" value="true">approve</button> <button name="approved" value="false">refuse</button>
        </form>"""
        for wait in waits
    )
    return f"<!doctype html><title>Refunds</title><h1>Refunds that wait</h1>{forms or 'none'}"


@web.post("/answers", response_class=HTMLResponse)
async def answer(request: Request) -> str:
    sent = parse_qs((await request.body()).decode(errors="replace"))
    form = {name: values[0] for name, values in sent.items()}
    decision = {"true": True, "false": False}.get(form.get("approved", ""))
    if decision is None:
        raise HTTPException(422, "press one of the buttons")
    approval = Approval(decision, form.get("by", "somebody")[:100])
    try:
        done = await jobs.executions.acomplete(form.get("token", ""), approval)
    except InvalidTokenError as error:
        raise HTTPException(403, "this form is not valid any more; open the page again") from error
    except AwaitTimeoutError as error:
        raise HTTPException(410, "it is too late for an answer") from error
    except (ExecutionStateError, WaitNotFoundError) as error:
        raise HTTPException(410, "the refund does not wait any more; open the page again") from error
    was = "was already" if done.duplicate else "is"
    decided = "approved" if done.answer.approved else "refused"
    return (
        f'<!doctype html><title>Refunds</title>The refund {was} {decided} by {escape(done.answer.by)}. <a href="/">Back'
    )
