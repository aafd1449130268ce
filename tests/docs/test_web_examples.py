"""The web programs of `examples/` do what their pages say."""

import importlib.util
import sqlite3
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest

from tests.docs.pages import ROOT
from tests.support.waiting import until

EXAMPLES = ROOT / "examples"
LONG = 90


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module of an example, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    name = str(request.param)
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    yield module
    module.jobs.close()


def orders(folder: Path) -> int:
    connection = sqlite3.connect(folder / "shop.db")
    count = connection.execute("SELECT count(*) FROM orders").fetchone()[0]
    connection.close()
    return int(count)


@pytest.mark.parametrize("example", ["fastapi_shop"], indirect=True)
def test_the_fastapi_program_runs_its_jobs_in_its_lifespan_and_can_be_started_again(
    example: ModuleType, tmp_path: Path
):
    """J10.3, J10.5: an order and its job are one transaction; after `aclose` the application opens again."""
    from fastapi.testclient import TestClient

    for number in (1, 2):
        with TestClient(example.web) as client:
            accepted = client.post("/orders", params={"item": "lamp"})
            assert accepted.status_code == 202
            address = f"/jobs/{accepted.json()['job']}"
            until(partial(over, client, address), "the job to end", LONG)
            assert client.get(address).json()["result"] == f"charged order {number}"
            assert client.post("/orders", params={"item": "nothing"}).status_code == 422
            assert client.get("/jobs/0198c0de-0000-7000-8000-000000000001").status_code == 404
        assert orders(tmp_path) == number
    assert len(example.jobs.find().items) == 2, "what was rolled back left no job"


@pytest.mark.parametrize("example", ["approval_page"], indirect=True)
def test_the_approval_page_answers_what_waits(example: ModuleType):
    """P8.1, P8.2: a form holds the token; a second click shows the first answer, a changed token is refused."""
    from fastapi.testclient import TestClient

    with TestClient(example.web) as client:
        refund = client.post("/refunds", params={"amount": 120}).json()["refund"]
        until(lambda: "Refund 120?" in client.get("/").text, "the refund to wait", LONG)
        assert client.get(f"/refunds/{refund}").json()["status"] == "WAITING_EXTERNAL"
        token = client.get("/").text.partition('name="token" value="')[2].partition('"')[0]
        given = {"token": token, "approved": "true", "by": "<Ada>"}
        assert "is approved by &lt;Ada&gt;" in client.post("/answers", data=given).text
        assert (
            "was already approved by &lt;Ada&gt;" in client.post("/answers", data={**given, "approved": "false"}).text
        )
        assert client.post("/answers", data={**given, "token": f"{token}x"}).status_code == 403
        until(partial(over, client, f"/refunds/{refund}"), "the refund to be paid", LONG)
        refuses_what_is_no_answer(example, client)
        assert client.get(f"/refunds/{refund}").json()["result"] == "paid: <Ada> agreed"
        assert client.get("/").text.endswith("none")


def refuses_what_is_no_answer(example: ModuleType, client: Any) -> None:
    """A form without a decision, a body that is no text, an id that is none, a refund that was canceled."""
    refund = client.post("/refunds", params={"amount": 7}).json()["refund"]
    until(lambda: "Refund 7?" in client.get("/").text, "the refund to wait", LONG)
    (wait,) = example.jobs.executions.pending("refunds")
    answers: list[dict[str, Any]] = [
        {"data": {"token": wait.token, "by": "Ada"}},
        {"content": b"token=\xff"},
        {"content": b""},
    ]
    assert [client.post("/answers", **one).status_code for one in answers] == [422, 422, 422]
    assert client.get(f"/refunds/{refund}").json()["status"] == "WAITING_EXTERNAL"
    example.jobs.executions.handle(refund).cancel()
    assert client.post("/answers", data={"token": wait.token, "approved": "true"}).status_code == 410
    assert [client.get(f"/refunds/{name}").status_code for name in ("7", str(uuid4()))] == [422, 404]


def over(client: Any, address: str) -> bool:
    job = client.get(address).json
    return bool((job() if callable(job) else job)["status"] == "SUCCEEDED")


@pytest.mark.parametrize("example", ["flask_shop"], indirect=True)
def test_the_flask_program_enqueues_in_the_transaction_of_its_request(example: ModuleType, tmp_path: Path):
    """J10.3: with `use_connection`; a worker elsewhere runs the job."""
    client = example.web.test_client()
    accepted = client.post("/orders?item=lamp")
    assert accepted.status_code == 202
    address = f"/jobs/{accepted.json['job']}"
    assert client.get(address).json["status"] == "PENDING"
    with example.jobs.worker():
        until(partial(over, client, address), "the job to end", LONG)
    assert client.get(address).json["result"] == "charged order 1"
    assert orders(tmp_path) == 1
    assert client.get("/jobs/0198c0de-0000-7000-8000-000000000001").status_code == 404


def test_every_example_is_named_by_the_page_of_its_folder():
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"`{path.name}`" in listed for path in EXAMPLES.glob("*.py"))
