"""What stands behind an exception: causes, contexts and members of groups, and what they ask of a retry.

Chains can be circular, and longer than the stack is deep: every exception is met once, and nothing here recurses.
"""

from collections.abc import Iterator

from windlass.retry_signals import DoNotRetry, RetryAfter, mark_of


def links(exc: BaseException, stop_at: type[BaseException] | None = None) -> Iterator[BaseException]:
    """Everything a printed traceback of `exc` would show, itself first.

    What stands behind an exception of the class `stop_at` is left out.
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
    """What forbids a retry of `exc`: the first link that is a `DoNotRetry`, or of a class under `@do_not_retry`."""
    return next((link for link in links(exc) if isinstance(link, DoNotRetry) or mark_of(type(link)) is not None), None)


def delays_asked(exc: BaseException) -> list[object]:
    """The delay of each `RetryAfter` that counts; one raised from another hides it.

    As they are: a subclass may have set its delay itself, and to anything.
    """
    return [link.delay for link in links(exc, stop_at=RetryAfter) if isinstance(link, RetryAfter)]
