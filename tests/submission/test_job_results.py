"""How a job ended, as an argument of another job."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pydantic
import pytest

from windlass.domain.job_result import RESULT, JobResult
from windlass.errors import JobFailedError, SerializationError
from windlass.submission.codec import JsonSerializer, decode_arguments, encode_arguments
from windlass.submission.signature import call_spec
from windlass.submission.tagged import DroppedResult

JOB = UUID("0198c0de-0000-7000-8000-000000000001")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
FAILED = JobFailedError(JOB, "retry_exhausted", "ValueError: no", "ValueError")


class Size(Enum):
    SMALL = "small"


@dataclass(frozen=True)
class Line:
    price: Decimal
    size: Size


class Note(pydantic.BaseModel):
    at: datetime


def pack(line: Line, when: datetime, *, note: Note, label: Any = None) -> list[Line]:
    raise NotImplementedError


def typed(result: JobResult) -> None: ...


def optional(result: JobResult | None) -> None: ...


def untyped(result): ...


def several(results: list[JobResult]) -> None: ...


def error(error: JobFailedError) -> None: ...


def any_error(error: Exception) -> None: ...


def result(**changes: Any) -> JobResult:
    plain = JobResult(
        job_id=JOB,
        target="shop:pack",
        args=(1, "two", None),
        kwargs={"x": 1.5},
        tags=("a", "b"),
        params={"tenant": "acme", "deep": {"n": [1, 2]}},
        reason=None,
        succeeded=True,
        failed=False,
        value={"total": 3},
        run_ms=12,
        attempts=2,
    )
    return replace(plain, **changes)


def there_and_back(function: Any, *args: Any, serializer: JsonSerializer | None = None) -> Any:
    spec = call_spec(function)
    text = encode_arguments(spec, args, {})
    decoded, _ = serializer.decode_arguments(spec, text) if serializer else decode_arguments(spec, text)
    return decoded[0]


@pytest.mark.parametrize("function", [typed, optional, untyped], ids=lambda function: function.__name__)
@pytest.mark.parametrize(
    "given",
    [
        result(),
        result(args=(), kwargs={}, value=None, succeeded=False, failed=True, error="E: x", error_class="E", reason="r"),
        result(args=(NOON, b"\x00\xff", {1, 2}, JOB, Path("a")), value=(Decimal("1.5"), NOON)),
        result(value=DroppedResult("too large", 70_000)),
        result(value=result(value=NOON)),
        result(args=(FAILED,)).__class__(job_id=JOB, target="t", kwargs={}, params={}, succeeded=False, failed=True),
        result(value={"$windlass": "uuid", "value": 7}, run_ms=None),
    ],
    ids=["plain", "failed", "built-in types", "dropped", "a result in a result", "defaults", "looks like ours"],
)
def test_a_job_result_survives_as_an_argument(function: Any, given: JobResult):
    """J5.5, J1.1: annotated, optional or without an annotation."""
    assert there_and_back(function, given) == given


def test_job_results_survive_in_a_list():
    """J1.1: containers of them too."""
    assert there_and_back(several, [result(), result(value=NOON)]) == [result(), result(value=NOON)]


@pytest.mark.parametrize("function", [error, any_error, untyped], ids=lambda function: function.__name__)
def test_a_failure_survives_as_an_exception(function: Any):
    """J5.5: what `(ctx, error)` callbacks are given."""
    read = there_and_back(function, FAILED)
    assert isinstance(read, JobFailedError)
    assert (read.job_id, read.reason, read.error, read.error_class) == FAILED.args


def test_classes_are_restored_where_the_target_is_known():
    """J5.5: by the annotations of the job that ended, not of the one that reads."""
    line, note = Line(Decimal("1.50"), Size.SMALL), Note(at=NOON)
    given = result(args=(line, NOON), kwargs={"note": note, "label": {1: NOON}}, value=[line, line])
    known = JsonSerializer({"shop:pack": call_spec(pack)}.get)
    assert there_and_back(typed, given, serializer=known) == given
    assert there_and_back(untyped, given, serializer=known) == given


def test_classes_are_plain_where_the_target_is_not_known():
    """J5.5: as stored, for showing."""
    given = result(args=(Line(Decimal("1.50"), Size.SMALL),), kwargs={}, value=Size.SMALL)
    read = there_and_back(typed, given, serializer=JsonSerializer())
    assert (read.args, read.value) == (({"price": "1.50", "size": "small"},), "small")


def test_values_that_no_longer_fit_the_target_stay_plain():
    """J5.5: a changed signature spoils no callback."""
    known = JsonSerializer({"shop:pack": call_spec(pack)}.get)
    read = there_and_back(typed, result(value="odd"), serializer=known)
    assert (read.args, read.kwargs, read.value) == ((1, "two", None), {"x": 1.5}, "odd")


def test_result_itself_is_refused_as_an_argument():
    """J5.5: it stands for something only in a callback."""
    with pytest.raises(SerializationError, match=r"RESULT.*on_success=clean_up\.bind\(RESULT\)"):
        encode_arguments(call_spec(untyped), (RESULT,), {})
    assert repr(RESULT) == "RESULT"
