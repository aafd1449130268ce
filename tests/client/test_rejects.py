"""`app.rejects` on every store: pages, filters, groups, and re-drives."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from windlass import (
    ExecutionStatus,
    InvalidOptionError,
    JobFailedError,
    NotAuthorizedError,
    PayloadNotKeptError,
    Pipeline,
    RejectItem,
    Windlass,
)
from windlass.testing import drain, isolated

RUN = 60.0


@dataclass
class Line:
    number: int


@dataclass
class Priced:
    number: int


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = Windlass(store_url)
    application.migrate()
    yield application
    application.close()


class Shop:
    """Prices lines; those in `bad` are rejected."""

    def __init__(self, app: Windlass, name: str = "shop", **options: Any) -> None:
        self.bad: set[int] = set()
        self.priced: list[int] = []
        self.pipeline: Pipeline = app.pipeline(name, version="1", **options)

        @self.pipeline.expand
        def lines(numbers: list[int]) -> Iterator[Line]:
            return map(Line, numbers)

        @self.pipeline.step
        def price(line: Line) -> Priced:
            if line.number in self.bad:
                raise RejectItem("no price") if line.number % 2 else RejectItem("no line")
            self.priced.append(line.number)
            return Priced(line.number)

        @self.pipeline.reduce
        def total(priced: Iterable[Priced]) -> list[int]:
            return [one.number for one in priced]


def run(app: Windlass, shop: Shop, numbers: Iterable[int], **options: Any) -> Any:
    with app.worker():
        return shop.pipeline.submit(list(numbers), **options).result(RUN)


def test_pages_list_all_rejects_the_latest_first(app: Windlass):
    """P5.4: in the order of rejection."""
    shop = Shop(app)
    shop.bad = set(range(30))
    run(app, shop, range(30))
    found, cursor = [], None
    while True:
        page = app.rejects.find(limit=7, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len({one.id for one in found}) == 30
    times = [(one.rejected_at_epoch_ms, str(one.id)) for one in found]
    assert [time for time, _ in times] == sorted((time for time, _ in times), reverse=True)
    assert len(asyncio.run(app.rejects.afind())) == 30


def test_every_filter_narrows_the_search(app: Windlass):
    """P5.4: tenant, pipeline, step, fingerprint, error class, execution and time, alone and together."""
    shop, other = Shop(app), Shop(app, "other")
    shop.bad = other.bad = {1}
    with app.worker():
        first = shop.pipeline.submit([1, 2], tenant="acme")
        second = other.pipeline.submit([1])
        first.result(RUN)
        second.result(RUN)
    (reject,) = app.rejects.find(tenant="acme")
    assert reject.pipeline == "shop"
    find = app.rejects.find
    assert len(find(fingerprint=reject.item_fingerprint)) == 2
    assert len(find(fingerprint=reject.item_fingerprint, tenant="default")) == 1
    assert [one.execution_id for one in find(execution_id=second.id)] == [str(second.id)]
    assert [one.pipeline for one in find(pipeline="other")] == ["other"]
    assert [one.pipeline for one in find(pipeline="shop", step="price")] == ["shop"]
    assert len(find(step="price")) == 2
    assert len(find(error_class="RejectItem")) == 2
    assert len(find(error_class="ValueError")) == 0
    assert len(find(pipeline="shop", step="total")) == 0
    hour = timedelta(hours=1)
    now = app.parts.clock.now()
    assert len(find(created_after=now - hour, created_before=now + hour)) == 2
    assert len(find(created_after=now + hour)) == len(find(created_before=now - hour)) == 0


def test_bad_filters_are_refused(app: Windlass):
    """P5.4: an unknown filter would find more than was meant."""
    with pytest.raises(InvalidOptionError, match="did you mean 'pipeline'"):
        app.rejects.find(pipelin="shop")  # type: ignore[call-arg]
    with pytest.raises(InvalidOptionError, match="aware datetime"):
        app.rejects.find(created_after=datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point
    with pytest.raises(InvalidOptionError, match="by must be one of fingerprint, error_class, step"):
        app.rejects.groups("reason")
    with pytest.raises(InvalidOptionError, match="cursor"):
        app.rejects.find(cursor="x")
    with pytest.raises(InvalidOptionError, match="rate"):
        app.rejects.redrive(rate=0)


def test_groups_have_their_share(app: Windlass):
    """P5.4: by fingerprint, error class and step; the largest first."""
    shop = Shop(app)
    shop.bad = {1, 2}
    with app.worker():
        for numbers in ([1, 2, 3], [1], [1]):
            shop.pipeline.submit(numbers).result(RUN)
    groups = app.rejects.groups()
    assert [(group.count, group.share, group.sample) for group in groups] == [
        (3, 0.75, "RejectItem: no price"),
        (1, 0.25, "RejectItem: no line"),
    ]
    assert groups[0].first_at <= groups[0].last_at
    assert app.rejects.find(fingerprint=groups[0].key).items[0].error_message == groups[0].sample
    assert [(group.key, group.count, group.share) for group in app.rejects.groups("error_class")] == [
        ("RejectItem", 4, 1.0)
    ]
    assert [group.key for group in app.rejects.groups("step", limit=1)] == ["price"]
    assert app.rejects.groups("step", tenant="nobody") == []
    assert len(asyncio.run(app.rejects.agroups("fingerprint"))) == 2


def test_a_redriven_item_enters_its_own_step_of_a_new_execution(app: Windlass):
    """P5.4: as a single value from that step on; what was done before is not called again."""
    shop = Shop(app, include_payload=True)
    shop.bad = {2}
    with app.worker():
        source = shop.pipeline.submit([1, 2, 3], tenant="acme", correlation_id="trace-1")
        assert source.result(RUN) == [1, 3]
        shop.bad = set()
        done = app.rejects.redrive(pipeline="shop", note="fixed")
        assert (done.selected, done.redriven, done.duplicates, done.skipped) == (1, 1, 0, {})
        (new,) = done.ids
        handle = app.executions.handle(new, tenant="acme")
        assert handle.result(RUN) == [2]
    assert shop.priced.count(1) == 1
    execution = app.executions.get(new, tenant="acme")
    assert (execution.status, execution.input) == (ExecutionStatus.SUCCEEDED, None)
    assert execution.correlation_id == "trace-1"
    log = app.executions.history(new, tenant="acme")
    assert (log[0].kind, log[0].step, log[0].value) == ("submitted", 1, Line(2))
    (reject,) = app.rejects.find()
    assert reject.redriven_as == new
    with app.worker():
        assert app.rejects.redrive().selected == 0


def test_an_item_with_the_same_fingerprint_is_redriven_once(app: Windlass):
    """P5.4: the key is its fingerprint: the second one is a duplicate, and is marked with the same execution."""
    shop = Shop(app, include_payload=True)
    shop.bad = {2}
    with app.worker():
        for _ in range(3):
            shop.pipeline.submit([2]).result(RUN)
        shop.bad = set()
        done = app.rejects.redrive(limit=2)
        assert (done.selected, done.redriven, done.duplicates) == (2, 1, 1)
        again = asyncio.run(app.rejects.aredrive())
        assert (again.selected, again.redriven, again.duplicates) == (1, 0, 1)
        app.executions.handle(done.ids[0]).result(RUN)
    assert shop.priced == [2]
    assert {one.redriven_as for one in app.rejects.find()} == {done.ids[0]}


def test_an_item_that_is_rejected_again_can_be_redriven_again(app: Windlass):
    """P5.4: what its own re-drive has rejected gets the key of another round."""
    shop = Shop(app, include_payload=True)
    shop.bad = {2}
    with app.worker():
        shop.pipeline.submit([2]).result(RUN)
        for _ in range(2):
            (new,) = app.rejects.redrive().ids
            assert app.executions.handle(new).result(RUN) is None
        shop.bad = set()
        (new,) = app.rejects.redrive().ids
        assert app.executions.handle(new).result(RUN) == [2]
    assert str(app.executions.get(new).key).endswith("~3")


def test_a_redrive_without_payloads_is_an_error_that_names_the_option(app: Windlass):
    """P5.4: nothing is changed."""
    shop = Shop(app)
    shop.bad = {2}
    run(app, shop, [1, 2])
    with pytest.raises(PayloadNotKeptError, match="include_payload"):
        app.rejects.redrive()
    assert app.rejects.find().items[0].redriven_as is None


def test_a_dry_run_touches_nothing(app: Windlass):
    """P5.4: it names the rejects that it would take."""
    shop = Shop(app, include_payload=True)
    shop.bad = {1, 2, 3}
    run(app, shop, range(5))
    tried = app.rejects.redrive(limit=2, dry_run=True)
    assert (tried.selected, tried.redriven, len(tried.ids)) == (2, 0, 2)
    assert {one.redriven_as for one in app.rejects.find()} == {None}
    assert len(app.executions.find()) == 1


def test_a_redrive_goes_in_batches_at_a_rate(app: Windlass):
    """P5.4: with a rate, no more than a second's worth in one transaction."""
    shop = Shop(app, include_payload=True)
    shop.bad = set(range(25))
    run(app, shop, range(25))
    seen: list[int] = []
    done = app.rejects.redrive(rate=20, on_progress=lambda so_far: seen.append(so_far.redriven))
    assert (done.redriven, seen) == (25, [20, 25])


