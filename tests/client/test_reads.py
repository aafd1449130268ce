"""Nodes, queues and health, as an application sees them."""

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, threads_named, until
from windlass import Health, Settings, Windlass


def test_nodes_are_listed_while_they_live(app: Windlass, gate: Gate):
    """api.md: `app.nodes()`."""
    assert app.nodes() == []
    app.job(jobs.hold).enqueue(gate.name)
    with app.worker(queues=["default", "mail"]):
        gate.wait_entered()
        (node,) = app.nodes()
        assert (node.alive, node.queues, node.pid > 0) == (True, ("default", "mail"), True)
        assert node.started_at <= node.heartbeat_at
        gate.open()
    assert app.nodes() == []


async def test_queues_show_what_waits_and_runs(app: Windlass, gate: Gate):
    """api.md: `app.queues()`, by name."""
    assert await app.aqueues() == []
    held = await app.job(jobs.hold).using(queue="slow").aenqueue(gate.name)
    await app.job(jobs.note).using(queue="mail", delay=600).aenqueue("x")
    await app.apause_queue("mail")
    async with app.worker(queues=["slow"]):
        while not gate.entered.is_set():
            await app.anodes()
        mail, slow = await app.aqueues()
        assert (mail.name, mail.paused, mail.waiting, mail.running) == ("mail", True, 1, 0)
        assert (slow.name, slow.paused, slow.waiting, slow.running) == ("slow", False, 0, 1)
        assert mail.oldest_due == (await app.afind(queue="mail")).items[0].due_at
        assert slow.oldest_due is None
        gate.open()
        await held.aresult(timeout=LONG)


def test_health_names_what_is_missing(app: Windlass):
    """operations.md: the store answers, the schema is current, a worker is alive."""
    without = app.health()
    assert not without
    assert (without.store_answers, without.schema_current, without.workers) == (True, True, 0)
    assert "start one with `windlass worker" in without.reason
    app.job(jobs.note)
    with app.worker():
        health = app.health()
        assert health
        assert (health.workers, health.reason) == (1, "")


async def test_health_of_a_store_that_is_not_migrated_or_not_there(pg_url: str):
    """operations.md: never raises."""
    app = Windlass(pg_url, settings=Settings())
    health = await app.ahealth()
    assert (bool(health), health.store_answers, health.schema_current) == (False, True, False)
    assert "windlass migrate" in health.reason
    gone = Windlass("postgresql://nobody@127.0.0.1:1/none", settings=Settings()).health()
    assert isinstance(gone, Health)
    assert (bool(gone), gone.store_answers) == (False, False)
    app.close()


def test_a_node_drains_and_exits_on_request(apps: Apps):
    """J7.6: with its next heartbeat; what runs may finish."""
    app, other = apps(), apps()
    app.job(jobs.note)
    with app.worker() as worker:
        node = until(other.nodes)[0]
        assert other.drain_node(node.id)
        node_object = worker.node
        assert node_object is not None
        node_object.membership.heartbeat.wake()
        until(lambda: other.nodes() == [])
    assert other.drain_node(node.id) is False
    assert list(threads_named("windlass-worker")) == [], "leaving the block ends the loop's thread too"
