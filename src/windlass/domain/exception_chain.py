"""The exceptions behind an exception (causes, contexts, members of groups) and their effect on retries.

Chains can be circular, and longer than the stack is deep: every exception is visited once, without recursion.
"""

from collections.abc import Iterator

from windlass.retry_signals import DoNotRetry, RetryAfter, mark_of


def links(exc: BaseException, stop_at: type[BaseException] | None = None) -> Iterator[BaseException]:
    """Yield every exception that a printed traceback of `exc` would show, itself first.

    What is behind an exception of the class `stop_at` is left out.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exc]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if stop_at is not None and isinstance(link, stop_at):
            continue
        waiting.append(None if link.__suppress_context__ else link.__context__)
        waiting.append(link.__cause__)
        if isinstance(link, BaseExceptionGroup):
            waiting.extend(reversed(link.exceptions))


def forbidding(exc: BaseException) -> BaseException | None:
    """Return the first link that forbids a retry: a `DoNotRetry`, or of a class marked with `@do_not_retry`."""
    return next((link for link in links(exc) if isinstance(link, DoNotRetry) or mark_of(type(link)) is not None), None)


def delays_asked(exc: BaseException) -> list[object]:
    """Return the delay of each `RetryAfter` that counts; one raised from another hides it.

    Unchecked: a subclass may have set its delay to anything.
    """
    return [link.delay for link in links(exc, stop_at=RetryAfter) if isinstance(link, RetryAfter)]
