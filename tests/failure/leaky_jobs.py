"""Jobs that say a secret in every way a job can say something."""

from tests.failure.corpus import SECRETS
from windlass import DoNotRetry, JobContext, JobFailedError, JobResult

callback_texts: list[str] = []
"""What callbacks were given."""


def leak(number: int) -> None:
    """Fail twice: with a cause and a note, then as a group that forbids a further retry."""
    text = SECRETS[number].text
    context = JobContext.current()
    context.progress(1, 2, text)
    context.log.warning("this may go wrong: %s", text)
    if context.attempt > 1:
        raise ExceptionGroup(text, [ValueError(text), ExceptionGroup("inner", [DoNotRetry(text)])])
    try:
        raise KeyError(text)
    except KeyError as cause:
        context.log.exception("it went wrong")
        error = RuntimeError(f"cannot go on: {text}", {"detail": text})
        error.add_note(text)
        raise error from cause


def clean_up(outcome: JobResult, error: JobFailedError) -> None:
    callback_texts.append(f"{outcome} {error} {error!r}")
