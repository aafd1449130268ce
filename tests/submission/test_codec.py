"""What is refused where it is written, what happens when a signature changes, and how results are kept."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pydantic
import pytest

from windlass.errors import PayloadTooLargeError, SerializationError
from windlass.submission.codec import (
    JsonSerializer,
    decode_arguments,
    decode_result,
    encode_arguments,
    encode_result,
    plain_arguments,
)
from windlass.submission.signature import CallSpec, call_spec
from windlass.submission.tagged import DroppedResult

NOW = datetime(2030, 1, 2, tzinfo=UTC)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Money:
    amount: Decimal


@dataclass(frozen=True)
class Priced(Money):
    tax: Decimal = Decimal(0)


@dataclass
class Bag:
    content: Any = None


class Thing:
    pass


class Model(pydantic.BaseModel):
    ratio: float | None = None


def spec_for(annotation: Any) -> CallSpec:
    def job(x): ...

    job.__annotations__ = {"x": annotation}
    return call_spec(job)


def encoded(annotation: Any, value: Any) -> str:
    return encode_arguments(spec_for(annotation), (value,), {})


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

REFUSED = {
    "text for an integer": (int, "7", "Expected `int`, got `str`"),
    "a whole float for an integer": (int, 7.0, "Expected `int`, got `float`"),
    "a bool for an integer": (int, True, "got `bool`"),
    "None where it is not optional": (int, None, "got `null`"),
    "a uuid for text": (str, UUID(int=1), "would come back as '0000"),
    "a datetime for text": (str, NOW, "would come back as '2030"),
    "an enum for text": (str, Colour.RED, "would come back as 'red'"),
    "a path for text": (str, Path("/a"), "would come back as '/a'"),
    "bytes for text": (str, b"x", "would come back as 'eA=='"),
    "text for bytes": (bytes, "abcd", "would come back as b'"),
    "a date for a datetime": (datetime, date(2030, 1, 1), "datetime"),
    "an integer no float can hold": (float, 2**53 + 1, "would come back as 9007199254740992.0"),
    "NaN": (float, float("nan"), "JSON has no nan"),
    "infinity that would become None": (float | None, float("inf"), "JSON has no inf"),
    "NaN inside a list": (list[float], [float("nan")], "JSON has no nan"),
    "NaN without an annotation": (Any, {"a": [float("-inf")]}, "JSON has no -inf"),
    "NaN inside a model": (Model, Model(ratio=float("nan")), "JSON has no nan"),
    "a value out of range": (Annotated[int, msgspec.Meta(ge=1)], 0, ">= 1"),
    "an unknown enum value": (Colour, "blue", "Invalid enum value 'blue'"),
    "a subclass whose fields would be lost": (Money, Priced(Decimal(1)), "would come back as Money"),
    "a wrong field": (Money, Money("x"), "at `$.amount`"),  # type: ignore[arg-type]
    "an open field that would change": (Bag, Bag(NOW), "at .content"),
    "an item that would change": (list[str], ["a", UUID(int=1)], "at [1]"),
    "a key that would change": (dict[str, int], {1: 2}, "1 would come back as '1'"),
    "items lost in a set": (set[int], [1, 1], "would come back as {1}"),
    "a key an open dict forbids": (dict[str, Any], {1: 2}, "Expected `str`, got `int`"),
    "none of several types": (str | datetime, 5, "str | datetime"),
    "an invalid model": (Model, {"ratio": "x"}, "valid number"),
    "a time zone with seconds": (datetime, datetime.fromisoformat("1800-01-01T00:00:00+01:30:28"), "would come back"),
    "half a character": (str, "\ud800", "surrogates"),
    "an endless integer": (int, 10**5000, "4300 digits"),
    "a value that contains itself": (list[Any], CIRCLE, "contains itself"),
    "the same without an annotation": (Any, CIRCLE, "contains itself"),
    "a dataclass without an annotation": (Any, Money(Decimal(1)), "annotate it with Money"),
    "a dataclass in an open dict": (dict[str, Any], {"a": Money(Decimal(1))}, "annotate it with Money"),
    "an enum without an annotation": (Any, Colour.RED, "annotate it with Colour"),
    "a custom object": (Thing, Thing(), "make Thing a dataclass"),
    "a custom object without an annotation": (Any, Thing(), "make Thing a dataclass"),
    "a lambda": (Any, lambda: 1, "pass its name"),
    "a class": (Any, Thing, "pass its name"),
    "a generator": (Any, (i for i in [1]), "pass a list of its items"),
    "a union of dataclasses": (Money | Bag, Bag(), "msgspec.Structs with a tag"),
}


@pytest.mark.parametrize(("annotation", "value", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_value_that_would_not_survive_storage_is_refused_naming_parameter_and_reason(
    annotation: Any, value: Any, reason: str
):
    """J1.1: unserialisable arguments are refused at enqueue with an error that says what to write instead."""
    with pytest.raises(SerializationError) as caught:
        encoded(annotation, value)
    text = str(caught.value)
    assert "job(): argument 'x' = " in text
    assert "cannot be stored: " in text
    assert reason in text


def test_an_open_file_is_refused_with_the_advice_to_pass_its_path(tmp_path: Path):
    with (tmp_path / "x").open("w") as file, pytest.raises(SerializationError, match="pass the path"):
        encoded(Any, file)


def test_a_value_whose_repr_fails_is_still_named():
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(SerializationError, match="argument 'x' = <Broken"):
        encoded(Any, Broken())


@pytest.mark.parametrize(
    ("annotation", "value", "back"),
    [
        (float, 5, 5.0),
        (tuple[int, int], [1, 2], (1, 2)),
        (list[int], (1, 2), [1, 2]),
        (datetime, "2030-01-02T00:00:00Z", NOW),
        (Colour, "red", Colour.RED),
        (Money, {"amount": "1.5"}, Money(Decimal("1.5"))),
        (Model, {"ratio": 1}, Model(ratio=1.0)),
        (Decimal, 0.1, Decimal("0.1")),
        (Path, "/a", Path("/a")),
    ],
)
def test_a_value_that_spells_the_annotated_type_arrives_as_that_type(annotation: Any, value: Any, back: Any):
    spec = spec_for(annotation)
    args, _ = decode_arguments(spec, encode_arguments(spec, (value,), {}))
    assert args == (back,)
    assert type(args[0]) is type(back)


def charge(invoice: int, note: str = "", *rest: Decimal, when: datetime = NOW, **more: UUID) -> str:
    return f"{invoice} {note} {rest} {when} {more}"


def test_arguments_are_stored_as_positional_and_keyword_json():
    """J1.1: a job is a stored call with JSON arguments."""
    spec = call_spec(charge)
    text = encode_arguments(spec, (1, "a", Decimal("2.5")), {"when": NOW, "other": UUID(int=1)})
    assert text == ('[[1,"a","2.5"],{"when":"2030-01-02T00:00:00Z","other":"00000000-0000-0000-0000-000000000001"}]')
    assert decode_arguments(spec, text) == ((1, "a", Decimal("2.5")), {"when": NOW, "other": UUID(int=1)})


def test_defaults_are_not_stored():
    spec = call_spec(charge)
    assert encode_arguments(spec, (1,), {}) == "[[1],{}]"
    assert decode_arguments(spec, "[[1],{}]") == ((1,), {})


@pytest.mark.parametrize("extra", [0, 1])
def test_a_payload_over_the_limit_is_refused_with_both_sizes(extra: int):
    """J1.6: payload limit, a clear error at enqueue."""
    spec = spec_for(str)
    fitting = "x" * (100 * 1024 - len('[[""],{}]'))
    if not extra:
        encode_arguments(spec, (fitting,), {})
        return
    with pytest.raises(PayloadTooLargeError, match=r"102,401 bytes.*102,400.*max_payload_bytes"):
        encode_arguments(spec, (fitting + "x",), {})


def test_the_payload_limit_counts_bytes_not_characters():
    encode_arguments(spec_for(str), ("x" * 11,), {}, limit=20)
    with pytest.raises(PayloadTooLargeError):
        encode_arguments(spec_for(str), ("\u2603" * 11,), {}, limit=20)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[["x"],{}]', "'invoice' = '\"x\"' no longer fits the signature: Expected `int`"),
        ("[[],{}]", "missing a required argument: 'invoice'"),
        ('[[1],{"note":7}]', "'note' = '7'"),
        ('[[1,"a","x"],{}]', "'rest' = '\"x\"'"),
        ('[[1],{"other":"x"}]', "'other' = '\"x\"'"),
        ("[[1]]", "damaged"),
        ("nonsense", "damaged"),
    ],
)
def test_stored_arguments_that_no_longer_fit_are_an_error_that_names_them(text: str, reason: str):
    """J1.1: arguments are bound again at run; drift is a SerializationError."""
    with pytest.raises(SerializationError) as caught:
        decode_arguments(call_spec(charge), text)
    assert reason in str(caught.value)
    assert "charge()" in str(caught.value)


def test_a_removed_parameter_is_drift():
    def job(a: int) -> None: ...

    with pytest.raises(SerializationError, match="no longer fit the signature"):
        decode_arguments(call_spec(job), '[[],{"a":1,"b":2}]')


def test_annotating_a_parameter_keeps_stored_jobs_readable():
    """Adding type hints is the commonest change of all; jobs stored before must still run."""
    text = encoded(Any, [NOW, Decimal(1)])
    assert decode_arguments(spec_for(list[Any]), text) == (([NOW, Decimal(1)],), {})
    assert decode_arguments(spec_for(datetime), encoded(Any, NOW)) == ((NOW,), {})
    with pytest.raises(SerializationError, match="no longer fits"):
        decode_arguments(spec_for(date), encoded(Any, Decimal(1)))


@pytest.mark.parametrize(
    "stored",
    ['{"$windlass":"later","value":1}', '{"$windlass":"uuid","value":"x"}', '{"$windlass":[1]}', '{"$windlass":"set"}'],
)
def test_an_unknown_or_damaged_tag_is_an_error(stored: str):
    with pytest.raises(SerializationError, match="stored value"):
        decode_arguments(spec_for(Any), f"[[{stored}],{{}}]")


def test_plain_arguments_need_no_signature():
    text = encode_arguments(spec_for(Any), ((NOW, 1),), {})
    assert plain_arguments(text) == (((NOW, 1),), {})


def test_no_result_stores_nothing():
    assert encode_result(None, int) == (None, None)
    assert decode_result(None, int) is None


def test_a_result_over_the_limit_is_replaced_by_a_marker():
    """J1.6: a larger result is replaced by a marker, with a warning, and the job still succeeds."""
    text, warning = encode_result("x" * 70_000, str)
    assert warning is not None
    assert text is not None
    assert len(text) < 300
    assert '"$windlass":"result_dropped"' in text
    assert '"bytes":70002' in text
    dropped = decode_result(text, str)
    assert dropped == DroppedResult(warning, 70_002)
    assert "65,536" in dropped.reason


@pytest.mark.parametrize("value", [Thing(), lambda: 1, float("nan"), CIRCLE, [object()]])
@pytest.mark.parametrize("annotation", [Any, int])
def test_a_result_that_is_no_json_is_replaced_by_a_marker(value: Any, annotation: Any):
    """J1.6: an unserialisable result is replaced by a marker, with a warning."""
    text, warning = encode_result(value, annotation)
    assert warning is not None
    assert "cannot be stored" in warning
    assert decode_result(text, annotation) == DroppedResult(warning, 0)


@pytest.mark.parametrize(
    ("annotation", "value", "kept"),
    [
        (int, "text", "text"),
        (Any, Money(Decimal("1.5")), {"amount": "1.5"}),
        (None, {"a": 1}, {"a": 1}),
        (Money, Priced(Decimal(1)), {"amount": "1", "tax": "0"}),
    ],
)
def test_a_result_unlike_its_annotation_is_kept_as_plain_json_with_a_warning(annotation: Any, value: Any, kept: Any):
    text, warning = encode_result(value, annotation)
    assert warning is not None
    assert decode_result(text, annotation) == kept
    assert decode_result(text, Any) == kept


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (dict[str, str], {"$windlass": "result_dropped"}),
        (dict[str, Any], {"$windlass": "datetime", "value": "x"}),
        (Any, {"$windlass": {"$windlass": 1}}),
        (tuple[int, int], (1, 2)),
        (Any, (1, NOW)),
    ],
)
def test_a_result_that_looks_like_a_marker_is_restored_as_it_was(annotation: Any, value: Any):
    text, warning = encode_result(value, annotation)
    assert warning is None
    assert decode_result(text, annotation) == value


def test_a_result_is_plain_json_where_its_annotation_is_unknown():
    text, _ = encode_result(Money(Decimal(1)), Money)
    assert decode_result(text) == {"amount": "1"}


@pytest.mark.parametrize("text", ['"x"', "nonsense", "["])
def test_a_stored_result_that_does_not_fit_is_an_error(text: str):
    with pytest.raises(SerializationError, match="stored result"):
        decode_result(text, int)


def test_the_default_serializer_is_these_functions():
    serializer = JsonSerializer()
    spec = call_spec(charge)
    text = serializer.encode_arguments(spec, (1,), {}, 100)
    assert serializer.decode_arguments(spec, text) == ((1,), {})
    stored, warning = serializer.encode_result(NOW, datetime, 100)
    assert warning is None
    assert serializer.decode_result(stored, datetime) == NOW
    with pytest.raises(PayloadTooLargeError):
        serializer.encode_arguments(spec, (1,), {}, 5)
