"""Sanitizers of users' own: what they clean, and that a broken one lets no secret through and stops no job."""

import logging

import pytest

from windlass.failure.guarded_sanitizer import GuardedSanitizer
from windlass.failure.sanitizer import DefaultErrorSanitizer
from windlass.runtime.processes.errors import raised, rebuilt
from windlass.spi import ErrorSanitizer

CUSTOMER = "customer Ann Example"
"""Nothing that the default takes for a secret."""


class ClassNames:
    """A sanitizer of errors alone."""

    def sanitize(self, error: BaseException) -> str:
        return f"{type(error).__name__}: (message withheld)"


class Ours(DefaultErrorSanitizer):
    """A sanitizer that also cleans other texts, and builds on the default."""

    def sanitize_text(self, text: str) -> str:
        return super().sanitize_text(text).replace(CUSTOMER, "[CUSTOMER]")


class Broken:
    """Gives, or raises, what it was made with."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def sanitize(self, error: BaseException) -> str:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]

    def sanitize_text(self, text: str) -> str:
        return self.sanitize(ValueError(text))


def guarded(given: ErrorSanitizer | None) -> GuardedSanitizer:
    return GuardedSanitizer(given, DefaultErrorSanitizer(), 2000)


def failure() -> BaseException:
    """An error with a cause, members and a note, each of which names the customer."""
    try:
        try:
            raise KeyError(f"{CUSTOMER} is unknown")
        except KeyError as cause:
            cause.add_note(f"while looking for {CUSTOMER}")
            raise ExceptionGroup(
                "several", [ValueError(f"first\n    {CUSTOMER}"), OSError(f'  File "{CUSTOMER}"')]
            ) from cause
    except ExceptionGroup as error:
        return error


def test_the_default_sanitizer_is_used_without_a_custom_one():
    """J5.3: class, message, causes, members, traceback."""
    error, default = failure(), DefaultErrorSanitizer()
    assert guarded(None).sanitize(error) == default.sanitize(error)
    assert guarded(None).traceback_tail(error, 500) == default.traceback_tail(error, 500)
    assert guarded(None).sanitize_text("token=abc") == "token=[REDACTED]"


@pytest.mark.parametrize("elsewhere", [False, True], ids=["raised here", "raised in a job's process"])
def test_a_traceback_holds_no_message_that_a_sanitizer_of_errors_has_not_seen(elsewhere: bool):
    """J5.3: what was taken out of the error does not come through in its traceback."""
    error = rebuilt(raised(failure())) if elsewhere else failure()
    sanitizer = guarded(ClassNames())
    text = sanitizer.traceback_tail(error)
    assert sanitizer.sanitize(error) == "ExceptionGroup: (message withheld)"
    assert text.endswith("ExceptionGroup: (message withheld)")
    assert "in failure" in text
    assert "raise KeyError" in text
    assert CUSTOMER not in text


def test_a_traceback_is_cut_at_whole_lines_after_any_sanitizer():
    for given in (ClassNames(), Ours()):
        text = guarded(given).traceback_tail(failure(), 150)
        assert len(text) <= 150
        assert text.startswith("…\n")


def test_a_sanitizer_of_texts_cleans_tracebacks_and_everything_else():
    """J5.3: one that inherits from the default needs to say only what it adds."""
    sanitizer, error = guarded(Ours()), failure()
    for text in (sanitizer.sanitize(error), sanitizer.traceback_tail(error), sanitizer.sanitize_text(CUSTOMER)):
        assert "[CUSTOMER]" in text
        assert CUSTOMER not in text
    assert "password=[REDACTED]" in sanitizer.sanitize(ValueError("password=hunter2"))


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (RuntimeError("hunter2"), "raised RuntimeError"),
        (None, "gave NoneType, not a text"),
        (b"bytes", "gave bytes, not a text"),
        (7, "gave int, not a text"),
    ],
)
def test_a_broken_sanitizer_is_logged_once_and_the_default_is_used(
    answer: object, trouble: str, caplog: pytest.LogCaptureFixture
):
    """J5.3: no secret comes through, and no job is stopped, because a sanitizer fails."""
    sanitizer = guarded(Broken(answer))
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert sanitizer.sanitize(ValueError("password=hunter2")) == "ValueError: password=[REDACTED]"
            assert sanitizer.sanitize_text("password=hunter2") == "password=[REDACTED]"
            assert "password=[REDACTED]" in sanitizer.traceback_tail(ValueError("password=hunter2"))
    assert [trouble in record.getMessage() for record in caplog.records] == [True, True]
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("answer", "kept"),
    [("x" * 9000, "x" * 2000), ("a\0b", "a\ufffdb"), ("a\udc80b", "a?b"), ("", "ValueError")],
    ids=["too long", "NUL", "lone surrogate", "empty"],
)
def test_sanitized_texts_are_made_fit_to_be_stored(answer: str, kept: str):
    """J5.3: 2,000 characters; nothing that a database refuses; never nothing at all."""
    assert guarded(Broken(answer)).sanitize(ValueError("x")) == kept
