"""The text that is stored, logged and published for an error: its class, message and causes, without secrets."""

from collections.abc import Callable, Iterator
from functools import lru_cache

from windlass.failure.redaction import redact
from windlass.runtime.printed_traceback import CUT, LONGEST, print_traceback
from windlass.runtime.processes.errors import TRACEBACK

_MAX_CAUSES = 5
_MAX_MEMBERS = 3
LONGEST_INPUT = LONGEST  # text beyond it need not be searched for secrets
_LONGEST_NAME = 2_000
_CAUSED_BY = " caused by "
_ELLIPSIS = "…"


class DefaultErrorSanitizer:
    """The sanitizer an app uses unless it is given another one.

    Example: `DefaultErrorSanitizer().sanitize(ValueError("token=abc")) == "ValueError: token=[REDACTED]"`
    """

    def __init__(self, *, redact_emails: bool = True, max_length: int = 2000) -> None:
        self._redact_emails = redact_emails
        self._max_length = max_length

    def sanitize(self, error: BaseException) -> str:
        """Return `ClassName: message caused by ClassName: message …`, redacted, up to `max_length` characters.

        If it is too long, all messages are shortened, so that no cause is lost because of another.
        """
        parts = [(class_name(link), self.sanitize_text(self._message(link))) for link in _chain(error)]
        frame = sum(len(name) for name, _ in parts) + (len(parts) - 1) * len(_CAUSED_BY) + 2 * len(parts)
        share = _fair_share([len(message) for _, message in parts], self._max_length - frame)
        whole = _CAUSED_BY.join(f"{name}: {_cut(message, share)}" if message else name for name, message in parts)
        return _cut(whole, self._max_length)

    def sanitize_text(self, text: str) -> str:
        """Return the first 100,000 characters of a text, redacted and storable: no NUL, no lone surrogates."""
        if len(text) > LONGEST_INPUT:
            # At a space if there is one, so that no secret is cut in half and then not recognised.
            space = text.rfind(" ", 0, LONGEST_INPUT)
            text = text[: space if space > 0 else LONGEST_INPUT] + _ELLIPSIS
        return redact(storable(text), emails=self._redact_emails)

    def traceback_tail(self, error: BaseException, limit: int = 4000) -> str:
        """Return the end of the traceback, redacted, in whole lines, at most `limit` characters."""
        text = traceback_of(error)
        tail = None if text is None else redacted_tail(text, self.sanitize_text, limit)
        return self.sanitize(error)[-limit:] if tail is None else tail

    def _message(self, error: BaseException) -> str:
        message = _text_of(error)
        if isinstance(error, BaseExceptionGroup):
            return f"{message} [{self._members(error)}]"
        return message

    def _members(self, group: BaseExceptionGroup[BaseException]) -> str:
        leaves = list(_leaves(group, _MAX_MEMBERS + 1))
        shown = [_with_causes(leaf) for leaf in leaves[:_MAX_MEMBERS]]
        return "; ".join([*shown, _ELLIPSIS] if len(leaves) > _MAX_MEMBERS else shown)


def storable(text: str) -> str:
    """Replace characters that no database can store."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "\ufffd")


def class_name(error: BaseException) -> str:
    """Return the name of an error's class, redacted: a class created at run time may have any name."""
    return _clean_name(type(error).__name__)


@lru_cache(256)
def _clean_name(name: str) -> str:
    return redact(storable(name[:_LONGEST_NAME]))


def traceback_of(error: BaseException) -> str | None:
    """Return the traceback as it would be printed, its last 100,000 characters; None if it cannot be printed."""
    try:
        # An error from a job's process brings its traceback along as a text.
        return str(getattr(error, TRACEBACK, None) or print_traceback(error))
    except Exception:  # noqa: BLE001 - an error that cannot be printed must not break the failure path
        return None


def redacted_tail(text: str, clean: Callable[[str], str], limit: int) -> str | None:
    """Return the end of a printed traceback in whole lines, redacted first and cut afterwards.

    None for one that had lost its beginning before: a secret whose name was cut off is not recognised.
    """
    return None if text.startswith(CUT) else last_lines(clean(text), limit)


def last_lines(text: str, limit: int) -> str:
    """Return the end of a text in whole lines, at most `limit` characters."""
    text = text.rstrip("\n")
    if len(text) <= limit:
        return text
    tail = text[len(text) - limit + len(_ELLIPSIS) + 1 :]
    whole_lines = tail.partition("\n")[2] or tail
    return f"{_ELLIPSIS}\n{whole_lines}"


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:  # noqa: BLE001 - users' exceptions may do anything in __str__
        return f"<no message: its __str__ raised {type(broken).__name__}>"


def _with_causes(error: BaseException) -> str:
    """Return the text of a group's member with its causes, without members of groups among those."""
    links = ((class_name(link), _text_of(link)) for link in _chain(error))
    return _CAUSED_BY.join(f"{name}: {message}" if message else name for name, message in links)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield what a traceback would show; chains may be long, and circular."""
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen and len(seen) <= _MAX_CAUSES:
        seen.add(id(link))
        yield link
        implicit = None if link.__suppress_context__ else link.__context__
        link = link.__cause__ if link.__cause__ is not None else implicit


def _leaves(group: BaseExceptionGroup[BaseException], most: int) -> Iterator[BaseException]:
    waiting: list[BaseException] = [group]
    while waiting and most > 0:
        error = waiting.pop(0)
        if isinstance(error, BaseExceptionGroup):
            waiting[:0] = error.exceptions
        else:
            most -= 1
            yield error


def _fair_share(lengths: list[int], room: int) -> int:
    """Return the length to cut messages to, so that all fit into `room` and short ones stay whole."""
    for number, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - number)
        if length > share:
            return max(share, 1)
        room -= length
    return max(lengths, default=0)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - len(_ELLIPSIS)] + _ELLIPSIS
