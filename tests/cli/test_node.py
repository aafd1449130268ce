"""`windlass node`: real workers, listed and asked to leave."""

import json

from tests.cli.commands import Command, Commands
from tests.cli.terminal import Terminal
from tests.support.facts import one
from tests.support.waiting import until

QUICK = {"WINDLASS_NODE__HEARTBEAT_INTERVAL": "0.5", "WINDLASS_APP": "shop:app"}


def started(commands: Commands, *options: str) -> Command:
    commands.run("migrate", "shop:app")
    worker = commands.start("worker", "shop:app", *options, environ=QUICK)
    worker.says("^ready")
    return worker


def test_nodes_are_listed_with_their_heartbeat(commands):
    worker = started(commands, "--queues", "billing,mail")
    code, printed = commands.run("node", "list", "--json", environ=QUICK)
    assert code == 0
    output = json.loads(printed)
    assert output["next_cursor"] is None
    (node,) = output["items"]
    assert (node["pid"], node["alive"], node["queues"]) == (worker.pid, True, ["billing", "mail"])
    assert node["heartbeat_at"].endswith("Z")
    code, printed = commands.run("node", "list", environ=QUICK)
    assert (code, printed.split("\t")[:4]) == (0, [node["id"], "alive", "0", "billing, mail"])


def test_a_drained_node_finishes_what_it_runs_and_ends_with_code_0(commands, shop_on):
    """J7.6, by name instead of by signal."""
    worker = started(commands)
    shop = shop_on(commands.url)
    handle = shop.enqueue("gated", 1)
    until(lambda: list(commands.folder.glob("started-*")), "the body to begin")
    (node,) = shop.app.nodes()
    drain = commands.start("node", "drain", node.id, "--wait", "--yes", environ=QUICK)
    until(lambda: one(commands.url, "SELECT drain_asked FROM windlass_node"), "the node to be asked")
    assert drain.process.poll() is None
    (commands.folder / "gate").touch()
    assert drain.exit_code() == 0
    assert drain.printed == f"node {node.id} has drained and left\n"
    assert worker.exit_code() == 0
    assert handle.result(timeout=90) == worker.pid
    assert shop.app.nodes() == []


def test_a_supervisor_does_not_restart_a_worker_that_was_asked_to_drain(commands, shop_on):
    workers = started(commands, "--processes", "2")
    until(lambda: workers.printed.count("ready: node") == 2, "both to be ready")
    shop = shop_on(commands.url)
    first, second = shop.app.nodes()
    code, printed = commands.run("node", "drain", first.id, "--yes", environ=QUICK)
    assert (code, printed) == (0, f"node {first.id} was asked to drain\n")
    workers.says(r"worker \d was asked to drain and ended with code 0; it is not restarted")
    assert [node.id for node in shop.app.nodes()] == [second.id]
    assert shop.enqueue("charge", 1).result(timeout=90) == f"charged 1 in {second.pid}"
    assert workers.process.poll() is None
    assert commands.run("node", "drain", second.id, "-y", "-w", environ=QUICK)[0] == 0
    assert workers.exit_code() == 0
    assert "restarting" not in workers.printed


def test_a_supervisor_notices_that_a_node_had_to_be_forced(sqlite_commands, shop_on):
    """Exit code 3, and not started again either: it was asked to leave."""
    (sqlite_commands.folder / "windlass.toml").write_text("[node]\ndrain_timeout = 0.1\n")
    workers = started(sqlite_commands, "--processes", "2", "--concurrency", "1")
    until(lambda: workers.printed.count("ready: node") == 2, "both to be ready")
    shop = shop_on(sqlite_commands.url)
    shop.enqueue("endless", "begun")
    until((sqlite_commands.folder / "begun").exists, "the body to begin")
    for node in shop.app.nodes():
        assert shop.app.drain_node(node.id)
    assert workers.exit_code() == 3
    assert "restarting" not in workers.printed


def test_a_node_that_is_not_alive_cannot_be_drained(sqlite_commands, shop_on):
    started(sqlite_commands)
    (node,) = shop_on(sqlite_commands.url).app.nodes()
    code, printed = sqlite_commands.run("node", "drain", node.id[:-1], "--yes", environ=QUICK)
    assert code == 1
    assert f"no node {node.id[:-1]} is alive; did you mean {node.id}?" in printed
    code, printed = sqlite_commands.run("node", "drain", node.id, environ=QUICK)
    assert code == 2
    assert "pass --yes" in printed
    assert not one(sqlite_commands.url, "SELECT drain_asked FROM windlass_node")


def test_a_terminal_is_asked_to_confirm_the_drain_and_shows_its_end(sqlite_commands, shop_on):
    worker = started(sqlite_commands)
    (node,) = shop_on(sqlite_commands.url).app.nodes()
    screen = Terminal(sqlite_commands.folder, sqlite_commands.url, "node", "drain", node.id, "--wait")
    screen.shows(rf"Drain node {node.id} of SQLite .*y/N")
    screen.type("y\n")
    assert screen.exit_code() == 0
    assert f"waiting for {node.id} to leave" in screen.text
    assert screen.text.rstrip().endswith("has drained and left")
    assert worker.exit_code() == 0


def test_a_node_that_is_lost_while_it_drains_is_reported(sqlite_commands, shop_on):
    worker = started(sqlite_commands)
    shop = shop_on(sqlite_commands.url)
    shop.enqueue("gated", 1)
    until(lambda: list(sqlite_commands.folder.glob("started-*")), "the body to begin")
    (node,) = shop.app.nodes()
    drain = sqlite_commands.start("node", "drain", node.id, "--wait", "--yes", environ=QUICK)
    until(lambda: one(sqlite_commands.url, "SELECT drain_asked FROM windlass_node"), "the node to be asked")
    worker.kill()
    assert drain.exit_code() == 1
    assert f"node {node.id} was lost while it drained" in drain.printed


def test_an_empty_list_of_nodes_is_reported(sqlite_desk):
    result = sqlite_desk.run("node", "list")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no node has registered\n")


def test_the_application_can_request_a_drain_too(desk):
    with desk.app.worker() as worker:
        assert worker.node is not None
        assert desk.app.drain_node(worker.node.id)
        assert not desk.app.drain_node("nobody")


async def test_the_application_can_request_a_drain_with_the_async_twin(desk):
    async with desk.app.worker() as worker:
        assert worker.node is not None
        assert await desk.app.adrain_node(worker.node.id)
        assert not await desk.app.adrain_node("nobody")
