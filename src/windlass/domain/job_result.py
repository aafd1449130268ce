"""How a job ended, as its callbacks see it, and `RESULT`, the placeholder for its return value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a job ended: what `on_success` and `on_failure` are called with.

    ```python
    def report(result: JobResult) -> None:
        print(result.target, result.args, result.value if result.succeeded else result.error)
    ```

    `args`, `kwargs` and `value` have the types of the target's annotations where the target is known to the process
    that reads them, and are plain JSON elsewhere. What is stored of the job and can no longer be read is left out:
    then there are no arguments, and `value` is None. A value that was too large to be kept is a `DroppedResult`.
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
    """Stands for a value that is known only later; compared by identity."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


RESULT: Final[Any] = Placeholder("RESULT")
"""In the arguments of a callback: the job's return value, or its `JobResult` if the parameter is annotated so."""
