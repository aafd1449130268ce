"""Names and keys that users give, and keys derived from jobs."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from windlass.errors import InvalidOptionError

MAX_KEY: Final = 255
MAX_NAME: Final = 64
MAX_TAG: Final = 64
MAX_SHAPED_MESSAGE: Final = 4_000

_NAME = re.compile(rf"[A-Za-z0-9_.:-]{{1,{MAX_NAME}}}")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.:-]+")

# What varies between two reports of one defect. A quote inside a word (don't) opens no string.
_VARIABLE = re.compile(
    r"""
      (?P<str>  (?<!\w)(?: '[^'\n]*' | "[^"\n]*" | `[^`\n]*` )(?!\w) )
    | (?P<uuid> \b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b )
    | (?P<hex>  \b0x[0-9a-f]+\b | \b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}\b )
    | (?P<n>    [0-9]+(?:[.,][0-9]+)* )
    | (?P<gap>  \s+ )
    """,
    re.VERBOSE | re.IGNORECASE,
)


def check_key(value: object, name: str) -> str:
    """Check the key given as option `name`: 1 to 255 printable characters."""
    if not isinstance(value, str):
        raise InvalidOptionError(
            f"{name} must be a str, got {_shown(value)}; build a text from it, e.g. f'order:{{id}}'"
        )
    value = str.__str__(value)  # of a subclass its characters: an enum's value, never what its methods make of it
    if not value.strip():
        raise InvalidOptionError(f"{name} must not be empty or blank, got {value!r}; leave it out to have none")
    if len(value) > MAX_KEY:
        raise InvalidOptionError(
            f"{name} must have at most {MAX_KEY} characters, got {len(value)}: {_shown(value)}; use a hash of it"
        )
    if not value.isprintable():
        raise InvalidOptionError(
            f"{name} must be printable, got {_shown(value)} with {_unprintable(value)}; remove or encode it"
        )
    return value


def check_queue(value: object) -> str:
    """Check a queue's name: 1 to 64 letters, digits and `_ . : -`."""
    return check_name(value, "queue")


def check_name(value: object, what: str) -> str:
    """Check the name of a queue, a resource or a circuit: 1 to 64 letters, digits and `_ . : -`."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    rule = f"{what} must be 1 to {MAX_NAME} characters of A-Z a-z 0-9 _ . : -, got {_shown(value)}"
    suggestion = _NOT_IN_NAME.sub("-", value.strip()).strip("-")[:MAX_NAME] if isinstance(value, str) else ""
    example = "default" if what == "queue" else "stripe"
    raise InvalidOptionError(f"{rule}; did you mean {suggestion!r}?" if suggestion else f"{rule}; e.g. {example!r}")


def check_tags(value: object) -> tuple[str, ...]:
    """Check tags: each is trimmed and lower-cased, must then be 1 to 64 printable characters; repeats are dropped.

    Example: `check_tags(["Billing ", "eu", "billing"]) == ("billing", "eu")`
    """
    if isinstance(value, str | bytes):
        raise InvalidOptionError(f"tags must be a list of str, got the single {_shown(value)}; write tags=[{value!r}]")
    if not isinstance(value, Iterable):
        raise InvalidOptionError(f"tags must be a list of str, got {_shown(value)}; e.g. tags=['billing']")
    return tuple(dict.fromkeys(_check_tag(tag) for tag in value))


def _check_tag(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidOptionError(f"a tag must be a str, got {_shown(value)}; e.g. tags=['billing']")
    tag = value.strip().lower()
    if not tag:
        raise InvalidOptionError(f"a tag must not be empty or blank, got {value!r}; leave it out")
    if len(tag) > MAX_TAG:
        raise InvalidOptionError(f"a tag must have at most {MAX_TAG} characters, got {len(tag)}: {_shown(value)}")
    if not tag.isprintable():
        raise InvalidOptionError(f"a tag must be printable, got {_shown(value)} with {_unprintable(tag)}; remove it")
    return tag


def check_params(value: object) -> dict[str, Any]:
    """Check params: a mapping with str keys; return a copy. The codec decides whether its values can be stored."""
    if not isinstance(value, Mapping):
        raise InvalidOptionError(f"params must be a mapping, got {_shown(value)}; e.g. params={{'tenant': 'acme'}}")
    for key in value:
        if not isinstance(key, str):
            raise InvalidOptionError(f"params must have str keys, got the key {_shown(key)}; write {str(key)!r}")
    return dict(value)


def effect_key(job_id: str) -> str:
    """Return the key for a job's external effects: one per job, the same in every attempt."""
    return f"windlass-{job_id}"


def error_fingerprint(target: str, error_class: str, message: str) -> str:
    """Return 16 hex digits that are the same for failures that differ only in numbers, ids and quoted values."""
    seen = "\0".join((target, error_class, message_shape(message)))
    return hashlib.sha256(seen.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def message_shape(message: str) -> str:
    """Replace what varies in an error message by placeholders.

    Example: `message_shape("user 'ann' has 3 orders") == "user <str> has <n> orders"`
    """
    return _VARIABLE.sub(_placeholder, message[:MAX_SHAPED_MESSAGE]).strip()


def _placeholder(found: re.Match[str]) -> str:
    return " " if found.lastgroup == "gap" else f"<{found.lastgroup}>"


def _shown(value: object) -> str:
    text = repr(value)
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return shown if isinstance(value, str | bytes) else f"{shown} ({type(value).__name__})"


def _unprintable(value: str) -> str:
    return next(f"U+{ord(char):04X}" for char in value if not char.isprintable())
