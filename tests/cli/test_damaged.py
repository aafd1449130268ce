"""Commands that read jobs, where some of them are damaged."""

from tests.engine.damage import DEEP, HUGE, execute

DAMAGE = {
    "options": f'{{"x":{DEEP}}}',
    "args": DEEP,
    "params": "no JSON",
    "created_at": HUGE,
}


def test_damaged_jobs_are_listed_and_shown_with_what_cannot_be_read(desk):
    """J7.9: beside good ones, as lines, drawn and for programs."""
    good = str(desk.charge.enqueue(1).id)
    damaged = {column: str(desk.charge.enqueue(number).id) for number, column in enumerate(DAMAGE)}
    for column, job in damaged.items():
        execute(desk.url, f"UPDATE windlass_job SET {column} = ? WHERE id = ?", DAMAGE[column], job)
    everyone = {good, *damaged.values()}
    assert {line.split("\t")[0] for line in desk.stdout("job", "list").splitlines()} == everyone
    assert {item["id"] for item in desk.read("job", "list")["items"]} == everyone
    assert desk.drawn("job", "list")
    for column, job in damaged.items():
        mark = None if column == "created_at" else f"(damaged) {column}"
        assert desk.read("job", "show", job)["error"] == mark
        assert mark is None or f"error: {mark}" in desk.stdout("job", "show", job)
        assert desk.drawn("job", "show", job)
    assert "damaged" not in desk.stdout("job", "show", good)


def test_damaged_dead_letters_are_listed_and_shown(desk):
    """J7.9: `dlq list`, `groups` and `show`."""
    failed = desk.failed(3)
    execute(desk.url, "UPDATE windlass_dead_letter SET envelope = ? WHERE job_id = ?", DEEP, failed[0])
    execute(desk.url, "UPDATE windlass_job SET args = ? WHERE id = ?", DEEP, failed[1])
    assert {line.split("\t")[0] for line in desk.stdout("dlq", "list").splitlines()} == set(failed)
    assert len(desk.read("dlq", "list")["items"]) == 3
    assert desk.stdout("dlq", "groups")
    for job in failed:
        assert job in desk.stdout("dlq", "show", job)
