"""A process forks while its application is open: the child has an application of its own, the parent keeps its own."""

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import is_sqlite, one, rows, statuses
from tests.support.programs import Programs
from windlass import JobStatus

CHILDREN = 8


def test_children_forked_from_a_busy_application_enqueue_and_wait_like_any_process(store_url: str, programs: Programs):
    """J7.1: no connection, lock or thread of the parent is used by the child, whatever was going on at the fork."""
    app = make_app(store_url)
    app.migrate()
    program = programs.start("forking", store_url, CHILDREN, environ={})
    assert program.exit_code(90) == 0, program.printed
    assert "ended with status" not in program.printed
    by_threads = int(program.says(r"^enqueued (\d+)$")[1])
    with app.worker():
        assert app.bind(bodies.note, 1000).enqueue().join(90) is JobStatus.SUCCEEDED
    expected = by_threads + 6 * CHILDREN + 2
    assert statuses(store_url) == {"SUCCEEDED": expected}
    assert len(programs.ran()) == expected
    assert rows(store_url, "SELECT DISTINCT attempts, crash_count FROM windlass_done") == [(1, 0)]
    if is_sqlite(store_url):
        assert one(store_url, "PRAGMA integrity_check") == "ok"
    app.close()