def test_a_redrive_is_in_the_audit_log(app: Windlass):
    """P5.4: with principal, filters and count."""
    from tests.support.facts import rows

    shop = Shop(app, include_payload=True)
    shop.bad = {1, 2}
    run(app, shop, range(3))
    app.rejects.redrive(pipeline="shop", note="fixed")
    (entry,) = rows(app.url, "SELECT action, count, detail FROM windlass_audit")
    assert entry[:2] == ("rejects.redrive", 2)
    assert '"note":"fixed"' in entry[2].replace(" ", "")


def test_a_stream_of_several_items_is_skipped(app: Windlass):
    """P5.4: only a sample of it is kept."""
    shop = app.pipeline("shop", version="1", include_payload=True, retry_limit=0)

    @shop.expand
    def lines(number: int) -> Iterator[int]:
        yield from range(number)

    @shop.reduce(recover_on_failure=True)
    def total(numbers: Iterable[int]) -> int:
        raise ValueError("no")

    with app.worker():
        shop.submit(3).result(RUN)
        done = app.rejects.redrive()
        assert (done.selected, done.redriven) == (1, 0)
        assert "a stream of 3 items" in next(iter(done.skipped.values()))


def test_a_single_item_of_a_stream_step_is_redriven(app: Windlass):
    """P5.4: into a reduction as a stream of one, and into a failed expansion from its start."""
    shop = app.pipeline("shop", version="1", include_payload=True, retry_limit=0)
    broken = [True]

    @shop.expand(recover_on_failure=True)
    def lines(number: int) -> Iterator[int]:
        if broken[0]:
            raise ValueError("no")
        yield from range(number)

    @shop.reduce
    def total(numbers: Iterable[int]) -> int:
        return sum(numbers)

    with app.worker():
        assert shop.submit(4).result(RUN) == 0
        broken[0] = False
        (new,) = app.rejects.redrive().ids
        assert app.executions.handle(new).result(RUN) == 6


