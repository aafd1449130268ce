"""Names from other queues are answered with ours."""

from dataclasses import fields

import pytest

from tests.engine import jobs
from windlass import Windlass
from windlass.domain.options import JobOptions
from windlass.domain.other_queues import OF_A_JOB, OPTIONS
from windlass.errors import InvalidOptionError


@pytest.mark.parametrize(
    ("word", "here"),
    [
        ("countdown", "delay"),
        ("eta", "run_at"),
        ("ttl", "expires"),
        ("autoretry_for", "retry_on"),
        ("link", "on_success"),
    ],
)
def test_option_names_of_other_queues_are_answered_with_ours(word: str, here: str):
    """api.md Errors: what to do."""
    with pytest.raises(InvalidOptionError, match=f"unknown option '{word}'; it is called '{here}' here"):
        JobOptions.make(**{word: 1})  # type: ignore[arg-type]


def test_every_option_name_of_another_queue_leads_to_an_option_and_is_none_itself():
    names = {option.name for option in fields(JobOptions)}
    assert set(OPTIONS.values()) <= names
    assert not names & OPTIONS.keys()


@pytest.mark.parametrize(
    ("verb", "here"),
    [
        ("delay", "add.enqueue(...)"),
        ("send", "add.enqueue(...)"),
        ("defer", "add.enqueue(...)"),
        ("apply_async", "add.using(delay=60).enqueue(...)"),
        ("s", "add.bind(...)"),
    ],
)
def test_verbs_of_other_queues_are_answered_with_ours(verb: str, here: str):
    """api.md Errors: what to do; for users of Celery, RQ, Dramatiq, Huey or Procrastinate."""
    job = Windlass("sqlite://").job(jobs.add)
    with pytest.raises(AttributeError) as caught:
        getattr(job, verb)
    assert f"add has no attribute '{verb}'; write {here}" in str(caught.value)
    assert not hasattr(job, "nothing_like_this")


def test_an_application_suggests_names_for_those_of_other_queues():
    """api.md Errors: `app.task` is `app.job`."""
    app = Windlass("sqlite://")
    with pytest.raises(AttributeError, match=r"app has no attribute 'task'; write app\.job"):
        app.task  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"write app\.enqueue_by_name"):
        app.send_task  # type: ignore[attr-defined]  # noqa: B018


def test_every_verb_leads_to_one_that_a_job_has():
    job = Windlass("sqlite://").job(jobs.add)
    assert all(hasattr(job, here.partition("(")[0]) for here in OF_A_JOB.values())
    assert not any(hasattr(job, verb) for verb in OF_A_JOB)
