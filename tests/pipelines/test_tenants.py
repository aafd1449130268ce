"""Tenants of executions: allow-list, explicit rule, concurrency, and reads that see one tenant only."""

import threading
from collections.abc import Iterator

import pytest

from tests.support.facts import one
from windlass import ExecutionNotFoundError, ExecutionStatus, InvalidOptionError, KeyPolicy, Windlass

RUN = 60.0


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


def test_execution_of_another_tenant_looks_as_if_it_did_not_exist(app: Windlass):
    """P3.3: in get, find, handles and verbs."""
    shop = app.pipeline("shop", version="1")

    @shop.step
    def echo(number: int) -> int:
        return number

    run = shop.submit(1, tenant="acme")
    assert app.executions.get(run.id, tenant="acme").tenant == "acme"
    assert [found.id for found in app.executions.find(tenant="acme")] == [run.id]
    assert app.executions.find().items == []
    for other in ("default", "other"):
        with pytest.raises(ExecutionNotFoundError, match=other):
            app.executions.get(run.id, tenant=other)
        stranger = app.executions.handle(run.id, tenant=other)
        for verb in (stranger.status, stranger.cancel, stranger.pause, stranger.resume):
            with pytest.raises(ExecutionNotFoundError):
                verb()
    assert run.status() is ExecutionStatus.QUEUED


def test_a_tenant_that_may_not_submit_is_refused_before_anything_is_stored(app: Windlass, store_url: str):
    """P3.3: the allow-list, the explicit rule, and what a tenant may look like."""
    shop = app.pipeline("shop", version="1", tenants=["acme"], require_tenant=True)

    @shop.step
    def echo(number: int) -> int:
        return number

    for tenant, why in ((None, "needs a tenant"), ("other", "accepts the tenants acme"), ("", "empty")):
        with pytest.raises(InvalidOptionError, match=why):
            shop.submit(1, tenant=tenant)
    with pytest.raises(InvalidOptionError, match="255"):
        shop.submit(1, tenant="x" * 256)
    with pytest.raises(InvalidOptionError, match="did you mean 'tenant'"):
        shop.submit(1, tenat="acme")  # type: ignore[call-arg]
    assert one(store_url, "SELECT count(*) FROM windlass_execution") == 0
    assert shop.submit(1, tenant="acme").status() is ExecutionStatus.QUEUED


def test_key_policies_require_a_key_or_make_one(app: Windlass):
    """P3.2: KEY_REQUIRED refuses a submission without a key; SERVER_KEY goes by tenant and input alone."""
    strict = app.pipeline("strict", version="1", key_policy=KeyPolicy.KEY_REQUIRED)
    server = app.pipeline("server", version="1", key_policy=KeyPolicy.SERVER_KEY)

    for pipeline in (strict, server):

        @pipeline.step
        def echo(raw: dict) -> dict:
            return raw

    with pytest.raises(InvalidOptionError, match="needs a key"):
        strict.submit({"a": 1})
    assert strict.submit({"a": 1}, key="k").duplicate is False
    first = server.submit({"a": 1, "b": 2}, key="ignored")
    assert server.submit({"b": 2, "a": 1}, key="other").id == first.id
    assert server.submit({"b": 2, "a": 1}, tenant="acme").id != first.id
    assert server.submit({"b": 3, "a": 1}).id != first.id


@pytest.mark.parametrize("items", [False, True])
def test_no_more_executions_of_a_tenant_run_at_a_time_than_its_concurrency(app: Windlass, items: bool):
    """P3.3: counted for each tenant, in the whole cluster; items of an execution count too."""
    shop = app.pipeline("shop", version="1", tenant_concurrency=2)
    running: dict[str, int] = {"a": 0, "b": 0}
    most: dict[str, int] = {"a": 0, "b": 0}
    guard, go_on = threading.Lock(), threading.Event()

    if items:

        @shop.expand
        def one_item(tenant: str) -> Iterator[str]:
            yield tenant

    @shop.step
    def work(tenant: str) -> str:
        with guard:
            running[tenant] += 1
            most[tenant] = max(most[tenant], running[tenant])
            if running == {"a": 2, "b": 2}:
                go_on.set()
        assert go_on.wait(RUN)
        with guard:
            running[tenant] -= 1
        return tenant

    with app.worker(concurrency=20):
        runs = [shop.submit(tenant, tenant=tenant) for tenant in "ab" * 6]
        assert [run.join(RUN) for run in runs] == [ExecutionStatus.SUCCEEDED] * 12
    assert most == {"a": 2, "b": 2}


def test_step_with_a_resource_is_refused_in_a_pipeline_with_tenant_concurrency(app: Windlass):
    """P3.3, P1.3: a job holds permits of one resource."""
    shop = app.pipeline("shop", version="1", tenant_concurrency=2)
    with pytest.raises(InvalidOptionError, match="tenant_concurrency"):

        @shop.step(resource="bank")
        def pay(number: int) -> int:
            return number
