"""How a job ended, as its followers and callbacks see it, and `RESULT`, the placeholder for its return value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from uuid import UUID

from windlass.errors import InvalidOptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a job ended: what `on_success` and `on_failure` are called with, and followers that ask for it.

    ```python
    def report(result: JobResult) -> None:
        print(result.target, result.args, result.value if result.succeeded else result.error)
    ```

    `args`, `kwargs` and `value` have the types of the target's annotations where the target is known to the process
    that reads them, and are plain JSON elsewhere. What is stored of the job and can no longer be read is left out:
    then there are no arguments, and `value` is None. An argument that the job itself took from the result of another
    one may be None. A value that was too large to be kept is a `DroppedResult`.
    """

    job_id: UUID
    target: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any]
    tags: tuple[str, ...] = ()
    params: Mapping[str, Any]
    reason: str | None = None
    """Why it is a dead letter, e.g. `retry_exhausted`; None if it succeeded."""
    succeeded: bool
    failed: bool
    value: Any = None
    """What it returned; None if it failed."""
    error: str | None = None
    """The sanitised error of its last attempt; None if it succeeded."""
    error_class: str | None = None
    run_ms: int | None = None
    """How long its last attempt ran; None if its body was never entered, or its worker was lost."""
    attempts: int = 0


class Placeholder:
    """Stands for a result that is known only later, or for a part of it: `RESULT["id"]`, `RESULT["lines"][0]`."""

    __slots__ = ("path",)

    def __init__(self, path: tuple[str | int, ...] = ()) -> None:
        self.path = path

    def __getitem__(self, key: object) -> "Placeholder":
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise InvalidOptionError(
                f"a part of a result is named by a text or a number, e.g. RESULT['id'] or RESULT[0]; got {key!r}"
            )
        return Placeholder((*self.path, key))

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self} stands for a result that is not known yet; take its parts by name: {self}[0]")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placeholder) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return "RESULT" + "".join(f"[{key!r}]" for key in self.path)


RESULT: Final[Any] = Placeholder()
"""In the arguments of a follower or a callback: the result of the job before it, or a part of it.

It is the `JobResult` if the parameter is annotated so. Behind a group it is the list of results of its members.
"""
