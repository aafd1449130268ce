"""`windlass health`: fit for probes."""

import json
import re

from tests.support.facts import rows
from tests.support.waiting import until


def test_an_application_is_healthy_while_a_worker_is_alive(desk):
    """operations.md: 0 when the store answers, the schema is current and a worker is alive."""
    with desk.app.worker():
        printed = desk.stdout("health", "office:app")
        assert printed.startswith("healthy: ")
        assert "schema current, 1 worker alive" in printed
        output = desk.read("health")
        assert (output["healthy"], output["workers"], output["reason"]) == (True, 1, "")
    gone = desk.run("health", "--app", "office:app")
    assert (gone.exit_code, gone.stdout) == (1, "")
    assert "no worker is alive; start one" in gone.stderr


def test_the_last_pass_of_the_sweeper_is_part_of_it(desk):
    """J7.5: when it last ran, and that it does not run although there is a node to do it."""
    with desk.app.worker():
        until(lambda: desk.app.health().sweeper_age is not None, "the first pass")
        assert re.search(r"1 worker alive, swept \d+ s ago$", desk.stdout("health").strip())
        assert 0 <= desk.read("health")["sweeper_age"] < 60
        rows(
            desk.url,
            "INSERT INTO windlass_node (id, host, pid, version, started_at, heartbeat_at, lease_until, state) "
            f"SELECT 'stuck', host, pid, version, started_at, heartbeat_at, {10**17}, state FROM windlass_node",
        )
        rows(
            desk.url,
            f"UPDATE windlass_lease SET holder = 'stuck', until = {10**17}, fence = fence + 1, "
            "passed_at = passed_at - 3600000000",
        )
        assert desk.app.health(), "no node has been there for so long"
        rows(desk.url, "UPDATE windlass_node SET started_at = started_at - 7200000000")
        late = desk.app.health()
        assert not late
        assert "sweeper does not pass" in late.reason
        assert "sweeper does not pass" in desk.run("health").stderr


def test_dispatch_lag_is_that_of_the_latest_claims(desk):
    """P10.1: due to claimed, p50 and p95, over all live workers; nothing is known before the first claim."""
    assert desk.read("health", code=1)["dispatch_lag_p95"] is None
    handles = [desk.charge.enqueue(number) for number in range(3)]
    for table, column in (("windlass_hot", "due"), ("windlass_job", "created_at")):
        rows(desk.url, f"UPDATE {table} SET {column} = {column} - 3600000000 WHERE id = '{handles[0].id}'")
    with desk.app.worker():
        for handle in handles:
            handle.join(timeout=90)
        until(lambda: (desk.app.health().dispatch_lag_p50 or 1800) < 1800, "a heartbeat after the claims")
        assert 3600 <= desk.app.health().dispatch_lag_p95 <= 5400
        assert re.search(r"alive.*, dispatch lag [\d.]+ .+ \(p95 1 h( \d+ min)?\)", desk.stdout("health"))
    assert desk.app.health().dispatch_lag_p95 is None, "it has left"


def test_programs_get_the_reason_and_the_exit_code(desk):
    output = json.loads(desk.run("health", "--json").stdout)
    assert output["healthy"] is False
    assert (output["store_answers"], output["schema_current"], output["workers"]) == (True, True, 0)
    assert desk.run("health", "--json").exit_code == 1


def test_a_heartbeat_can_be_too_old(desk):
    """By the store's clock, not by the caller's."""
    with desk.app.worker():
        assert desk.run("health", "--max-age", "60").exit_code == 0
        rows(desk.url, "UPDATE windlass_node SET heartbeat_at = heartbeat_at - 120000000")
        stale = desk.run("health", WINDLASS_HEALTH_MAX_AGE="60")
        assert stale.exit_code == 1
        assert "no worker had a heartbeat in the last 60 s" in stale.stderr
        assert desk.run("health").exit_code == 0, "the lease still holds"


def test_a_schema_that_is_not_there_is_unhealthy(sqlite_desk, pg_url):
    result = sqlite_desk.run("health", WINDLASS_URL=pg_url)
    assert result.exit_code == 1
    assert "the schema lacks 0001_initial" in result.stderr
    assert rows(pg_url, "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'windlass%'") == [(0,)]


def test_a_store_that_does_not_answer_is_unhealthy(sqlite_desk):
    result = sqlite_desk.run("health", WINDLASS_URL="postgresql://nobody@127.0.0.1:1/none")
    assert result.exit_code == 1
    assert result.stderr.startswith("unhealthy: PostgreSQL 127.0.0.1:1/none does not answer")
    assert result.stderr.count("127.0.0.1:1/none") == 1, "the store is named once"
    assert "Traceback" not in result.output


def test_a_bad_age_is_wrong_usage(sqlite_desk):
    assert sqlite_desk.run("health", "--max-age", "0").exit_code == 2