def test_a_redriven_execution_that_fails_starts_over_with_its_item(app: Windlass):
    """P5.4, P6.3: also from the step at which it began; earlier ones have no input."""
    shop = app.pipeline("shop", version="1", include_payload=True, retry_limit=0)
    state = ["reject"]

    @shop.step
    def parse(raw: dict[str, int]) -> int:
        return raw["n"]

    @shop.step
    def check(number: int) -> int:
        if state[0] == "reject":
            raise RejectItem("no")
        if state[0] == "fail":
            raise ValueError("broken")
        return number + 1

    with app.worker():
        assert shop.submit({"n": 1}).result(RUN) is None
        state[0] = "fail"
        (new,) = app.rejects.redrive().ids
        with pytest.raises(JobFailedError):
            app.executions.handle(new).result(RUN)
        with pytest.raises(InvalidOptionError, match=r"check \(1\)"):
            app.executions.redrive(new, from_step=0)
        state[0] = "work"
        app.executions.redrive(new, from_step="check")
        assert app.executions.handle(new).result(RUN) == 2


def test_a_pipeline_that_is_not_declared_here_is_skipped(app: Windlass):
    """P5.4: its items can be read, but there is no step that they could enter."""
    with isolated(app):
        shop = Shop(app, include_payload=True)
        shop.bad = {2}
        shop.pipeline.submit([2])
        drain(app)
        app._pipelines._declared.clear()
        (reject,) = app.rejects.find()
        assert reject.payload == {"number": 2}
        done = app.rejects.redrive()
        assert "is not declared in this application" in done.skipped[reject.id]


class DenyAll:
    def may(self, principal: object, action: str, job: Any) -> bool:
        return principal is None


def test_every_verb_is_checked_by_the_authorizer(store_url: str):
    """J10.1: as for dead letters."""
    app = Windlass(store_url, authorizer=DenyAll())
    app.migrate()
    with app.acting_as("mallory"):
        for verb in (app.rejects.find, app.rejects.groups, app.rejects.redrive):
            with pytest.raises(NotAuthorizedError):
                verb()
    app.close()
