"""Log lines as JSON."""

import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.support.running_job import inside_job
from windlass.failure.sanitizer import DefaultErrorSanitizer
from windlass.observability.logs import JsonFormatter
from windlass.runtime import logcontext

JOB = "0198c0de-0000-7000-8000-000000000001"


class Lines:
    """A logger and what it wrote."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.stream = io.StringIO()
        handler = logging.StreamHandler(self.stream)
        handler.setFormatter(formatter)
        self.log = logging.Logger("shop.orders")  # noqa: LOG001 - of this test alone, not in the process's tree
        self.log.addHandler(handler)

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    logcontext.install()
    yield
    logcontext.uninstall()


def test_a_line_is_one_object_with_time_level_logger_and_message():
    lines = Lines(JsonFormatter())
    lines.log.warning("charged %d of %s", 3, "7\n8")
    (line,) = lines.read()
    assert datetime.fromisoformat(line.pop("time")).utcoffset() is not None
    assert line == {"level": "WARNING", "logger": "shop.orders", "message": "charged 3 of 7\n8"}


def test_a_line_inside_a_job_names_it():
    """J4.1: log records carry job id, node id and attempt."""
    lines = Lines(JsonFormatter())
    with inside_job(JOB, "node-1", 2):
        lines.log.info("inside")
    lines.log.info("outside")
    inside, outside = lines.read()
    assert (inside["job_id"], inside["node_id"], inside["attempt"]) == (JOB, "node-1", 2)
    assert "job_id" not in outside


def test_extra_fields_of_any_type_are_kept():
    class Unprintable:
        def __str__(self) -> str:
            raise ValueError

    lines = Lines(JsonFormatter())
    extra = {"order": 7, "tags": {"a"}, "odd": Unprintable(), "deep": {"x": [1], (1, 2): 3}, "level": "mine"}
    lines.log.info("x", extra=extra)
    (line,) = lines.read()
    assert (line["order"], line["tags"], line["odd"], line["deep"]) == (7, "{'a'}", "<Unprintable>", {"x": [1]})
    assert line["level"] == "INFO"


def test_tracebacks_and_stacks_are_included():
    lines = Lines(JsonFormatter())
    try:
        raise ValueError("boom")
    except ValueError:
        lines.log.exception("failed", stack_info=True)
    (line,) = lines.read()
    assert line["traceback"].startswith("Traceback")
    assert line["traceback"].endswith("ValueError: boom")
    assert line["stack"].startswith("Stack (most recent call last):")


def test_a_traceback_that_was_already_text_is_kept():
    record = logging.makeLogRecord({"msg": "far", "levelname": "ERROR", "exc_text": "Traceback …"})
    assert json.loads(JsonFormatter().format(record))["traceback"] == "Traceback …"


def test_a_sanitizer_is_applied_to_messages_and_tracebacks():
    lines = Lines(JsonFormatter(DefaultErrorSanitizer().sanitize_text))
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        lines.log.exception("cannot reach postgres://shop:hunter2@db/shop")
    (line,) = lines.read()
    assert "hunter2" not in json.dumps(line)
    assert line["message"] == "cannot reach postgres://[REDACTED]@db/shop"
